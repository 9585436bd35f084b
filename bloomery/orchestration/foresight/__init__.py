"""What an action would do, told before it begins; engines never import this package.

A plan of a preview is the plan of a traversal with members of groups, batches, effects on machines,
differences and outputs, laid out in stages (schedule.py) and shown as a document (document.py)::

    preview = foresight.plan(old, new, records)
    document.of_templates(preview)["summary"]
"""

from __future__ import annotations

from bloomery.orchestration.foresight.build import create, delete, plan, rollback

__all__ = ["create", "delete", "plan", "rollback"]
