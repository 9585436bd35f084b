"""What is ordered of stacks that are there: by which state, with which rows."""

from __future__ import annotations

import dataclasses

import pytest

from bloomery import errors
from bloomery.db import stacks as db
from bloomery.db import tables
from tests.kit.clients.stack_calls import VALUE, StackCalls, caller
from tests.kit.stacks import trees

SIZE = {"size": {"type": "number"}, "name": {"type": "string", "default": "n"}}
TOLD = ("action", "status", "reason")


@pytest.fixture
def calls(tmp_path):
    return StackCalls(tmp_path)


@pytest.fixture
def web(calls):
    """A stack that was made, with parameters, files and a tag."""
    made = calls.create(
        declared=SIZE,
        environment={"parameters": {"size": 1, "name": "x"}, "parameter_defaults": {"d": 1}},
        files={"a": "1", "b": "2"},
        tags=["old"],
        timeout_mins=5,
        disable_rollback=False,
    )
    calls.finish(made)
    calls.accepted.clear()
    return made


def update(calls, identity, request=None, **more):
    calls.operations.update_stack(request or calls.member, identity, calls.arguments(**more))


def told(calls):
    """What the newest events say."""
    rows = calls.rows(tables.STACK_EVENTS)
    return [tuple(getattr(row, name) for name in TOLD) for row in rows][1:]


def parameters(calls, identity):
    return calls.operations.get_environment(calls.member, identity)["parameters"]


# ---------------------------------------------------------------------------------------- update


def test_put_forgets_what_it_does_not_say(calls, web):
    before = calls.row(web)
    update(calls, web, resources={"b": VALUE}, declared=SIZE, parameters={"size": 2}, converge=True)
    row = calls.row(web)
    assert (row.action, row.status, row.traversal) == ("UPDATE", "IN_PROGRESS", 2)
    assert row.previous_template_uuid == before.template_uuid != row.template_uuid
    assert (row.tags, row.timeout_mins, row.disable_rollback) == ((), 5, False)
    assert row.updated_at is not None
    assert parameters(calls, web) == {"size": 2}
    assert calls.operations.get_files(calls.member, web) == {}
    assert calls.orders() == [("update", {"converge": True})]
    assert told(calls) == [("UPDATE", "IN_PROGRESS", "Stack UPDATE started")]
    assert calls.accepted == [web.uuid]


def test_put_needs_every_parameter_again(calls, web):
    with pytest.raises(errors.UserParameterMissing, match="size"):
        update(calls, web, resources={"b": VALUE}, declared=SIZE)
    with pytest.raises(errors.TemplateUnreadable):
        update(calls, web)
    assert calls.row(web).traversal == 1


def test_patch_keeps_what_it_does_not_say(calls, web):
    update(calls, web, existing=True, files={"b": "3"}, parameters={"name": "y"}, timeout_mins=0)
    assert parameters(calls, web) == {"size": 1, "name": "y"}
    assert calls.operations.get_files(calls.member, web) == {"a": "1", "b": "3"}
    environment = calls.operations.get_environment(calls.member, web)
    assert environment["parameter_defaults"] == {"d": "******"}
    row = calls.row(web)
    assert (row.tags, row.timeout_mins) == (("old",), None)


def test_patch_drops_what_is_cleared_and_what_is_declared_no_more(calls, web):
    update(calls, web, existing=True, clear_parameters=["name"])
    assert parameters(calls, web) == {"size": 1}
    calls.finish(web)
    update(calls, web, existing=True, resources={"a": VALUE})
    assert parameters(calls, web) == {}
    calls.finish(web)
    with pytest.raises(errors.UnknownUserParameter, match="size"):
        update(calls, web, existing=True, resources={"a": VALUE}, parameters={"size": 1})


def test_patch_merges_environment_files(calls, web):
    files = {"env": "parameters: {size: 7}\n"}
    update(calls, web, existing=True, files=files, environment_files=["env"])
    assert parameters(calls, web) == {"size": 7, "name": "x"}


