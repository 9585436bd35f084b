"""Histories: the oldest entries go when a node has more than it may keep."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bloomery.conductor.house import House
from bloomery.db import history


def make(house: House) -> Callable[[], None]:
    return partial(run, house)


def run(house: House) -> None:
    ours = house.conf.conductor
    if ours.node_history_max_entries:
        house.db.transact(
            lambda conn: history.trim(
                conn,
                keep=ours.node_history_max_entries,
                at_most=ours.node_history_cleanup_batch_count,
            ),
        )
