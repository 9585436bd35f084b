"""Choose which row stands for each name: the newest, or an old one that a failure left standing.

An update that failed half-way leaves two rows of a replaced resource.  A rollback takes the old one
back.  So does an update while the new one is not usable: the old one may be all that is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bloomery.orchestration.plan.draft import Draft, gone
from bloomery.orchestration.resources.base import Record, Status


def apply(draft: Draft) -> None:
    records = draft.present.records
    if records is None:
        draft.records.update(dict.fromkeys(draft.old.definitions))
        return
    draft.records.update(records)
    for name, kept in draft.present.leftovers.items():
        _choose(draft, name, kept)


def _choose(draft: Draft, name: str, kept: Sequence[Record]) -> None:
    current = draft.records.get(name)
    best = _best(kept) if draft.rollback or not _usable(current) else None
    if best is not None and name in draft.new.definitions:
        draft.records[name] = best
        draft.taken_back.add(name)
        draft.surplus += [current] if current is not None else []
    draft.surplus += [record for record in kept if record is not draft.records.get(name)]


def _best(kept: Iterable[Record]) -> Record | None:
    """Return the youngest usable one."""
    return next((each for each in reversed(list(kept)) if _usable(each)), None)


def _usable(record: Record | None) -> bool:
    return record is not None and not gone(record) and record.status is Status.COMPLETE
