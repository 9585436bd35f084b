"""What joins the transaction of a node's row: encoded now, or once the node shows its new state.

Nothing but SQL runs inside a transaction: so an ``EncodedWrite`` holds its rows ready, and a
``DeferredWrite`` is encoded by ``TaskManager.save`` just before the transaction begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeAlias

import sqlalchemy as sa

from bloomery import secrets
from bloomery.conductor.runtime import Context
from bloomery.db import history
from bloomery.model.node import Node

EncodedWrite: TypeAlias = Callable[[sa.Connection], None]


@dataclass(frozen=True, slots=True)
class DeferredWrite:
    """A write that tells of the node as it will be; it is encoded once its fields are set."""

    encode: Callable[[], EncodedWrite]


Write: TypeAlias = EncodedWrite | DeferredWrite


def encoded(writes: Iterable[Write]) -> list[EncodedWrite]:
    """Return the writes with the deferred ones encoded: for the moment before the transaction."""
    return [write.encode() if isinstance(write, DeferredWrite) else write for write in writes]


def history_entry(
    context: Context,
    node: Node,
    text: str,
    *,
    event_type: str,
    failed: bool = False,
    since: datetime | None = None,
) -> EncodedWrite:
    """Return the write of an entry in the history of the node as it is now; ``text`` is masked.

    ``since``: when what the entry ends had begun.
    """
    if not context.runtime.conf.conductor.node_history:
        return lambda conn: None
    entry = history.entry(
        node, context.request, event=str(secrets.mask(text)), event_type=event_type,
        conductor=context.runtime.host, failed=failed, since=since,
    )  # fmt: skip
    return partial(history.insert, entry=entry)
