"""Writes in the transaction of a node's row: encoded now, or once the node has its new state.

Nothing but SQL runs inside a transaction: so an ``EncodedWrite`` holds its rows ready, and a
``DeferredWrite`` is encoded by ``TaskManager.save`` just before the transaction begins.
"""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

import sqlalchemy as sa

from bloomery import secrets
from bloomery.conductor.runtime import Context
from bloomery.db import history, rows
from bloomery.model.history import HistoryEntry
from bloomery.model.node import Node

_SHORT: Final = 8  # digits of a UUID: enough to tell nodes apart

EncodedWrite: TypeAlias = Callable[[sa.Connection], None]


@dataclass(frozen=True, slots=True)
class DeferredWrite:
    """A write that tells of the node as it will be; it is encoded once its fields are set."""

    encode: Callable[[], EncodedWrite]


Write: TypeAlias = EncodedWrite | DeferredWrite


def encoded(writes: Iterable[Write]) -> list[EncodedWrite]:
    """Return the writes with the deferred ones encoded: for the moment before the transaction."""
    return [write.encode() if isinstance(write, DeferredWrite) else write for write in writes]


def label(node: Node) -> str:
    """Return what a sentence calls a node: its name, or the first digits of its UUID."""
    return node.name or node.uuid[:_SHORT]


def own_sentence(node: Node, text: str) -> str:
    """Return what a node's row says of the node itself: masked, and without the node's UUID.

    The name stands for it, or the first digits: whoever reads the row knows the rest.
    """
    words = rf'\b([Nn]ode )"?{re.escape(node.uuid)}"?'
    return re.sub(words, lambda match: f"{match[1]}{label(node)}", str(secrets.mask(text)))


def history_entry(
    context: Context,
    node: Node,
    text: str,
    *,
    event_type: str,
    failed: bool = False,
    warns: bool = False,
    since: datetime | None = None,
) -> EncodedWrite:
    """Return the write of an entry in the history of the node as it is now; ``text`` is masked.

    The time since the node's last change is counted, or since ``since``, if it was just moved.
    """
    runtime, request, at = context.runtime, context.request, rows.now()
    if not runtime.conf.conductor.node_history:
        return lambda conn: None
    since = since or node.provision_updated_at
    entry = HistoryEntry(
        uuid=str(uuids.uuid4()),
        node_uuid=node.uuid,
        created_at=at,
        severity="ERROR" if failed else "WARNING" if warns else "INFO",
        event=own_sentence(node, text),
        event_type=event_type,
        conductor=runtime.host,
        user=request.user,
        project=request.project,
        state=node.provision_state,
        target_provision_state=node.target_provision_state,
        duration_seconds=(at - since).total_seconds() if since else None,
        request_id=request.request_id,
    )
    return partial(history.insert, entry=entry)
