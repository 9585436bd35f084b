"""Budgets of nodes that deploy or clean at a time: percentages of the conductors' limits.

Before each verb of a stack, the engine counts the rows of nodes in these states, including nodes
that other users deploy or clean.  So a budget is right after any crash, and in every engine.
Engines that count at the same moment may exceed a budget, but not the conductors' limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bloomery.conductor.states import State
from bloomery.db import nodes
from bloomery.operations.context import Services
from bloomery.orchestration.resources.machines import QUEUE, Queued


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """``limit``: an option of [conductor]; ``percent``: an option of [engine]."""

    work: str
    states: tuple[State, ...]
    limit: str
    percent: str


_DEPLOY: Final = Budget(
    work="deployed", states=(State.DEPLOYING, State.DEPLOYWAIT),
    limit="max_concurrent_deploy", percent="deploy_budget_percent",
)  # fmt: skip
_CLEAN: Final = Budget(
    work="cleaned", states=(State.DELETING, State.CLEANING, State.CLEANWAIT),
    limit="max_concurrent_clean", percent="clean_budget_percent",
)  # fmt: skip
_BUDGETS: Final[Mapping[str, Budget]] = {
    "active": _DEPLOY, "rebuild": _DEPLOY, "deleted": _CLEAN, "clean": _CLEAN, "provide": _CLEAN,
}  # fmt: skip


def check(services: Services, uuid: str, verb: str) -> None:
    """Raise Queued if a verb would exceed its budget.

    Count the nodes of the node's conductor group, or all nodes, as the conductors' limit does.
    """
    budget = _BUDGETS.get(verb)
    if budget is None:
        return
    conf = services.conf
    limit = getattr(conf.conductor, budget.limit)
    most = max(1, limit * getattr(conf.engine, budget.percent) // 100)
    with services.db.read() as conn:
        group = None
        if conf.conductor.max_concurrent_per_conductor_group:
            row = nodes.find_row(conn, uuid, ("conductor_group",))
            group = None if row is None else str(row.conductor_group)
        count = nodes.count_in_states(conn, uuid, budget.states, group)
    if count >= most:
        where = "" if group is None else f" in conductor group {group!r}"
        reason = f"{most} nodes are being {budget.work}{where}, as many as stacks may ask for"
        raise Queued(reason, f"{QUEUE}{budget.work}:{group or ''}")
