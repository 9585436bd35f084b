"""Corrections of power sync: a machine was in another power state than recorded.

Log, history and a counter record each; ``why`` shows the latest of a day.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from bloomery.conductor import writes
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import history, rows
from bloomery.metrics import METRICS
from bloomery.model.node_facts import POWER_CORRECTION, POWER_CORRECTIONS_KEPT

_MINUTE: Final = timedelta(minutes=1)


def driven(task: TaskManager, actual: str, recorded: str) -> EncodedWrite:
    """Return the history entry of a machine that is brought back to its recorded state."""
    action = "switched on again" if recorded == Power.ON else "switched off again"
    return _entry(task, actual, f"was {actual}, recorded {recorded}: {action}", "driven")


def followed(task: TaskManager, actual: str, reason: str) -> EncodedWrite:
    """Return the history entry of a record that follows the machine, with the reason."""
    change = f"was {actual}, recorded {task.node.power_state}: recorded {actual} now"
    return _entry(task, actual, f"{change}, because {reason}", "recorded")


def _entry(task: TaskManager, actual: str, change: str, action: str) -> EncodedWrite:
    METRICS.send_counter(f"power_corrections:{actual}:{action}", 1)
    sentence = f"power sync: {change}{_frequency(task)}"
    task.log("%s", sentence, level=logging.WARNING)
    return writes.history_entry(
        task.context, task.node, sentence, event_type=POWER_CORRECTION, warns=True
    )


def _frequency(task: TaskManager) -> str:
    """Return the number of corrections and their time span; "" for the first."""
    now = rows.now()
    with task.runtime.db.read() as conn:
        earlier = history.list_of_type_since(
            conn, task.node.uuid, POWER_CORRECTION, now - POWER_CORRECTIONS_KEPT
        )
    if not earlier:
        return ""
    minutes = max(round((now - earlier[0][0]) / _MINUTE), 1)
    span = f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
    return f", {len(earlier) + 1} times in {span}"
