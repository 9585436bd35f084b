"""Engine processes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bloomery.model.stack_views import EngineDetails


def engine(engine: EngineDetails) -> dict[str, Any]:
    return {
        "id": engine.uuid,
        "binary": engine.binary,
        "host": engine.host,
        "hostname": engine.hostname,
        "topic": engine.topic,
        "engine_id": engine.engine_id,
        "report_interval": engine.report_interval,
        "status": "up" if engine.up else "down",
        "created_at": _raw(engine.created_at),
        "updated_at": _raw(engine.updated_at),
        "deleted_at": _raw(engine.deleted_at),
    }


def _raw(at: datetime | None) -> str | None:
    """Spell a time as this list alone does: microseconds, no zone."""
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%S.%f}"
