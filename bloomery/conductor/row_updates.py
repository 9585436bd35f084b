"""Short operations: lock, write, event rows and release in one transaction.

    event = CrudEvent(context, "node", uuid, "update", {"patched": paths})
    with event.publishing(lambda node: patcher.apply(node, patch)):
        row_updates.change(context, uuid, work)    # work calls event.snapshot_change(...)(conn)

The write transaction reads the row, so that no acknowledged change is lost.  A node reserved by a
flow is waited for.

The start and end rows are written together.  Where a sink takes versioned notifications, they hold
the changed object.  A refused operation on an existing object then writes start and error rows.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, TypeVar

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor.runtime import Context
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import events, locks, nodes, records, rows
from bloomery.events import snapshots
from bloomery.model import nouns
from bloomery.model.node import Node

LOG = logging.getLogger(__name__)
T = TypeVar("T")

Json: TypeAlias = dict[str, Any]
_SILENT: Final = (errors.NotFound, errors.PatchError)  # no object, no events


def change(context: Context, uuid: str, work: Callable[[sa.Connection, Node], T]) -> T:
    """Run ``work`` on the locked row of a node that is not reserved.

    Raises NodeNotFound, NodeLocked when the node stays reserved, and the errors of ``work``.
    """
    runtime = context.runtime

    def locked_work(conn: sa.Connection) -> T:
        node = nodes.get_for_update(conn, uuid)
        if node.reservation is not None:
            raise locks.locked(node)
        return work(conn, node)

    result = context.wait_in_queue(uuid, lambda: runtime.db.transact(locked_work))
    runtime.node_locks.leave(uuid)
    return result


class CrudEvent:
    """The rows of ``baremetal.<noun>.<action>.start`` and ``.end``, written by one call.

    Take the snapshots before the call; ``facts`` are masked.
    """

    def __init__(
        self,
        context: Context,
        noun: str,
        uuid: str,
        action: str,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self._context, self._noun, self._uuid = context, noun, uuid
        self._action, self._facts = action, secrets.mask(dict(facts or {}))
        self._start, self._end = self._row("start"), self._row("end")
        self._between: list[EncodedWrite] = []

    def __call__(self, conn: sa.Connection) -> None:
        self._write(conn, self._end)

    def _write(self, conn: sa.Connection, last: Json) -> None:
        if not self._between:
            events.insert(conn, [self._start, last])
            return
        events.insert(conn, [self._start])
        for write in self._between:
            write(conn)
        events.insert(conn, [last])

    def _row(self, status: str, level: str = "info") -> Json:
        return events.encode(
            events.Event(
                object=self._noun,
                object_uuid=self._uuid,
                action=self._action,
                status=status,
                level=level,
                publisher=f"ironic-api.{self._context.runtime.host}",
                request_id=self._context.request.request_id,
                facts=self._facts,
            ),
        )

    # ----------------------------------------------------------------- what versioned rows show

    @property
    def _is_versioned(self) -> bool:
        return self._context.runtime.wants_snapshots()

    def show_to_projects_of(self, value: Any) -> CrudEvent:
        """Show the events to the owner and lessee of ``value``, the object or its node."""
        for row in (self._start, self._end):
            for role in ("owner", "lessee"):
                row[role] = row[role] or getattr(value, role, None)
        return self

    def snapshot_request(self, values: Mapping[str, Any]) -> CrudEvent:
        """Put the requested object into the start event."""
        if self._is_versioned:
            self._start["snapshot"] = rows.dump(snapshots.OF_REQUEST[self._noun](values))
        return self

    def snapshot_stored(self, value: Any) -> CrudEvent:
        """Put the created object into the end event."""
        self.show_to_projects_of(value)
        self._describe(value, snapshots.described(self._noun, value))
        if self._is_versioned:
            self._end["snapshot"] = rows.dump(snapshots.OF_CREATED[self._noun](value))
        return self

    def snapshot_change(
        self, before: Any, changes: Mapping[str, Any], *, touched: bool = True
    ) -> CrudEvent:
        """Put the object before and after the change into the events.

        ``touched``: updated_at changes.
        """
        self.show_to_projects_of(before)
        self._describe(before, changes)
        if self._is_versioned:
            after = copy.copy(before)
            for name, value in changes.items():
                setattr(after, name, value)
            snapshot = snapshots.OF[self._noun](after)
            self._start["snapshot"] = rows.dump(snapshot)
            stamp = {"updated_at": rows.now()} if touched else {}
            self._end["snapshot"] = rows.dump(snapshot | stamp)
        return self

    def snapshot_deletion(self, value: Any) -> CrudEvent:
        """Put the deleted object into both events."""
        return self.snapshot_change(value, {}, touched=False)

    def _describe(self, value: Any, changes: Mapping[str, Any]) -> None:
        """Add the masked new values, and the record's node, to the facts of the end event."""
        more: Json = {
            "changes": snapshots.public(self._noun, changes),
            "node_uuid": getattr(value, "node_uuid", None),
        }
        facts = {name: fact for name, fact in more.items() if fact}
        self._end["facts"] = rows.dump(self._facts | secrets.mask(facts))

    def insert_between(self, write: EncodedWrite) -> None:
        """Add a write between the start and the end event."""
        self._between.append(write)

    # ------------------------------------------------------------------------------ publishing

    @contextmanager
    def publishing(self, changes: Callable[[Any], Json] = lambda value: {}) -> Iterator[None]:
        """Wake the relay after the commit; write the events of a refusal and raise it again.

        ``changes``: the requested changes, for a refusal before the snapshot.
        """
        try:
            yield
        except _SILENT:
            raise
        except Exception:
            if self._is_versioned:
                self._write_refusal(changes)
            raise
        self._context.runtime.on_events_written()

    def _write_refusal(self, changes: Callable[[Any], Json]) -> None:
        """Write the events of a refusal, best effort: the caller gets the refusal in any case."""
        runtime = self._context.runtime
        try:
            if self._start["snapshot"] is None:
                with runtime.db.read() as conn:
                    if self._noun == "node":
                        value: Any = nodes.get(conn, self._uuid)
                    else:
                        value = records.get(conn, nouns.BY_NAME[self._noun], self._uuid)
                self.snapshot_change(value, changes(value))
            kept = {name: self._start[name] for name in ("snapshot", "owner", "lessee")}
            error_row = self._row("error", "error") | kept
            runtime.db.transact(lambda conn: self._write(conn, error_row))
            runtime.on_events_written()
        except _SILENT:
            return
        except Exception as exc:  # noqa: BLE001  the refusal itself is passed on
            LOG.warning("%s %s: cannot write the events of a refused %s: %s",
                        self._noun, self._uuid, self._action, errors.brief(exc))  # fmt: skip
