"""Signals, hooks and marks: accepted as orders, refused where they cannot be heard."""

from __future__ import annotations

import itertools

import pytest

from bloomery import errors
from bloomery.db import engines, tables
from tests.kit.clients.stack_calls import VALUE, StackCalls, caller
from tests.kit.stacks import trees

HANDLE = "OS::Heat::WaitConditionHandle"
GROUP = "OS::Ironic::InstanceGroup"


@pytest.fixture
def calls(tmp_path):
    return StackCalls(tmp_path)


@pytest.fixture
def web(calls):
    made = calls.create(resources={"a": VALUE, "h": {"type": HANDLE}})
    calls.finish(made)
    calls.add_resource(made, "a", {"value": 1}, physical_id="id-of-a")
    calls.add_resource(made, "h", {}, type=HANDLE, data={"token": "s3cret"}, redacted={"token"})
    return made


def signal(calls, stack, name, details=None, request=None, **more):
    calls.operations.resource_signal(request or calls.member, stack, name, details, **more)


def test_a_signal_is_an_order_and_changes_no_state(calls, web):
    before = calls.row(web)
    signal(calls, web, "h", {"status": "SUCCESS"})
    (resource,) = [row for row in calls.rows(tables.RESOURCES) if row.name == "h"]
    assert calls.orders() == [
        ("signal", {"resource": resource.uuid, "details": {"status": "SUCCESS"}})
    ]
    assert calls.row(web) == before
    assert len(calls.rows(tables.STACK_EVENTS)) == 1


def test_what_cannot_hear_is_not_signalled(calls, web):
    words = "signal is not supported for resource a: OS::Heat::Value takes none"
    with pytest.raises(errors.ResourceActionNotSupported, match=words):
        signal(calls, web, "a", {"x": 1})
    with pytest.raises(errors.ResourceNotFound, match="zzz"):
        signal(calls, web, "zzz")
    for action in ("SUSPEND", "DELETE"):
        calls.add_resource(web, "h", {}, type=HANDLE, action=action, status="FAILED")
        with pytest.raises(errors.NotSupported, match=action):
            signal(calls, web, "h")
    calls.add_resource(web, "h", {}, type=HANDLE, action="DELETE")
    with pytest.raises(errors.ResourceNotFound):
        signal(calls, web, "h")
    assert calls.orders() == []


@pytest.mark.parametrize(
    ("state", "status", "details", "sentence"),
    [
        ("paused", "IN_PROGRESS", {"rollout": "kontinue"}, "rollout is 'kontinue'; a roll-out"),
        ("paused", "IN_PROGRESS", {"rollout": ["abort"]}, "rollout is ['abort']; a roll-out"),
        ("running", "IN_PROGRESS", {}, "rollout is None; a roll-out"),
        ("running", "IN_PROGRESS", {"rollout": "continue"}, ": the roll-out is not paused; a"),
        ("complete", "COMPLETE", {"rollout": "continue"}, ": no roll-out is under way, and"),
        ("paused", "FAILED", {"rollout": "continue"}, ": no roll-out is under way, and"),
        ("complete", "COMPLETE", None, "rollout is None; no roll-out is under way, and"),
        (None, "IN_PROGRESS", {"rollout": "abort"}, ": no roll-out is under way, and"),
    ],
)
def test_a_signal_that_a_roll_out_cannot_take_is_refused(
    calls, web, state, status, details, sentence
):
    data = {"rollout": {"state": state}} if state else {}
    calls.add_resource(web, "g", {}, type=GROUP, action="UPDATE", status=status, data=data)
    with pytest.raises(errors.SignalRefused) as refusal:
        signal(calls, web, "g", details)
    assert refusal.value.status == 400
    assert sentence in str(refusal.value)
    assert "continue, pause, abort, rollback" in str(refusal.value)
    assert calls.orders() == []


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("paused", "continue"),
        *itertools.product(["paused", "running"], ["pause", "abort", "rollback"]),
    ],
)
def test_a_signal_that_a_roll_out_takes_is_an_order(calls, web, state, word):
    data = {"rollout": {"state": state}}
    calls.add_resource(web, "g", {}, type=GROUP, action="UPDATE", status="IN_PROGRESS", data=data)
    signal(calls, web, "g", {"rollout": word})
    assert [payload["details"] for _kind, payload in calls.orders()] == [{"rollout": word}]


def test_the_address_that_was_handed_out_needs_no_login(calls, web, tmp_path):
    ruled = StackCalls.over(calls, tmp_path)
    nobody = caller(project=None)
    signal(ruled, web, "h", {}, nobody, token="s3cret")
    assert len(calls.orders()) == 1
    for name, token in (("h", "wrong"), ("h", ""), ("a", "s3cret"), ("zzz", "s3cret")):
        with pytest.raises(errors.ResourceNotFound):
            signal(ruled, web, name, {}, nobody, token=token)
    assert ruled.accepted == [web.uuid]


