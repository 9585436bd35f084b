"""Waiting in a thread of the API: for a busy node, or for a worker that asks a BMC.

A node is waited for in line at its gate, then for the reservation of another process.  Inside
one process nobody polls; between processes the reservation is asked for again and again.  Who
was let in leaves the gate himself: ``house.gates.leave``.

At most half of the API's threads wait at a time (``gates.Places``), whatever for, so that
everybody else is served.  A thread takes one place, however many things it waits for: what
waits within a place is said so by ``Context.in_place``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from bloomery import errors
from bloomery.conductor.gates import GateFull
from bloomery.conductor.house import Context, House
from bloomery.db import nodes

T = TypeVar("T")


@contextlib.contextmanager
def place(house: House, reason: str) -> Iterator[None]:
    """Be one of the API's threads that wait.  Raises ApiThreadsBusy when as many do as may."""
    places = house.gates.places
    if not places.take():
        raise errors.ApiThreadsBusy(reason=reason, count=places.most, size=house.conf.api.threads)
    try:
        yield
    finally:
        places.give_back()


def enter(context: Context, uuid: str, patience_s: float, *, patient: bool = False) -> None:
    """Queue at the node's gate.

    Raises NodeLocked, which says who has the node, when the time is up or no more may wait;
    NodeNotFound.
    """
    gates = context.house.gates
    try:
        entered = gates.enter(uuid, patience_s, patient=patient, in_place=context.in_place)
    except GateFull:
        entered = False
    if not entered:
        raise _locked(context.house, uuid, log=f"waited {patience_s:g} s at the gate")


def _locked(house: House, uuid: str, log: str) -> errors.NodeLocked:
    with house.db.read() as conn:
        node = nodes.get(conn, uuid)
    return errors.NodeLocked(
        node=node.uuid,
        holder=node.reservation or house.host,
        action=node.reserved_for or "",
        log=log,
    )


def until_free(
    context: Context,
    give_up_at: float,
    attempt: Callable[[], T],
    *,
    patient: bool = False,
) -> T:
    """Return what ``attempt`` returns; while it raises NodeLocked ask again until time is up.

    Whoever has to ask again takes a place as at a gate; where there is none, NodeLocked it is.
    """
    house, needs_place = context.house, not (patient or context.in_place)
    pause_s = float(house.conf.conductor.node_locked_retry_interval)
    with contextlib.ExitStack() as until_done:
        while True:
            try:
                return attempt()
            except errors.NodeLocked:
                left_s = give_up_at - time.monotonic()
                if left_s <= 0 or (needs_place and not house.gates.places.take()):
                    raise
            if needs_place:
                until_done.callback(house.gates.places.give_back)
                needs_place = False
            time.sleep(min(pause_s, left_s))
