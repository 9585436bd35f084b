"""Previews of what an action would do; engines never import this package.

The plan of a preview is the plan of a traversal with members of groups, batches, effects on
machines, differences and outputs.  It has stages (schedule.py) and a document (document.py)::

    preview = foresight.plan(old, new, records)
    document.of_templates(preview)["summary"]
"""

from __future__ import annotations

from bloomery.orchestration.foresight.build import create, delete, plan, rollback

__all__ = ["create", "delete", "plan", "rollback"]