def test_a_signal_without_a_login_acts_for_nobody_new(calls, web):
    signal(calls, web, "h", {}, caller(project=None), token="s3cret")
    (who,) = calls.rows(tables.CREDENTIALS)
    assert (who.user, who.project) == ("ann", "p1")


def test_a_hook_is_cleared_where_it_is_set(calls, web):
    calls.add_resource(web, "a", action="INIT", data={"pre-create": True})
    signal(calls, web, "a", {"unset_hook": "pre-create"})
    (order,) = calls.orders()
    assert order[0] == "unset_hook"
    assert order[1]["hook"] == "pre-create"
    for hook in ("pre-update", "nonsense", None, ["pre-create"]):
        with pytest.raises(errors.InvalidBreakPointHook):
            signal(calls, web, "a", {"unset_hook": hook})


def test_a_reason_that_no_row_could_hold_is_cut(calls, web):
    reason = "x\0\ud800" * 50_000
    calls.operations.resource_mark_unhealthy(
        calls.member, web, "a", mark_unhealthy=True, reason=reason
    )
    (row,) = (row for row in calls.rows(tables.RESOURCES) if row.name == "a")
    assert row.reason.startswith("x\ufffd?x")
    assert len(row.reason.encode()) <= 65_535


@pytest.mark.parametrize("ident", ["a", "id-of-a"])
def test_a_resource_is_marked_by_name_or_id(calls, web, ident):
    calls.operations.resource_mark_unhealthy(calls.member, web, ident, mark_unhealthy=True)
    (order,) = calls.orders()
    assert order[0] == "mark_unhealthy"
    assert order[1]["unhealthy"] is True
    assert order[1]["reason"] == "state changed by resource_mark_unhealthy api"
    assert calls.row(web).traversal == 1
    shown = calls.operations.describe_stack_resource(calls.member, web, "a").resource
    assert (shown.state, shown.reason) == ("CHECK_FAILED", order[1]["reason"])
    calls.operations.resource_mark_unhealthy(calls.member, web, ident, mark_unhealthy=False)
    assert (
        calls.operations.describe_stack_resource(calls.member, web, "a").resource.state
        == "CHECK_COMPLETE"
    )


def test_a_mark_that_changes_nothing_is_no_order(calls, web):
    calls.operations.resource_mark_unhealthy(calls.member, web, "a", mark_unhealthy=False)
    calls.add_resource(web, "a", {"value": 1}, action="DELETE", status="FAILED")
    calls.operations.resource_mark_unhealthy(calls.member, web, "a", mark_unhealthy=True)
    assert calls.orders() == []
    assert (
        calls.operations.describe_stack_resource(calls.member, web, "a").resource.state
        == "DELETE_FAILED"
    )


def test_a_mark_must_mean_one_resource_that_rests(calls, web):
    def mark(ident):
        calls.operations.resource_mark_unhealthy(calls.member, web, ident, mark_unhealthy=True)

    calls.add_resource(web, "b", {"value": 1}, physical_id="id-of-a")
    with pytest.raises(errors.PhysicalResourceIDAmbiguity, match="id-of-a"):
        mark("id-of-a")
    with pytest.raises(errors.ResourceNotFound):
        mark("zzz")
    calls.add_resource(web, "b", {"value": 1}, action="UPDATE", status="IN_PROGRESS")
    with pytest.raises(errors.ActionInProgress):
        mark("b")
    assert calls.orders() == []


# ------------------------------------------------------------------------------------------- why


def test_why_names_what_waits_for_what(calls, web):
    calls.change(web, action="UPDATE", status="IN_PROGRESS")
    handle = calls.add_resource(web, "h", {}, type=HANDLE, status="FAILED", reason="it broke")
    calls.add_resource(
        web, "a", {"value": 1}, action="UPDATE", status="IN_PROGRESS", waits_for=handle.uuid,
        updated_at=trees.AT, attempt=2,
    )  # fmt: skip
    why = calls.operations.explain_stack(calls.member, web)
    assert why["stack_status"] == "UPDATE_IN_PROGRESS"
    assert why["waiting"] == [
        {
            "resource": "a", "path": "a", "stack": "web", "state": "UPDATE_IN_PROGRESS",
            "since": trees.AT.isoformat(), "age_s": why["waiting"][0]["age_s"],
            "for": f"resource h ({HANDLE}), such as a signal to it", "for_uuid": handle.uuid,
            "due_at": None, "attempt": 2,
        },
    ]  # fmt: skip
    assert why["failed"] == [
        {
            "resource": "h",
            "path": "h",
            "stack": "web",
            "state": "CREATE_FAILED",
            "reason": "it broke",
            "node": None,
        }
    ]
    assert why["next_action"].startswith("wait for a: resource h")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"waits_for": "17"}, "the object 17"),
        ({"attempt": 2}, "its next attempt, after 2 failed ones"),
        ({"due_at": trees.AT}, "its next check"),
        ({}, "an engine"),
    ],
)
def test_why_has_words_for_every_wait(calls, web, more, expected):
    calls.add_resource(web, "a", {"value": 1}, action="UPDATE", status="IN_PROGRESS", **more)
    assert calls.operations.explain_stack(calls.member, web)["waiting"][0]["for"] == expected