def test_an_immutable_parameter_stays(calls):
    declared = {"size": {"type": "number", "immutable": True}}
    made = calls.create(declared=declared, parameters={"size": 1})
    calls.finish(made)
    with pytest.raises(errors.ImmutableParameterModified, match="size"):
        update(calls, made, existing=True, parameters={"size": 2})
    update(calls, made, existing=True, parameters={"size": 1})


@pytest.mark.parametrize("action", ["SUSPEND", "DELETE"])
def test_what_is_suspended_or_goes_is_not_updated(calls, web, action):
    calls.change(web, action=action)
    with pytest.raises(errors.NotSupported, match="Updating a stack when it is"):
        update(calls, web, existing=True)


def test_an_update_supersedes_what_goes_on(calls, web):
    update(calls, web, existing=True)
    update(calls, web, existing=True)
    assert calls.row(web).traversal == 3
    assert [kind for kind, _ in calls.orders()] == ["update", "update"]


def test_without_convergence_a_patch_needs_a_stack_that_was_there_once(calls, web, tmp_path):
    ruled = StackCalls.over(calls, tmp_path, convergence=False)
    calls.change(web, action="CREATE", status="FAILED")
    with pytest.raises(errors.NotSupported, match="CREATE_FAILED and has no previous template"):
        update(ruled, web, calls.member, existing=True)
    update(ruled, web, calls.member, resources={"b": VALUE}, declared=SIZE, parameters={"size": 2})
    calls.change(web, status="FAILED", open=False)
    update(ruled, web, calls.member, existing=True, parameters={"size": 3})
    assert list(calls.operations.get_template(calls.member, web)["resources"]) == ["b"]
    assert parameters(calls, web) == {"size": 3}


def test_with_convergence_a_patch_may_follow_a_failed_creation(calls, web):
    calls.change(web, action="CREATE", status="FAILED")
    update(calls, web, existing=True)
    assert calls.row(web).action == "UPDATE"


def test_without_convergence_a_busy_stack_answers_409(calls, web, tmp_path):
    update(calls, web, existing=True)
    ruled = StackCalls.over(calls, tmp_path, convergence=False)
    for ask in (
        lambda: update(ruled, web, existing=True),
        lambda: ruled.operations.stack_suspend(calls.member, web),
        lambda: ruled.operations.stack_check(calls.member, web),
    ):
        with pytest.raises(errors.ActionInProgress, match="UPDATE"):
            ask()
    ruled.operations.delete_stack(calls.member, web)


def test_a_stack_that_moves_meanwhile_is_looked_at_again(calls, web, monkeypatch):
    real, times = db.update_guarded, []

    def overtaken(conn, uuid, traversal, values):
        times.append(traversal)
        return len(times) > 1 and real(conn, uuid, traversal, values)

    monkeypatch.setattr(db, "update_guarded", overtaken)
    update(calls, web, existing=True)
    assert len(times) == 2
    assert len(calls.orders()) == 1
    monkeypatch.setattr(db, "update_guarded", lambda *_args: False)
    with pytest.raises(errors.ActionInProgress):
        update(calls, web, existing=True)
    assert len(calls.orders()) == 1


def test_each_call_renews_whom_engines_act_for(calls, web):
    bob = dataclasses.replace(caller("member", "extra"), user="bob")
    update(calls, web, bob, existing=True)
    (who,) = calls.rows(tables.CREDENTIALS)
    assert (who.user, who.project, who.roles) == ("bob", "p1", '["member","extra"]')


# ----------------------------------------------------------------------------------- delete


def test_a_delete_cancels_what_goes_on(calls):
    made = calls.create()
    calls.operations.delete_stack(calls.member, made)
    calls.operations.delete_stack(calls.member, made)
    assert told(calls) == [
        ("CREATE", "FAILED", "Stack CREATE cancelled"),
        ("DELETE", "IN_PROGRESS", "Stack DELETE started"),
    ]
    assert calls.orders() == [("create", {}), ("delete", {"abandon": False})]


