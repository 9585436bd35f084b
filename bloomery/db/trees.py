"""Trees of stacks: read whole, and written turn by turn.

A turn is one transaction, whole or not at all: the guard of the lock, new and changed rows, the
events for the API and the relay, the orders that were taken.  Encode it before::

    turn = trees.encode(values, sealer, traversals={root: 3})
    written = db.transact(lambda conn: trees.write(conn, guard, turn))

Statements go in one order everywhere (the lock's row, stacks, resources, the rest), so that no two
transactions wait for each other crosswise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.db import events, revisions, rows, stack_locks, stack_orders, tree_values, upserts
from bloomery.db.tables import (
    PROPERTIES_DATA,
    RAW_TEMPLATES,
    RESOURCE_DATA,
    RESOURCES,
    SNAPSHOTS,
    STACK_EVENTS,
    STACK_TAGS,
    STACKS,
    TEMPLATE_FILES,
)
from bloomery.db.tree_values import Row
from bloomery.model.stacks import Action, Event, Stack, Template, Tree, Turn
from bloomery.secrets import Sealer

_S = STACKS.c
_R = RESOURCES.c
_RELAY_STATUS: Final = {"IN_PROGRESS": "start", "COMPLETE": "end", "FAILED": "error"}
_KEPT: Final = frozenset(  # columns of a stack that a turn leaves alone once the row is there
    {
        "uuid", "name", "project", "user", "root_uuid", "owner_uuid", "owner_resource", "depth",
        "credentials_uuid", "created_at",
    }
)  # fmt: skip
_CHANGED: Final = tuple(name for name in tree_values.STACK_ROW if name not in _KEPT)
_INSERT_STACK = sa.insert(STACKS)
_INSERT_EVENT = sa.insert(STACK_EVENTS)
_UPDATE_STACK = (
    sa.update(STACKS)
    .where(_S.uuid == sa.bindparam("ident"), _S.traversal == sa.bindparam("known_traversal"))
    .values({name: sa.bindparam(f"to_{name}") for name in _CHANGED})
)
_TRAVERSALS = sa.select(_S.uuid, _S.traversal).where(
    _S.uuid.in_(sa.bindparam("idents", expanding=True))
)
_END_SNAPSHOT = (
    sa.update(SNAPSHOTS)
    .where(SNAPSHOTS.c.uuid == sa.bindparam("ident"))
    .values({name: sa.bindparam(f"to_{name}") for name in ("status", "reason", "data")})
)
_DROP_DATA = sa.delete(RESOURCE_DATA).where(
    RESOURCE_DATA.c.resource_uuid.in_(sa.bindparam("idents", expanding=True))
)
_DROP_TEMPLATES = sa.delete(RAW_TEMPLATES).where(
    RAW_TEMPLATES.c.uuid.in_(sa.bindparam("idents", expanding=True))
)
_DROP_RESOURCES = sa.delete(RESOURCES).where(_R.uuid.in_(sa.bindparam("idents", expanding=True)))


# --------------------------------------------------------------------------------------- writing


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedTurn:
    """The rows of a turn.  ``traversals``: of each stack, as the engine saw its row last."""

    stacks: Sequence[Row]
    tags: Mapping[str, Sequence[Row]]  # by stack
    traversals: Mapping[str, int]
    resources: Sequence[Row]
    data: Sequence[Row]
    removed: Sequence[str]
    templates: Sequence[Row]
    files: Sequence[Row]
    dropped: Sequence[str]
    properties: Sequence[Row]
    events: Sequence[Row]
    snapshots: Sequence[Row]
    relay: Sequence[tuple[str | None, Row]]  # the uuid of a stack that it is about, and the event
    orders: Sequence[int]
    is_idle: bool
    progress: revisions.Progress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended.  ``released``: the lock of the tree is free.

    ``overtaken``: stacks whose traversal has moved on by an order that waits; neither their rows
    nor their own events were written.
    """

    released: bool
    overtaken: frozenset[str]


