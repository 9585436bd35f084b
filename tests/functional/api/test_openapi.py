"""The OpenAPI document: it is valid, tells every endpoint, and is read without a login."""

from __future__ import annotations

from urllib.parse import urlencode

import jsonschema_rs
import pytest
import schemathesis

from bloomery.api import openapi, routes
from bloomery.api.versions import MAX
from bloomery.conf import Conf
from bloomery.conf.default import Default
from tests.fakes.client import NEWEST, Answer
from tests.kit.clients import documented

PATH = "/ext/v1/openapi.json"
STEP = {"interface": "bios", "step": "s", "order": 1}
UUID = "e3e70682-c209-4cac-a29f-6fbed82c07cd"
ENDPOINTS = [(each.method, each.path, each) for each in routes.ENDPOINTS]


@pytest.fixture
def document(api):
    return api.get(PATH).json


def test_every_endpoint_is_told(document):
    told = {(m.upper(), path) for path, one in document["paths"].items() for m in one}
    assert {(method, path) for method, path, _ in ENDPOINTS} <= told


def test_document_is_valid(document):
    schema = schemathesis.openapi.from_dict(document)
    schema.validate()
    assert len(list(schema.get_all_operations())) == len(ENDPOINTS)
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names)


def schemas_in(value):
    """Every schema below some part of the document."""
    if isinstance(value, dict):
        own = [value["schema"]] if "schema" in value else []
        return own + [each for inner in value.values() for each in schemas_in(inner)]
    return (
        [each for inner in value for each in schemas_in(inner)] if isinstance(value, list) else []
    )


def test_every_schema_is_one_of_json_schema(document):
    schemas = [*schemas_in(document), *document["components"]["schemas"].values()]
    assert len(schemas) > 400
    for schema in schemas:
        jsonschema_rs.meta.validate(schema)


def references_in(value):
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [each for inner in value.values() for each in references_in(inner)]
    return [each for x in value for each in references_in(x)] if isinstance(value, list) else []


def test_every_reference_leads_somewhere(document):
    for reference in set(references_in(document)):
        documented.resolved({"$ref": reference})


def test_reads_that_lock_the_node_may_meet_a_lock(document):
    node = "/v1/nodes/{node}"
    for path in ("management/boot_device", "management/indicators/{indicator}", "vendor_passthru"):
        assert "409" in document["paths"][f"{node}/{path}"]["get"]["responses"]
    assert "409" not in document["paths"][f"{node}/validate"]["get"]["responses"]


BARE = {"GET /ext/v1/openapi.json"}


def test_every_document_is_described(document):
    """But of vendors, and where nothing is ever answered."""
    bare = set()
    for method, path, endpoint in ENDPOINTS:
        if method != "GET" or endpoint.status >= 400 or "vendor_passthru" in path:
            continue
        content = document["paths"][path]["get"]["responses"]["200"]["content"]
        if content["application/json"]["schema"] == {"type": endpoint.answers}:
            bare.add(f"{method} {path}")
    assert bare <= BARE


def test_answer_is_described_with_its_headers(document):
    created = document["paths"]["/v1/nodes"]["post"]["responses"]["201"]
    assert created["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Node"}
    assert {"Location", "X-OpenStack-Ironic-API-Version"} <= set(created["headers"])
    assert "Retry-After" in document["components"]["responses"]["409"]["headers"]
    assert "Allow" in document["components"]["responses"]["405"]["headers"]


def test_an_operation_that_only_refuses_promises_nothing(document):
    for method, path, endpoint in ENDPOINTS:
        answers = document["paths"][path][method.lower()]["responses"]
        promises = any(status.startswith("2") for status in answers)
        assert promises == (endpoint.status < 300), (method, path)


def test_a_version_that_knows_what_came_later_is_told(document):
    told = document["paths"]["/v1/continue_inspection"]["post"]
    assert (told["x-since"], told["x-also"]) == ("1.84", ["1.1"])


