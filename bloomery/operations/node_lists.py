"""Lists of nodes: filters, order, pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.db import nodes as db
from bloomery.model import node as model
from bloomery.model.rules import attributes
from bloomery.operations import documents, lookup, node_documents, node_values, paging
from bloomery.operations.context import Context

Json = dict[str, Any]

FAULTS: Final = ("power failure", "clean failure", "rescue abort failure", "service failure")
EQUAL: Final = (
    "instance_uuid", "maintenance", "retired", "provision_state", "driver", "resource_class",
    "fault", "conductor_group", "owner", "lessee", "chassis_uuid", "instance_name",
)  # fmt: skip
IN_NEXT: Final = ("associated", "maintenance", "retired")  # filters that the next link repeats
NEVER_SORTED: Final = frozenset({"chassis_uuid", "allocation_uuid"})


def show(
    ctx: Context,
    asked: Mapping[str, Any],
    *,
    detail: bool = False,
    path: str = "nodes",
) -> Json:
    """Return one page of nodes.

    ``asked``: filters, paging, ``fields`` and ``detail`` as the client gave them, parsed.
    ``detail`` and ``path`` are those of /nodes/detail, which repeats neither in ``next``.
    """
    fields = _fields(ctx, asked, detail=detail)
    placed = asked.get("conductor") is not None
    serializer = node_documents.Serializer(ctx, fields, parts=fields is None, placed=placed)
    page = paging.read(ctx, asked, model.FIELDS, never=NEVER_SORTED)
    query = _query(ctx, asked, page, serializer.columns)
    with ctx.services.db.read() as conn:
        rows = db.list_rows(conn, query)
    write = serializer.write
    found: Json = {
        "nodes": _of_conductor(ctx, asked, rows, serializer, [write(row) for row in rows])
    }
    if page.is_full(len(rows)):
        last = rows[-1][serializer.columns.index("uuid")]
        found["next"] = _next(ctx, asked, page, last, path, fields)
    return found


def _fields(ctx: Context, asked: Mapping[str, Any], *, detail: bool) -> tuple[str, ...] | None:
    """Return the fields to show; None: all."""
    fields = asked.get("fields")
    documents.refuse_both(fields, detail=detail or asked.get("detail"))
    if fields is not None:
        node_documents.check_fields(ctx, fields)
        return tuple(fields)
    return None if detail or asked.get("detail") else node_documents.DEFAULT


def _query(
    ctx: Context,
    asked: Mapping[str, Any],
    page: paging.Page,
    columns: tuple[str, ...],
) -> db.Query:
    _check_filters(asked)
    attributes.check_text("description_contains", asked.get("description_contains"))
    equal = {name: asked[name] for name in EQUAL if name in asked}
    if "chassis_uuid" in equal:
        _check_chassis(ctx, equal["chassis_uuid"])
    if "parent_node" in asked:
        equal["parent_node"] = _parent(ctx, asked["parent_node"])
    return db.Query(
        columns=columns,
        equal=equal,
        among={"shard": asked["shard"]} if "shard" in asked else {},
        associated=asked.get("associated"),
        project=asked.get("project"),
        description_contains=asked.get("description_contains"),
        sharded=asked.get("sharded"),
        include_children=bool(asked.get("include_children")) or "parent_node" in asked,
        sort_key=page.sort_key,
        descending=page.descending,
        marker=page.marker,
        limit=page.limit,
    )


def _check_filters(asked: Mapping[str, Any]) -> None:
    state = asked.get("provision_state")
    if state is not None and state not in set(State):
        raise errors.InvalidParameterValue(
            reason=f'Provision state "{state}" is not valid; '
            f"allowed are {', '.join(sorted(State))}",
        )
    fault = asked.get("fault")
    if fault is not None and fault not in FAULTS:
        raise errors.InvalidParameterValue(
            reason=f'Unrecognized fault "{fault}" is specified, allowed faults are {FAULTS}',
        )


def _check_chassis(ctx: Context, uuid: str) -> None:
    try:
        node_values.check_chassis(ctx, uuid)
    except errors.InvalidParameterValue:
        raise errors.ChassisNotFound(chassis=uuid) from None


def _parent(ctx: Context, ident: str) -> str:
    """Return the UUID of the parent asked for; children of an unknown node are none."""
    try:
        return lookup.uuid_of(ctx, ident)
    except errors.NodeNotFound:
        return ident


def _of_conductor(
    ctx: Context,
    asked: Mapping[str, Any],
    rows: Any,
    serializer: node_documents.Serializer,
    found: list[Json],
) -> list[Json]:
    """Keep the nodes that one conductor serves: asked of the page, not of the table."""
    wanted = asked.get("conductor")
    if wanted is None:
        return found
    at = {name: serializer.columns.index(name) for name in node_documents.PLACE}
    find = ctx.services.rpc.ring.find_host
    return [
        one
        for one, row in zip(found, rows, strict=True)
        if wanted
        == find(
            driver=row[at["driver"]],
            group=row[at["conductor_group"]],
            uuid=row[at["uuid"]],
        )
    ]


def _next(
    ctx: Context,
    asked: Mapping[str, Any],
    page: paging.Page,
    last: str,
    path: str,
    fields: tuple[str, ...] | None,
) -> str:
    filters = {name: True for name in IN_NEXT if asked.get(name)}
    return paging.next_url(
        ctx,
        path,
        page,
        last,
        **filters,
        detail=asked.get("detail"),
        fields=fields,
    )


def children(ctx: Context, ident: str) -> Json:
    """Return the UUIDs of the nodes below one."""
    uuid = lookup.uuid_of(ctx, ident)
    query = db.Query(columns=("uuid",), equal={"parent_node": uuid})
    with ctx.services.db.read() as conn:
        found = [row.uuid for row in db.list_rows(conn, query)]
    link = {"href": f"{ctx.url}/v1/nodes?parent_node={ident}", "rel": "children"}
    return {"children": found, "links": link}
