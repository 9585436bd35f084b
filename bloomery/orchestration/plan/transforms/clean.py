"""Give what goes away a vertex for its end.

What is removed, and what was left over, is deleted.  What is replaced is deleted once the new one
is there and all that used the old one have turned to the new one.
"""

from __future__ import annotations

from typing import Final

from bloomery.orchestration.plan.actions import CLEAN, MAKE, Action, Key, Verb
from bloomery.orchestration.plan.draft import Draft, gone
from bloomery.orchestration.plan.sides import NOTHING
from bloomery.orchestration.resources.base import Record

ROLLED_BACK: Final = "made by the update that is rolled back"
LEFT_OVER: Final = "left over from an earlier update"
EMPTY: Final = "nothing stands behind it: only its row goes"


def apply(draft: Draft) -> None:
    for name, record in draft.records.items():
        _end(draft, Key(name, CLEAN), record)
    current = draft.present.records or {}
    for record in draft.surplus:
        made_last = draft.rollback and current.get(record.name) is record
        reason = EMPTY if gone(record) else ROLLED_BACK if made_last else LEFT_OVER
        _delete(draft, Key(record.name, CLEAN, record.uuid), record, reason)


def _end(draft: Draft, key: Key, record: Record | None) -> None:
    made = draft.actions.get(Key(key.name, MAKE))
    if made is None:
        _delete(draft, key, record, _why(draft, key.name, record))
    elif made.verb is Verb.REPLACE:
        reason = "replaced" if made.certain else "if it is replaced"
        _delete(draft, key, record, reason, certain=made.certain)


def _why(draft: Draft, name: str, record: Record | None) -> str:
    if record is not None and gone(record):
        return EMPTY
    if draft.rollback:
        return ROLLED_BACK
    return draft.absence(name) if draft.new is not NOTHING else ""


def _delete(
    draft: Draft, key: Key, record: Record | None, reason: str, *, certain: bool = True
) -> None:
    definition = draft.old.definitions.get(key.name)
    kind = record.type if record is not None else definition.type if definition else ""
    draft.put(
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
