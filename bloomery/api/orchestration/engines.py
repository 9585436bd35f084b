"""List the engines of the service."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bloomery.api.orchestration.call import StackCall
from bloomery.model.stack_views import EngineDetails


def index(call: StackCall) -> dict[str, Any]:
    return {"services": [_document(each) for each in call.operations.list_services(call.request)]}


def build_info(call: StackCall) -> dict[str, Any]:
    return call.operations.get_revision(call.request)


def _document(details: EngineDetails) -> dict[str, Any]:
    engine = details.engine
    return {
        "id": engine.engine_id,
        "binary": engine.binary,
        "host": engine.host,
        "hostname": engine.hostname,
        "topic": engine.topic,
        "engine_id": engine.engine_id,
        "report_interval": engine.report_interval,
        "status": "up" if details.up else "down",
        "created_at": _raw(engine.created_at),
        "updated_at": _raw(engine.updated_at),
        "deleted_at": _raw(engine.deleted_at),
    }


def _raw(at: datetime | None) -> str | None:
    """Return a time in the format of this list: microseconds, no zone."""
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%S.%f}"
