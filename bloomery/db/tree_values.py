"""Between the values of a tree of stacks and their rows; and what of them is sealed at rest.

Stars stand in no column: what is secret is sealed, and opened when it is read.  Sealed are the
parameters of an environment, always (a stack below gets hidden values under names that say
nothing); properties, templates, metadata and pending actions that a hidden value may have reached;
data that its kind calls redacted.  Encode before the transaction begins.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import RESOURCES, STACKS
from bloomery.model.stacks import (
    RESOURCE_FIELDS,
    Action,
    Event,
    Properties,
    ResourceAction,
    Snapshot,
    Stack,
    Status,
    StoredResource,
    Template,
)
from bloomery.secrets import Sealer

Row = dict[str, Any]

MOST_EVENT_REASON: Final = 255  # characters
MOST_REASON_BYTES: Final = 65_535
_SEALED_PARTS: Final = ("parameters", "parameter_defaults")  # of an environment
_EMPTY: Final = rows.EMPTY_OBJECT
_EMPTY_LIST: Final = "[]"
STACK_ROW: Final = tuple(column.key for column in STACKS.c if column.key != "id")
RESOURCE_ROW: Final = tuple(column.key for column in RESOURCES.c if column.key != "id")
# Columns that are stored as the values have them; the others are encoded one by one.
STACK_COLUMNS: Final = tuple(name for name in STACK_ROW if name not in {"graph", "live_name"})
_RESOURCE_COLUMNS: Final = tuple(
    name for name in RESOURCE_ROW
    if name in RESOURCE_FIELDS and name not in {"policy", "metadata", "requires", "pending_action"}
)  # fmt: skip


# ------------------------------------------------------------------------------------ templates


def encode_template(template: Template, sealer: Sealer) -> tuple[Row, Row | None]:
    """Return the row of a template, and that of its files unless it has none."""
    now = rows.now()
    files, digest = None, None
    if template.files:
        text = rows.dump_document(dict(sorted(template.files.items())))
        digest = hashlib.sha256(text.encode()).hexdigest()
        files = {"digest": digest, "files": text, "created_at": now}
    environment = {
        name: sealer.seal_text(rows.dump_document(part)) if name in _SEALED_PARTS else part
        for name, part in template.environment.items()
    }
    row = {
        "uuid": template.uuid,
        "template": _encode(template.template, sealer, hidden=template.has_secret),
        "environment": rows.dump_document(environment),
        "files_digest": digest,
        "sealed": template.has_secret,
        "text": template.text and _sealed(template.text, sealer, hidden=template.has_secret),
        "created_at": now,
    }
    return row, files


def decode_template(row: sa.Row[Any], sealer: Sealer) -> Template:
    """Return the template of a row with the columns of raw_templates and ``files``."""
    environment = rows.load_document(row.environment)
    for name in _SEALED_PARTS:
        if name in environment:
            environment[name] = rows.load_document(sealer.open_text(environment[name]))
    return Template(
        uuid=row.uuid,
        template=_decode(row.template, sealer, sealed=row.sealed),
        environment=environment,
        files=rows.load_document(row.files) if row.files else {},
        has_secret=row.sealed,
        text=row.text and (sealer.open_text(row.text) if row.sealed else row.text),
    )


def _encode(value: Any, sealer: Sealer, *, hidden: bool) -> str:
    if not value:
        return _EMPTY
    return _sealed(rows.dump_document(value), sealer, hidden=hidden)


def _sealed(text: str, sealer: Sealer, *, hidden: bool) -> str:
    return sealer.seal_text(text) if hidden else text


def _decode(text: str, sealer: Sealer, *, sealed: bool) -> Any:
    if text == _EMPTY:
        return {}
    return rows.load_document(sealer.open_text(text) if sealed else text)


# --------------------------------------------------------------------------------------- stacks


def encode_stack(stack: Stack) -> Row:
    """Return the row of a stack; its tags have rows of their own."""
    row = {name: getattr(stack, name) for name in STACK_COLUMNS}
    lives_as_root = stack.owner_uuid is None and stack.deleted_at is None
    row["live_name"] = f"{stack.project}/{stack.name}" if lives_as_root else None
    row["reason"] = storable(stack.reason)
    row["graph"] = None if stack.graph is None else rows.dump_document(stack.graph)
    return row


def storable(reason: str) -> str:
    """Return a sentence as every database takes it: no NUL, no half of a pair, 64 KiB at most."""
    if reason.isascii() and "\0" not in reason and len(reason) <= MOST_REASON_BYTES:
        return reason
    text = reason.replace("\0", "\ufffd").encode(errors="replace")
    return text[:MOST_REASON_BYTES].decode(errors="ignore")


def decode_stack(row: sa.Row[Any], tags: tuple[str, ...]) -> Stack:
    values = {name: getattr(row, name) for name in STACK_COLUMNS}
    graph = None if row.graph is None else rows.load_document(row.graph)
    return Stack(**values, graph=graph, tags=tags)


# ------------------------------------------------------------------------------------ resources


def encode_resource(resource: StoredResource, sealer: Sealer) -> Row:
    """Return the row of a resource; its data have rows of their own."""
    row = {name: getattr(resource, name) for name in _RESOURCE_COLUMNS}
    row["action"], row["status"] = str(resource.action), str(resource.status)
    row["reason"] = storable(resource.reason)
    row["previous_properties_uuid"] = resource.previous_properties_uuid
    row["policy"] = rows.dump_document(resource.policy) if resource.policy else _EMPTY
    row["metadata"] = _encode(resource.metadata, sealer, hidden=resource.has_secret)
    row["requires"] = rows.dump(resource.requires) if resource.requires else _EMPTY_LIST
    action = resource.pending_action
    row["pending_action"] = action and _encode(
        action.document(), sealer, hidden=resource.has_secret
    )
    row["sealed"] = resource.has_secret
    return row


def encode_data(resource: StoredResource, sealer: Sealer) -> list[Row]:
    """Return the rows of a resource's data; values that may contain a hidden one are sealed."""
    secret = resource.data.keys() if resource.has_secret else resource.redacted
    texts = {key: rows.dump_document(value) for key, value in resource.data.items()}
    return [
        {
            "resource_uuid": resource.uuid,
            "key": key,
            "value": sealer.seal_text(text) if key in secret else text,
            "redacted": key in secret,
        }
        for key, text in texts.items()
    ]


