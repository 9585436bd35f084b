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
def face(tmp_path):
    return StackCalls(tmp_path)


@pytest.fixture
def web(face):
    """A stack that was made, with parameters, files and a tag."""
    made = face.create(
        declared=SIZE,
        environment={"parameters": {"size": 1, "name": "x"}, "parameter_defaults": {"d": 1}},
        files={"a": "1", "b": "2"},
        tags=["old"],
        timeout_mins=5,
        disable_rollback=False,
    )
    face.finish(made)
    face.accepted.clear()
    return made


def update(face, identity, request=None, **more):
    face.engine.update_stack(request or face.member, identity, face.arguments(**more))


def told(face):
    """What the newest events say."""
    rows = face.rows(tables.STACK_EVENTS)
    return [tuple(getattr(row, name) for name in TOLD) for row in rows][1:]


def parameters(face, identity):
    return face.engine.get_environment(face.member, identity)["parameters"]


# ---------------------------------------------------------------------------------------- update


def test_put_forgets_what_it_does_not_say(face, web):
    before = face.row(web)
    update(face, web, resources={"b": VALUE}, declared=SIZE, parameters={"size": 2}, converge=True)
    row = face.row(web)
    assert (row.action, row.status, row.traversal) == ("UPDATE", "IN_PROGRESS", 2)
    assert row.previous_template_uuid == before.template_uuid != row.template_uuid
    assert (row.tags, row.timeout_mins, row.disable_rollback) == ((), 5, False)
    assert row.updated_at is not None
    assert parameters(face, web) == {"size": 2}
    assert face.engine.get_files(face.member, web) == {}
    assert face.orders() == [("update", {"converge": True})]
    assert told(face) == [("UPDATE", "IN_PROGRESS", "Stack UPDATE started")]
    assert face.accepted == [web.uuid]


def test_put_needs_every_parameter_again(face, web):
    with pytest.raises(errors.UserParameterMissing, match="size"):
        update(face, web, resources={"b": VALUE}, declared=SIZE)
    with pytest.raises(errors.TemplateUnreadable):
        update(face, web)
    assert face.row(web).traversal == 1


def test_patch_keeps_what_it_does_not_say(face, web):
    update(face, web, existing=True, files={"b": "3"}, parameters={"name": "y"}, timeout_mins=0)
    assert parameters(face, web) == {"size": 1, "name": "y"}
    assert face.engine.get_files(face.member, web) == {"a": "1", "b": "3"}
    environment = face.engine.get_environment(face.member, web)
    assert environment["parameter_defaults"] == {"d": 1}
    row = face.row(web)
    assert (row.tags, row.timeout_mins) == (("old",), None)


def test_patch_drops_what_is_cleared_and_what_is_declared_no_more(face, web):
    update(face, web, existing=True, clear_parameters=["name"])
    assert parameters(face, web) == {"size": 1}
    face.finish(web)
    update(face, web, existing=True, resources={"a": VALUE})
    assert parameters(face, web) == {}
    face.finish(web)
    with pytest.raises(errors.UnknownUserParameter, match="size"):
        update(face, web, existing=True, resources={"a": VALUE}, parameters={"size": 1})


def test_patch_merges_environment_files(face, web):
    files = {"env": "parameters: {size: 7}\n"}
    update(face, web, existing=True, files=files, environment_files=["env"])
    assert parameters(face, web) == {"size": 7, "name": "x"}


def test_an_immutable_parameter_stays(face):
    declared = {"size": {"type": "number", "immutable": True}}
    made = face.create(declared=declared, parameters={"size": 1})
    face.finish(made)
    with pytest.raises(errors.ImmutableParameterModified, match="size"):
        update(face, made, existing=True, parameters={"size": 2})
    update(face, made, existing=True, parameters={"size": 1})


