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
def face(tmp_path):
    return StackCalls(tmp_path, enable_stack_abandon=True, enable_stack_adopt=True)


def update(face, stack, **more):
    face.engine.update_stack(face.member, stack, face.arguments(**more))


def outputs(face, stack):
    shown = face.engine.show_stack(face.member, stack)
    return {each.key: each.value if each.error is None else each.error for each in shown.outputs}


def states(face, stack, **query):
    listed = face.engine.list_stack_resources(face.member, stack, ResourceQuery(**query))
    return {each.resource.name: each.resource.state for each in listed}


def told(face, stack):
    events = face.engine.list_events(face.member, stack, EventQuery(descending=False))
    return [(each.event.name, each.event.state) for each in events]


def ended(row):
    return f"{row.action}_{row.status}"


def test_a_stack_is_made_changed_and_deleted(face):
    out = {"out": {"value": {"get_attr": ["a", "value"]}}}
    web = face.create(resources={"a": VALUE}, outputs=out)
    assert ended(face.work(web)) == "CREATE_COMPLETE"
    assert outputs(face, web) == {"out": 1}
    changed = {"type": VALUE["type"], "properties": {"value": 2}}
    update(face, web, resources={"a": changed, "b": VALUE | {"depends_on": "a"}}, outputs=out)
    assert ended(face.work(web)) == "UPDATE_COMPLETE"
    assert outputs(face, web) == {"out": 2}
    assert states(face, web) == {"a": "UPDATE_COMPLETE", "b": "CREATE_COMPLETE"}
    face.engine.delete_stack(face.member, web)
    assert ended(face.work(web)) == "DELETE_COMPLETE"
    assert states(face, web) == {}
    assert told(face, web)[-1] == ("web", "DELETE_COMPLETE")
    with pytest.raises(errors.EntityNotFound):
        face.engine.delete_stack(face.member, web)
    assert face.create().uuid != web.uuid


def test_what_is_below_is_told_through_its_owner(face):
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": {**VALUE, "properties": {"value": "%index%"}}},
    }
    inner = template(
        resources={"v": VALUE}, outputs={"inner": {"value": {"get_attr": ["v", "value"]}}}
    )
    web = face.create(
        resources={"g": group, "n": {"type": "inner.yaml"}},
        files={"inner.yaml": json.dumps(inner)},
        outputs={
            "values": {"value": {"get_attr": ["g", "value"]}},
            "second": {"value": {"get_attr": ["g", "resource.1.value"]}},
            "inner": {"value": {"get_attr": ["n", "inner"]}},
        },
    )
    assert ended(face.work(web)) == "CREATE_COMPLETE"
    assert outputs(face, web) == {"values": ["0", "1"], "second": "1", "inner": 1}
    assert states(face, web, nested_depth=1).keys() == {"g", "n", "v", "0", "1"}
    (owner,) = [
        each for each in face.engine.list_stack_resources(face.member, web, ResourceQuery())
        if each.resource.name == "n"
    ]  # fmt: skip
    below = owner.nested
    assert face.engine.show_stack(face.member, below).outputs[0].value == 1
    assert face.engine.get_template(face.member, below)["resources"].keys() == {"v"}
    assert face.engine.describe_stack_resource(face.member, web, "g").attributes["refs"]


def test_a_failed_create_is_told_and_taken_back_where_it_was_asked(face):
    kept = face.create("kept", resources={"a": VALUE, "b": BROKEN})
    assert ended(face.work(kept)) == "CREATE_FAILED"
    assert "resources.b" in face.row(kept).reason
    why = face.engine.explain_stack(face.member, kept)
    assert [each["resource"] for each in why["failed"]] == ["b"]
    gone = face.create("gone", resources={"a": VALUE, "b": BROKEN}, disable_rollback=False)
    assert ended(face.work(gone)) == "ROLLBACK_COMPLETE"
    assert states(face, gone) == {}
    assert ("gone", "CREATE_FAILED") in told(face, gone)


