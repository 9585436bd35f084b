"""Stacks below others that are changed and deleted under their own addresses."""

from __future__ import annotations

import json
import urllib.parse

import pytest

from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

INNER = """
heat_template_version: 2021-04-16
parameters:
  word: {type: string}
resources:
  v: {type: OS::Heat::Value, properties: {value: {get_param: word}}}
outputs:
  it: {value: {get_attr: [v, value]}}
"""
OUTER = template(
    {
        "n": {"type": "inner.yaml", "properties": {"word": "first"}},
        "user": {
            "type": "OS::Heat::Value",
            "properties": {"value": {"get_attr": ["n", "it"]}},
        },
    },
    outputs={"it": {"value": {"get_attr": ["n", "it"]}}},
)
FILES = {"inner.yaml": INNER}
CHANGED = template(
    {
        "v": {"type": "OS::Heat::Value", "properties": {"value": "changed"}},
        "w": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "word"}}},
    },
    parameters={"word": {"type": "string", "default": "none"}},
    outputs={"it": {"value": {"get_attr": ["v", "value"]}}},
)


@pytest.fixture
def site(tmp_path):
    with Orchestration(tmp_path / "state") as running:
        yield running


@pytest.fixture
def web(site):
    path = site.create("web", OUTER, files=FILES)
    site.wait_for(path, "CREATE_COMPLETE")
    return path


def child_of(site, path, name="n"):
    """Return the path of the stack that a resource owns."""
    entry = site.resources(path)[name]
    (href,) = (link["href"] for link in entry["links"] if link["rel"] == "nested")
    return urllib.parse.urlsplit(href).path.split("/v1/admin", 1)[1]


def output(site, path):
    (entry,) = site.stack(path)["outputs"]
    return entry["output_value"]


def put(site, path, body):
    status, answer = site.ask("PUT", path, body)
    assert status == 202, answer


def test_a_child_is_updated_by_itself(site, web):
    child, before = child_of(site, web), site.events(web)
    put(site, child, {"template": CHANGED, "parameters": {"word": "second"}})
    site.wait_for(child, "UPDATE_COMPLETE")
    assert set(site.resources(child)) == {"v", "w"}
    assert output(site, web) == "changed"
    assert site.stack(web)["stack_status"] == "CREATE_COMPLETE"
    assert site.events(web) == before


def test_a_child_is_patched_by_itself(site, web):
    child = child_of(site, web)
    status, answer = site.ask("PATCH", child, {"parameters": {"word": "second"}})
    assert status == 202, answer
    site.wait_for(child, "UPDATE_COMPLETE")
    assert output(site, web) == "second"


def test_the_next_update_of_the_parent_brings_back_what_it_says(site, web):
    child = child_of(site, web)
    put(site, child, {"template": CHANGED})
    site.wait_for(child, "UPDATE_COMPLETE")
    put(site, web, {"template": OUTER, "files": FILES})
    site.wait_for(web, "UPDATE_COMPLETE")
    assert set(site.resources(child)) == {"v"}
    assert output(site, web) == "first"


def test_a_child_that_fails_by_itself_does_not_touch_its_parent(site, web):
    child = child_of(site, web)
    broken = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    put(site, child, {"template": template({"x": broken})})
    site.wait_for(child, "UPDATE_FAILED")
    assert site.stack(web)["stack_status"] == "CREATE_COMPLETE"
    put(site, web, {"template": OUTER, "files": FILES})
    site.wait_for(web, "UPDATE_COMPLETE")
    assert site.stack(child)["stack_status"] == "UPDATE_COMPLETE"


def test_a_child_is_deleted_by_itself_and_made_again(site, web):
    child = child_of(site, web)
    assert site.ask("DELETE", child)[0] == 204
    site.wait_for(child, "DELETE_COMPLETE")
    assert site.stack(web)["stack_status"] == "CREATE_COMPLETE"
    assert site.resources(web)["n"]["resource_status"] == "CREATE_COMPLETE"
    assert output(site, web) is None
    put(site, web, {"template": OUTER, "files": FILES})
    site.wait_for(web, "UPDATE_COMPLETE")
    assert child_of(site, web) != child
    assert output(site, web) == "first"


