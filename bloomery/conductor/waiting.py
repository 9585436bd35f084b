"""Waiting for a busy node: in line at its gate, then for the reservation of another process.

Inside one process nobody polls; between processes the reservation is asked for again and again.
Who was let in leaves the gate himself: ``house.gates.leave``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from bloomery import errors
from bloomery.conductor.gates import GateFull
from bloomery.conductor.house import House
from bloomery.db import nodes

T = TypeVar("T")


def enter(house: House, uuid: str, patience_s: float, *, patient: bool = False) -> None:
    """Queue at the node's gate.

    Raises NodeLocked, which says who has the node, when the time is up or no more may wait;
    NodeNotFound.
    """
    try:
        entered = house.gates.enter(uuid, patience_s, patient=patient)
    except GateFull:
        entered = False
    if not entered:
        raise _locked(house, uuid, log=f"waited {patience_s:g} s at the gate")


def _locked(house: House, uuid: str, log: str) -> errors.NodeLocked:
    with house.db.read() as conn:
        node = nodes.get(conn, uuid)
    return errors.NodeLocked(
        node=node.uuid,
        holder=node.reservation or house.host,
        action=node.reserved_for or "",
        log=log,
    )


def until_free(house: House, give_up_at: float, attempt: Callable[[], T]) -> T:
    """Return what ``attempt`` returns; while it raises NodeLocked ask again until time is up."""
    pause_s = float(house.conf.conductor.node_locked_retry_interval)
    while True:
        try:
            return attempt()
        except errors.NodeLocked:
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                raise
        time.sleep(min(pause_s, left_s))