@pytest.mark.parametrize("action", ["update", "delete"])
def test_what_is_under_way_is_since_its_action_began(face, action):
    slow = {"type": TEST, "properties": {"value": "x", "action_wait_secs": {action: -1}}}
    web = face.create(resources={"a": slow})
    face.work(web)
    long_ago = datetime.now(UTC) - timedelta(days=2)
    for table in (tables.STACKS, tables.RESOURCES, tables.STACK_EVENTS):
        columns = {"created_at": long_ago, "updated_at": None}
        change = sa.update(table).values({n: at for n, at in columns.items() if n in table.c})
        face.db.transact(lambda conn, change=change: conn.execute(change))
    assert face.engine.explain_stack(face.member, web)["since"] == long_ago.isoformat()
    ordered_at = datetime.now(UTC)
    if action == "update":
        changed = {**slow, "properties": {**slow["properties"], "value": "y"}}
        update(face, web, resources={"a": changed})
    else:
        face.engine.delete_stack(face.member, web)
    assert ended(face.work(web, patient=False)) == f"{action.upper()}_IN_PROGRESS"
    why = face.engine.explain_stack(face.member, web)
    (waiting,) = why["waiting"]
    for each in (why, waiting):
        assert datetime.fromisoformat(each["since"]) >= ordered_at
        assert 0 <= each["age_s"] < timedelta(days=1).total_seconds()


def test_hidden_values_stay_hidden_to_the_end(face, tmp_path):
    secret = "correct horse battery"
    web = face.create(
        declared={"key": {"type": "string", "hidden": True}},
        parameters={"key": secret},
        resources={
            "a": {"type": VALUE["type"], "properties": {"value": {"get_param": "key"}}},
            "b": {"type": TEST, "properties": {"value": {"get_param": "key"}, "fail": True}},
        },
    )
    face.work(web)
    asked = [
        face.engine.list_events(face.member, web, EventQuery()),
        face.engine.explain_stack(face.member, web),
        face.engine.get_environment(face.member, web),
        face.engine.show_stack(face.member, web, resolve_outputs=False),
        [
            face.engine.show_event(face.member, web, each.event.name, each.event.uuid)
            for each in face.engine.list_events(face.member, web, EventQuery())
        ],
    ]
    assert secret not in repr(asked)
    face.db.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("rows.sqlite*"))
    assert secret.encode() not in stored


def test_suspended_and_resumed(face):
    web = face.create()
    face.work(web)
    face.engine.stack_suspend(face.member, web)
    assert ended(face.work(web)) == "SUSPEND_COMPLETE"
    with pytest.raises(errors.NotSupported):
        update(face, web, resources={"a": VALUE})
    face.engine.stack_resume(face.member, web)
    assert ended(face.work(web)) == "RESUME_COMPLETE"
    face.engine.stack_check(face.member, web)
    assert ended(face.work(web)) == "CHECK_COMPLETE"


def test_a_hook_stops_until_it_is_cleared(face):
    hooks = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
    web = face.create(environment=hooks, resources={"a": VALUE, "b": VALUE})
    assert ended(face.work(web, patient=False)) == "CREATE_IN_PROGRESS"
    assert states(face, web) == {"a": "INIT_COMPLETE", "b": "CREATE_COMPLETE"}
    assert "unset_hook" in face.engine.explain_stack(face.member, web)["next_action"]
    face.engine.resource_signal(face.member, web, "a", {"unset_hook": "pre-create"})
    assert ended(face.work(web)) == "CREATE_COMPLETE"


def test_a_signal_reaches_its_resource(face):
    web = face.create(
        resources={
            "h": {"type": "OS::Heat::WaitConditionHandle"},
            "w": {
                "type": "OS::Heat::WaitCondition",
                "properties": {"handle": {"get_resource": "h"}, "timeout": 600},
            },
        },
        outputs={"data": {"value": {"get_attr": ["w", "data"]}}},
    )
    assert ended(face.work(web, patient=False)) == "CREATE_IN_PROGRESS"
    face.engine.resource_signal(
        face.member, web, "h", {"status": "SUCCESS", "id": "1", "data": "done"}
    )
    assert ended(face.work(web)) == "CREATE_COMPLETE"
    assert json.loads(outputs(face, web)["data"]) == {"1": "done"}


