"""From two templates and what exists to a graph of actions, by a table of small transforms.

A plan is a graph whose vertices say what is done (plans.py), built by transforms (build.py).  A
traversal compares again at every vertex, because values come while it goes on (forecast.py)::

    plan = traversal(old, new, Present(records=records))
    for key, action in plan:
        ...

Previews foresee more: see ``bloomery.orchestration.foresight``.
"""

from __future__ import annotations

from bloomery.orchestration.plan.build import traversal
from bloomery.orchestration.plan.builder import Present
from bloomery.orchestration.plan.plans import Plan

__all__ = ["Plan", "Present", "traversal"]
