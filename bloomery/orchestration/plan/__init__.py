"""From two templates and what exists to a list of actions, by a table of small transforms.

A plan is a graph whose vertices say what is done (plans.py), built by transforms (build.py) and
shown to programs as a document (document.py).  A plan foresees; a traversal compares again at
every vertex, because values come while it is walked (forecast.py)::

    made = plan.plan(old, new, records)
    document.of_templates(made)["summary"]
    for key, action in made:
        ...
"""

from __future__ import annotations

from bloomery.orchestration.plan.build import create, delete, plan, rollback, traversal
from bloomery.orchestration.plan.builder import Present
from bloomery.orchestration.plan.plans import Plan

__all__ = ["Plan", "Present", "create", "delete", "plan", "rollback", "traversal"]
