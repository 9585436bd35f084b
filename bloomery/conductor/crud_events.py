"""Event rows of create, update and delete: start and end are written together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bloomery import secrets
from bloomery.conductor.house import Context
from bloomery.conductor.task_manager import Write
from bloomery.db import events


def told(
    context: Context,
    noun: str,
    uuid: str,
    action: str,
    facts: Mapping[str, Any] | None = None,
) -> Write:
    """Return the write of ``baremetal.<noun>.<action>.start`` and ``.end``; facts are masked."""
    encoded = [
        events.encode(
            events.Event(
                object=noun,
                object_uuid=uuid,
                action=action,
                status=status,
                publisher=f"ironic-api.{context.house.host}",
                request_id=context.request.request_id,
                facts=secrets.mask(dict(facts or {})),
            ),
        )
        for status in ("start", "end")
    ]
    return lambda conn: events.insert(conn, encoded)
