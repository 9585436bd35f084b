"""Who may get past the operator's checks on plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomery import errors
from bloomery.orchestration.orders import plan_checks
from tests.kit.clients.stack_calls import VALUE, StackCalls, caller


@pytest.mark.parametrize(
    ("roles", "more", "may"),
    [
        (("member", "reader"), {}, False),
        (("admin", "member", "reader"), {"system_scope": "all", "project": None}, True),
    ],
    ids=["a member", "an administrator"],
)
def test_an_override_takes_a_role(
    tmp_path: Path, roles: tuple[str, ...], more: dict[str, str | None], may: bool
) -> None:
    calls = StackCalls(tmp_path, enforced=True, max_data_loss_percent=0)
    web = calls.create()
    calls.work(web)
    order = calls.arguments(resources={"a": VALUE, "b": VALUE}, override_checks=True)
    who = caller(*roles, **more)
    if may:
        assert calls.services.policies.allow(who, plan_checks.OVERRIDE, {})
    else:
        with pytest.raises(errors.Forbidden, match="override_plan_checks"):
            calls.operations.update_stack(who, web, order)
        calls.operations.update_stack(calls.member, web, calls.arguments(resources={"b": VALUE}))
    calls.db.close()