@pytest.mark.parametrize("action", ["SUSPEND", "DELETE"])
def test_what_is_suspended_or_goes_is_not_updated(face, web, action):
    face.change(web, action=action)
    with pytest.raises(errors.NotSupported, match="Updating a stack when it is"):
        update(face, web, existing=True)


def test_an_update_supersedes_what_goes_on(face, web):
    update(face, web, existing=True)
    update(face, web, existing=True)
    assert face.row(web).traversal == 3
    assert [kind for kind, _ in face.orders()] == ["update", "update"]


def test_without_convergence_a_patch_needs_a_stack_that_was_there_once(face, web, tmp_path):
    ruled = StackCalls.over(face, tmp_path, convergence=False)
    face.change(web, action="CREATE", status="FAILED")
    with pytest.raises(errors.NotSupported, match="CREATE_FAILED and has no previous template"):
        update(ruled, web, face.member, existing=True)
    update(ruled, web, face.member, resources={"b": VALUE}, declared=SIZE, parameters={"size": 2})
    face.change(web, status="FAILED", open=False)
    update(ruled, web, face.member, existing=True, parameters={"size": 3})
    assert list(face.engine.get_template(face.member, web)["resources"]) == ["b"]
    assert parameters(face, web) == {"size": 3}


def test_with_convergence_a_patch_may_follow_a_failed_creation(face, web):
    face.change(web, action="CREATE", status="FAILED")
    update(face, web, existing=True)
    assert face.row(web).action == "UPDATE"


def test_without_convergence_a_busy_stack_answers_409(face, web, tmp_path):
    update(face, web, existing=True)
    ruled = StackCalls.over(face, tmp_path, convergence=False)
    for ask in (
        lambda: update(ruled, web, existing=True),
        lambda: ruled.engine.stack_suspend(face.member, web),
        lambda: ruled.engine.stack_check(face.member, web),
    ):
        with pytest.raises(errors.ActionInProgress, match="UPDATE"):
            ask()
    ruled.engine.delete_stack(face.member, web)


def test_a_stack_that_moves_meanwhile_is_looked_at_again(face, web, monkeypatch):
    real, times = db.update_guarded, []

    def overtaken(conn, uuid, traversal, values):
        times.append(traversal)
        return len(times) > 1 and real(conn, uuid, traversal, values)

    monkeypatch.setattr(db, "update_guarded", overtaken)
    update(face, web, existing=True)
    assert len(times) == 2
    assert len(face.orders()) == 1
    monkeypatch.setattr(db, "update_guarded", lambda *_args: False)
    with pytest.raises(errors.ActionInProgress):
        update(face, web, existing=True)
    assert len(face.orders()) == 1


def test_each_call_renews_whom_engines_act_for(face, web):
    bob = dataclasses.replace(caller("member", "extra"), user="bob")
    update(face, web, bob, existing=True)
    (who,) = face.rows(tables.CREDENTIALS)
    assert (who.user, who.project, who.roles) == ("bob", "p1", '["member","extra"]')


# ----------------------------------------------------------------------------------- delete


def test_a_delete_cancels_what_goes_on(face):
    made = face.create()
    face.engine.delete_stack(face.member, made)
    face.engine.delete_stack(face.member, made)
    assert told(face) == [
        ("CREATE", "FAILED", "Stack CREATE cancelled"),
        ("DELETE", "IN_PROGRESS", "Stack DELETE started"),
    ]
    assert face.orders() == [("create", {}), ("delete", {"abandon": False})]


def test_a_nested_stack_is_deleted_by_an_order_to_its_tree(face, web):
    below = face.create("below")
    face.change(below, root_uuid=web.uuid, owner_uuid=web.uuid, owner_resource="a", depth=1,
                status="COMPLETE")  # fmt: skip
    face.accepted.clear()
    face.engine.delete_stack(face.member, below)
    assert face.accepted == [web.uuid]
    (order,) = face.rows(tables.STACK_ORDERS)
    assert (order.root_uuid, order.stack_uuid) == (web.uuid, below.uuid)
    assert face.row(web).action == "CREATE"


