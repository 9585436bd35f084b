"""Stacks: what clients send, what the engine is asked, what clients get."""

from __future__ import annotations

import json

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.engine import Engine
from bloomery.model.stack_views import Output, StackQuery, UpdatePreview
from tests.fakes.stack_operations import (
    AT,
    CHILD,
    STACK,
    details,
    previewed,
    resource,
    stored_stack,
)
from tests.unit.api.orchestration.conftest import BASE, URL, S, fault

TEMPLATE = {"heat_template_version": "2021-04-16"}
TEXT = "heat_template_version: 2021-04-16\n"
NEW = {"stack_name": "web", "template": TEMPLATE}
COMMON = {
    "id": STACK.uuid,
    "links": [{"href": URL, "rel": "self"}],
    "stack_name": "web",
    "stack_status": "CREATE_COMPLETE",
    "stack_status_reason": "Stack CREATE completed successfully",
    "creation_time": "2026-11-20T09:42:00Z",
    "updated_time": None,
    "deletion_time": None,
    "stack_owner": "ann",
    "parent": None,
    "stack_user_project_id": None,
}


def sent(api, engine, body):
    """Create with these keys besides name and template; return the engine's arguments."""
    answer = api.post(f"{BASE}/stacks", NEW | body)
    assert answer.status == 201, answer.body
    return engine.last("create_stack")


def refused(api, body):
    return fault(api.post(f"{BASE}/stacks", NEW | body))


# --------------------------------------------------------------------------------------- lists


def test_list_shows_neither_description_nor_outputs(api):
    assert api.get(f"{BASE}/stacks").json == {
        "stacks": [COMMON | {"description": "", "tags": None}]
    }


def test_list_of_everybody_names_projects(api, engine):
    answer = api.get(f"{BASE}/stacks?global_tenant=True")
    assert answer.json["stacks"][0]["project"] == "p1"
    assert engine.last("list_stacks").everybody is True


def test_detailed_list_looks_at_no_argument_and_shows_no_more(api, engine):
    answer = api.get(f"{BASE}/stacks/detail?status=FAILED&limit=x&global_tenant=true")
    assert answer.json == api.get(f"{BASE}/stacks").json
    assert engine.asked[0] == ("list_stacks_in_detail", (StackQuery(),), {})


@pytest.mark.parametrize("query", ["limit=&sort_dir=", "marker="])
def test_argument_without_a_value_says_nothing(api, engine, query):
    assert api.get(f"{BASE}/stacks?{query}").status == 200
    asked = engine.last("list_stacks")
    assert (asked.limit, asked.descending) == (None, None)


def test_arguments_of_a_list_reach_the_engine(api, engine):
    api.get(
        f"{BASE}/stacks?limit=5&marker=m&sort_keys=stack_name,name&sort_keys=creation_time"
        "&sort_dir=desc&show_deleted=TRUE&show_nested=true&show_hidden=false&tags=a,b&tags-any=c"
        "&not_tags=d&not-tags-any=e&stack_status=FAILED&status=CREATE_COMPLETE&name=x&nonsense=1"
    )
    assert engine.last("list_stacks") == StackQuery(
        filters={"status": ("CREATE_COMPLETE", "FAILED"), "name": ("x",)},
        tags=("a", "b"),
        tags_any=("c",),
        not_tags=("d",),
        not_tags_any=("e",),
        show_deleted=True,
        show_nested=True,
        sort_keys=("name", "created_at"),
        descending=True,
        marker="m",
        limit=5,
    )


def test_full_page_has_a_link_to_the_next_one(api):
    document = api.get(f"{BASE}/stacks?limit=1&marker=old&name=a%20b").json
    href = f"http://localhost{BASE}/stacks?limit=1&name=a+b&marker={STACK.uuid}"
    assert document["links"] == [{"rel": "next", "href": href}]


@pytest.mark.parametrize("query", ["", "?limit=2", "?limit=0"])
def test_page_that_is_not_full_has_no_link(api, engine, query):
    if query == "?limit=0":
        engine.answers["list_stacks"] = []
    assert "links" not in api.get(f"{BASE}/stacks{query}").json


def test_count_is_told_where_it_is_asked_for(api):
    assert api.get(f"{BASE}/stacks?with_count=true").json["count"] == 7


# -------------------------------------------------------------------------------------- create


