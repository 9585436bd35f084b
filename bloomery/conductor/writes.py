"""Writes in the transaction of a node's row, encoded at once or just before the transaction.

Only SQL runs inside a transaction.  So an ``EncodedWrite`` holds encoded rows, and
``TaskManager.save`` encodes a ``DeferredWrite`` once the node's fields are set.
"""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor.runtime import Context
from bloomery.db import events, history, rows
from bloomery.model.node import Node
from bloomery.model.node_facts import ALARM, HistoryEntry

_SHORT: Final = 8  # digits of a UUID: enough to tell nodes apart

EncodedWrite: TypeAlias = Callable[[sa.Connection], None]


@dataclass(frozen=True, slots=True)
class DeferredWrite:
    """A write that depends on the node's new fields; it is encoded once they are set."""

    encode: Callable[[], EncodedWrite]


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """The write of an event row that shows the node's condition."""

    row: Mapping[str, Any]

    def __call__(self, conn: sa.Connection) -> None:
        events.insert(conn, [self.row])


Write: TypeAlias = EncodedWrite | DeferredWrite


def encoded(writes: Iterable[Write]) -> list[EncodedWrite]:
    """Return the writes with the deferred ones encoded."""
    return [write.encode() if isinstance(write, DeferredWrite) else write for write in writes]


def label(node: Node) -> str:
    """Return the node's name, or the first digits of its UUID."""
    return node.name or node.uuid[:_SHORT]


def own_sentence(node: Node, text: str) -> str:
    """Return a sentence for the node's own row.

    Masked, with the node's name in place of its UUID, and cut to MAX_TEXT_IN_ROW: agents and BMCs
    send texts of any length.
    """
    pattern = rf'\b([Nn]ode )"?{re.escape(node.uuid)}"?'
    sentence = re.sub(pattern, lambda match: f"{match[1]}{label(node)}", str(secrets.mask(text)))
    return sentence[: errors.MAX_TEXT_IN_ROW]


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
    """Return the write of a history entry for the node as it is now; ``text`` is masked.

    The duration counts from ``since``, by default the node's last transition.
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


def health_entry(context: Context, node: Node, was: str | None) -> EncodedWrite:
    """Return the write of the history entry of a change of the machine's health."""
    sentence = f"health of the machine: {was or 'unknown'} -> {node.health or 'unknown'}"
    failed = node.health not in (None, "OK")
    return history_entry(context, node, sentence, event_type=ALARM, failed=failed)


def failure_entry(context: Context, node: Node, text: str, event_type: str) -> EncodedWrite:
    """Set the node's last_error, and return the write of its history entry."""
    node.last_error = text
    return history_entry(context, node, text, event_type=event_type, failed=True)