# ---------------------------------------------------------------------------------- actions


@pytest.mark.parametrize("action", ["suspend", "resume", "check"])
def test_an_action_begins_at_once(face, web, action):
    getattr(face.engine, f"stack_{action}")(face.member, web)
    row = face.row(web)
    assert (row.action, row.status, row.traversal) == (action.upper(), "IN_PROGRESS", 2)
    assert face.orders() == [(action, {})]
    assert told(face) == [(action.upper(), "IN_PROGRESS", f"Stack {action.upper()} started")]


@pytest.mark.parametrize(("action", "orders"), [("suspend", 0), ("resume", 0), ("check", 1)])
def test_what_was_done_already_is_not_done_again(face, web, action, orders):
    face.change(web, action=action.upper())
    getattr(face.engine, f"stack_{action}")(face.member, web)
    assert len(face.orders()) == orders


@pytest.mark.parametrize("action", ["suspend", "resume", "check"])
def test_a_deletion_is_not_overtaken(face, web, action):
    face.engine.delete_stack(face.member, web)
    with pytest.raises(errors.NotSupported, match="deleting"):
        getattr(face.engine, f"stack_{action}")(face.member, web)


def test_a_cancel_goes_back_to_the_template_before(face, web):
    update(face, web, existing=True, resources={"b": VALUE})
    before = face.row(web)
    face.engine.stack_cancel_update(face.member, web)
    row = face.row(web)
    assert (row.action, row.status, row.traversal) == ("ROLLBACK", "IN_PROGRESS", 3)
    assert row.template_uuid == before.previous_template_uuid
    assert row.previous_template_uuid == before.template_uuid
    assert told(face)[1:] == [("ROLLBACK", "IN_PROGRESS", "Stack ROLLBACK started")]


def test_a_cancel_without_rollback_fails_at_once(face):
    made = face.create()
    face.engine.stack_cancel_without_rollback(face.member, made)
    assert told(face) == [("CREATE", "FAILED", "Stack CREATE cancelled")]
    assert face.orders()[1] == ("cancel", {"rollback": False})


@pytest.mark.parametrize(
    ("state", "cancel"),
    [("CREATE_COMPLETE", "without_rollback"), ("UPDATE_COMPLETE", "update"),
     ("CREATE_IN_PROGRESS", "update"), ("DELETE_IN_PROGRESS", "without_rollback")],
)  # fmt: skip
def test_only_what_goes_on_can_be_cancelled(face, web, state, cancel):
    action, _, status = state.partition("_")
    face.change(web, action=action, status=status)
    with pytest.raises(errors.NotSupported, match=state):
        getattr(face.engine, f"stack_cancel_{cancel}")(face.member, web)


# ------------------------------------------------------------------------ abandon, snapshots


def test_abandon_and_export_are_off_until_they_are_turned_on(face, web):
    for ask in (face.engine.export_stack, face.engine.abandon_stack):
        with pytest.raises(errors.NotSupported, match="Abandon"):
            ask(face.member, web)


def test_abandoned_data_can_be_adopted(tmp_path):
    face = StackCalls(tmp_path, enable_stack_abandon=True, enable_stack_adopt=True)
    made = face.create(declared={"size": {"type": "number"}}, parameters={"size": 3})
    below = face.create("below")
    face.change(below, root_uuid=made.uuid, owner_uuid=made.uuid, owner_resource="b", depth=1)
    face.add_resource(made, "a", physical_id="17", metadata={"m": 1}, data={"k": "v"})
    face.add_resource(made, "b", physical_id=below.uuid)
    face.add_resource(below, "c")
    exported = face.engine.export_stack(face.member, made)
    assert exported["resources"]["a"] == {
        "name": "a", "type": "OS::Heat::Value", "resource_id": "17", "action": "CREATE",
        "status": "COMPLETE", "metadata": {"m": 1}, "resource_data": {"k": "v"},
    }  # fmt: skip
    assert list(exported["resources"]["b"]["resources"]) == ["c"]
    assert exported["environment"]["parameters"] == {"size": 3}
    assert face.engine.abandon_stack(face.member, made) == exported
    assert face.orders()[-1] == ("delete", {"abandon": True})
    face.change(made, deleted_at=trees.AT, live_name=None)
    adopted = face.create(resources=None, adopt_data=exported)
    assert parameters(face, adopted) == {"size": 3}


