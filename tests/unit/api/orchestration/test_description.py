"""The OpenAPI document of the orchestration API: it is valid, and tells every route."""

from __future__ import annotations

import pytest
import schemathesis

from bloomery.api.orchestration import lookup, routes, routing
from bloomery.api.orchestration.routing import BRACES

PATH = "/ext/v1/openapi.json"
TABLES = {"/v1/{project}/": routes.ROUTES, "/ext/v1/": routes.EXTENSIONS}


@pytest.fixture
def document(api):
    return api.get(PATH).json


def test_document_is_valid(document):
    schema = schemathesis.openapi.from_dict(document)
    schema.validate()
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names)


def test_document_says_where_the_api_is(document):
    assert document["servers"] == [{"url": "http://localhost"}]


@pytest.mark.parametrize(
    ("prefix", "route"),
    [(prefix, route) for prefix, table in TABLES.items() for route in table],
    ids=lambda each: each if isinstance(each, str) else f"{each.methods} {each.path}",
)
def test_each_route_is_described_by_a_path_that_it_answers(document, prefix, route):
    methods = {each.lower() for each in route.methods.split(",")}
    described = [
        path
        for path, operations in document["paths"].items()
        if path.startswith(prefix)
        and route.pattern.fullmatch(path.removeprefix(prefix))
        and methods <= set(operations)
    ]
    assert bool(described) is (route.endpoint is not lookup.find_arn)


def test_described_paths_lead_to_the_status_that_is_described(document):
    for path, operations in document["paths"].items():
        prefix = next(each for each in TABLES if path.startswith(each))
        router = routing.Router(TABLES[prefix])
        for method, operation in operations.items():
            route, values = router.find(method.upper(), path.removeprefix(prefix))
            assert str(route.status) in operation["responses"]
            assert {each["name"] for each in operation["parameters"]} == {
                name for name, _words in BRACES.findall(path)
            }
            assert set(values) <= {name for name, _words in BRACES.findall(route.path)}
