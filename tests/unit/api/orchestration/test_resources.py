"""Resources and events: what clients send, what the engine is asked, what clients get."""

from __future__ import annotations

import pytest

from bloomery.model.stack_views import EventQuery, ResourceQuery
from tests.fakes.stack_operations import AT, CHILD, STACK, event, process, resource
from tests.unit.api.orchestration.conftest import BASE, URL, S, fault

ITEM = {
    "resource_name": "a",
    "logical_resource_id": "a",
    "resource_type": "OS::Heat::Value",
    "resource_status": "CREATE_COMPLETE",
    "resource_status_reason": "state changed",
    "physical_resource_id": "",
    "creation_time": "2026-11-20T09:42:00Z",
    "updated_time": "2026-11-20T09:42:00Z",
    "required_by": [],
    "links": [{"href": f"{URL}/resources/a", "rel": "self"}, {"href": URL, "rel": "stack"}],
}
EVENT = {
    "id": "5f0c6d1e",
    "event_time": "2026-11-20T09:42:00Z",
    "resource_name": "a",
    "logical_resource_id": "a",
    "resource_status": "CREATE_IN_PROGRESS",
    "resource_status_reason": "state changed",
    "physical_resource_id": "web-a",
    "links": [
        {"href": f"{URL}/resources/a/events/5f0c6d1e", "rel": "self"},
        {"href": f"{URL}/resources/a", "rel": "resource"},
        {"href": URL, "rel": "stack"},
    ],
}


def test_listed_resource_has_what_heat_lists(api):
    assert api.get(f"{S}/resources").json == {"resources": [ITEM]}


def test_resource_that_owns_a_stack_links_to_it(api, engine):
    child = f"http://localhost{BASE}/stacks/{CHILD.name}/{CHILD.uuid}"
    engine.answers["list_stack_resources"] = [
        resource(nested=CHILD), resource(stack=CHILD, parent="a", name="in"),
    ]  # fmt: skip
    outer, inner = api.get(f"{S}/resources?nested_depth=1").json["resources"]
    assert outer["links"][2] == {"href": child, "rel": "nested"}
    assert inner["links"][0]["href"] == f"{child}/resources/in"
    assert inner["parent_resource"] == "a"


def test_arguments_of_a_list_of_resources_reach_the_engine(api, engine):
    api.get(
        f"{S}/resources?nested_depth=2&with_detail=True&type=A&type=B&status=FAILED&name=n"
        "&action=CREATE&id=u&physical_resource_id=p"
    )
    assert engine.last("list_stack_resources") == ResourceQuery(
        filters={
            "type": ("A", "B"), "status": ("FAILED",), "name": ("n",), "action": ("CREATE",),
            "uuid": ("u",), "physical_id": ("p",),
        },
        nested_depth=2,
        with_detail=True,
    )  # fmt: skip


def test_shown_resource_has_attributes_and_description(api, engine):
    engine.answers["describe_stack_resource"] = resource(
        description="d", attributes={"value": None}, updated_at=AT.replace(hour=10)
    )
    shown = api.get(f"{S}/resources/a?with_attr=x&with_attr=y").json["resource"]
    more = {"description": "d", "attributes": {"value": None}}
    assert shown == ITEM | more | {"updated_time": "2026-11-20T10:42:00Z"}
    assert engine.last("describe_stack_resource") == ("x", "y")


def test_metadata_is_wrapped(api):
    assert api.get(f"{S}/resources/a/metadata").json == {"metadata": {"k": "v"}}


@pytest.mark.parametrize(
    ("raw", "details"),
    [(b'{"data": [1]}', {"data": [1]}), (b"null", None), (b"[1]", None), (b"", None), (b"x", None)],
)
def test_signal_hands_over_objects_only(api, engine, raw, details):
    answer = api.post(f"{S}/resources/a/signal?anything=1", raw=raw)
    assert (answer.status, answer.body) == (200, b"null")
    assert engine.asked == [("resource_signal", (STACK, "a", details), {"token": None})]


def test_mark_says_whether_and_why(api, engine):
    body = {"mark_unhealthy": True, "resource_status_reason": "burnt"}
    answer = api.patch(f"{S}/resources/phys-1", body)
    assert (answer.status, answer.body) == (200, b"null")
    asked = {"mark_unhealthy": True, "reason": "burnt"}
    assert engine.asked == [("resource_mark_unhealthy", (STACK, "phys-1"), asked)]


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"resource_status_reason": "x"},
        {"mark_unhealthy": "maybe"},
        {"mark_unhealthy": None},
        {"mark_unhealthy": True, "more": 1},
        {"mark_unhealthy": True, "resource_status_reason": 5},
    ],
)
def test_mark_of_another_shape_is_refused(api, engine, body):
    assert fault(api.patch(f"{S}/resources/a", body)) == (400, "HTTPBadRequest")
    assert engine.asked == []


# -------------------------------------------------------------------------------------- events


def test_arguments_of_a_list_of_events_reach_the_engine(api, engine):
    api.get(
        f"{S}/events?limit=3&marker=m&sort_keys=event_time,nonsense&sort_dir=asc&nested_depth=2"
        "&resource_action=CREATE&resource_status=FAILED&resource_name=a&resource_type=T&other=1"
    )
    filters = {"action": ("CREATE",), "status": ("FAILED",), "name": ("a",), "type": ("T",)}
    assert engine.last("list_events") == EventQuery(
        filters=filters, nested_depth=2, sort_keys=("created_at",), descending=False, marker="m",
        limit=3,
    )  # fmt: skip


def test_events_of_a_resource_are_asked_for_by_its_name(api, engine):
    assert api.get(f"{S}/resources/a/events").json == {"events": [EVENT]}
    assert engine.last("list_events") == EventQuery(resource="a")


def test_shown_event_has_type_and_properties(api, engine):
    more = {"resource_type": "OS::Heat::Value", "resource_properties": {"value": 1}}
    assert api.get(f"{S}/resources/a/events/5f0c6d1e").json == {"event": EVENT | more}
    assert engine.asked == [("show_event", (STACK, "a", "5f0c6d1e"), {})]


def test_event_asked_for_with_depth_links_to_the_root(api, engine):
    engine.answers["list_events"] = [event(root=STACK, stack=CHILD)]
    (shown,) = api.get(f"{S}/events?nested_depth=1").json["events"]
    assert shown["links"][3] == {"href": URL, "rel": "root_stack"}
    assert shown["links"][2]["href"] != URL


# ------------------------------------------------------------------------------------- engines


def test_engines_are_up_or_down_and_have_raw_times(api, engine):
    engine.answers["list_services"] = [process(), process(up=False)]
    up, down = api.get(f"{BASE}/services").json["services"]
    assert (up["status"], up["created_at"]) == ("up", "2026-11-20T09:42:00.123456")
    assert (down["status"], down["deleted_at"]) == ("down", None)


def test_revisions_are_those_of_the_engine(api, engine):
    revisions = {"api": {"revision": "1"}, "engine": {"revision": "1"}}
    engine.answers["get_revision"] = revisions
    assert api.get(f"{BASE}/build_info").json == revisions
