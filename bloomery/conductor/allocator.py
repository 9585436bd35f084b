"""Chooses nodes for allocations: one worker serves a queue in order of arrival.

The rows are authoritative.  An allocation stays in state ``allocating`` until one transaction gives
it a node or the reason for the failure.  After a crash ``adopt`` finds such rows and queues them.
While suitable nodes are reserved, a timer repeats the search; no thread sleeps.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor.allocation_queue import Entry
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.db import allocations, events, records
from bloomery.db.allocations import Criteria
from bloomery.model.allocation import Allocation, AllocationState
from bloomery.model.nouns import ALLOCATION
from bloomery.model.request import Request, in_name_of

LOG = logging.getLogger(__name__)

_RETRY_S: Final = 1.0  # while no worker is free, or the database fails
_MOST_FAULTS: Final = 5  # database errors for one allocation: its query may be wrong


def enqueue(context: Context, uuid: str) -> None:
    """Queue an allocation and return at once; a queued allocation is not queued twice."""
    _add(context.runtime, Entry(uuid=uuid, request=context.request))


def adopt(runtime: ConductorRuntime) -> int:
    """Queue every allocation without a living conductor; return how many still need a node.

    One UPDATE takes over the allocations of dead conductors.
    """
    uuids = runtime.db.transact(lambda conn: allocations.adopt(conn, runtime.host))
    for uuid in uuids:
        _add(runtime, Entry(uuid=uuid, request=Request.new()))
    return len(uuids)


def _add(runtime: ConductorRuntime, entry: Entry, again: bool = False) -> None:
    queue = runtime.allocations
    if queue.add_again(entry) if again else queue.add(entry):
        _start(runtime)


def _start(runtime: ConductorRuntime) -> None:
    """Start the worker, later if no thread is free: the queue asks only once."""
    try:
        runtime.workers.spawn(_serve, runtime)
    except errors.NoFreeConductorWorker:
        runtime.timers.after(_RETRY_S, _start, runtime)
    except RuntimeError as exc:  # no thread to be had, or the pool has stopped
        LOG.warning("allocations: no worker started: %s", secrets.brief(exc))
        runtime.timers.after(_RETRY_S, _start, runtime)


def _serve(runtime: ConductorRuntime) -> None:
    """Serve the queue until it is empty; no failure of one allocation ends the worker.

    A timer repeats the search for an allocation that has to wait, or whose search failed.
    """
    while (entry := runtime.allocations.next()) is not None:
        with in_name_of(entry.request):
            try:
                if _allocate_or_fail(runtime, entry):
                    runtime.allocations.forget(entry.uuid)
                    continue
                pause_s = float(runtime.conf.conductor.node_locked_retry_interval)
                again = replace(entry, attempt=entry.attempt + 1, faults=0)
            except Exception as exc:  # noqa: BLE001  the supervisor: other allocations must not wait
                LOG.warning("allocation %s: search failed: %s", entry.uuid, secrets.brief(exc))
                faults = entry.faults + isinstance(exc, sa.exc.SQLAlchemyError)
                pause_s, again = _RETRY_S, replace(entry, faults=faults)
            runtime.timers.after(pause_s, _add, runtime, again, True)


def _allocate_or_fail(runtime: ConductorRuntime, entry: Entry) -> bool:
    """Search for a node; an internal error fails the allocation.  Return whether it is settled.

    Raises DatabaseBusy and SQLAlchemyError, which may pass.  After ``_MOST_FAULTS`` database errors
    the allocation fails.
    """
    try:
        return allocate(runtime, entry)
    except errors.DatabaseBusy:
        raise
    except Exception as exc:
        if isinstance(exc, sa.exc.SQLAlchemyError) and entry.faults + 1 < _MOST_FAULTS:
            raise
        LOG.error("allocation %s failed\n%s", entry.uuid, secrets.trace(exc))  # noqa: TRY400
        _fail(runtime, entry, f"unexpected error: {secrets.brief(exc)}")
        runtime.on_events_written()
        return True


# --------------------------------------------------------------------------------- one allocation


def allocate(runtime: ConductorRuntime, entry: Entry) -> bool:
    """Give an allocation a node, or the reason why not; return whether it is settled.

    One transaction finds the node, binds it and writes both rows.
    """

    def bind(conn: sa.Connection) -> bool:
        """Bind a free node; return False where no node is free."""
        allocation: Allocation = records.get(conn, ALLOCATION, entry.uuid, for_update=True)
        if allocation.state != AllocationState.ALLOCATING:
            return True
        node = allocations.find_free(conn, Criteria.of(allocation))
        if node is None:
            return False
        allocations.bind(conn, allocation, node)
        owner = allocation.owner or node.owner
        _insert_event(conn, runtime, entry, {"node": node.uuid}, owner=owner, lessee=node.lessee)
        return True

    try:
        is_settled = runtime.db.transact(bind) or _fail_or_wait(runtime, entry)
    except errors.AllocationNotFound:
        return True
    except errors.InstanceAssociated as exc:
        _fail(runtime, entry, secrets.brief(exc).rstrip("."))
        is_settled = True
    runtime.on_events_written()
    return is_settled


def _fail_or_wait(runtime: ConductorRuntime, entry: Entry) -> bool:
    """Fail an allocation without suitable nodes; return False while suitable nodes are reserved.

    Reads all nodes of the class, and therefore runs outside of a transaction.
    """
    is_last = entry.attempt >= runtime.conf.conductor.node_locked_retry_attempts
    with runtime.db.read() as conn:
        criteria = Criteria.of(records.get(conn, ALLOCATION, entry.uuid))
        count = allocations.count_suitable(conn, criteria)
        reason = "" if count else _why_none(conn, criteria)
    if count and not is_last:
        reason = f"waits for a node: other work holds all {count} suitable nodes"
        runtime.db.transact(lambda conn: allocations.wait(conn, entry.uuid, reason))
        return False
    _fail(runtime, entry, reason or f"other work holds all {count} suitable nodes")
    return True


def _why_none(conn: sa.Connection, criteria: Criteria) -> str:
    """Return Ironic's sentence, with the counts of unsuitable nodes by reason."""
    if criteria.traits and allocations.count_suitable(conn, replace(criteria, traits=())):
        return f"no suitable nodes have the requested traits {', '.join(criteria.traits)}"
    kind = f"match the resource class {criteria.resource_class}"
    if unfit := allocations.count_unfit(conn, criteria):
        kind += f" ({', '.join(f'{count} {what}' for what, count in unfit.items())})"
    if criteria.candidate_nodes:
        return f"none of the requested nodes are available and {kind}"
    return f"no available nodes {kind}"


def _fail(runtime: ConductorRuntime, entry: Entry, reason: str) -> None:
    sentence = str(errors.AllocationFailed(uuid=entry.uuid, reason=reason))

    def work(conn: sa.Connection) -> None:
        if allocations.end(conn, entry.uuid, AllocationState.ERROR, last_error=sentence):
            owner = allocations.owner_of(conn, entry.uuid)
            _insert_event(conn, runtime, entry, {"last_error": sentence}, owner=owner)

    runtime.db.transact(work)


def _insert_event(
    conn: sa.Connection,
    runtime: ConductorRuntime,
    entry: Entry,
    facts: Mapping[str, str],
    *,
    owner: str | None,
    lessee: str | None = None,
) -> None:
    """Write the event row; Ironic has no such notification."""
    failed = "last_error" in facts
    event = events.Event(
        object=ALLOCATION.name, object_uuid=entry.uuid, action="allocate",
        status="error" if failed else "end", level="error" if failed else "info",
        publisher=f"ironic-conductor.{runtime.host}", request_id=entry.request.request_id,
        facts=facts, owner=owner, lessee=lessee,
    )  # fmt: skip
    events.insert(conn, [events.encode(event)])
