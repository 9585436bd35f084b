"""The OpenAPI document: it is valid, tells every endpoint, and is read without a login."""

from __future__ import annotations

import pytest
import schemathesis

from bloomery.api import openapi, routing
from bloomery.api.controllers import root
from bloomery.conf import Conf
from bloomery.conf.default import Default

PATH = "/ext/v1/openapi.json"
ENDPOINTS = list(routing.endpoints(root.Root()))


@pytest.fixture
def document(api):
    return api.get(PATH).json


def test_every_endpoint_is_told(document):
    told = {(m.upper(), path) for path, one in document["paths"].items() for m in one}
    assert {(method, path) for method, path, _ in ENDPOINTS} <= told


def test_document_is_valid(document):
    schema = schemathesis.openapi.from_dict(document)
    schema.validate()
    assert len(list(schema.get_all_operations())) > len(ENDPOINTS)
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names)


def test_optional_ident_gives_two_paths(document):
    for path in ("/v1/nodes/{node}/traits", "/v1/nodes/{node}/traits/{trait}"):
        assert {"put", "delete"} <= set(document["paths"][path])


def test_operation_tells_version_policy_arguments_and_answers(document):
    told = document["paths"]["/v1/nodes"]["get"]
    assert (told["x-since"], told["x-policy"]) == ("1.1", "baremetal:node:list")
    shard = next(each for each in told["parameters"] if each.get("name") == "shard")
    assert shard == {
        "name": "shard", "in": "query", "required": False, "explode": False, "x-since": "1.82",
        "schema": {"type": "array", "items": {"type": "string"}},
    }  # fmt: skip
    assert {"200", "400", "404", "406"} <= set(told["responses"])


def test_body_of_names_is_told(document):
    asked = document["paths"]["/v1/nodes/{node}/states/power"]["put"]["requestBody"]
    schema = asked["content"]["application/json"]["schema"]
    assert (asked["required"], schema["required"]) == (True, ["target"])
    assert set(schema["properties"]) == {"target", "timeout"}


def parameter(document, path, method, name):
    told = document["paths"][path][method]["parameters"]
    return next(each["schema"] for each in told if each.get("name") == name)


def body(document, path, method):
    asked = document["paths"][path][method]["requestBody"]
    return asked["content"]["application/json"]["schema"]


@pytest.mark.parametrize(
    ("name", "shape", "refused"),
    [
        ("limit", {"type": "integer", "format": "int64", "minimum": 1}, "0"),
        ("sort_dir", {"type": "string", "enum": ["asc", "desc"]}, "up"),
        ("description_contains", {"type": "string", "maxLength": 4096}, "x" * 4097),
        (
            "parent_node",
            {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[A-Za-z0-9._~-]+$"},
            "a%20b",
        ),
    ],
)
def test_bounds_of_arguments_are_told_and_kept(document, api, name, shape, refused):
    assert parameter(document, "/v1/nodes", "get", name) == shape
    assert api.get(f"/v1/nodes?{name}={refused}", version=115).status == 400


def test_bounds_of_a_body_are_told_and_kept(document, world):
    api, node = world.api, world.node()
    made = body(document, "/v1/nodes", "post")["properties"]
    assert made["uuid"]["format"] == "uuid"
    assert made["name"] | {"pattern": "^[A-Za-z0-9._~-]+$", "maxLength": 255} == made["name"]
    for wrong in ({"uuid": "x"}, {"name": "a b"}):
        assert api.post("/v1/nodes", {"driver": "fake-hardware"} | wrong).status == 400
    assert "pattern" in body(document, "/v1/ports", "post")["properties"]["address"]
    change = body(document, "/v1/nodes/{node}", "patch")
    assert (change["maxItems"], "pattern" in change["items"]["properties"]["path"]) == (1000, True)
    one = {"op": "add", "path": "/extra/a", "value": 1}
    for wrong in ([one] * 1001, [one | {"path": "extra"}]):
        assert api.patch(f"/v1/nodes/{node}", wrong).status == 400
    power = body(document, "/v1/nodes/{node}/states/power", "put")["properties"]["timeout"]
    assert power["minimum"] == 1
    asked = {"target": "soft power off", "timeout": 0}
    assert api.put(f"/v1/nodes/{node}/states/power", asked, version=115).status == 400


@pytest.mark.parametrize(("method", "path", "endpoint"), ENDPOINTS)
def test_shape_of_every_argument_is_known(method, path, endpoint):
    for arg in (endpoint.query | (endpoint.named or {})).values():
        assert arg.parse in openapi.SHAPES


@pytest.mark.parametrize("version", [None, 1, 90, 91, 115])
def test_every_version_finds_it(api, version):
    assert api.get(PATH, version=version).status == 200


class TestWithLogins:
    @pytest.fixture
    def conf(self, tmp_path):
        users = tmp_path / "htpasswd"
        users.write_text("")
        return Conf(
            default=Default(auth_strategy="http_basic", http_basic_auth_user_file=str(users)),
        )

    def test_nobody_is_asked_for_a_name(self, api):
        assert api.get(PATH).status == 200
        assert api.get("/v1/nodes").status == 401