def test_a_nested_stack_is_deleted_by_an_order_to_its_tree(calls, web):
    below = calls.create("below")
    calls.change(below, root_uuid=web.uuid, owner_uuid=web.uuid, owner_resource="a", depth=1,
                status="COMPLETE")  # fmt: skip
    calls.accepted.clear()
    calls.operations.delete_stack(calls.member, below)
    assert calls.accepted == [web.uuid]
    (order,) = calls.rows(tables.STACK_ORDERS)
    assert (order.root_uuid, order.stack_uuid) == (web.uuid, below.uuid)
    assert calls.row(web).action == "CREATE"


# ---------------------------------------------------------------------------------- actions


@pytest.mark.parametrize("action", ["suspend", "resume", "check"])
def test_an_action_begins_at_once(calls, web, action):
    getattr(calls.operations, f"stack_{action}")(calls.member, web)
    row = calls.row(web)
    assert (row.action, row.status, row.traversal) == (action.upper(), "IN_PROGRESS", 2)
    assert calls.orders() == [(action, {})]
    assert told(calls) == [(action.upper(), "IN_PROGRESS", f"Stack {action.upper()} started")]


@pytest.mark.parametrize(("action", "orders"), [("suspend", 0), ("resume", 0), ("check", 1)])
def test_what_was_done_already_is_not_done_again(calls, web, action, orders):
    calls.change(web, action=action.upper())
    getattr(calls.operations, f"stack_{action}")(calls.member, web)
    assert len(calls.orders()) == orders


@pytest.mark.parametrize("action", ["suspend", "resume", "check"])
def test_a_deletion_is_not_overtaken(calls, web, action):
    calls.operations.delete_stack(calls.member, web)
    with pytest.raises(errors.NotSupported, match="deleting"):
        getattr(calls.operations, f"stack_{action}")(calls.member, web)


def test_a_cancel_goes_back_to_the_template_before(calls, web):
    update(calls, web, existing=True, resources={"b": VALUE})
    before = calls.row(web)
    calls.operations.stack_cancel_update(calls.member, web)
    row = calls.row(web)
    assert (row.action, row.status, row.traversal) == ("ROLLBACK", "IN_PROGRESS", 3)
    assert row.template_uuid == before.previous_template_uuid
    assert row.previous_template_uuid == before.template_uuid
    assert told(calls)[1:] == [("ROLLBACK", "IN_PROGRESS", "Stack ROLLBACK started")]


def test_a_cancel_without_rollback_fails_at_once(calls):
    made = calls.create()
    calls.operations.stack_cancel_without_rollback(calls.member, made)
    assert told(calls) == [("CREATE", "FAILED", "Stack CREATE cancelled")]
    assert calls.orders()[1] == ("cancel", {"rollback": False})


@pytest.mark.parametrize(
    ("state", "cancel"),
    [("CREATE_COMPLETE", "without_rollback"), ("UPDATE_COMPLETE", "update"),
     ("CREATE_IN_PROGRESS", "update"), ("DELETE_IN_PROGRESS", "without_rollback")],
)  # fmt: skip
def test_only_what_goes_on_can_be_cancelled(calls, web, state, cancel):
    action, _, status = state.partition("_")
    calls.change(web, action=action, status=status)
    with pytest.raises(errors.NotSupported, match=state):
        getattr(calls.operations, f"stack_cancel_{cancel}")(calls.member, web)


# ------------------------------------------------------------------------ abandon, snapshots


def test_abandon_and_export_are_off_until_they_are_turned_on(calls, web):
    for ask in (calls.operations.export_stack, calls.operations.abandon_stack):
        with pytest.raises(errors.NotSupported, match="Abandon"):
            ask(calls.member, web)


def test_abandoned_data_can_be_adopted(tmp_path):
    calls = StackCalls(tmp_path, enable_stack_abandon=True, enable_stack_adopt=True)
    made = calls.create(declared={"size": {"type": "number"}}, parameters={"size": 3})
    below = calls.create("below")
    calls.change(below, root_uuid=made.uuid, owner_uuid=made.uuid, owner_resource="b", depth=1)
    calls.add_resource(made, "a", physical_id="17", metadata={"m": 1}, data={"k": "v"})
    calls.add_resource(made, "b", physical_id=below.uuid)
    calls.add_resource(below, "c")
    exported = calls.operations.export_stack(calls.member, made)
    assert exported["resources"]["a"] == {
        "name": "a", "type": "OS::Heat::Value", "resource_id": "17", "action": "CREATE",
        "status": "COMPLETE", "metadata": {"m": 1}, "resource_data": {"k": "v"},
    }  # fmt: skip
    assert list(exported["resources"]["b"]["resources"]) == ["c"]
    assert exported["environment"]["parameters"] == {"size": 3}
    assert calls.operations.abandon_stack(calls.member, made) == exported
    assert calls.orders()[-1] == ("delete", {"abandon": True})
    calls.change(made, deleted_at=trees.AT, live_name=None)
    adopted = calls.create(resources=None, adopt_data=exported)
    assert parameters(calls, adopted) == {"size": 3}


