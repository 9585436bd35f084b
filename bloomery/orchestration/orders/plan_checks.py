"""The operator's checks on plans of updates: how much data they may lose, of which machines.

A caller with the rule ``stacks:override_plan_checks`` who asks for it by name gets past them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import nodes, resources
from bloomery.orchestration import stack
from bloomery.orchestration.orders import plan_basis, planning
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack

OVERRIDE: Final = "stacks:override_plan_checks"
_COLUMNS: Final = ("uuid", "name", "resource_class")
_MOST_NAMED: Final = 5  # machines in a sentence


def check(stored: StoredStack, new: stack.Stack, *, converges: bool, is_overridden: bool) -> None:
    """Make the plan of an update, and raise PlanRefused if the operator's checks forbid it.

    ``is_overridden``: the caller asks to get past them.  Raises Forbidden without the rule.
    """
    ctx, options = stored.ctx, stored.ctx.services.conf.engine
    if is_overridden:
        access.authorize(ctx, OVERRIDE)
        return
    if options.max_data_loss_percent == 100 and not options.protected_resource_classes:
        return
    with ctx.services.db.read() as conn:
        rows = resources.list_of_tree(conn, stored.row.root_uuid, ctx.sealer)
        basis = plan_basis.read(conn, stored.row, rows)
    with ctx.services.heavy_jobs.enter():
        _, document, _ = planning.plan(stored, new, converges=converges)
    if reasons := refusals(ctx, document, basis):
        raise errors.PlanRefused(
            stack_name=stored.row.name, reasons="; ".join(reasons), rule=OVERRIDE
        )


def refusals(ctx: StackContext, document: Mapping[str, Any], basis: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each check that the document of a plan does not pass."""
    options = ctx.services.conf.engine
    losing = {
        step["machine"]: step["resource"]
        for step in document["steps"]
        if step["loses_data"] and step["machine"]
    }
    count, reasons = len(basis[plan_basis.MACHINES]), []
    percent = options.max_data_loss_percent
    if len(losing) * 100 > percent * count:
        reasons.append(
            f"{len(losing)} of {count} machines would lose their data, and "
            f"[engine]max_data_loss_percent allows {percent} % in one update"
        )
    classes = options.protected_resource_classes
    with ctx.services.db.read() as conn:
        rows = nodes.list_rows_of(conn, losing, _COLUMNS) if classes and losing else []
    kept = [row for row in rows if row.resource_class in classes]
    if kept:
        named = [f"{losing[row.uuid]} (node {row.name or row.uuid})" for row in kept[:_MOST_NAMED]]
        more = f" and {len(kept) - _MOST_NAMED} more" if len(kept) > _MOST_NAMED else ""
        found = ", ".join(sorted({row.resource_class for row in kept}))
        reasons.append(
            f"{', '.join(named)}{more} would lose data, which "
            f"[engine]protected_resource_classes forbids for {found}"
        )
    return reasons
