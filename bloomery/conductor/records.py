"""Records as rows: create, update, delete, each in one commit.

The node of a record is locked for changes, not for a creation.  A noun's ``Rules`` check the
related rows; ``endpoints.records`` lists them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from bloomery.conductor import row_updates
from bloomery.conductor.patches import Limits, Patcher
from bloomery.conductor.row_updates import CrudEvent
from bloomery.conductor.runtime import Context
from bloomery.db import nodes, records
from bloomery.model.node import Node
from bloomery.model.noun import Noun, checked, pinned_change
from bloomery.model.rules import attributes
from bloomery.model.rules import nodes as node_rules

Json = dict[str, Any]
Work: TypeAlias = Callable[[sa.Connection, Node | None], None]


def _accept(*_args: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Further checks inside the transaction; each raises a Failure.

    ``check(context, values)`` sees the new values alone; for a creation it runs before the
    transaction. ``create(context, conn, record)`` may set server-chosen fields. ``update(context,
    conn, node, record, changed)`` gets the record and its changes; changes to other records need
    their own events.  ``destroy(node, record)``: ``node`` is None for nouns without nodes.
    """

    check: Callable[[Context, Json], None] = _accept
    create: Callable[[Context, sa.Connection, Any], None] = _accept
    update: Callable[[Context, sa.Connection, Any, Any, Json], None] = _accept
    destroy: Callable[[Any, Any], None] = _accept


def create(context: Context, noun: Noun, rules: Rules, values: Json) -> None:
    """Store a record.  Its node's row is locked, not reserved."""
    attributes.refuse_sealed_in(values)
    rules.check(context, values)
    record = noun.value(**values)
    event = CrudEvent(context, noun.name, record.uuid, "create", _facts(noun, values))
    event.snapshot_request(values)
    for name in noun.secrets:
        setattr(record, name, context.runtime.sealer.seal(getattr(record, name)))

    def work(conn: sa.Connection) -> None:
        if noun.of_node:
            node = nodes.lock_row(conn, record.node_uuid)
            if node is None:
                raise node_rules.no_such_node(f"the node of a {noun.name}", record.node_uuid)
            event.show_to_projects_of(node)
        rules.create(context, conn, record)
        records.insert(conn, noun, record)
        event.snapshot_stored(record)(conn)

    with event.publishing():
        context.runtime.db.transact(work)


def _facts(noun: Noun, values: Json) -> Json:
    return {name: values.get(name) for name in ("address",) if name in noun.fields}


def update(context: Context, noun: Noun, rules: Rules, uuid: str, patch: Sequence[Json]) -> None:
    """Apply a JSON patch to the row, which the same transaction reads."""
    runtime, patcher = context.runtime, _patcher(noun)
    prepared = patcher.prepare(patch, runtime.sealer, Limits.of(runtime.conf))
    event = CrudEvent(context, noun.name, uuid, "update", {"patched": [op["path"] for op in patch]})

    def work(conn: sa.Connection, node: Node | None) -> None:
        record = _get(conn, noun, uuid, node)
        changed = patcher.apply(record, prepared)
        if noun.of_node and changed.get("node_uuid") is None:
            changed.pop("node_uuid", None)  # removing it is accepted and changes nothing
        for name in changed.keys() & noun.pinned:
            raise pinned_change(noun, uuid, name, changed[name])
        for name in changed.keys() & noun.rules.keys():
            changed[name] = checked(noun, name, changed[name])
        rules.check(context, changed)
        event.show_to_projects_of(node).snapshot_change(record, changed, touched=bool(changed))
        rules.update(context, conn, node, record, changed)
        if changed:
            records.update(conn, noun, uuid, changed)
        event(conn)

    with event.publishing(lambda record: patcher.apply(record, prepared)):
        _change(context, noun, uuid, work)


def destroy(context: Context, noun: Noun, rules: Rules, uuid: str) -> None:
    event = CrudEvent(context, noun.name, uuid, "delete")

    def work(conn: sa.Connection, node: Node | None) -> None:
        record = _get(conn, noun, uuid, node)
        event.show_to_projects_of(node).snapshot_deletion(record)
        rules.destroy(node, record)
        records.delete(conn, noun, uuid)
        event(conn)

    with event.publishing():
        _change(context, noun, uuid, work)


class _Moved(Exception):
    """The record moved to another node before its node was locked."""


def _get(conn: sa.Connection, noun: Noun, uuid: str, node: Node | None) -> Any:
    """Return the locked record.  Raises _Moved if it moved to another node."""
    record = records.get(conn, noun, uuid, for_update=True)
    if node is not None and record.node_uuid != node.uuid:
        raise _Moved
    return record


def _change(context: Context, noun: Noun, uuid: str, work: Work) -> None:
    """Run ``work`` in one transaction under the lock of the record's node, if it has one."""
    db = context.runtime.db
    if not noun.of_node:
        db.transact(lambda conn: work(conn, None))
        return
    while True:
        with db.read() as conn:
            node_uuid = records.get(conn, noun, uuid).node_uuid
        with contextlib.suppress(_Moved):
            row_updates.change(context, node_uuid, work)
            return


@functools.cache
def _patcher(noun: Noun) -> Patcher:
    return Patcher(noun.checker, noun.value)
