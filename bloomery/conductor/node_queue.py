"""Waiting for a node: for one's turn in this process, then for the reservation of another.

A thread of the API takes one place while it waits, however many things it waits for: what waits
within a place is said so by ``Context.in_place``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from bloomery import errors
from bloomery.conductor.node_lock import TooManyWaiting
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.db import nodes

T = TypeVar("T")


@contextlib.contextmanager
def place(runtime: ConductorRuntime, reason: str) -> Iterator[None]:
    """Be one of the API's threads that wait.  Raises ApiThreadsBusy when as many do as may."""
    places = runtime.node_locks.places
    if not places.take():
        option, size = runtime.conf.calling_threads
        raise errors.ApiThreadsBusy(reason=reason, count=places.most, option=option, size=size)
    try:
        yield
    finally:
        places.give_back()


def enter(context: Context, uuid: str, patience_s: float, *, patient: bool = False) -> None:
    """Queue for the node.

    Raises NodeLocked, which says who has the node, when the time is up or no more may wait;
    NodeNotFound.
    """
    node_locks = context.runtime.node_locks
    try:
        entered = node_locks.enter(uuid, patience_s, patient=patient, in_place=context.in_place)
    except TooManyWaiting:
        entered = False
    if not entered:
        raise _locked(context.runtime, uuid, log=f"waited {patience_s:g} s in the queue")


def _locked(runtime: ConductorRuntime, uuid: str, log: str) -> errors.NodeLocked:
    with runtime.db.read() as conn:
        node = nodes.get(conn, uuid)
    return errors.NodeLocked(
        node=node.uuid,
        holder=node.reservation or runtime.host,
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

    Whoever has to ask again takes a place as in the queue; where there is none, NodeLocked it is.
    """
    runtime, needs_place = context.runtime, not (patient or context.in_place)
    pause_s = float(runtime.conf.conductor.node_locked_retry_interval)
    with contextlib.ExitStack() as until_done:
        while True:
            try:
                return attempt()
            except errors.NodeLocked:
                left_s = give_up_at - time.monotonic()
                if left_s <= 0 or (needs_place and not runtime.node_locks.places.take()):
                    raise
            if needs_place:
                until_done.callback(runtime.node_locks.places.give_back)
                needs_place = False
            time.sleep(min(pause_s, left_s))