def test_a_check_tells_that_a_child_was_deleted(site, web):
    child = child_of(site, web)
    assert site.ask("DELETE", child)[0] == 204
    site.wait_for(child, "DELETE_COMPLETE")
    assert site.ask("POST", f"{web}/actions", {"check": None})[0] == 200
    reason = site.wait_for(web, "CHECK_FAILED")["stack_status_reason"]
    assert "resources.n: its stack is gone" in reason
    put(site, web, {"template": OUTER, "files": FILES})
    site.wait_for(web, "UPDATE_COMPLETE")
    assert output(site, web) == "first"


def test_an_update_that_converges_replaces_what_has_lost_its_child(site, web):
    child = child_of(site, web)
    assert site.ask("DELETE", child)[0] == 204
    site.wait_for(child, "DELETE_COMPLETE")
    put(site, web, {"template": OUTER, "files": FILES, "converge": True})
    site.wait_for(web, "UPDATE_COMPLETE")
    assert ("n", "CREATE_COMPLETE") in site.events(web)[-9:]
    assert output(site, web) == "first"


def test_a_parent_is_deleted_after_its_child(site, web):
    child = child_of(site, web)
    assert site.ask("DELETE", child)[0] == 204
    assert site.ask("DELETE", web)[0] == 204
    site.wait_for(web, "DELETE_COMPLETE")
    assert site.stack(child)["stack_status"] == "DELETE_COMPLETE"


def test_a_child_is_not_abandoned(tmp_path):
    options = {"enable_stack_abandon": True}
    with Orchestration(tmp_path / "state", **options) as site:
        web = site.create("web", OUTER, files=FILES)
        site.wait_for(web, "CREATE_COMPLETE")
        status, answer = site.ask("DELETE", f"{child_of(site, web)}/abandon")
        assert (status, answer["error"]["type"]) == (400, "NotSupported")


SLOW = """
heat_template_version: 2021-04-16
resources:
  h: {type: OS::Heat::WaitConditionHandle}
  w:
    type: OS::Heat::WaitCondition
    properties: {handle: {get_resource: h}, timeout: 600}
"""
QUICK = template({"v": {"type": "OS::Heat::Value", "properties": {"value": 1}}})


@pytest.fixture
def waiting(site):
    """A stack whose child is being created."""
    path = site.create("web", template({"n": {"type": "slow.yaml"}}), files={"slow.yaml": SLOW})
    wait_for(lambda: is_at_work(site, path), "the child to wait")
    return path


def is_at_work(site, path):
    links = site.resources(path).get("n", {}).get("links", ())
    if all(each["rel"] != "nested" for each in links):
        return False
    condition = site.resources(child_of(site, path)).get("w", {})
    return condition.get("resource_status") == "CREATE_IN_PROGRESS"


def test_a_parent_whose_child_is_deleted_meanwhile_has_failed(site, waiting):
    assert site.ask("DELETE", child_of(site, waiting))[0] == 204
    reason = site.wait_for(waiting, "CREATE_FAILED")["stack_status_reason"]
    assert "resources.n: its stack is gone" in reason
    assert site.ask("DELETE", waiting)[0] == 204
    site.wait_for(waiting, "DELETE_COMPLETE")


def test_a_parent_goes_on_when_its_child_was_updated_meanwhile(site, waiting):
    child = child_of(site, waiting)
    put(site, child, {"template": QUICK})
    assert site.ask("POST", f"{child}/resources/h/signal", {})[0] == 200  # its act goes on
    site.wait_for(waiting, "CREATE_COMPLETE")


def test_a_parent_fails_when_its_child_was_updated_meanwhile_and_failed(site, waiting):
    broken = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    put(site, child_of(site, waiting), {"template": template({"x": broken})})
    reason = site.wait_for(waiting, "CREATE_FAILED")["stack_status_reason"]
    assert "Test Resource failed x" in reason


def test_the_facade_of_a_nested_stack_has_the_values_of_its_resource(site):
    inner = {"outputs": {"owner": {"value": {"resource_facade": "metadata"}}}}
    resources = {
        "v": {"type": "OS::Heat::Value", "properties": {"value": "made"}},
        "n": {"type": "inner.yaml", "metadata": {"v": {"get_attr": ["v", "value"]}}},
    }
    path = site.create(
        "web", template(resources), files={"inner.yaml": json.dumps(template({}, **inner))}
    )
    site.wait_for(path, "CREATE_COMPLETE")
    answer = site.ask("GET", f"{child_of(site, path)}/outputs/owner")[1]
    assert answer["output"]["output_value"] == {"v": "made"}