def test_created_stack_is_told_by_id_and_address_alone(api):
    answer = api.post(f"{BASE}/stacks", NEW)
    stack = {"id": STACK.uuid, "links": [{"href": URL, "rel": "self"}]}
    assert (answer.status, answer.headers["location"]) == (201, URL)
    assert answer.json == {"stack": stack}


def test_everything_in_a_body_reaches_the_engine(api, engine):
    arguments = sent(api, engine, {
        "template": TEXT, "parameters": {"n": 2**70}, "files": {"f": "text"},
        "environment": "parameters: {a: 1}", "timeout_mins": "5", "disable_rollback": "False",
        "tags": "red,blue", "nonsense": [], "clear_parameters": ["x"],
    })  # fmt: skip
    assert arguments.template == TEMPLATE
    assert arguments.parameters == {"n": 2**70}
    assert arguments.files == {"f": "text"}
    assert arguments.environment == {"parameters": {"a": 1}}
    assert (arguments.timeout_mins, arguments.disable_rollback) == (5, False)
    assert (arguments.tags, arguments.clear_parameters) == (("red", "blue"), ("x",))


def test_what_is_not_said_is_left_to_the_engine(api, engine):
    arguments = sent(api, engine, {"parameters": None, "environment": None, "files": None,
                                   "tags": None, "timeout_mins": None})  # fmt: skip
    assert (arguments.parameters, arguments.files) == ({}, {})
    assert (arguments.environment, arguments.tags, arguments.timeout_mins) == (None, None, None)
    assert (arguments.disable_rollback, arguments.existing) == (None, False)


def test_environment_is_not_looked_at_where_its_files_are_listed(api, engine):
    body = {"environment": {"nonsense": 1}, "environment_files": ["a", "b"]}
    arguments = sent(api, engine, body)
    assert (arguments.environment, arguments.environment_files) == (None, ("a", "b"))


def test_stack_to_adopt_needs_no_template(api, engine):
    data = {"name": "x", "template": TEMPLATE, "resources": {}}
    body = {"stack_name": "web", "adopt_stack_data": json.dumps(data)}
    assert api.post(f"{BASE}/stacks", body).status == 201
    arguments = engine.last("create_stack")
    assert (arguments.adopt_data, arguments.template) == (data, None)


@pytest.mark.parametrize("name", [None, "", 5, "a/b"])
def test_name_is_for_the_engine_to_judge(api, engine, name):
    api.post(f"{BASE}/stacks", NEW | {"stack_name": name})
    assert engine.asked[-1][1][0] == name


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        ({"template": None}, "HTTPBadRequest"),
        ({"template": []}, "HTTPBadRequest"),
        ({"template": 5}, "HTTPBadRequest"),
        ({"template": ""}, "HTTPBadRequest"),
        ({"template": "a: [b"}, "HTTPBadRequest"),
        ({"template": "a: b"}, "HTTPBadRequest"),
        ({"parameters": []}, "HTTPBadRequest"),
        ({"parameters": "n=1"}, "HTTPBadRequest"),
        ({"environment": []}, "HTTPBadRequest"),
        ({"environment": "[]"}, "HTTPBadRequest"),
        ({"environment": {"n": 1}}, "HTTPBadRequest"),
        ({"environment": {"parameters": None}}, "HTTPBadRequest"),
        ({"environment_files": "a"}, "HTTPBadRequest"),
        ({"environment_files": [1]}, "HTTPBadRequest"),
        ({"files": []}, "ValueError"),
        ({"files": {"a": 1}}, "HTTPBadRequest"),
        ({"files_container": "c"}, "NotSupported"),
        ({"tags": ["a"]}, "AttributeError"),
        ({"tags": "a" * 81}, "HTTPBadRequest"),
        ({"timeout_mins": -1}, "HTTPBadRequest"),
        ({"timeout_mins": 10**12}, "HTTPBadRequest"),
        ({"timeout_mins": str(2**31)}, "HTTPBadRequest"),
        ({"timeout_mins": 1.5}, "HTTPBadRequest"),
        ({"timeout_mins": "soon"}, "HTTPBadRequest"),
        ({"timeout_mins": True}, "HTTPBadRequest"),
        ({"timeout_mins": 10**30}, "HTTPBadRequest"),
        ({"disable_rollback": "maybe"}, "ValueError"),
        ({"disable_rollback": None}, "ValueError"),
        ({"converge": "maybe"}, "HTTPBadRequest"),
        ({"converge": True}, "HTTPBadRequest"),
        ({"clear_parameters": "a"}, "HTTPBadRequest"),
        ({"adopt_stack_data": "[]"}, "HTTPBadRequest"),
        ({"adopt_stack_data": "{}"}, "HTTPBadRequest"),
        ({"adopt_stack_data": 5}, "HTTPBadRequest"),
    ],
)
def test_wrong_shapes_are_refused_before_the_engine_is_asked(api, engine, body, type_):
    assert refused(api, body) == (400, type_)
    assert engine.asked == []


