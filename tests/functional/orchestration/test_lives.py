"""Lives of stacks, from what is asked to what rows tell, with an engine that works in between."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import tables
from bloomery.model.stack_views import EventQuery, ResourceQuery
from tests.kit.clients.stack_calls import VALUE, StackCalls, template

RANDOM = {"type": "OS::Heat::RandomString", "properties": {"length": 8}}
TEST = "OS::Heat::TestResource"
BROKEN = {"type": TEST, "properties": {"value": "x", "fail": True}}


@pytest.fixture
def calls(tmp_path):
    return StackCalls(tmp_path, enable_stack_abandon=True, enable_stack_adopt=True)


def update(calls, stack, **more):
    calls.operations.update_stack(calls.member, stack, calls.arguments(**more))


def outputs(calls, stack):
    shown = calls.operations.show_stack(calls.member, stack)
    return {each.key: each.value if each.error is None else each.error for each in shown.outputs}


def states(calls, stack, **query):
    listed = calls.operations.list_stack_resources(calls.member, stack, ResourceQuery(**query))
    return {each.resource.name: each.resource.state for each in listed}


def told(calls, stack):
    events = calls.operations.list_events(calls.member, stack, EventQuery(descending=False))
    return [(each.event.name, each.event.state) for each in events]


def ended(row):
    return f"{row.action}_{row.status}"


def test_a_stack_is_made_changed_and_deleted(calls):
    out = {"out": {"value": {"get_attr": ["a", "value"]}}}
    web = calls.create(resources={"a": VALUE}, outputs=out)
    assert ended(calls.work(web)) == "CREATE_COMPLETE"
    assert outputs(calls, web) == {"out": 1}
    changed = {"type": VALUE["type"], "properties": {"value": 2}}
    update(calls, web, resources={"a": changed, "b": VALUE | {"depends_on": "a"}}, outputs=out)
    assert ended(calls.work(web)) == "UPDATE_COMPLETE"
    assert outputs(calls, web) == {"out": 2}
    assert states(calls, web) == {"a": "UPDATE_COMPLETE", "b": "CREATE_COMPLETE"}
    calls.operations.delete_stack(calls.member, web)
    assert ended(calls.work(web)) == "DELETE_COMPLETE"
    assert states(calls, web) == {}
    assert told(calls, web)[-1] == ("web", "DELETE_COMPLETE")
    with pytest.raises(errors.EntityNotFound):
        calls.operations.delete_stack(calls.member, web)
    assert calls.create().uuid != web.uuid


def test_what_is_below_is_told_through_its_owner(calls):
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": {**VALUE, "properties": {"value": "%index%"}}},
    }
    inner = template(
        resources={"v": VALUE}, outputs={"inner": {"value": {"get_attr": ["v", "value"]}}}
    )
    web = calls.create(
        resources={"g": group, "n": {"type": "inner.yaml"}},
        files={"inner.yaml": json.dumps(inner)},
        outputs={
            "values": {"value": {"get_attr": ["g", "value"]}},
            "second": {"value": {"get_attr": ["g", "resource.1.value"]}},
            "inner": {"value": {"get_attr": ["n", "inner"]}},
        },
    )
    assert ended(calls.work(web)) == "CREATE_COMPLETE"
    assert outputs(calls, web) == {"values": ["0", "1"], "second": "1", "inner": 1}
    assert states(calls, web, nested_depth=1).keys() == {"g", "n", "v", "0", "1"}
    (owner,) = [
        each for each in calls.operations.list_stack_resources(calls.member, web, ResourceQuery())
        if each.resource.name == "n"
    ]  # fmt: skip
    below = owner.nested
    assert calls.operations.show_stack(calls.member, below).outputs[0].value == 1
    assert calls.operations.get_template(calls.member, below)["resources"].keys() == {"v"}
    assert calls.operations.describe_stack_resource(calls.member, web, "g").attributes["refs"]


def test_a_failed_create_is_told_and_taken_back_where_it_was_asked(calls):
    kept = calls.create("kept", resources={"a": VALUE, "b": BROKEN})
    assert ended(calls.work(kept)) == "CREATE_FAILED"
    assert "resources.b" in calls.row(kept).reason
    why = calls.operations.explain_stack(calls.member, kept)
    assert [each["resource"] for each in why["failed"]] == ["b"]
    gone = calls.create("gone", resources={"a": VALUE, "b": BROKEN}, disable_rollback=False)
    assert ended(calls.work(gone)) == "ROLLBACK_COMPLETE"
    assert states(calls, gone) == {}
    assert ("gone", "CREATE_FAILED") in told(calls, gone)


@pytest.mark.parametrize("action", ["update", "delete"])
def test_what_is_under_way_is_since_its_action_began(calls, action):
    slow = {"type": TEST, "properties": {"value": "x", "action_wait_secs": {action: -1}}}
    web = calls.create(resources={"a": slow})
    calls.work(web)
    long_ago = datetime.now(UTC) - timedelta(days=2)
    for table in (tables.STACKS, tables.RESOURCES, tables.STACK_EVENTS):
        columns = {"created_at": long_ago, "updated_at": None}
        change = sa.update(table).values({n: at for n, at in columns.items() if n in table.c})
        calls.db.transact(lambda conn, change=change: conn.execute(change))
    assert calls.operations.explain_stack(calls.member, web)["since"] == long_ago.isoformat()
    ordered_at = datetime.now(UTC)
    if action == "update":
        changed = {**slow, "properties": {**slow["properties"], "value": "y"}}
        update(calls, web, resources={"a": changed})
    else:
        calls.operations.delete_stack(calls.member, web)
    assert ended(calls.work(web, patient=False)) == f"{action.upper()}_IN_PROGRESS"
    why = calls.operations.explain_stack(calls.member, web)
    (waiting,) = why["waiting"]
    for each in (why, waiting):
        assert datetime.fromisoformat(each["since"]) >= ordered_at
        assert 0 <= each["age_s"] < timedelta(days=1).total_seconds()


def test_hidden_values_stay_hidden_to_the_end(calls, tmp_path):
    secret = "correct horse battery"
    web = calls.create(
        declared={"key": {"type": "string", "hidden": True}},
        parameters={"key": secret},
        resources={
            "a": {"type": VALUE["type"], "properties": {"value": {"get_param": "key"}}},
            "b": {"type": TEST, "properties": {"value": {"get_param": "key"}, "fail": True}},
        },
    )
    calls.work(web)
    asked = [
        calls.operations.list_events(calls.member, web, EventQuery()),
        calls.operations.explain_stack(calls.member, web),
        calls.operations.get_environment(calls.member, web),
        calls.operations.show_stack(calls.member, web, resolve_outputs=False),
        [
            calls.operations.show_event(calls.member, web, each.event.name, each.event.uuid)
            for each in calls.operations.list_events(calls.member, web, EventQuery())
        ],
    ]
    assert secret not in repr(asked)
    calls.db.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("rows.sqlite*"))
    assert secret.encode() not in stored


def test_an_abandoned_stack_is_adopted_with_what_it_has(calls):
    web = calls.create(resources={"a": RANDOM, "b": VALUE})
    calls.work(web)
    before = calls.operations.describe_stack_resource(calls.member, web, "a")
    data = calls.operations.abandon_stack(calls.member, web)
    assert ended(calls.work(web)) == "DELETE_COMPLETE"
    again = calls.create(resources=None, adopt_data=json.loads(json.dumps(data)))
    assert ended(calls.work(again)) == "ADOPT_COMPLETE"
    after = calls.operations.describe_stack_resource(calls.member, again, "a")
    assert after.resource.physical_id == before.resource.physical_id
    assert after.attributes["value"] == before.attributes["value"]


def test_a_cancelled_update_goes_back(calls):
    hooks = {"resource_registry": {"resources": {"b": {"hooks": "pre-update"}}}}
    web = calls.create(resources={"a": VALUE, "b": VALUE | {"depends_on": "a"}})
    calls.work(web)
    changed = {"type": VALUE["type"], "properties": {"value": 2}}
    update(
        calls, web, environment=hooks, resources={"a": changed, "b": changed | {"depends_on": "a"}}
    )
    assert ended(calls.work(web, patient=False)) == "UPDATE_IN_PROGRESS"
    calls.operations.stack_cancel_update(calls.member, web)
    assert ended(calls.work(web)) == "ROLLBACK_COMPLETE"
    for name in "ab":
        shown = calls.operations.describe_stack_resource(calls.member, web, name)
        assert shown.attributes == {"value": 1}


def test_a_delete_ends_what_goes_on(calls):
    hooks = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}
    web = calls.create(environment=hooks, resources={"a": VALUE, "b": VALUE})
    calls.work(web, patient=False)
    calls.operations.delete_stack(calls.member, web)
    assert ended(calls.work(web)) == "DELETE_COMPLETE"
    assert ("web", "CREATE_FAILED") in told(calls, web)
    with calls.db.read() as conn:
        left = conn.execute(sa.select(sa.func.count()).select_from(tables.RESOURCES)).scalar_one()
    assert left == 0