def test_why_names_the_stack_below_that_is_waited_for(calls, web):
    below = calls.create("below")
    calls.change(below, root_uuid=web.uuid, owner_uuid=web.uuid, owner_resource="a", depth=1)
    calls.add_resource(web, "a", {"value": 1}, status="IN_PROGRESS", waits_for=below.uuid)
    waiting = calls.operations.explain_stack(calls.member, web)["waiting"]
    assert [each["for"] for each in waiting] == ["child stack below"]


def test_why_follows_a_resource_to_its_allocation_and_a_stack_to_its_resource(calls, web):
    calls.change(web, action="CREATE", status="IN_PROGRESS")
    allocation = {"uuid": "5c41c5b1-95fc-4b0e-9d4d-3b1b3d6b0f6c", "name": "slot"}
    row = allocation | {
        "state": "error", "resource_class": "bm", "last_error": "no node has that trait",
        **dict.fromkeys(("candidate_nodes", "traits"), "[]"), "extra": "{}", "created_at": trees.AT,
    }  # fmt: skip
    calls.db.transact(lambda conn: conn.execute(tables.ALLOCATIONS.insert().values(**row)))
    calls.add_resource(web, "a", status="IN_PROGRESS", waits_for=allocation["uuid"])
    why = calls.operations.explain_stack(calls.member, web)
    cause = "allocation slot: it got no node: no node has that trait"
    assert why["waiting"][0]["for"] == cause
    assert (why["cause_code"], why["cause"]) == ("allocation", f"a waits for {cause}")


CANCEL_OR_DELETE = (
    "; or cancel (openstack stack cancel web), or delete it (openstack stack delete web)"
)


@pytest.mark.parametrize(
    ("action", "ends"),
    [
        ("CREATE", CANCEL_OR_DELETE), ("UPDATE", CANCEL_OR_DELETE),
        ("CHECK", "an engine; or delete it (openstack stack delete web)"),
        ("DELETE", "an engine"),
    ],
)  # fmt: skip
def test_why_advises_only_what_the_service_takes(calls, web, action, ends):
    calls.change(web, action=action, status="IN_PROGRESS")
    calls.add_resource(web, "a", {"value": 1}, action=action, status="IN_PROGRESS")
    assert calls.operations.explain_stack(calls.member, web)["next_action"].endswith(ends)


def test_why_advises_to_delete_again_what_could_not_be_deleted(calls, web):
    calls.change(web, action="DELETE", status="FAILED")
    advice = calls.operations.explain_stack(calls.member, web)["next_action"]
    assert advice.endswith("and delete the stack again: openstack stack delete web")
    assert "update" not in advice


def test_why_says_what_to_do(calls, web):
    assert calls.operations.explain_stack(calls.member, web)["next_action"].startswith("nothing")
    calls.add_resource(web, "a", action="INIT", data={"pre-create": True})
    advice = calls.operations.explain_stack(calls.member, web)["next_action"]
    assert advice == (
        """openstack stack resource signal web a --data '{"unset_hook": "pre-create"}' """
        "continues it"
    )
    new = calls.create("new")
    why = calls.operations.explain_stack(calls.member, new)
    assert [each["kind"] for each in why["orders"]] == ["create"]
    assert why["engine"] is None
    assert why["next_action"].startswith("wait: no engine")


def test_engines_are_listed_while_there_are_some(calls):
    with pytest.raises(errors.Unavailable):
        calls.operations.list_services(calls.member)
    calls.db.transact(
        lambda conn: engines.register(
            conn, engine_id="e1", host="h", hostname="n", binary="b", topic="engine",
            report_interval=60,
        )
    )  # fmt: skip
    (shown,) = calls.operations.list_services(calls.member)
    assert (shown.engine.engine_id, shown.engine.topic, shown.up) == ("e1", "engine", True)


def test_why_says_where_below_a_resource_stands(calls, web):
    below = calls.create("below")
    calls.change(below, root_uuid=web.uuid, owner_uuid=web.uuid, owner_resource="a", depth=1)
    calls.add_resource(below, "hw", {}, status="FAILED", reason="it broke", root_uuid=web.uuid)
    why = calls.operations.explain_stack(calls.member, web)
    assert [(each["resource"], each["path"]) for each in why["failed"]] == [("hw", "a/hw")]
