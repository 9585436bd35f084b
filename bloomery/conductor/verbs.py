"""The provision verbs, as a table: which event each fires, what it checks, and which flow begins.

    verbs.perform(runtime, request, node_uuid, "active", ProvisionArguments(configdrive=url))

A verb takes a worker's slot first (a full pool is told with nothing written), then the node,
then checks, plans, and fires its event; the move and the flow's rows are one transaction.  The
lock travels with the flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import (
    cleaning,
    deployments,
    enrollment,
    flows,
    rescue,
    runner,
    servicing,
    states,
    tasks,
    transition,
)
from bloomery.conductor.phase import Phase
from bloomery.conductor.runner import Flow
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import EncodedWrite, Write
from bloomery.db import nodes as node_rows
from bloomery.db import steps as step_rows
from bloomery.model.node import Node
from bloomery.model.provision import ProvisionArguments
from bloomery.model.request import Request
from bloomery.model.rules import verbs as rules
from bloomery.model.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many nodes may be in ``states`` at a time: what ``option`` of [conductor] says.

    It counts nodes of all conductor groups, or of the node's own, as the operator chose.
    """

    work: str
    states: tuple[State, ...]
    option: str

    def requirement(self, task: TaskManager) -> EncodedWrite:
        """Return what raises ConcurrentActionLimit, in the transaction that moves the node.

        Counted there, nobody comes in between.  It is the last write: nodes that move at a time
        wait for each other from there until the commit.
        """
        conf, node = task.runtime.conf.conductor, task.node
        limit = getattr(conf, self.option)
        group = node.conductor_group if conf.max_concurrent_per_conductor_group else None

        def check(conn: sa.Connection) -> None:
            count = node_rows.count_others_in_states(conn, node.uuid, self.states, group)
            if count >= limit:
                raise errors.ConcurrentActionLimit(
                    task=self.work, count=count, option=self.option, limit=limit
                )

        return check


