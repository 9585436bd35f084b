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
def face(tmp_path):
    return StackCalls(tmp_path)


@pytest.fixture
def web(face):
    made = face.create(resources={"a": VALUE, "h": {"type": HANDLE}})
    face.finish(made)
    face.add_resource(made, "a", {"value": 1}, physical_id="id-of-a")
    face.add_resource(made, "h", {}, type=HANDLE, data={"token": "s3cret"}, redacted={"token"})
    return made


def signal(face, stack, name, details=None, request=None, **more):
    face.engine.resource_signal(request or face.member, stack, name, details, **more)


def test_a_signal_is_an_order_and_changes_no_state(face, web):
    before = face.row(web)
    signal(face, web, "h", {"status": "SUCCESS"})
    (resource,) = [row for row in face.rows(tables.RESOURCES) if row.name == "h"]
    assert face.orders() == [
        ("signal", {"resource": resource.uuid, "details": {"status": "SUCCESS"}})
    ]
    assert face.row(web) == before
    assert len(face.rows(tables.STACK_EVENTS)) == 1


def test_what_cannot_hear_is_not_signalled(face, web):
    words = "signal is not supported for resource a: OS::Heat::Value takes none"
    with pytest.raises(errors.ResourceActionNotSupported, match=words):
        signal(face, web, "a", {"x": 1})
    with pytest.raises(errors.ResourceNotFound, match="zzz"):
        signal(face, web, "zzz")
    for action in ("SUSPEND", "DELETE"):
        face.add_resource(web, "h", {}, type=HANDLE, action=action, status="FAILED")
        with pytest.raises(errors.NotSupported, match=action):
            signal(face, web, "h")
    face.add_resource(web, "h", {}, type=HANDLE, action="DELETE")
    with pytest.raises(errors.ResourceNotFound):
        signal(face, web, "h")
    assert face.orders() == []


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
    face, web, state, status, details, sentence
):
    data = {"rollout": {"state": state}} if state else {}
    face.add_resource(web, "g", {}, type=GROUP, action="UPDATE", status=status, data=data)
    with pytest.raises(errors.SignalRefused) as refusal:
        signal(face, web, "g", details)
    assert refusal.value.status == 400
    assert sentence in str(refusal.value)
    assert "continue, pause, abort, rollback" in str(refusal.value)
    assert face.orders() == []


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("paused", "continue"),
        *itertools.product(["paused", "running"], ["pause", "abort", "rollback"]),
    ],
)
def test_a_signal_that_a_roll_out_takes_is_an_order(face, web, state, word):
    data = {"rollout": {"state": state}}
    face.add_resource(web, "g", {}, type=GROUP, action="UPDATE", status="IN_PROGRESS", data=data)
    signal(face, web, "g", {"rollout": word})
    assert [payload["details"] for _kind, payload in face.orders()] == [{"rollout": word}]


def test_the_address_that_was_handed_out_needs_no_login(face, web, tmp_path):
    ruled = StackCalls.over(face, tmp_path)
    nobody = caller(project=None)
    signal(ruled, web, "h", {}, nobody, token="s3cret")
    assert len(face.orders()) == 1
    for name, token in (("h", "wrong"), ("h", ""), ("a", "s3cret"), ("zzz", "s3cret")):
        with pytest.raises(errors.ResourceNotFound):
            signal(ruled, web, name, {}, nobody, token=token)
    assert ruled.accepted == [web.uuid]


def test_a_signal_without_a_login_acts_for_nobody_new(face, web):
    signal(face, web, "h", {}, caller(project=None), token="s3cret")
    (who,) = face.rows(tables.CREDENTIALS)
    assert (who.user, who.project) == ("ann", "p1")


def test_a_hook_is_cleared_where_it_is_set(face, web):
    face.add_resource(web, "a", action="INIT", data={"pre-create": True})
    signal(face, web, "a", {"unset_hook": "pre-create"})
    (order,) = face.orders()
    assert order[0] == "unset_hook"
    assert order[1]["hook"] == "pre-create"
    for hook in ("pre-update", "nonsense", None, ["pre-create"]):
        with pytest.raises(errors.InvalidBreakPointHook):
            signal(face, web, "a", {"unset_hook": hook})


def test_a_reason_that_no_row_could_hold_is_cut(face, web):
    reason = "x\0\ud800" * 50_000
    face.engine.resource_mark_unhealthy(face.member, web, "a", mark_unhealthy=True, reason=reason)
    (row,) = (row for row in face.rows(tables.RESOURCES) if row.name == "a")
    assert row.reason.startswith("x\ufffd?x")
    assert len(row.reason.encode()) <= 65_535


@pytest.mark.parametrize("ident", ["a", "id-of-a"])
def test_a_resource_is_marked_by_name_or_id(face, web, ident):
    face.engine.resource_mark_unhealthy(face.member, web, ident, mark_unhealthy=True)
    (order,) = face.orders()
    assert order[0] == "mark_unhealthy"
    assert order[1]["unhealthy"] is True
    assert order[1]["reason"] == "state changed by resource_mark_unhealthy api"
    assert face.row(web).traversal == 1
    shown = face.engine.describe_stack_resource(face.member, web, "a").resource
    assert (shown.state, shown.reason) == ("CHECK_FAILED", order[1]["reason"])
    face.engine.resource_mark_unhealthy(face.member, web, ident, mark_unhealthy=False)
    assert (
        face.engine.describe_stack_resource(face.member, web, "a").resource.state
        == "CHECK_COMPLETE"
    )


