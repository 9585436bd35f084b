"""Records as rows: create, update, delete, each in one commit.

The node of a record is locked for changes, not for a creation.  ``record_rules`` check the related
rows.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import sqlalchemy as sa

from bloomery.conductor import record_rules, row_updates
from bloomery.conductor.patches import Limits, Patcher
from bloomery.conductor.row_updates import CrudEvent
from bloomery.conductor.runtime import Context
from bloomery.db import nodes, records
from bloomery.model import nouns
from bloomery.model.node import Node
from bloomery.model.noun import Noun, checked, pinned_change
from bloomery.model.rules import attributes
from bloomery.model.rules import nodes as node_rules

Json = dict[str, Any]
Work: TypeAlias = Callable[[sa.Connection, Node | None], None]


def create(context: Context, noun: str, values: Json) -> None:
    """Store a record.  Its node's row is locked, not reserved."""
    kind, rules = nouns.BY_NAME[noun], record_rules.of(noun)
    attributes.refuse_sealed_in(values)
    rules.check(context, values)
    record = kind.value(**values)
    facts = {"address": values.get("address")} if "address" in kind.fields else {}
    event = CrudEvent(context, noun, record.uuid, "create", facts)
    event.snapshot_request(values)
    for name in kind.secrets:
        setattr(record, name, context.runtime.sealer.seal(getattr(record, name)))

    def work(conn: sa.Connection) -> None:
        if kind.of_node:
            node = nodes.lock_row(conn, record.node_uuid)
            if node is None:
                raise node_rules.no_such_node(f"the node of a {noun}", record.node_uuid)
            event.show_to_projects_of(node)
        rules.create(context, conn, record)
        records.insert(conn, kind, record)
        event.snapshot_stored(record)(conn)

    with event.publishing():
        context.runtime.db.transact(work)


def update(context: Context, noun: str, uuid: str, patch: list[Json]) -> None:
    """Apply a JSON patch to the row, which the same transaction reads."""
    kind, rules = nouns.BY_NAME[noun], record_rules.of(noun)
    runtime, patcher = context.runtime, _patcher(kind)
    prepared = patcher.prepare(patch, runtime.sealer, Limits.of(runtime.conf))
    event = CrudEvent(context, noun, uuid, "update", {"patched": [op["path"] for op in patch]})

    def work(conn: sa.Connection, node: Node | None) -> None:
        record = _get(conn, kind, uuid, node)
        changed = patcher.apply(record, prepared)
        if kind.of_node and changed.get("node_uuid") is None:
            changed.pop("node_uuid", None)  # removing it is accepted and changes nothing
        for name in changed.keys() & kind.pinned:
            raise pinned_change(kind, uuid, name, changed[name])
        for name in changed.keys() & kind.rules.keys():
            changed[name] = checked(kind, name, changed[name])
        rules.check(context, changed)
        event.show_to_projects_of(node).snapshot_change(record, changed, touched=bool(changed))
        rules.update(context, conn, node, record, changed)
        if changed:
            records.update(conn, kind, uuid, changed)
        event(conn)

    with event.publishing(lambda record: patcher.apply(record, prepared)):
        _change(context, kind, uuid, work)


def destroy(context: Context, noun: str, uuid: str) -> None:
    kind, rules = nouns.BY_NAME[noun], record_rules.of(noun)
    event = CrudEvent(context, noun, uuid, "delete")

    def work(conn: sa.Connection, node: Node | None) -> None:
        record = _get(conn, kind, uuid, node)
        event.show_to_projects_of(node).snapshot_deletion(record)
        rules.destroy(node, record)
        records.delete(conn, kind, uuid)
        event(conn)

    with event.publishing():
        _change(context, kind, uuid, work)


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
