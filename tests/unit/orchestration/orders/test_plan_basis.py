"""An update that carries the basis of its plan is refused when something has changed since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bloomery import errors
from bloomery.orchestration.resources.states import Status
from tests.kit.clients.stack_calls import VALUE, StackCalls

Change = Callable[[StackCalls, Any], object]


@pytest.fixture
def calls(tmp_path):
    calls = StackCalls(tmp_path)
    yield calls
    calls.db.close()


def of_a_colleague(calls: StackCalls, web: Any) -> None:
    arguments = calls.arguments(resources={"a": VALUE, "b": VALUE, "theirs": VALUE})
    calls.operations.update_stack(calls.member, web, arguments)
    calls.work(web)


def accepted_only(calls: StackCalls, web: Any) -> None:
    calls.operations.update_stack(calls.member, web, calls.arguments(resources={"a": VALUE}))


def marked(calls: StackCalls, web: Any) -> None:
    calls.operations.resource_mark_unhealthy(calls.member, web, "a", mark_unhealthy=True)
    calls.work(web)


CHANGES: dict[str, tuple[Change, str]] = {
    "an update that has ended": (of_a_colleague, "resource theirs: CREATE_COMPLETE (new)"),
    "an update that was accepted": (accepted_only, "stack web: order 2 (was order 1)"),
    "a mark": (marked, "resource a: CHECK_FAILED (was CREATE_COMPLETE)"),
}


@pytest.mark.parametrize(("change", "text"), [*CHANGES.values()], ids=[*CHANGES])
def test_a_stale_plan_is_not_carried_out(calls: StackCalls, change: Change, text: str) -> None:
    web = calls.create(resources={"a": VALUE, "b": VALUE})
    calls.work(web)
    order = calls.arguments(resources={"a": VALUE})
    plan = calls.operations.preview_update_stack(calls.member, web, order).plan
    change(calls, web)
    before = calls.row(web)
    stale = calls.arguments(resources={"a": VALUE}, plan_basis=plan["basis"])
    with pytest.raises(errors.PlanStale) as refused:
        calls.operations.update_stack(calls.member, web, stale)
    assert text in str(refused.value)
    assert (refused.value.status, calls.row(web)) == (409, before)


def test_a_plan_that_still_holds_is_carried_out(calls: StackCalls) -> None:
    web = calls.create(resources={"a": VALUE, "b": VALUE})
    calls.work(web)
    order = calls.arguments(resources={"a": VALUE})
    plan = calls.operations.preview_update_stack(calls.member, web, order).plan
    order = calls.arguments(resources={"a": VALUE}, plan_basis=plan["basis"])
    calls.operations.update_stack(calls.member, web, order)
    assert calls.work(web).status == Status.COMPLETE