def test_a_snapshot_is_there_before_it_is_made(face, web):
    made = face.engine.stack_snapshot(face.member, web, "first")
    assert (made.name, made.action, made.status) == ("first", "CREATE", "IN_PROGRESS")
    assert made.data["template"]
    assert made.data["resources"] == {}
    assert face.orders() == [("snapshot", {"snapshot": made.uuid})]
    assert face.row(web).action == "SNAPSHOT"
    assert face.engine.stack_list_snapshots(face.member, web) == [made]
    assert face.engine.show_snapshot(face.member, web, made.uuid) == made
    with pytest.raises(errors.ActionInProgress):
        face.engine.stack_snapshot(face.member, web, None)
    with pytest.raises(errors.NotSupported):
        face.engine.delete_snapshot(face.member, web, made.uuid)
    with pytest.raises(errors.NotSupported):
        face.engine.stack_restore(face.member, web, made.uuid)


def test_snapshots_are_counted_deleted_and_restored(tmp_path):
    face = StackCalls(tmp_path, max_snapshots_per_stack=1)
    web = face.create(files={"a": "1"})
    face.finish(web)
    made = face.engine.stack_snapshot(face.member, web, None)
    face.finish(web)
    with pytest.raises(errors.RequestLimitExceeded, match="max_snapshots_per_stack"):
        face.engine.stack_snapshot(face.member, web, None)
    face.db.transact(lambda conn: conn.execute(tables.SNAPSHOTS.update().values(status="COMPLETE")))
    update(face, web, resources={"b": VALUE})
    face.finish(web)
    before = face.row(web)
    face.engine.stack_restore(face.member, web, made.uuid)
    row = face.row(web)
    assert (row.action, row.previous_template_uuid) == ("RESTORE", before.template_uuid)
    assert face.orders() == [("restore", {"snapshot": made.uuid})]
    assert list(face.engine.get_template(face.member, web)["resources"]) == ["a"]
    assert face.engine.get_files(face.member, web) == {"a": "1"}
    face.engine.delete_snapshot(face.member, web, made.uuid)
    for ask in (face.engine.show_snapshot, face.engine.delete_snapshot, face.engine.stack_restore):
        with pytest.raises(errors.SnapshotNotFound):
            ask(face.member, web, made.uuid)


def test_readers_see_no_secrets_in_snapshots(tmp_path):
    declared = {"key": {"type": "string", "hidden": True}}
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    face = StackCalls(tmp_path)
    web = face.create(resources={"a": handle}, declared=declared, parameters={"key": "sesame-7"})
    face.work(web)
    made = face.engine.stack_snapshot(face.member, web, None)
    face.work(web)
    asked = StackCalls.over(face, tmp_path)
    whole = asked.engine.show_snapshot(face.member, web, made.uuid)
    assert whole.data["environment"]["parameters"] == {"key": "sesame-7"}
    assert whole.data["resources"]["a"]["resource_data"]["token"]
    reader = caller("reader")
    shown = asked.engine.show_snapshot(reader, web, made.uuid)
    assert asked.engine.stack_list_snapshots(reader, web) == [shown]
    assert shown.data["template"] == whole.data["template"]
    assert shown.data["environment"]["parameters"] == {}
    assert list(shown.data["resources"]["a"]) == ["name", "type", "resource_id", "action", "status"]