def encode(
    turn: Turn, sealer: Sealer, *, traversals: Mapping[str, int], publisher: str | None = None
) -> EncodedTurn:
    """Return the rows of ``turn``; do this before the transaction."""
    templates = [tree_values.encode_template(template, sealer) for template in turn.templates]
    stacks = {stack.uuid: stack for stack in turn.stacks}
    return EncodedTurn(
        stacks=[tree_values.encode_stack(stack) for stack in turn.stacks],
        tags={stack.uuid: encode_tags(stack) for stack in turn.stacks if stack.tags},
        traversals=traversals,
        resources=[tree_values.encode_resource(each, sealer) for each in turn.resources],
        data=[
            row
            for each in turn.resources
            if each.data
            for row in tree_values.encode_data(each, sealer)
        ],
        removed=list(turn.removed),
        templates=[row for row, _ in templates],
        files=[files for _, files in templates if files],
        dropped=list(turn.dropped),
        properties=[tree_values.encode_properties(each, sealer) for each in turn.properties],
        events=[tree_values.encode_event(event) for event in turn.events],
        snapshots=[tree_values.encode_snapshot_end(each, sealer) for each in turn.snapshots],
        relay=[
            (event.stack_uuid, relay_row(event, stacks.get(event.stack_uuid), publisher=publisher))
            if event.physical_id == event.stack_uuid  # about the stack itself
            else (None, _resource_row(event, publisher))
            for event in turn.events
            # the reason of a signal is what a machine sent: for readers of the stack alone
            if event.status in _RELAY_STATUS and event.action != Action.SIGNAL
        ],
        orders=list(turn.orders),
        is_idle=turn.is_idle,
        progress=revisions.progress_of(turn.stacks, turn.events),
    )


def relay_row(
    event: Event,
    stack: Stack | None,
    *,
    publisher: str | None = None,
    request_id: str | None = None,
) -> Row:
    """Return the row for the relay: ``orchestration.stack.<action>.<start|end|error>``."""
    facts: dict[str, Any] = {"stack_name": event.name}
    if stack is not None:
        facts |= {
            "project": stack.project,
            "user": stack.user,
            "tags": list(stack.tags),
            "created_at": stack.created_at,
            "updated_at": stack.updated_at,
        }
    owner = None if stack is None else stack.project
    row = _relay_row(events.STACK, event, facts, publisher=publisher, owner=owner)
    return row | {"request_id": request_id}


def _resource_row(event: Event, publisher: str | None) -> Row:
    """Return the row for the relay: ``orchestration.resource.<action>.<start|end|error>``."""
    facts = {
        "stack_name": event.stack_name,
        "project": event.project,
        "resource_name": event.name,
        "resource_type": event.type,
        "physical_resource_id": event.physical_id,
    }
    return _relay_row(events.RESOURCE, event, facts, publisher=publisher, owner=event.project)


def _relay_row(
    kind: str, event: Event, facts: Mapping[str, Any], *, publisher: str | None, owner: str | None
) -> Row:
    is_failure = event.status == "FAILED"
    text = secrets.mask(event.reason) if is_failure else event.reason  # a failure quotes others
    reason = tree_values.storable(text)[: tree_values.MOST_EVENT_REASON]
    state = {"state": event.state, "state_reason": reason, "root": event.root_uuid}
    return events.encode(
        events.Event(
            object=kind,
            object_uuid=event.stack_uuid,
            action=event.action.lower(),
            status=_RELAY_STATUS[event.status],
            level="error" if is_failure else "info",
            publisher=publisher,
            facts={**facts, **state},
            owner=owner,
        )
    )


def encode_tags(stack: Stack) -> list[Row]:
    return [
        {"stack_uuid": stack.uuid, "tag": tag, "position": position}
        for position, tag in enumerate(stack.tags)
    ]