@pytest.mark.parametrize("body", [None, {}, {"template": TEMPLATE}])
def test_body_without_what_a_create_needs_is_refused(api, body):
    assert fault(api.post(f"{BASE}/stacks", body)) == (400, "HTTPBadRequest")


def test_template_may_be_as_large_as_the_option_says(world):
    world.conf = Conf(engine=Engine(max_template_size=100))
    large = TEMPLATE | {"description": "x" * 100}
    for template in (large, json.dumps(large)):
        answer = world.api.post(f"{BASE}/stacks", NEW | {"template": template})
        assert fault(answer) == (400, "RequestLimitExceeded")
    assert world.api.post(f"{BASE}/stacks", NEW | {"template": TEXT}).status == 201


def test_preview_shows_nested_resources_as_lists(api, engine):
    nested = [resource(stack=CHILD, name="b", parent="own")]
    engine.answers["preview_stack"] = previewed(
        resources=[resource(created_at=None, properties={}), nested]
    )
    stack = api.post(f"{BASE}/stacks/preview", NEW).json["stack"]
    assert "stack_status" not in stack
    first, (second,) = stack["resources"]
    assert set(first) == {
        "attributes", "creation_time", "description", "metadata", "physical_resource_id",
        "properties", "required_by", "resource_action", "resource_identity", "resource_name",
        "resource_status", "resource_status_reason", "resource_type", "stack_identity",
        "stack_name", "updated_time",
    }  # fmt: skip
    assert first["resource_identity"] == {
        "tenant": "p1", "stack_name": "web", "stack_id": STACK.uuid, "path": "/resources/a",
    }  # fmt: skip
    assert (second["resource_name"], second["stack_name"]) == ("b", CHILD.name)
    assert second["parent_resource"] == "own"


def test_identities_have_names_as_they_are(api, engine):
    engine.answers["preview_stack"] = previewed(resources=[resource(name="资源")])
    (shown,) = api.post(f"{BASE}/stacks/preview", NEW).json["stack"]["resources"]
    assert shown["resource_identity"]["path"] == "/resources/资源"


# ------------------------------------------------------------------------------------ one stack


def test_shown_stack_has_what_heat_shows(api, engine):
    engine.answers["show_stack"] = details(
        stack=stored_stack(tags=("red",), updated_at=AT, owner_uuid=CHILD.uuid, timeout_mins=5),
        outputs=(
            Output(key="o", description="d", value={"a": 2**70}),
            Output(key="p", description="d", error="cannot"),
        ),
    )
    assert api.get(S).json["stack"] == COMMON | {
        "updated_time": "2026-11-20T09:42:00Z",
        "parent": CHILD.uuid,
        "tags": ["red"],
        "description": "No description",
        "template_description": "No description",
        "parameters": {"n": "1"},
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": True,
        "timeout_mins": 5,
        "outputs": [
            {"output_key": "o", "description": "d", "output_value": {"a": 2**70}},
            {"output_key": "p", "description": "d", "output_value": None, "output_error": "cannot"},
        ],
    }


@pytest.mark.parametrize(("query", "resolves"), [("", True), ("?resolve_outputs=False", False)])
def test_outputs_need_not_be_resolved(api, engine, query, resolves):
    api.get(S + query)
    assert engine.asked[-1] == ("show_stack", (STACK,), {"resolve_outputs": resolves})


def test_outputs_that_are_not_there_have_no_key(api, engine):
    engine.answers["show_stack"] = details(outputs=None)
    assert "outputs" not in api.get(S).json["stack"]


@pytest.mark.parametrize(("method", "existing"), [("PUT", False), ("PATCH", True)])
def test_update_is_accepted_and_says_little(api, engine, method, existing):
    answer = api.ask(method, S, {"template": TEMPLATE, "converge": True})
    assert (answer.status, answer.json["title"]) == (202, "Accepted")
    assert "location" not in answer.headers
    arguments = engine.last("update_stack")
    assert (arguments.template, arguments.existing) == (TEMPLATE, existing)
    assert arguments.converge is True


