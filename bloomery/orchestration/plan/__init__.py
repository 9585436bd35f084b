"""Build a graph of actions from two templates and the existing resources.

A plan is a graph whose vertices are actions (plans.py), built by a table of transforms
(transforms.py).  A convergence traversal compares at every vertex, when values are known; a preview
compares with the values that are known before (forecast.py)::

    plan = traversal(old, new, ExistingStack(records=records))
    for key, action in plan:
        ...

Previews add more: see ``bloomery.orchestration.foresight``.
"""

from __future__ import annotations

from bloomery.orchestration.plan.builder import ExistingStack
from bloomery.orchestration.plan.plans import Plan
from bloomery.orchestration.plan.transforms import traversal

__all__ = ["ExistingStack", "Plan", "traversal"]