def decode_data(row: sa.Row[Any], sealer: Sealer) -> Any:
    """Return the value in a row of resource_data."""
    return rows.load_document(sealer.open_text(row.value) if row.redacted else row.value)


def decode_resource(
    row: sa.Row[Any], data: dict[str, Any], redacted: set[str], sealer: Sealer
) -> StoredResource:
    action = row.pending_action and _decode(row.pending_action, sealer, sealed=row.sealed)
    return StoredResource(
        **{name: getattr(row, name) for name in _RESOURCE_COLUMNS} | decoded_state(row),
        policy=_decode(row.policy, sealer, sealed=False),
        metadata=_decode(row.metadata, sealer, sealed=row.sealed),
        pending_action=action and ResourceAction.of(action),
        data=data,
        redacted=redacted,
        has_secret=row.sealed,
    )


def decoded_state(row: sa.Row[Any]) -> dict[str, Any]:
    """Return the fields of a listed resource whose columns are encoded."""
    return {
        "action": Action(row.action),
        "status": Status(row.status),
        "requires": tuple(rows.load(row.requires)) if row.requires != _EMPTY_LIST else (),
    }


def encode_properties(properties: Properties, sealer: Sealer) -> Row:
    return {
        "uuid": properties.uuid,
        "root_uuid": properties.root_uuid,
        "data": _encode(properties.data, sealer, hidden=properties.has_secret),
        "sealed": properties.has_secret,
        "created_at": rows.now(),
    }


def decode_properties(row: sa.Row[Any], sealer: Sealer) -> Properties:
    """Return the properties of a row with the columns of properties_data."""
    return Properties(
        uuid=row.uuid,
        root_uuid=row.root_uuid,
        data=_decode(row.data, sealer, sealed=row.sealed),
        has_secret=row.sealed,
    )


# --------------------------------------------------------------------------------------- events


def encode_event(event: Event) -> Row:
    """Return the row of an event of a stack or a resource."""
    return {
        "uuid": event.uuid,
        "stack_uuid": event.stack_uuid,
        "root_uuid": event.root_uuid,
        "created_at": event.created_at,
        "action": event.action,
        "status": event.status,
        "name": event.name,
        "type": event.type,
        "physical_id": event.physical_id,
        "reason": storable(event.reason)[:MOST_EVENT_REASON],
        "properties_uuid": event.properties_uuid,
    }


# ------------------------------------------------------------------------------------ snapshots


def encode_snapshot_end(snapshot: Snapshot, sealer: Sealer) -> Row:
    """Return how a snapshot ended, as the change of its row; its data are sealed."""
    return {
        "ident": snapshot.uuid,
        "to_status": snapshot.status,
        "to_reason": storable(snapshot.reason),
        "to_data": sealer.seal_text(rows.dump_document(snapshot.data)),
    }