def test_preview_of_an_update_names_five_kinds_of_changes(api, engine):
    engine.answers["preview_update_stack"] = UpdatePreview(updated=[resource()])
    changes = api.patch(f"{S}/preview?show_nested=True", {}).json["resource_changes"]
    assert list(changes) == ["unchanged", "updated", "replaced", "added", "deleted"]
    assert changes["updated"][0]["resource_action"] == "CREATE"
    assert engine.asked[-1][2] == {"show_nested": True, "with_capacity": False}


def test_delete_has_no_body(api, engine):
    answer = api.delete(S)
    assert (answer.status, answer.body) == (204, b"")
    assert "content-type" not in answer.headers
    assert engine.asked == [("delete_stack", (STACK,), {})]


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"suspend": None}, "stack_suspend"),
        ({"resume": 5}, "stack_resume"),
        ({"check": ""}, "stack_check"),
        ({"cancel_update": None}, "stack_cancel_update"),
        ({"cancel_without_rollback": None}, "stack_cancel_without_rollback"),
    ],
)
def test_action_answers_null(api, engine, body, asked):
    answer = api.post(f"{S}/actions", body)
    assert (answer.status, answer.body) == (200, b"null")
    assert engine.asked == [(asked, (STACK,), {})]


@pytest.mark.parametrize("body", [None, {}, {"suspend": 1, "resume": 1}, {"reboot": None}])
def test_action_that_is_none_is_refused(api, engine, body):
    assert fault(api.post(f"{S}/actions", body)) == (400, "HTTPBadRequest")
    assert engine.asked == []


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("DELETE", "abandon", "abandon_stack"),
        ("GET", "export", "export_stack"),
        ("GET", "template", "get_template"),
        ("GET", "environment", "get_environment"),
        ("GET", "files", "get_files"),
    ],
)
def test_documents_of_a_stack_are_passed_on(api, engine, method, path, asked):
    engine.answers[asked] = {"a": {"b": 2**70}}
    answer = api.ask(method, f"{S}/{path}")
    assert (answer.status, answer.json) == (200, {"a": {"b": 2**70}})


def test_outputs_are_listed_without_values(api):
    named = {"output_key": "o", "description": "No description given"}
    assert api.get(f"{S}/outputs").json == {"outputs": [named]}
    assert api.get(f"{S}/outputs/o").json == {"output": named | {"output_value": 5}}


def test_names_in_urls_may_need_quotes(api, engine):
    api.get(f"{S}/outputs/a%2Fb%20%C3%A4")
    assert engine.asked[-1] == ("show_output", (STACK, "a/b ä"), {})


# ----------------------------------------------------------------------------------- snapshots

SNAPSHOT = {
    "id": "s-1", "name": "before", "action": "CREATE", "status": "IN_PROGRESS",
    "status_reason": None, "data": {"status": "IN_PROGRESS"},
    "creation_time": "2026-11-20T09:42:00Z",
}  # fmt: skip


def test_snapshot_is_bare_when_made_and_wrapped_when_shown(api):
    assert api.post(f"{S}/snapshots", {"name": "before"}).json == SNAPSHOT
    assert api.get(f"{S}/snapshots").json == {"snapshots": [SNAPSHOT]}
    shown = {"snapshot": SNAPSHOT | {"status": "COMPLETE"}}
    assert api.get(f"{S}/snapshots/s-1").json == shown


@pytest.mark.parametrize(("body", "name"), [(None, None), ({}, None), ({"name": "n"}, "n")])
def test_snapshot_needs_no_name(api, engine, body, name):
    assert api.post(f"{S}/snapshots", body).status == 200
    assert engine.last("stack_snapshot") == name


def test_name_of_a_snapshot_is_text(api):
    assert fault(api.post(f"{S}/snapshots", {"name": 5})) == (400, "HTTPBadRequest")


def test_snapshot_is_deleted_and_restored(api, engine):
    deleted, restored = api.delete(f"{S}/snapshots/s"), api.post(f"{S}/snapshots/s/restore")
    assert (deleted.status, restored.status) == (204, 202)
    assert [name for name, *_ in engine.asked] == ["delete_snapshot", "stack_restore"]


def test_engine_refuses_by_name(api, engine):
    engine.answers["stack_snapshot"] = errors.ActionInProgress(stack_name="web", action="UPDATE")
    assert fault(api.post(f"{S}/snapshots")) == (409, "ActionInProgress")
