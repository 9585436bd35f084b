"""Choose which row stands for each name: the newest, or an old one that a failure left standing.

An update that failed half-way leaves two rows of a replaced resource.  A rollback takes the old one
back.  So does an update while the new one is not usable: the old one may be all that is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bloomery.orchestration.plan.builder import PlanBuilder, gone
from bloomery.orchestration.resources.base import Record, Status


def apply(builder: PlanBuilder) -> None:
    records = builder.present.records
    if records is None:
        builder.records.update(dict.fromkeys(builder.old.definitions))
        return
    builder.records.update(records)
    for name, kept in builder.present.leftovers.items():
        _choose(builder, name, kept)


def _choose(builder: PlanBuilder, name: str, kept: Sequence[Record]) -> None:
    current = builder.records.get(name)
    best = _best(kept) if builder.rollback or not _usable(current) else None
    if best is not None and name in builder.new.definitions:
        builder.records[name] = best
        builder.taken_back.add(name)
        builder.surplus += [current] if current is not None else []
    builder.surplus += [record for record in kept if record is not builder.records.get(name)]


def _best(kept: Iterable[Record]) -> Record | None:
    """Return the youngest usable one."""
    return next((each for each in reversed(list(kept)) if _usable(each)), None)


def _usable(record: Record | None) -> bool:
    return record is not None and not gone(record) and record.status is Status.COMPLETE
