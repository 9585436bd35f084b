"""The provision verbs as a table: event, checks, and flow of each.

    verbs.perform(context, node_uuid, "active", {"configdrive": url})

A verb reserves a worker, so that a full pool fails before any write.  It queues for the node,
checks, plans, and fires its event.  One transaction reserves the node, moves it and writes the
flow's rows.  If the node has changed since it was read, the verb begins anew, and reserves it
first.  The flow keeps the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

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
    steps,
    tasks,
    transition,
)
from bloomery.conductor.phase import Phase
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import EncodedWrite, Write
from bloomery.db import locks
from bloomery.db import nodes as node_rows
from bloomery.db import steps as step_rows
from bloomery.drivers.base import RemoteFile
from bloomery.model.node import Node
from bloomery.model.request import ProvisionArguments
from bloomery.model.rules import verbs as rules
from bloomery.model.step import Step

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The maximum number of nodes in ``states``, from ``option`` of [conductor].

    It counts all nodes, or those of the node's conductor group, as the operator chose.
    """

    work: str
    states: tuple[State, ...]
    option: str

    def requirement(self, task: TaskManager) -> EncodedWrite:
        """Return a check for the transaction that moves the node; it raises ConcurrentActionLimit.

        As the last write it serialises concurrent moves until the commit.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowVerb:
    """A verb that starts a flow of ``phase``.

    ``check`` raises the caller's errors, and ``files`` are looked at before, whose results
    ``learn`` gets; ``begin`` sets the node's fields; ``steps`` plans the flow, or returns None to
    move the node without one.
    ``target_state`` overrides the state machine's target.
    """

    phase: Phase
    steps: Callable[[TaskManager, ProvisionArguments], Sequence[Step] | None]
    check: Callable[[TaskManager, ProvisionArguments], None] = lambda *_: None
    files: Callable[[TaskManager, ProvisionArguments], Sequence[RemoteFile]] = lambda *_: ()
    learn: Callable[[TaskManager, Mapping[str, Any]], None] = lambda *_: None
    begin: Callable[[TaskManager, ProvisionArguments], None] = lambda *_: None
    limit: Limit | None = None
    target_state: State | None = None


_CLEANS: Final = (State.DELETING, State.CLEANING, State.CLEANWAIT)
_DEPLOY_LIMIT: Final = Limit(
    work="provisioning", states=(State.DEPLOYING, State.DEPLOYWAIT), option="max_concurrent_deploy"
)
_UNDEPLOY_LIMIT: Final = Limit(work="unprovisioning", states=_CLEANS, option="max_concurrent_clean")
_CLEAN_LIMIT: Final = Limit(work="cleaning", states=_CLEANS, option="max_concurrent_clean")
_DEPLOY: Final = FlowVerb(
    phase=deployments.DEPLOY, check=deployments.check, files=deployments.remote_files,
    learn=deployments.choose_interface, begin=deployments.begin, steps=deployments.deploy_steps,
    limit=_DEPLOY_LIMIT,
)  # fmt: skip

# By event (``states.VERBS``); functions act on a waiting flow.
TABLE: Final[dict[str, FlowVerb | Callable[[TaskManager, Slot], None]]] = {
    "manage": FlowVerb(phase=enrollment.VERIFY, steps=enrollment.verify_steps),
    "inspect": FlowVerb(
        phase=enrollment.INSPECT, check=enrollment.check_inspect, begin=enrollment.begin_inspect,
        steps=enrollment.inspect_steps,
    ),
    "adopt": FlowVerb(
        phase=enrollment.ADOPT, steps=lambda _task, _arguments: [enrollment.ADOPTION]
    ),
    "provide": FlowVerb(
        phase=cleaning.CLEAN, begin=cleaning.begin_automatic, steps=cleaning.automatic_steps,
        limit=_CLEAN_LIMIT,
    ),
    "clean": FlowVerb(
        phase=cleaning.CLEAN, begin=cleaning.begin, steps=cleaning.manual_steps,
        limit=_CLEAN_LIMIT, target_state=State.MANAGEABLE,
    ),
    "deploy": _DEPLOY,
    "rebuild": _DEPLOY,
    "delete": FlowVerb(
        phase=deployments.UNDEPLOY, check=deployments.check_undeploy,
        steps=deployments.undeploy_steps, limit=_UNDEPLOY_LIMIT,
    ),
    "rescue": FlowVerb(
        phase=rescue.RESCUE, check=rescue.check, begin=rescue.begin,
        steps=lambda task, _arguments: [*steps.parent_first(task), rescue.RESCUE_STEP],
    ),
    "unrescue": FlowVerb(
        phase=rescue.UNRESCUE, check=partial(rescue.check, action="unrescue"),
        steps=lambda task, _arguments: [*steps.parent_first(task), rescue.UNRESCUE_STEP],
    ),
    "service": FlowVerb(
        phase=servicing.SERVICE, check=servicing.check, begin=servicing.begin,
        steps=servicing.user_steps,
    ),
    "abort": flows.abort,
    "unhold": flows.unhold,
}  # fmt: skip
_PURPOSES: Final = {"delete": "undeploy"}  # the lock's purpose, where it is not the event


def perform(context: Context, node_uuid: str, verb: str, arguments: Json) -> None:
    """Carry out a verb; return once the move is committed and the worker has started.

    Raises NoFreeConductorWorker, NodeLocked, InvalidStateRequested, and the errors of the verb's
    checks.
    """
    event = states.VERBS[verb]
    purpose, row = _PURPOSES.get(event, event), TABLE[event]
    conf = context.runtime.conf.conductor
    parsed = ProvisionArguments(**arguments)
    files: Sequence[RemoteFile] = ()
    results: Json = {}
    late = True  # the transaction that moves the node reserves it
    while True:
        try:
            with tasks.order(context, node_uuid, purpose, late=late) as (task, slot):
                rules.require_edge(task.node, verb)
                rules.refuse_flagged(
                    task.node, event, provides_in_maintenance=conf.allow_provisioning_in_maintenance
                )
                if not isinstance(row, FlowVerb):
                    return row(task, slot)
                if files:
                    row.learn(task, results)
                files = start_flow(task, slot, event, row, parsed, files)
        except locks.NodeChanged:
            late = False
            continue
        if not files:
            return None
        # Without the lock, before the next attempt.
        results = tasks.look_at(context.runtime, files)


def start_flow(
    task: TaskManager,
    slot: Slot,
    event: str,
    verb: FlowVerb,
    arguments: ProvisionArguments,
    seen: Sequence[RemoteFile],
) -> Sequence[RemoteFile]:
    """Check, move the node and start the flow, or return the files to look at first.

    ``seen``: those that were looked at.
    """
    if task.runtime.draining.is_set():
        raise errors.ConductorDrains(node=task.node.uuid, host=task.runtime.host)
    verb.check(task, arguments)
    files = verb.files(task, arguments)
    if {file.url for file in files} - {file.url for file in seen}:
        return files
    verb.begin(task, arguments)
    planned = verb.steps(task, arguments)
    if planned is None:
        task.process_event(event, release=True)
        return ()
    flow, node_uuid = runner.plan(task, verb.phase, planned), task.node.uuid
    journal: list[Write] = [*flow.opening]
    if task.node.provision_state in states.WAIT_STATES | states.HOLD_STATES:
        journal.insert(0, lambda conn: step_rows.give_up(conn, node_uuid))  # the parked flow
    if verb.limit is not None:
        journal.append(verb.limit.requirement(task))

    def put_back(exc: Exception, node: Node, state: str | None, target: str | None) -> None:
        """Put the node back, as no worker has started."""
        runner.clear_step_fields(flow)
        reason = secrets.brief(exc)
        task.save(flow.cancelled, *transition.undo(task.context, node, state, target, reason))

    task.process_event(
        event,
        callback=runner.launch,
        call_args=(slot, flow),
        err_handler=put_back,
        target_state=verb.target_state,
        journal=journal,
    )
    return ()
