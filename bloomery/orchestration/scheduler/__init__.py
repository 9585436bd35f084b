"""Tasks that take turns: stepped alone, all at once, or along a graph.

A task is a callable that returns a generator; each ``yield`` hands control back and says when the
next step is worth while: ``None`` on the next turn, ``3`` on every third, ``After(60)`` in a
minute, ``Woken(inbox.__len__)`` when that turns true.  A task that returns no generator was done
by the call::

    def boil(kettle):
        kettle.heat()
        while not kettle.boils():
            yield After(5)


    clock = Simulated()
    brew = DependencyTaskGroup(needs, boil, clock=clock, error_wait_time=240)
    TaskRunner(brew, clock=clock).call(timeout=3600)

Nothing here sleeps or asks what time it is: a ``Clock`` is handed in, which waits for a moment or a
wake-up.  Time-outs are thrown into the task, as an exception that ``except Exception`` lets pass.

waits     the clock, what a task may yield, and what happens when its time is up
runner    one task, and one that hands over to others
groups    many tasks
"""

from __future__ import annotations

from bloomery.orchestration.scheduler.groups import DependencyTaskGroup, PollingTaskGroup
from bloomery.orchestration.scheduler.runner import TaskRunner, wrappertask
from bloomery.orchestration.scheduler.waits import (
    After,
    Clock,
    Simulated,
    Stuck,
    TimedCancel,
    Timeout,
    Wait,
    Woken,
    Yielded,
)

__all__ = [
    "After",
    "Clock",
    "DependencyTaskGroup",
    "PollingTaskGroup",
    "Simulated",
    "Stuck",
    "TaskRunner",
    "TimedCancel",
    "Timeout",
    "Wait",
    "Woken",
    "Yielded",
    "wrappertask",
]
