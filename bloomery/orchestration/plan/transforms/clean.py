"""Give what goes away a vertex for its end.

What is removed, and what was left over, is deleted.  What is replaced is deleted once the new one
is there and all that used the old one have turned to the new one.
"""

from __future__ import annotations

from typing import Final

from bloomery.orchestration.plan.actions import CLEAN, MAKE, Action, Key, Verb
from bloomery.orchestration.plan.builder import PlanBuilder, gone
from bloomery.orchestration.plan.template_side import NOTHING
from bloomery.orchestration.resources.base import Record

ROLLED_BACK: Final = "made by the update that is rolled back"
LEFT_OVER: Final = "left over from an earlier update"
EMPTY: Final = "nothing stands behind it: only its row goes"


def apply(builder: PlanBuilder) -> None:
    for name, record in builder.records.items():
        _end(builder, Key(name, CLEAN), record)
    current = builder.present.records or {}
    for record in builder.surplus:
        made_last = builder.rollback and current.get(record.name) is record
        reason = EMPTY if gone(record) else ROLLED_BACK if made_last else LEFT_OVER
        _delete(builder, Key(record.name, CLEAN, record.uuid), record, reason)


def _end(builder: PlanBuilder, key: Key, record: Record | None) -> None:
    made = builder.actions.get(Key(key.name, MAKE))
    if made is None:
        _delete(builder, key, record, _why(builder, key.name, record))
    elif made.verb is Verb.REPLACE:
        reason = "replaced" if made.certain else "if it is replaced"
        _delete(builder, key, record, reason, certain=made.certain)


def _why(builder: PlanBuilder, name: str, record: Record | None) -> str:
    if record is not None and gone(record):
        return EMPTY
    if builder.rollback:
        return ROLLED_BACK
    return builder.absence(name) if builder.new is not NOTHING else ""


def _delete(
    builder: PlanBuilder, key: Key, record: Record | None, reason: str, *, certain: bool = True
) -> None:
    definition = builder.old.definitions.get(key.name)
    kind = record.type if record is not None else definition.type if definition else ""
    builder.put(
        key,
        Action(
            verb=Verb.DELETE,
            type=kind,
            reason=reason,
            certain=certain,
            definition=definition,
            record=record,
        ),
    )