def write(conn: sa.Connection, guard: stack_locks.Guard, turn: EncodedTurn) -> TurnResult:
    """Write a turn under the lock of its tree, or nothing.

    A stack whose traversal has moved on keeps the state that was accepted meanwhile; its resources
    are written, for what happened to them did happen.  A turn that was written before (its commit
    was in doubt) is not written again.  Raises StackLockLost.
    """
    is_new = stack_locks.advance(conn, guard)
    if not is_new:
        traversals = _stored_traversals(conn, turn) if turn.stacks else {}
        overtaken = frozenset(
            row["uuid"] for row in turn.stacks if traversals.get(row["uuid"]) != row["traversal"]
        )
        return TurnResult(released=stack_locks.is_free(conn, guard.root_uuid), overtaken=overtaken)
    overtaken = _overtaken(conn, turn)
    insert_templates(conn, turn.templates, turn.files)
    for idents in upserts.chunks(turn.dropped):
        conn.execute(_DROP_TEMPLATES, {"idents": list(idents)})
    if turn.properties:
        columns = tuple(turn.properties[0])
        insert = upserts.insert_missing(conn.dialect.name, PROPERTIES_DATA, columns)
        conn.execute(insert, rows.lean(turn.properties))
    if turn.resources:
        upsert = upserts.insert_or_update(conn.dialect.name, RESOURCES, tree_values.RESOURCE_ROW)
        conn.execute(upsert, rows.lean(turn.resources))
        for idents in upserts.chunks([row["uuid"] for row in turn.resources]):
            conn.execute(_DROP_DATA, {"idents": list(idents)})
    if turn.data:
        conn.execute(sa.insert(RESOURCE_DATA), rows.lean(turn.data))
    for idents in upserts.chunks(turn.removed):
        conn.execute(_DROP_RESOURCES, {"idents": list(idents)})
    if turn.snapshots:
        conn.execute(_END_SNAPSHOT, rows.lean(turn.snapshots))
    if turn.progress is not None:
        is_overtaken = turn.progress.root_uuid in overtaken
        revisions.add(conn, turn.progress, is_overtaken=is_overtaken)
    insert_events(
        conn,
        [
            row
            for row in turn.events
            if row["stack_uuid"] not in overtaken or row["physical_id"] != row["stack_uuid"]
        ],
    )
    events.insert(conn, [row for stack, row in turn.relay if stack not in overtaken])
    stack_orders.delete(conn, turn.orders)
    released = turn.is_idle and not overtaken and stack_locks.release(conn, guard)
    return TurnResult(released=released, overtaken=overtaken)


def _overtaken(conn: sa.Connection, turn: EncodedTurn) -> frozenset[str]:
    """Write the stacks of a turn; return those whose row a newer order has changed: they stay."""
    if not turn.stacks:
        return frozenset()
    traversals = _stored_traversals(conn, turn)
    new = [row for row in turn.stacks if row["uuid"] not in traversals]
    insert_stacks(conn, new, [tag for row in new for tag in turn.tags.get(row["uuid"], ())])
    unchanged = [
        row
        for row in turn.stacks
        if row["uuid"] in traversals
        and traversals[row["uuid"]] == turn.traversals.get(row["uuid"], row["traversal"])
    ]
    if unchanged:
        changes = [
            {"ident": row["uuid"], "known_traversal": traversals[row["uuid"]]}
            | {f"to_{name}": row[name] for name in _CHANGED}
            for row in unchanged
        ]
        conn.execute(_UPDATE_STACK, rows.lean(changes))
    written = {row["uuid"] for row in (*new, *unchanged)}
    return frozenset(row["uuid"] for row in turn.stacks if row["uuid"] not in written)


def _stored_traversals(conn: sa.Connection, turn: EncodedTurn) -> dict[str, int]:
    return {
        uuid: traversal
        for idents in upserts.chunks([row["uuid"] for row in turn.stacks])
        for uuid, traversal in conn.execute(_TRAVERSALS, {"idents": list(idents)})
    }


def insert_stacks(conn: sa.Connection, stacks: Sequence[Row], tags: Sequence[Row] = ()) -> None:
    """Add stacks and their tags; a name that a live root has breaks ``stacks.live_name``."""
    if stacks:
        conn.execute(_INSERT_STACK, rows.lean(stacks))
    if tags:
        conn.execute(sa.insert(STACK_TAGS), rows.lean(tags))