def test_logins_and_microversions_are_described(document):
    assert {each for one in document["security"] for each in one} == {"basic", "token"}
    assert document["x-openstack"] == {"min-ver": "1.1", "max-ver": NEWEST}
    shards = document["paths"]["/v1/shards"]["get"]
    assert (shards["x-openstack"]["min-ver"], "security" in shards) == ("1.82", False)
    assert document["paths"]["/v1"]["get"]["security"] == []


@pytest.mark.parametrize(
    ("status", "headers", "body", "fault"),
    [
        (200, {}, b'{"nodes": [{"uuid": 5, "links": []}]}', "5 is not"),
        (200, {}, b'{"nodes": [{"colour": "red"}]}', "colour"),
        (200, {}, b"{}", "nodes"),
        (418, {}, b"{}", "418 is not documented"),
        (200, {"x-colour": "red"}, b'{"nodes": []}', "x-colour"),
        (404, {}, b'{"error_message": 5}', "error_message"),
        (200, {"www-authenticate": "Basic"}, b'{"nodes": []}', "www-authenticate"),
        (401, {}, b'{"error_message": "no"}', "www-authenticate"),
        (401, {"www-authenticate": "Basic"}, b'{"error": "no"}', "no"),
    ],
)
def test_answer_that_is_not_as_described_is_noticed(status, headers, body, fault):
    answer = Answer(status, {"content-type": "application/json"} | headers, body)
    with pytest.raises(AssertionError, match=fault):
        documented.check("GET", "/v1/nodes", answer)


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
        ("limit", {"type": "integer", "minimum": 1}, "0"),
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
    assert api.get(f"/v1/nodes?{name}={refused}", version=MAX).status == 400


def test_bounds_of_a_body_are_told_and_kept(document, world):
    api, node = world.api, world.node()
    made = body(document, "/v1/nodes", "post")["properties"]
    assert made["uuid"]["format"] == "uuid"
    assert jsonschema_rs.is_valid(made["name"], "web-1")
    assert not any(jsonschema_rs.is_valid(made["name"], name) for name in ("states", "a b"))
    for wrong in ({"uuid": "x"}, {"name": "a b"}, {"name": "states"}):
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
    assert api.put(f"/v1/nodes/{node}/states/power", asked, version=MAX).status == 400


@pytest.mark.parametrize(
    ("path", "name", "right", "wrong"),
    [
        ("/v1/nodes", "fields", ["uuid", "traits"], ["created_at"]),
        ("/v1/ports", "fields", ["created_at", "links"], ["colour"]),
        ("/v1/chassis", "fields", ["nodes"], ["ports"]),
        ("/v1/conductors", "fields", ["alive"], ["uuid"]),
        ("/v1/drivers", "fields", ["default_bios_interface"], ["bios_interface"]),
        ("/v1/nodes", "sort_key", "name", "chassis_uuid"),
        ("/v1/ports", "sort_key", "id", "extra"),
        ("/v1/nodes", "provision_state", "clean wait", "dancing"),
        ("/v1/nodes", "fault", "power failure", "fault"),
        ("/v1/drivers", "type", "classic", "modern"),
        ("/ext/v1/events", "type", "baremetal.node", "a.b.c.d.e"),
    ],
)
def test_values_of_arguments_are_told_and_kept(document, api, path, name, right, wrong):
    schema = parameter(document, path, "get", name)
    for value, status in ((right, 200), (wrong, 400)):
        assert jsonschema_rs.is_valid(schema, value) == (status == 200)
        query = urlencode({name: ",".join(value) if isinstance(value, list) else value})
        assert api.get(f"{path}?{query}", version=MAX).status == status


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("/v1/nodes", {"driver": "fake-hardware", "retired": "perhaps"}),
        ("/v1/ports", {"address": "00:00:00:00:00:00", "node_ident": "web-1"}),
        ("/v1/portgroups", {"node_uuid": "web-1"}),
        ("/v1/allocations", {"name": "wish"}),
        ("/v1/allocations", {"resource_class": "x", "candidate_nodes": ["a b"]}),
        ("/v1/deploy_templates", {"name": "CUSTOM_A", "steps": []}),
        ("/v1/runbooks", {"name": "a b", "steps": [STEP]}),
        ("/v1/inspection_rules", {"actions": [{"op": "log", "args": {"text": "x"}}]}),
        ("/v1/events", {"events": [{"event": "network.bind_port", "port_id": "x",
                                    "mac_address": "x", "status": "up"}]}),
        ("/ext/v1/nodes:act", {"nodes": ["web-1"]}),
        ("/ext/v1/webhooks", {"url": "http://hooks.test/", "secret": "short"}),
    ],
)  # fmt: skip
def test_rules_of_a_body_are_told_and_kept(document, api, path, wrong):
    schema = body(document, path, "post") | {"components": document["components"]}
    draft = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    assert not draft.is_valid(wrong)
    assert api.post(path, wrong, version=MAX).status == 400


