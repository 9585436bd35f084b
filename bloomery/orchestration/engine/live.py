"""An update that converges: what is really there stands for what is stored of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bloomery import errors
from bloomery.orchestration.engine.rows import Row
from bloomery.orchestration.plan.plans import Verb
from bloomery.orchestration.plan.rules import Candidate, Decision

GONE: Final = Decision(Verb.REPLACE, "the real thing is gone")


def look(row: Row, candidate: Candidate) -> Decision | None:
    """Let a candidate be compared with the values that the real thing has.

    Return a decision only where there is no real thing.  One that cannot be asked counts as it is
    stored, as in Heat: an update does not fail because nothing can be seen.
    """
    if row.gone or row.definition.external_id is not None or not candidate.same_kind:
        return None
    stored = row.record.properties
    try:
        values = dict(row.resource().get_live_state(stored))
    except errors.EntityNotFound:
        return GONE
    except Exception:  # noqa: BLE001  # kinds are plug-ins
        return None
    declared = {key: value for key, value in values.items() if key in row.kind.properties_schema}
    if declared:
        record = replace(row.record, properties={**stored, **declared})
        candidate.builder.records[row.name] = record
    return None