def test_a_snapshot_is_there_before_it_is_made(calls, web):
    made = calls.operations.stack_snapshot(calls.member, web, "first")
    assert (made.name, made.action, made.status) == ("first", "CREATE", "IN_PROGRESS")
    assert made.data["template"]
    assert made.data["resources"] == {}
    assert calls.orders() == [("snapshot", {"snapshot": made.uuid})]
    assert calls.row(web).action == "SNAPSHOT"
    assert calls.operations.stack_list_snapshots(calls.member, web) == [made]
    assert calls.operations.show_snapshot(calls.member, web, made.uuid) == made
    with pytest.raises(errors.ActionInProgress):
        calls.operations.stack_snapshot(calls.member, web, None)
    with pytest.raises(errors.NotSupported):
        calls.operations.delete_snapshot(calls.member, web, made.uuid)
    with pytest.raises(errors.NotSupported):
        calls.operations.stack_restore(calls.member, web, made.uuid)


def test_snapshots_are_counted_deleted_and_restored(tmp_path):
    calls = StackCalls(tmp_path, max_snapshots_per_stack=1)
    web = calls.create(files={"a": "1"})
    calls.finish(web)
    made = calls.operations.stack_snapshot(calls.member, web, None)
    calls.finish(web)
    with pytest.raises(errors.RequestLimitExceeded, match="max_snapshots_per_stack"):
        calls.operations.stack_snapshot(calls.member, web, None)
    calls.db.transact(
        lambda conn: conn.execute(tables.SNAPSHOTS.update().values(status="COMPLETE"))
    )
    update(calls, web, resources={"b": VALUE})
    calls.finish(web)
    before = calls.row(web)
    calls.operations.stack_restore(calls.member, web, made.uuid)
    row = calls.row(web)
    assert (row.action, row.previous_template_uuid) == ("RESTORE", before.template_uuid)
    assert calls.orders() == [("restore", {"snapshot": made.uuid})]
    assert list(calls.operations.get_template(calls.member, web)["resources"]) == ["a"]
    assert calls.operations.get_files(calls.member, web) == {"a": "1"}
    calls.operations.delete_snapshot(calls.member, web, made.uuid)
    for ask in (
        calls.operations.show_snapshot,
        calls.operations.delete_snapshot,
        calls.operations.stack_restore,
    ):
        with pytest.raises(errors.SnapshotNotFound):
            ask(calls.member, web, made.uuid)


def test_readers_see_no_secrets_in_snapshots(tmp_path):
    declared = {"key": {"type": "string", "hidden": True}}
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    calls = StackCalls(tmp_path)
    web = calls.create(resources={"a": handle}, declared=declared, parameters={"key": "sesame-7"})
    calls.work(web)
    made = calls.operations.stack_snapshot(calls.member, web, None)
    calls.work(web)
    asked = StackCalls.over(calls, tmp_path)
    whole = asked.operations.show_snapshot(calls.member, web, made.uuid)
    assert whole.data["environment"]["parameters"] == {"key": "sesame-7"}
    assert whole.data["resources"]["a"]["resource_data"]["token"]
    reader = caller("reader")
    shown = asked.operations.show_snapshot(reader, web, made.uuid)
    assert asked.operations.stack_list_snapshots(reader, web) == [shown]
    assert shown.data["template"] == whole.data["template"]
    assert shown.data["environment"]["parameters"] == {}
    assert list(shown.data["resources"]["a"]) == ["name", "type", "resource_id", "action", "status"]