def test_what_is_marked_is_replaced_by_the_next_update(face):
    web = face.create(resources={"a": RANDOM})
    face.work(web)
    before = face.engine.describe_stack_resource(face.member, web, "a").resource
    face.engine.resource_mark_unhealthy(face.member, web, "a", mark_unhealthy=True, reason="ill")
    face.work(web)
    marked = face.engine.describe_stack_resource(face.member, web, "a").resource
    assert (marked.state, marked.reason) == ("CHECK_FAILED", "ill")
    update(face, web, existing=True)
    assert ended(face.work(web)) == "UPDATE_COMPLETE"
    after = face.engine.describe_stack_resource(face.member, web, "a").resource
    assert after.uuid != before.uuid


def test_a_snapshot_is_gone_back_to(face):
    web = face.create(resources={"a": VALUE})
    face.work(web)
    made = face.engine.stack_snapshot(face.member, web, "first")
    assert ended(face.work(web)) == "SNAPSHOT_COMPLETE"
    shown = face.engine.show_snapshot(face.member, web, made.uuid)
    assert (shown.status, list(shown.data["resources"])) == ("COMPLETE", ["a"])
    changed = {"type": VALUE["type"], "properties": {"value": 2}}
    update(face, web, resources={"a": changed, "b": VALUE})
    face.work(web)
    face.engine.stack_restore(face.member, web, made.uuid)
    assert ended(face.work(web)) == "RESTORE_COMPLETE"
    assert states(face, web).keys() == {"a"}
    assert face.engine.describe_stack_resource(face.member, web, "a").attributes == {"value": 1}


def test_an_abandoned_stack_is_adopted_with_what_it_has(face):
    web = face.create(resources={"a": RANDOM, "b": VALUE})
    face.work(web)
    before = face.engine.describe_stack_resource(face.member, web, "a")
    data = face.engine.abandon_stack(face.member, web)
    assert ended(face.work(web)) == "DELETE_COMPLETE"
    again = face.create(resources=None, adopt_data=json.loads(json.dumps(data)))
    assert ended(face.work(again)) == "ADOPT_COMPLETE"
    after = face.engine.describe_stack_resource(face.member, again, "a")
    assert after.resource.physical_id == before.resource.physical_id
    assert after.attributes["value"] == before.attributes["value"]


def test_a_cancelled_update_goes_back(face):
    hooks = {"resource_registry": {"resources": {"b": {"hooks": "pre-update"}}}}
    web = face.create(resources={"a": VALUE, "b": VALUE | {"depends_on": "a"}})
    face.work(web)
    changed = {"type": VALUE["type"], "properties": {"value": 2}}
    update(
        face, web, environment=hooks, resources={"a": changed, "b": changed | {"depends_on": "a"}}
    )
    assert ended(face.work(web, patient=False)) == "UPDATE_IN_PROGRESS"
    face.engine.stack_cancel_update(face.member, web)
    assert ended(face.work(web)) == "ROLLBACK_COMPLETE"
    for name in "ab":
        shown = face.engine.describe_stack_resource(face.member, web, name)
        assert shown.attributes == {"value": 1}


def test_a_delete_ends_what_goes_on(face):
    hooks = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}
    web = face.create(environment=hooks, resources={"a": VALUE, "b": VALUE})
    face.work(web, patient=False)
    face.engine.delete_stack(face.member, web)
    assert ended(face.work(web)) == "DELETE_COMPLETE"
    assert ("web", "CREATE_FAILED") in told(face, web)
    with face.db.read() as conn:
        left = conn.execute(sa.select(sa.func.count()).select_from(tables.RESOURCES)).scalar_one()
    assert left == 0