def test_a_mark_that_changes_nothing_is_no_order(face, web):
    face.engine.resource_mark_unhealthy(face.member, web, "a", mark_unhealthy=False)
    face.add_resource(web, "a", {"value": 1}, action="DELETE", status="FAILED")
    face.engine.resource_mark_unhealthy(face.member, web, "a", mark_unhealthy=True)
    assert face.orders() == []
    assert (
        face.engine.describe_stack_resource(face.member, web, "a").resource.state == "DELETE_FAILED"
    )


def test_a_mark_must_mean_one_resource_that_rests(face, web):
    def mark(ident):
        face.engine.resource_mark_unhealthy(face.member, web, ident, mark_unhealthy=True)

    face.add_resource(web, "b", {"value": 1}, physical_id="id-of-a")
    with pytest.raises(errors.PhysicalResourceIDAmbiguity, match="id-of-a"):
        mark("id-of-a")
    with pytest.raises(errors.ResourceNotFound):
        mark("zzz")
    face.add_resource(web, "b", {"value": 1}, action="UPDATE", status="IN_PROGRESS")
    with pytest.raises(errors.ActionInProgress):
        mark("b")
    assert face.orders() == []


# ------------------------------------------------------------------------------------------- why


def test_why_names_what_waits_for_what(face, web):
    face.change(web, action="UPDATE", status="IN_PROGRESS")
    handle = face.add_resource(web, "h", {}, type=HANDLE, status="FAILED", reason="it broke")
    face.add_resource(
        web, "a", {"value": 1}, action="UPDATE", status="IN_PROGRESS", waits_for=handle.uuid,
        updated_at=trees.AT, attempt=2,
    )  # fmt: skip
    why = face.engine.explain_stack(face.member, web)
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
        ({"waits_for": "17"}, "what is called 17"),
        ({"attempt": 2}, "its next attempt, after 2 that failed"),
        ({"due_at": trees.AT}, "its next look"),
        ({}, "its engine"),
    ],
)
def test_why_has_words_for_every_wait(face, web, more, expected):
    face.add_resource(web, "a", {"value": 1}, action="UPDATE", status="IN_PROGRESS", **more)
    assert face.engine.explain_stack(face.member, web)["waiting"][0]["for"] == expected


def test_why_names_the_stack_below_that_is_waited_for(face, web):
    below = face.create("below")
    face.change(below, root_uuid=web.uuid, owner_uuid=web.uuid, owner_resource="a", depth=1)
    face.add_resource(web, "a", {"value": 1}, status="IN_PROGRESS", waits_for=below.uuid)
    waiting = face.engine.explain_stack(face.member, web)["waiting"]
    assert [each["for"] for each in waiting] == ["stack below below it"]


CANCEL_OR_DELETE = (
    "; or cancel (openstack stack cancel web), or delete it (openstack stack delete web)"
)


@pytest.mark.parametrize(
    ("action", "ends"),
    [
        ("CREATE", CANCEL_OR_DELETE), ("UPDATE", CANCEL_OR_DELETE),
        ("CHECK", "its engine; or delete it (openstack stack delete web)"),
        ("DELETE", "its engine"),
    ],
)  # fmt: skip
def test_why_advises_only_what_the_service_takes(face, web, action, ends):
    face.change(web, action=action, status="IN_PROGRESS")
    face.add_resource(web, "a", {"value": 1}, action=action, status="IN_PROGRESS")
    assert face.engine.explain_stack(face.member, web)["next_action"].endswith(ends)


def test_why_advises_to_delete_again_what_could_not_be_deleted(face, web):
    face.change(web, action="DELETE", status="FAILED")
    advice = face.engine.explain_stack(face.member, web)["next_action"]
    assert advice.endswith("and delete the stack again: openstack stack delete web")
    assert "update" not in advice


def test_why_says_what_to_do(face, web):
    assert face.engine.explain_stack(face.member, web)["next_action"].startswith("nothing")
    face.add_resource(web, "a", action="INIT", data={"pre-create": True})
    advice = face.engine.explain_stack(face.member, web)["next_action"]
    assert advice == (
        """openstack stack resource signal web a --data '{"unset_hook": "pre-create"}' lets it """
        "go on"
    )
    new = face.create("new")
    why = face.engine.explain_stack(face.member, new)
    assert [each["kind"] for each in why["orders"]] == ["create"]
    assert why["engine"] is None
    assert why["next_action"].startswith("wait: no engine")


def test_engines_are_listed_while_there_are_some(face):
    with pytest.raises(errors.Unavailable):
        face.engine.list_services(face.member)
    face.db.transact(
        lambda conn: engines.register(
            conn, engine_id="e1", host="h", hostname="n", binary="b", topic="engine",
            report_interval=60,
        )
    )  # fmt: skip
    (shown,) = face.engine.list_services(face.member)
    assert (shown.engine.engine_id, shown.engine.topic, shown.up) == ("e1", "engine", True)


def test_why_says_where_below_a_resource_stands(face, web):
    below = face.create("below")
    face.change(below, root_uuid=web.uuid, owner_uuid=web.uuid, owner_resource="a", depth=1)
    face.add_resource(below, "hw", {}, status="FAILED", reason="it broke", root_uuid=web.uuid)
    why = face.engine.explain_stack(face.member, web)
    assert [(each["resource"], each["path"]) for each in why["failed"]] == [("hw", "a/hw")]