def _nothing(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Check or begin nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowVerb:
    """A verb that begins a flow of ``phase``.

    ``check`` raises what the caller is to hear; ``begin`` sets the node's fields; ``steps`` plans
    the flow, or returns None: the node moves without one.  ``target_state``: where the node is to
    arrive, if not where the state machine says.
    """

    phase: Phase
    steps: Callable[[TaskManager, ProvisionArguments], Sequence[Step] | None]
    check: Callable[[TaskManager, ProvisionArguments], None] = _nothing
    begin: Callable[[TaskManager, ProvisionArguments], None] = _nothing
    limit: Limit | None = None
    target_state: State | None = None


_CLEANS: Final = (State.DELETING, State.CLEANING, State.CLEANWAIT)
_DEPLOY_LIMIT: Final = Limit(
    work="provisioning", states=(State.DEPLOYING, State.DEPLOYWAIT), option="max_concurrent_deploy"
)
_UNDEPLOY_LIMIT: Final = Limit(work="unprovisioning", states=_CLEANS, option="max_concurrent_clean")
_CLEAN_LIMIT: Final = Limit(work="cleaning", states=_CLEANS, option="max_concurrent_clean")

# By the event that a verb fires (``states.VERBS``); what is no FlowVerb acts on a flow that waits.
TABLE: Final[dict[str, FlowVerb | Callable[[TaskManager, Slot], None]]] = {
    "manage": FlowVerb(phase=enrollment.VERIFY, steps=enrollment.verify_steps),
    "inspect": FlowVerb(
        phase=enrollment.INSPECT,
        check=enrollment.check_inspect,
        begin=enrollment.begin_inspect,
        steps=enrollment.inspect_steps,
    ),
    "adopt": FlowVerb(phase=enrollment.ADOPT, steps=enrollment.adopt_steps),
    "provide": FlowVerb(
        phase=cleaning.CLEAN,
        check=cleaning.check_provide,
        begin=cleaning.begin_automatic,
        steps=cleaning.automatic_steps,
        limit=_CLEAN_LIMIT,
    ),
    "clean": FlowVerb(
        phase=cleaning.CLEAN,
        check=cleaning.check,
        begin=cleaning.begin,
        steps=cleaning.manual_steps,
        limit=_CLEAN_LIMIT,
        target_state=State.MANAGEABLE,
    ),
    "deploy": FlowVerb(
        phase=deployments.DEPLOY,
        check=deployments.check,
        begin=deployments.begin,
        steps=deployments.deploy_steps,
        limit=_DEPLOY_LIMIT,
    ),
    "rebuild": FlowVerb(
        phase=deployments.DEPLOY,
        check=deployments.check_rebuild,
        begin=deployments.begin,
        steps=deployments.deploy_steps,
        limit=_DEPLOY_LIMIT,
    ),
    "delete": FlowVerb(
        phase=deployments.UNDEPLOY,
        check=deployments.check_undeploy,
        steps=deployments.undeploy_steps,
        limit=_UNDEPLOY_LIMIT,
    ),
    "rescue": FlowVerb(
        phase=rescue.RESCUE, check=rescue.check, begin=rescue.begin, steps=rescue.rescue_steps
    ),
    "unrescue": FlowVerb(
        phase=rescue.UNRESCUE, check=rescue.check_unrescue, steps=rescue.unrescue_steps
    ),
    "service": FlowVerb(
        phase=servicing.SERVICE,
        check=servicing.check,
        begin=servicing.begin,
        steps=servicing.user_steps,
    ),
    "abort": flows.abort,
    "unhold": flows.unhold,
}
_PURPOSES: Final = {"delete": "undeploy"}  # what a lock is named, where not after the event


def perform(
    runtime: ConductorRuntime,
    request: Request,
    node_uuid: str,
    verb: str,
    arguments: ProvisionArguments,
) -> None:
    """Carry out a verb; returns once the move is committed, and the worker has been started.

    Raises NoFreeConductorWorker, NodeLocked, InvalidStateRequested, and what the verb's row says.
    """
    event = states.VERBS[verb]
    purpose = _PURPOSES.get(event, event)
    with tasks.order(runtime, request, node_uuid, purpose) as (task, slot):
        rules.require_edge(task.node, verb)
        row = TABLE[event]
        if isinstance(row, FlowVerb):
            _start_flow(task, slot, event, row, arguments)
        else:
            row(task, slot)


def _start_flow(
    task: TaskManager, slot: Slot, event: str, verb: FlowVerb, arguments: ProvisionArguments
) -> None:
    """Move the node, if there is room, and let a flow begin with the move."""
    verb.check(task, arguments)
    verb.begin(task, arguments)
    planned = verb.steps(task, arguments)
    if planned is None:
        task.process_event(event)
        return
    flow = runner.plan(task, verb.phase, planned)
    required = [verb.limit.requirement(task)] if verb.limit is not None else []
    task.process_event(
        event,
        callback=runner.launch,
        call_args=(slot, flow),
        err_handler=_put_back(task, flow),
        target_state=verb.target_state,
        journal=[*_give_up_waiting_flow(task.node), *flow.opening, *required],
    )


def _give_up_waiting_flow(node: Node) -> list[Write]:
    """A flow that waits, or is held, will not go on once another one begins."""
    if node.provision_state in states.WAIT_STATES | states.HOLD_STATES:
        return [lambda conn: step_rows.give_up(conn, node.uuid)]
    return []


def _put_back(
    task: TaskManager, flow: Flow
) -> Callable[[Exception, Node, str | None, str | None], None]:
    """Return the hook for a worker that never came: put the node back, and say so."""

    def put_back(exc: Exception, node: Node, state: str | None, target: str | None) -> None:
        runner.clear_step_fields(flow)
        reason = secrets.brief(exc)
        task.save(flow.cancelled, *transition.undo(task.context, node, state, target, reason))

    return put_back
