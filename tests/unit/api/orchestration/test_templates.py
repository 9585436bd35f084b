"""Templates over HTTP: what is asked of the engine, and what is refused before it is asked."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.engine import Orchestration
from tests.kit.servers import web
from tests.unit.api.orchestration.conftest import BASE, World, fault

HOT = "heat_template_version: 2021-04-16\n"


def test_template_is_validated_with_all_that_came(api, engine):
    engine.answers["validate_template"] = {"Description": "mine"}
    body = {
        "template": HOT,
        "files": {"a": "b"},
        "environment": "parameters: {size: 1}",
        "parameters": {"size": 12345678901234567890123},
        "stack_name": "ignored",
    }
    answer = api.post(f"{BASE}/validate?show_nested=True&ignore_errors=99001,5", body)
    assert (answer.status, answer.json) == (200, {"Description": "mine"})
    (name, (arguments,), named) = engine.asked[-1]
    assert name == "validate_template"
    assert arguments.template == {"heat_template_version": "2021-04-16"}
    assert arguments.environment == {"parameters": {"size": 1}}
    assert arguments.parameters == {"size": 12345678901234567890123}
    assert arguments.files == {"a": "b"}
    assert named == {"show_nested": True, "ignore_errors": ("99001", "5")}


def test_integers_beyond_64_bits_are_answered_as_they_are(api, engine):
    engine.answers["validate_template"] = {"Default": 2**70, "Value": -(2**70)}
    answer = api.post(f"{BASE}/validate", {"template": HOT})
    assert answer.json == {"Default": 2**70, "Value": -(2**70)}


def test_refused_template_has_heats_type(api, engine):
    engine.answers["validate_template"] = errors.TemplateRefused(reason="no", path=["resources"])
    answer = api.post(f"{BASE}/validate", {"template": HOT})
    assert fault(answer) == (400, "HTTPBadRequest")
    assert answer.json["error"]["message"] == "resources: no"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"template": None},
        {"template": "a: b"},
        {"template": 4},
        {"template": "{"},
        {"template_url": 4},
        {"template": HOT, "environment": "x"},
        {"template": HOT, "environment": {"parameters": None}},
        {"template": HOT, "parameters": [1]},
        {"template": HOT, "environment_files": "x"},
    ],
)
def test_body_that_is_no_template_never_reaches_the_engine(api, engine, body):
    assert fault(api.post(f"{BASE}/validate", body)) == (400, "HTTPBadRequest")
    assert engine.asked == []


def test_files_container_is_refused_by_name(api):
    answer = api.post(f"{BASE}/validate", {"template": HOT, "files_container": "box"})
    assert fault(answer) == (400, "NotSupported")
    assert "files_container" in answer.json["error"]["message"]


def test_template_behind_a_url_is_fetched(world: World):
    world.conf = Conf(orchestration=Orchestration(template_fetch_networks=("127.0.0.1/32",)))
    with web.serving({"/a.yaml": web.text(f"{HOT}description: fetched")}) as site:
        body = {"template_url": site.url("/a.yaml")}
        assert world.api.post(f"{BASE}/validate", body).status == 200
    (_name, (arguments,), _named) = world.engine.asked[-1]
    assert arguments.template["description"] == "fetched"


def test_inline_template_wins_over_a_url(api, engine):
    body = {"template": HOT, "template_url": "http://127.0.0.1:1/a.yaml"}
    assert api.post(f"{BASE}/validate", body).status == 200


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/a", "file:///etc/passwd", "ftp://a/b", "http://[::1]/", "nonsense", "//"],
)
def test_url_that_tenants_may_not_fetch_is_refused_in_words(api, engine, url):
    answer = api.post(f"{BASE}/validate", {"template_url": url})
    assert fault(answer) == (400, "HTTPBadRequest")
    assert "Could not retrieve template" in answer.json["error"]["message"]
    assert engine.asked == []


def test_resource_types_are_listed_as_asked(api, engine):
    engine.answers["list_resource_types"] = ["OS::Heat::Value"]
    query = "support_status=SUPPORTED&name=OS%3A%3A.*&version=2015.1&with_description=true"
    answer = api.get(f"{BASE}/resource_types?{query}")
    assert answer.json == {"resource_types": ["OS::Heat::Value"]}
    assert engine.asked[-1][2] == {
        "support_status": "SUPPORTED", "name": "OS::.*", "version": "2015.1",
        "with_description": True,
    }  # fmt: skip


def test_schema_and_template_of_a_type_are_shown(api, engine):
    engine.answers |= {"resource_schema": {"a": 1}, "generate_template": {"b": 2}}
    assert api.get(f"{BASE}/resource_types/OS::Heat::Value").json == {"a": 1}
    assert api.get(f"{BASE}/resource_types/OS%3A%3AHeat%3A%3AValue/template").json == {"b": 2}
    assert engine.asked[-1] == ("generate_template", ("OS::Heat::Value",), {"dialect": "cfn"})
    api.get(f"{BASE}/resource_types/OS::Heat::Value/template?template_type=hot")
    assert engine.asked[-1][2] == {"dialect": "hot"}


def test_dialect_that_is_none_is_refused(api):
    answer = api.get(f"{BASE}/resource_types/OS::Heat::Value/template?template_type=tosca")
    assert fault(answer) == (400, "HTTPBadRequest")


def test_languages_are_listed(api, engine):
    engine.answers |= {"list_template_versions": [1], "list_template_functions": [2]}
    assert api.get(f"{BASE}/template_versions").json == {"template_versions": [1]}
    path = f"{BASE}/template_versions/heat_template_version.rocky/functions"
    assert api.get(f"{path}?with_condition_func=true").json == {"template_functions": [2]}
    assert engine.asked[-1] == (
        "list_template_functions", ("heat_template_version.rocky",), {"with_condition": True}
    )  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        "validate?show_nested=maybe",
        "resource_types?with_description=1",
        "resource_types/x?with_description=1",
        "template_versions/x/functions?with_condition_func=1",
    ],
)
def test_truth_values_are_true_and_false(api, path):
    method = api.post if path.startswith("validate") else api.get
    body = [{"template": HOT}] if path.startswith("validate") else []
    assert fault(method(f"{BASE}/{path}", *body)) == (400, "HTTPBadRequest")


def test_body_is_read_with_all_its_digits(api, engine):
    body = {"template": {"heat_template_version": "2021-04-16", "x": 10**40}}
    api.post(f"{BASE}/validate", body)
    (_name, (arguments,), _named) = engine.asked[-1]
    assert arguments.template["x"] == 10**40
