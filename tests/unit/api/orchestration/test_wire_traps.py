"""What a naive implementation of Heat's wire gets wrong, as far as no engine has a part in it.

The numbers are those of the list that ``tests/functional/orchestration`` goes on with.
"""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.operations.policy_engine import Policies
from tests.fakes.stack_operations import STACK, details, stored_stack
from tests.kit.clients.callers import Claims
from tests.unit.api.orchestration.conftest import BASE, URL, S, World, fault

TEMPLATE = {"heat_template_version": "2021-04-16"}
NEW = {"stack_name": "web", "template": TEMPLATE}


def created(api, engine, **body):
    answer = api.post(f"{BASE}/stacks", NEW | body)
    assert answer.status == 201, answer.body
    return engine.last("create_stack")


@pytest.mark.parametrize("sections", [{"n": 1}, {"parameters": None}, "n: 1", "parameters:"])
def test_39_environment_with_a_wrong_section_never_reaches_the_engine(api, engine, sections):
    answer = api.post(f"{BASE}/stacks", NEW | {"environment": sections})
    assert fault(answer) == (400, "HTTPBadRequest")
    assert engine.asked == []


def test_44_error_that_is_not_of_the_service_has_no_message(api, engine):
    engine.answers["show_stack"] = ValueError("internals")
    assert "message" not in api.get(S).json["error"]


def test_44_unknown_route_has_an_error_of_another_shape(api):
    assert set(api.get(f"{BASE}/nonsense").json) == {"code", "title", "message"}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_45_name_is_redirected_and_nothing_executed(api, engine, method):
    answer = api.ask(method, f"{BASE}/stacks/web?resolve_outputs=False")
    assert (answer.status, answer.headers["location"]) == (302, f"{URL}?resolve_outputs=False")
    assert [name for name, *_ in engine.asked] == ["identify_stack"]


@pytest.mark.parametrize("part", ["outputs", "snapshots", "export", "preview", "resources/r"])
def test_45_some_parts_have_no_name_form(api, engine, part):
    engine.answers["show_stack"] = errors.EntityNotFound(entity="Stack", name="web")
    assert api.get(f"{BASE}/stacks/web/{part}").status == 404


def test_46_engine_is_shown_name_and_id_as_they_stand_in_the_url(api, engine):
    api.get(f"{BASE}/stacks/other/{STACK.uuid}")
    assert (engine.last("show_stack").name, engine.last("show_stack").uuid) == ("other", STACK.uuid)


def test_49_create_answers_id_and_links_only(api):
    answer = api.post(f"{BASE}/stacks", NEW)
    assert (answer.status, list(answer.json["stack"])) == (201, ["id", "links"])


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_49_update_answers_202(api, method):
    assert api.ask(method, S, {"template": TEMPLATE}).status == 202


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "actions", {"check": None}),
        ("POST", "resources/r/signal", {}),
        ("PATCH", "resources/r", {"mark_unhealthy": True}),
    ],
)
def test_49_orders_answer_null(api, method, path, body):
    answer = api.ask(method, f"{S}/{path}", body)
    assert (answer.status, answer.body) == (200, b"null")


def test_49_snapshot_is_made_unwrapped(api):
    assert api.post(f"{S}/snapshots", {}).json["id"] == "s-1"


def test_50_limit_of_zero_reaches_the_engine(api, engine):
    assert api.get(f"{BASE}/stacks?limit=0").status == 200
    assert engine.last("list_stacks").limit == 0


def test_50_name_is_a_filter_and_no_sort_key(api, engine):
    api.get(f"{BASE}/stacks?name=web&sort_keys=name&sort_keys=status&nonsense=1")
    query = engine.last("list_stacks")
    assert (query.filters, query.sort_keys) == ({"name": ("web",)}, ())


@pytest.mark.parametrize("query", ["limit=x", "limit=-1", "sort_dir=up", "show_deleted=1"])
def test_50_bad_values_are_refused(api, query):
    assert api.get(f"{BASE}/stacks?{query}").status == 400


def test_50_unknown_filter_is_refused_by_lists_of_resources_alone(api):
    assert fault(api.get(f"{S}/resources?nonsense=1")) == (400, "HTTPBadRequest")
    assert api.get(f"{S}/events?nonsense=1").status == 200


def test_51_tags_come_as_text_and_go_as_a_list(api, engine):
    assert created(api, engine, tags="a,b").tags == ("a", "b")
    engine.answers["show_stack"] = details(stack=stored_stack(tags=("a", "b")))
    assert api.get(S).json["stack"]["tags"] == ["a", "b"]


def test_51_no_tags_are_a_list_in_show_and_null_in_lists(api):
    assert api.get(S).json["stack"]["tags"] == []
    assert api.get(f"{BASE}/stacks").json["stacks"][0]["tags"] is None


def test_51_list_of_tags_is_refused(api):
    answer = api.post(f"{BASE}/stacks", NEW | {"tags": ["a"]})
    assert fault(answer) == (400, "AttributeError")


def test_52_timeout_may_be_text_and_is_null_where_unset(api, engine):
    assert created(api, engine, timeout_mins="5").timeout_mins == 5
    assert api.get(S).json["stack"]["timeout_mins"] is None


def test_53_unknown_keys_are_passed_over(api, engine):
    assert created(api, engine, nonsense={"a": 1}) == created(api, engine)


@pytest.mark.parametrize("wrong", [{"tags": {}}, {"files": "f"}, {"parameters": 5}])
def test_53_wrong_shapes_are_refused(api, wrong):
    assert fault(api.post(f"{BASE}/stacks", NEW | wrong))[0] == 400


def test_55_patch_needs_an_object_and_put_a_template(api, engine):
    assert api.patch(S, {}).status == 202
    assert fault(api.patch(S)) == (400, "HTTPBadRequest")
    assert fault(api.put(S, {})) == (400, "HTTPBadRequest")
    assert fault(api.put(S, {"parameters": {}})) == (400, "HTTPBadRequest")


def test_83_null_is_no_template_and_no_details(api, engine):
    assert api.patch(S, {"template": None, "environment": {}}).status == 202
    assert engine.last("update_stack").template is None
    assert api.post(f"{S}/resources/r/signal", raw=b"null").status == 200
    assert engine.last("resource_signal") is None


def test_84_sdk_reads_versions_below_v1(api):
    version = api.get("/v1").json["versions"][0]
    assert (version["id"], version["status"]) == ("v1.0", "CURRENT")


def test_84_numbers_of_an_environment_stay_numbers(api, engine):
    engine.answers["get_environment"] = {"parameters": {"n": 5, "big": 2**70, "f": 0.5}}
    assert api.get(f"{S}/environment").json["parameters"] == {"n": 5, "big": 2**70, "f": 0.5}


def test_85_list_of_everybody_is_refused_by_name():
    claims = Claims()
    claims.caller = {"project": "p1", "roles": ("member", "reader")}
    world = World(policies=Policies(Conf(), enforced=True), logins=claims)
    world.engine.answers["list_stacks"] = errors.Forbidden(rule="stacks:global_index")
    answer = world.api.get(f"{BASE}/stacks?global_tenant=True")
    assert fault(answer) == (403, "Forbidden")
    assert "stacks:global_index" in answer.json["error"]["message"]
    assert world.engine.last("list_stacks").everybody