def test_paths_of_a_patch_are_those_that_can_change(document):
    schema = body(document, "/v1/nodes/{node}", "patch")
    for path, is_right in (
        ("/name", True), ("/extra/a~1b", True), ("/name/a", False), ("/power_state", False),
    ):  # fmt: skip
        patch = [{"op": "add", "path": path, "value": 1}]
        assert jsonschema_rs.is_valid(schema, patch) == is_right
    assert not jsonschema_rs.is_valid(schema, [{"op": "add", "path": "/name"}])
    assert jsonschema_rs.is_valid(schema, [{"op": "remove", "path": "/name"}])


def test_arguments_that_exclude_each_other_are_told(document, api):
    for path in ("/v1/ports", "/v1/portgroups", "/ext/v1/events"):
        for group in document["paths"][path]["get"]["x-at-most-one-of"]:
            values = dict.fromkeys(group, UUID) | {"fields": "uuid", "detail": "true"}
            values["address"] = "52:54:00:00:00:01"
            query = urlencode({name: values[name] for name in group})
            assert api.get(f"{path}?{query}", version=MAX).status in (400, 403)


def test_traits_are_those_of_the_standard_and_custom_ones(document):
    trait = documented.resolved(
        parameter(document, "/v1/nodes/{node}/traits/{trait}", "put", "trait")
    )
    assert jsonschema_rs.is_valid(trait, "HW_CPU_X86_VMX")
    assert jsonschema_rs.is_valid(trait, "CUSTOM_A")
    assert not jsonschema_rs.is_valid(trait, "RED")


@pytest.mark.parametrize(("method", "path", "endpoint"), ENDPOINTS)
def test_shape_of_every_argument_is_known(method, path, endpoint):
    for arg in (endpoint.query | (endpoint.named or {})).values():
        assert arg.parse in openapi.SHAPES


@pytest.mark.parametrize("version", [None, 1, 90, 91, MAX])
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


def arrays_in(value):
    """Every schema of an array below some part of the document."""
    if isinstance(value, dict):
        own = [value] if "array" in value.get("type", ()) else []
        return own + [each for inner in value.values() for each in arrays_in(inner)]
    return [each for x in value for each in arrays_in(x)] if isinstance(value, list) else []


def test_generators_of_clients_find_what_they_need(document):
    """Each array has items, and operations are in modules by their nouns."""
    assert all("items" in each for each in arrays_in(document))
    tags = [one["tags"] for path in document["paths"].values() for one in path.values()]
    assert all(len(each) == 1 for each in tags)
    assert {"nodes", "ports", "allocations", "runbooks"} <= {each[0] for each in tags}
    assert len({each[0] for each in tags}) > 15


def test_a_word_of_the_first_clients_is_no_ident_of_a_node(document):
    shape = parameter(document, "/v1/nodes/{node}", "get", "node")
    assert not jsonschema_rs.is_valid(shape, "management")
    assert jsonschema_rs.is_valid(shape, "web-1")
