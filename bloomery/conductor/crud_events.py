"""Event rows of create, update and delete: start and end are written together.

    event = crud_events.new(context, "node", uuid, "update", {"patched": paths})
    with event.watching(lambda node: patcher.apply(node, patch)):
        at_once.change(context, uuid, work)      # work calls event.changed(node, new)(conn)

Where a sink wants versioned notifications, the rows carry the object as it is to be, and an
operation that is refused although its object was found sends start and error, in a transaction
of their own.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import notification_utils
from bloomery.conductor.runtime import Context
from bloomery.db import events, nodes, records, rows
from bloomery.events import snapshots
from bloomery.model import nouns

LOG = logging.getLogger(__name__)

Json: TypeAlias = dict[str, Any]
_SILENT: Final = (errors.NotFound, errors.PatchError)  # no object was found, or none could be made


def new(
    context: Context,
    noun: str,
    uuid: str,
    action: str,
    facts: Mapping[str, Any] | None = None,
) -> CrudEvent:
    """Return the write of ``baremetal.<noun>.<action>.start`` and ``.end``; facts are masked."""
    return CrudEvent(context, noun, uuid, action, secrets.mask(dict(facts or {})))


class CrudEvent:
    """A write, called with the connection; what is shown before that call goes along."""

    def __init__(self, context: Context, noun: str, uuid: str, action: str, facts: Json) -> None:
        self._context, self._noun, self._uuid = context, noun, uuid
        self._action, self._facts = action, facts
        self._start, self._end = self._row("start"), self._row("end")
        self._between: list[notification_utils.Write] = []

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

    # --------------------------------------------------------------- what the rows are to show

    @property
    def wanted(self) -> bool:
        return self._context.runtime.snapshots

    def given(self, values: Mapping[str, Any]) -> CrudEvent:
        """Show at the start what a client asks to create."""
        if self.wanted:
            self._start["snapshot"] = rows.dump(snapshots.GIVEN[self._noun](values))
        return self

    def stored(self, value: Any) -> CrudEvent:
        """Show at the end what was stored."""
        if self.wanted:
            self._end["snapshot"] = rows.dump(snapshots.OF[self._noun](value))
        return self

    def changed(
        self, before: Any, changes: Mapping[str, Any], *, touched: bool = True
    ) -> CrudEvent:
        """Show the object as it will be; ``touched``: its updated_at moves."""
        if self.wanted:
            shot = snapshots.OF[self._noun](_with(before, changes))
            self._start["snapshot"] = rows.dump(shot)
            stamp = {"updated_at": rows.now()} if touched else {}
            self._end["snapshot"] = rows.dump(shot | stamp)
        return self

    def gone(self, value: Any) -> CrudEvent:
        """Show at both ends what is being deleted."""
        return self.changed(value, {}, touched=False)

    def between(self, write: notification_utils.Write) -> None:
        """Tell of something else that happens between start and end."""
        self._between.append(write)

    # ----------------------------------------------------------------------------- refusals

    @contextmanager
    def watching(self, changes: Callable[[Any], Json] = lambda value: {}) -> Iterator[None]:
        """Tell of a refusal, and pass it on.

        ``changes``: what the caller wants of the object, if it was refused before ``changed``.
        """
        try:
            yield
        except _SILENT:
            raise
        except Exception:
            if self.wanted:
                self._tell_refusal(changes)
            raise

    def _tell_refusal(self, changes: Callable[[Any], Json]) -> None:
        """Best effort: what the caller hears is the refusal, not that nobody could be told."""
        runtime = self._context.runtime
        try:
            if self._start["snapshot"] is None:
                self._look_up(changes)
            refused = self._row("error", "error") | {"snapshot": self._start["snapshot"]}
            runtime.db.transact(lambda conn: self._write(conn, refused))
            runtime.on_events_written()
        except _SILENT:
            return
        except Exception as exc:  # noqa: BLE001  the refusal itself is passed on
            LOG.warning("%s %s: cannot tell of a refused %s: %s",
                        self._noun, self._uuid, self._action, errors.brief(exc))  # fmt: skip

    def _look_up(self, changes: Callable[[Any], Json]) -> None:
        with self._context.runtime.db.read() as conn:
            value = _get(conn, self._noun, self._uuid)
        self.changed(value, changes(value))


def _get(conn: sa.Connection, noun: str, uuid: str) -> Any:
    return nodes.get(conn, uuid) if noun == "node" else records.get(conn, nouns.BY_NAME[noun], uuid)


def _with(value: Any, changes: Mapping[str, Any]) -> Any:
    future = copy.copy(value)
    for name, new in changes.items():
        setattr(future, name, new)
    return future
