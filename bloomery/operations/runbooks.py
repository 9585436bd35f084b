"""Runbooks: steps under a name, for the verbs clean and service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bloomery import errors
from bloomery.db import runbooks as db
from bloomery.operations import policy
from bloomery.operations.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a runbook asks a verb to do."""

    steps: list[dict[str, Any]]
    disable_ramdisk: bool


def plan(ctx: Context, ident: str) -> Plan:
    """Return the steps of a runbook in their order.  Raises RunbookNotFound, InvalidRunbook."""
    with ctx.services.db.read() as conn:
        runbook = db.find(conn, ident)
    if runbook is None:
        raise errors.RunbookNotFound(runbook=ident)
    policy.authorize(ctx, "baremetal:runbook:use", {"runbook.owner": runbook.owner})
    if not runbook.traits:
        raise errors.InvalidRunbook(runbook=ident, reason="it has no traits configured")
    steps = sorted(runbook.steps, key=lambda step: int(step["order"]))
    return Plan(
        steps=[{name: step[name] for name in step if name != "order"} for step in steps],
        disable_ramdisk=runbook.disable_ramdisk,
    )
