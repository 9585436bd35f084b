"""Calls of the handlers that resources have for the restore and the deletion of snapshots.

Handlers are called before anything is written.  If the process dies in between, the snapshot is
unchanged and the request can be repeated, so handlers must be idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import snapshots as db
from bloomery.db import stacks
from bloomery.model.stacks import Stack, StoredResource
from bloomery.orchestration import stack as definition
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StackMember, StoredStack
from bloomery.orchestration.resources import base
from bloomery.orchestration.template.dialect import Key, Section
from bloomery.orchestration.template.functions.base import Function

PARTS: Final[Mapping[Key, str]] = {
    Key.TYPE: "type",
    Key.PROPERTIES: "properties",
    Key.METADATA: "metadata",
    Key.UPDATE_POLICY: "update_policy",
}


# --------------------------------------------------------------------------------------- restore


def restored_document(
    ctx: StackContext, row: Stack, new: definition.Stack, data: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the template of a snapshot as ``handle_restore`` rewrites it; None: unchanged.

    ``new``: the stack of that template; ``data``: the data of the snapshot.  Raises NotSupported
    if a handler fails.
    """
    rewritten: dict[str, dict[str, Any]] = {}
    stored, template = StoredStack(ctx, row), new.definition.template
    keys = template.features.resource_keys
    for name, entry in _entries(data):
        before = new.definitions.get(name)
        if before is None or new.kind(name).handle_restore is base.Resource.handle_restore:
            continue
        resource = _resource(stored, new.kind(name), name, entry)
        after = _asked(stored, name, resource.handle_restore, before, entry)
        if after != before:
            rewritten[name] = {
                keys[key]: _plain(getattr(after, part))
                for key, part in PARTS.items()
                if key in keys and getattr(before, part) != getattr(after, part)
            }
    if not rewritten:
        return None
    bodies = template.section(Section.RESOURCES)
    changed = {name: {**body, **rewritten.get(name, {})} for name, body in bodies.items()}
    return {**template.document, template.section_name(Section.RESOURCES): changed}


def _plain(tree: Any) -> Any:
    if isinstance(tree, Function):
        return {tree.name: _plain(tree.args)}
    if isinstance(tree, Mapping):
        return {key: _plain(value) for key, value in tree.items()}
    return [_plain(item) for item in tree] if isinstance(tree, list | tuple) else tree


# -------------------------------------------------------------------------------------- deletion


def clean_all(ctx: StackContext, row: Stack) -> None:
    """Call ``clean`` for each snapshot of a stack that is deleted."""
    with ctx.services.db.read() as conn:
        snapshots = db.list_of_stack(conn, row.uuid, ctx.sealer)
    for each in snapshots:
        clean(ctx, row, each.data or {})


def clean(ctx: StackContext, row: Stack, data: Mapping[str, Any]) -> None:
    """Call ``handle_delete_snapshot`` of the resources in a snapshot, also in child stacks.

    Raises NotSupported if a handler fails; the snapshot must then be kept.
    """
    stored = StoredStack(ctx, row)
    for name, entry in _entries(data):
        member = stored.member(name)
        if member is None:
            continue
        if entry.get("resources") and member.row.physical_id is not None:
            with ctx.services.db.read() as conn:
                child = stacks.find(conn, member.row.physical_id)
            if child is not None and child.owner_uuid == row.uuid and child.deleted_at is None:
                clean(ctx, child, entry)
        if hasattr(_kind(member), "handle_delete_snapshot"):
            handler = member.resource().handle_delete_snapshot  # type: ignore[attr-defined]  # optional
            _asked(stored, name, handler, entry.get("resource_data") or {})


def _kind(member: StackMember) -> type[base.Resource] | None:
    try:
        return member.kind
    except errors.Failure:
        return None


# ----------------------------------------------------------------------------------- what is asked


def _entries(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, entry in (data.get("resources") or {}).items():
        if isinstance(entry, Mapping):
            yield name, entry


def _resource(
    stored: StoredStack, kind: type[base.Resource], name: str, entry: Mapping[str, Any]
) -> base.Resource:
    member = stored.member(name)
    record = StoredResource(
        name=name,
        type=str(entry.get("type")),
        uuid=stored.ctx.runtime.new_id() if member is None else member.row.uuid,
        physical_id=entry.get("resource_id"),
        metadata=dict(entry.get("metadata") or {}),
        data=dict(entry.get("resource_data") or {}),
    )
    return kind(record, {} if member is None else member.row.properties, stored.context())


def _asked(stored: StoredStack, name: str, handler: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return handler(*arguments)
    except Exception as exc:
        text = stored.definition.definition.redaction.masked(f"{type(exc).__name__}: {exc}")
        raise errors.NotSupported(
            feature=f"This, which resource {name} refused ({errors.shortened(text)}),"
        ) from exc
