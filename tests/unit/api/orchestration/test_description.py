"""The OpenAPI document of the orchestration API: it is valid, and tells every endpoint."""

from __future__ import annotations

import re

import jsonschema_rs
import pytest
import schemathesis

from bloomery.api.orchestration import arguments, routes
from bloomery.operations import policy_rules
from tests.unit.api.orchestration.conftest import BASE, S
from tests.unit.api.orchestration.test_stacks import NEW

PATH = "/ext/v1/openapi.json"
RULES = {rule.name for rule in policy_rules.RULES}
ENDPOINTS = [pytest.param(each, id=f"{each.method} {each.path}") for each in routes.ENDPOINTS]


@pytest.fixture
def document(api):
    return api.get(PATH).json


def test_document_is_valid(document):
    schema = schemathesis.openapi.from_dict(document)
    schema.validate()
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names) == len(routes.ENDPOINTS)


def test_document_says_where_the_api_is(document):
    assert document["servers"] == [{"url": "http://localhost"}]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_endpoint_is_described_with_its_arguments_and_its_body(document, endpoint):
    operation = document["paths"][endpoint.path][endpoint.method.lower()]
    assert str(endpoint.status) in operation["responses"]
    names = [each["name"] for each in operation["parameters"]]
    assert names == [*re.findall(r"{(\w+)}", endpoint.path), *endpoint.query]
    assert all(arg.parse in arguments.SHAPES for arg in endpoint.query.values())
    assert ("requestBody" in operation) == (endpoint.body is not None)


def body(document, method, path):
    asked = document["paths"][f"/v1/{{project}}/{path}"][method]["requestBody"]
    return asked["required"], asked["content"]["application/json"]["schema"]


STACK = "stacks/{stack_name}/{stack_id}"
BODIES = [
    ("post", "stacks", NEW, f"{BASE}/stacks", 201),
    ("post", "stacks", NEW | {"timeout_mins": -1}, f"{BASE}/stacks", 400),
    ("post", "stacks", NEW | {"tags": ["a"]}, f"{BASE}/stacks", 400),
    ("post", "stacks", NEW | {"files": []}, f"{BASE}/stacks", 400),
    ("post", "stacks", NEW | {"disable_rollback": "yes"}, f"{BASE}/stacks", 400),
    ("post", "stacks", NEW | {"disable_rollback": "true", "tags": "a,b"}, f"{BASE}/stacks", 201),
    ("post", "stacks", {"template": {}}, f"{BASE}/stacks", 400),
    ("put", STACK, {}, S, 400),
    ("patch", STACK, {}, S, 202),
    ("patch", STACK, {"clear_parameters": "x"}, S, 400),
    ("patch", STACK, {"plan_basis": {"a": 1}}, S, 400),
    ("post", f"{STACK}/actions", {"check": None}, f"{S}/actions", 200),
    ("post", f"{STACK}/actions", {"check": None, "suspend": None}, f"{S}/actions", 400),
    ("post", f"{STACK}/actions", {"dance": None}, f"{S}/actions", 400),
    ("patch", f"{STACK}/resources/{{resource_name}}", {"mark_unhealthy": True},
     f"{S}/resources/a", 200),
    ("patch", f"{STACK}/resources/{{resource_name}}", {"mark_unhealthy": 1},
     f"{S}/resources/a", 400),
    ("post", f"{STACK}/snapshots", {"name": None}, f"{S}/snapshots", 200),
    ("post", f"{STACK}/snapshots", {"name": 1}, f"{S}/snapshots", 400),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "sent", "address", "status"), BODIES)
def test_schema_of_a_body_takes_what_the_api_takes(
    document, api, method, path, sent, address, status
):
    assert api.ask(method.upper(), address, sent).status == status
    _, schema = body(document, method, path)
    assert jsonschema_rs.is_valid(schema, sent) == (status < 400)


@pytest.mark.parametrize(
    ("method", "path", "address"),
    [
        ("post", f"{STACK}/snapshots", f"{S}/snapshots"),
        ("post", "software_configs", f"{BASE}/software_configs"),
        ("put", "software_deployments/{deployment_id}", f"{BASE}/software_deployments/d"),
        ("patch", STACK, S),
    ],
)
def test_body_that_is_required_is_told(document, api, method, path, address):
    required, _ = body(document, method, path)
    assert (api.ask(method.upper(), address).status == 400) == required


@pytest.mark.parametrize(
    ("path", "name", "right"),
    [
        ("resource_types", "support_status", "HIDDEN"),
        ("resource_types/{type_name}/template", "template_type", "hot"),
    ],
)
def test_values_of_arguments_are_told(document, path, name, right):
    operation = document["paths"][f"/v1/{{project}}/{path}"]["get"]
    schema = next(each["schema"] for each in operation["parameters"] if each["name"] == name)
    assert [jsonschema_rs.is_valid(schema, value) for value in (right, "odd")] == [True, False]


def test_outputs_of_a_config_have_names(document):
    _, schema = body(document, "post", "software_configs")
    for outputs, is_right in (
        ([{"name": "a"}], True),
        ([{}], False),
        ([{"name": "a", "b": 1}], False),
    ):
        assert jsonschema_rs.is_valid(schema, {"outputs": outputs}) == is_right


def test_rules_are_those_of_policies():
    rules = {each.rule for each in routes.ENDPOINTS if each.rule != "public"}
    assert {rule for rule in rules if not rule.endswith(":*")} <= RULES
