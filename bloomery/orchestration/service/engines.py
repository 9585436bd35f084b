"""Which engines there are."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from bloomery import errors
from bloomery.db import engines as db
from bloomery.model.engine import Engine
from bloomery.model.stack_views import EngineDetails
from bloomery.orchestration.service.access import StackContext

_INTERVALS: Final = 2  # without a sign of life: an engine is shown as down


def list_services(ctx: StackContext) -> list[EngineDetails]:
    """Return the engines that have not retired.  Raises Unavailable where there is none."""
    with ctx.services.db.read() as conn:
        engines = db.list_live(conn)
    if not engines:
        raise errors.Unavailable(reason="cannot list engines: none is there; start one")
    now = ctx.runtime.utc()
    return [_details(engine, now) for engine in engines]


def _details(engine: Engine, now: datetime) -> EngineDetails:
    last = engine.updated_at or engine.created_at
    patience = timedelta(seconds=_INTERVALS * engine.report_interval)
    return EngineDetails(engine=engine, up=now - last <= patience)