def insert_templates(
    conn: sa.Connection, templates: Sequence[Row], files: Sequence[Row] = ()
) -> None:
    """Add templates; equal files are stored once, a template that is there stays.

    Files go in the order of their digests: no two transactions wait for each other crosswise.
    """
    if files:
        renew = upserts.insert_or_renew(
            conn.dialect.name, TEMPLATE_FILES, tuple(files[0]), key="digest"
        )
        conn.execute(renew, sorted(files, key=lambda row: str(row["digest"])))
    if templates:
        columns = tuple(templates[0])
        insert = upserts.insert_missing(conn.dialect.name, RAW_TEMPLATES, columns)
        conn.execute(insert, rows.lean(templates))


def insert_events(conn: sa.Connection, encoded: Sequence[Row]) -> None:
    """Insert events of stacks and resources."""
    if encoded:
        conn.execute(_INSERT_EVENT, rows.lean(encoded))


# --------------------------------------------------------------------------------------- reading

_TEMPLATE = (
    sa.select(
        RAW_TEMPLATES.c.uuid,
        RAW_TEMPLATES.c.template,
        RAW_TEMPLATES.c.environment,
        RAW_TEMPLATES.c.sealed,
        RAW_TEMPLATES.c.text,
        TEMPLATE_FILES.c.files,
    )
    .outerjoin(TEMPLATE_FILES, TEMPLATE_FILES.c.digest == RAW_TEMPLATES.c.files_digest)
    .where(RAW_TEMPLATES.c.uuid == sa.bindparam("ident"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRows:
    """The rows of a tree, or of what was accepted for it, as they were at one moment."""

    stacks: Sequence[sa.Row[Any]]
    tags: Sequence[sa.Row[Any]]
    resources: Sequence[sa.Row[Any]]
    data: Sequence[sa.Row[Any]]
    templates: Sequence[sa.Row[Any]]
    properties: Sequence[sa.Row[Any]]
    orders: Sequence[sa.Row[Any]]


_ROOT: Final[Any] = sa.bindparam("root")
_LIVE = sa.select(_S.uuid).where(_S.root_uuid == _ROOT, _S.deleted_at.is_(None))
_OF_TREE = (_R.root_uuid == _ROOT, _R.stack_uuid.in_(_LIVE))
_STACKS_OF = (
    sa.select(STACKS)
    .where(_S.root_uuid == _ROOT, sa.or_(_S.deleted_at.is_(None), _S.uuid == _ROOT))
    .order_by(_S.depth, _S.id)
)
_STACKS_ORDERED = (
    sa.select(STACKS)
    .where(_S.uuid.in_(sa.bindparam("idents", expanding=True)))
    .order_by(_S.depth, _S.id)
)
_TAGS = (
    sa.select(STACK_TAGS.c.stack_uuid, STACK_TAGS.c.tag)
    .where(STACK_TAGS.c.stack_uuid.in_(sa.select(_S.uuid).where(_S.root_uuid == _ROOT)))
    .order_by(STACK_TAGS.c.position)
)
_RESOURCES_OF = sa.select(RESOURCES).where(*_OF_TREE).order_by(_R.id)
_DATA_OF = (
    sa.select(RESOURCE_DATA)
    .where(RESOURCE_DATA.c.resource_uuid.in_(sa.select(_R.uuid).where(*_OF_TREE)))
    .order_by(RESOURCE_DATA.c.resource_uuid, RESOURCE_DATA.c.key)
)
_PROPERTIES_OF = sa.select(PROPERTIES_DATA).where(
    sa.or_(
        *(
            PROPERTIES_DATA.c.uuid.in_(sa.select(column).where(*_OF_TREE, column.is_not(None)))
            for column in (_R.properties_uuid, _R.previous_properties_uuid)
        )
    )
)
_TEMPLATES = (
    sa.select(
        RAW_TEMPLATES.c.uuid, RAW_TEMPLATES.c.template, RAW_TEMPLATES.c.environment,
        RAW_TEMPLATES.c.sealed, sa.null().label("text"),  # an engine needs the document alone
        TEMPLATE_FILES.c.files,
    )
    .outerjoin(TEMPLATE_FILES, TEMPLATE_FILES.c.digest == RAW_TEMPLATES.c.files_digest)
    .where(RAW_TEMPLATES.c.uuid.in_(sa.bindparam("idents", expanding=True)))
)  # fmt: skip


def load_rows(conn: sa.Connection, root_uuid: str) -> TreeRows:
    """Return the rows of a tree: stacks that live and the root, with all that is needed to go on.

    On a connection whose statements see one moment (``Database.snapshot``).  Raises NotFound.
    """
    root = {"root": root_uuid}
    stacks = conn.execute(_STACKS_OF, root).all()
    if not stacks:
        raise errors.NotFound(reason=f"cannot load stack {root_uuid}: it is gone")
    resources = conn.execute(_RESOURCES_OF, root).all()
    return TreeRows(
        stacks=stacks,
        tags=conn.execute(_TAGS, root).all(),
        resources=resources,
        data=conn.execute(_DATA_OF, root).all() if resources else [],
        templates=_templates(conn, stacks, resources),
        properties=conn.execute(_PROPERTIES_OF, root).all() if resources else [],
        orders=stack_orders.list_rows(conn, root_uuid),
    )


def list_stacks(conn: sa.Connection, root_uuid: str) -> list[Stack]:
    """Return the stacks of a tree and nothing else of it, the root first; tags are left out."""
    stacks = conn.execute(_STACKS_OF, {"root": root_uuid})
    return [tree_values.decode_stack(row, ()) for row in stacks]


def load_accepted(conn: sa.Connection, root_uuid: str, after: int) -> TreeRows:
    """Return the orders of a tree after the id ``after``, with the stacks that they name.

    Stacks are as they are now, with their templates.

    On a connection whose statements see one moment (``Database.snapshot``).
    """
    orders = stack_orders.list_rows(conn, root_uuid, after)
    idents = sorted({row.stack_uuid for row in orders})
    stacks = conn.execute(_STACKS_ORDERED, {"idents": idents}).all() if idents else []
    return TreeRows(
        stacks=stacks,
        tags=conn.execute(_TAGS, {"root": root_uuid}).all() if stacks else [],
        resources=[],
        data=[],
        templates=_templates(conn, stacks, []) if stacks else [],
        properties=[],
        orders=orders,
    )


def _templates(
    conn: sa.Connection, stacks: Sequence[sa.Row[Any]], resources: Sequence[sa.Row[Any]]
) -> Sequence[sa.Row[Any]]:
    uuids = {row.template_uuid for row in (*stacks, *resources)}
    uuids |= {row.previous_template_uuid for row in stacks if row.previous_template_uuid}
    return [
        row
        for idents in upserts.chunks(sorted(uuids))
        for row in conn.execute(_TEMPLATES, {"idents": list(idents)})
    ]


def decode(tree: TreeRows, sealer: Sealer) -> Tree:
    """Return the values that the rows of a tree stand for.  Raises KeyMissing."""
    tags: dict[str, tuple[str, ...]] = {}
    for stack_uuid, tag in tree.tags:
        tags[stack_uuid] = (*tags.get(stack_uuid, ()), tag)
    data: dict[str, dict[str, Any]] = {}
    redacted: dict[str, set[str]] = {}
    for row in tree.data:
        data.setdefault(row.resource_uuid, {})[row.key] = tree_values.decode_data(row, sealer)
        if row.redacted:
            redacted.setdefault(row.resource_uuid, set()).add(row.key)
    templates = [tree_values.decode_template(row, sealer) for row in tree.templates]
    properties = [tree_values.decode_properties(row, sealer) for row in tree.properties]
    return Tree(
        stacks=[tree_values.decode_stack(row, tags.get(row.uuid, ())) for row in tree.stacks],
        resources=[
            tree_values.decode_resource(
                row, data.get(row.uuid, {}), redacted.get(row.uuid, set()), sealer
            )
            for row in tree.resources
        ],
        templates={template.uuid: template for template in templates},
        properties={each.uuid: each for each in properties},
        orders=[stack_orders.from_row(row, sealer) for row in tree.orders],
    )


def get_template(conn: sa.Connection, uuid: str, sealer: Sealer) -> Template:
    """Return a stored template, which nothing changes.  Raises NotFound, KeyMissing."""
    row = conn.execute(_TEMPLATE, {"ident": uuid}).one_or_none()
    if row is None:
        raise errors.NotFound(reason=f"cannot find the stored template {uuid}")
    return tree_values.decode_template(row, sealer)
