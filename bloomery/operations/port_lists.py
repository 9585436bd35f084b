"""Lists of ports: filters, order, pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import ports as db
from bloomery.model import port as model
from bloomery.model.rules import attributes, idents
from bloomery.operations import documents, lookup, paging, ports
from bloomery.operations.context import Context

Json = dict[str, Any]

DEFAULT: Final = ("uuid", "address")
ONE_PARENT: Final = ("node", "portgroup", "shard")  # at most one of them
NOT_WITH_GROUPS: Final = ("node", "node_uuid", "portgroup", "address")


def show(
    ctx: Context,
    asked: Mapping[str, Any],
    *,
    detail: bool = False,
    path: str = "ports",
) -> Json:
    """Return one page of ports; see ``node_lists.show``."""
    fields = _fields(ctx, asked, detail=detail)
    serializer = ports.Serializer(ctx, fields)
    page = paging.read(ctx, asked, model.FIELDS)
    query = _query(ctx, asked, page, serializer.columns)
    with ctx.services.db.read() as conn:
        rows = db.list_rows(conn, query)
    found: Json = {"ports": [serializer.write(row) for row in rows]}
    if page.is_full(len(rows)):
        last = rows[-1][serializer.columns.index("uuid")]
        found["next"] = paging.next_url(
            ctx,
            path,
            page,
            last,
            detail=asked.get("detail"),
            fields=fields,
        )
    return found


def of_node(ctx: Context, ident: str, asked: Mapping[str, Any], *, detail: bool = False) -> Json:
    """Return the ports of one node, named by UUID only.

    A name, or an unknown node, gets the words that the reference has for it.
    """
    try:
        known = idents.is_uuid(ident) and lookup.uuid_of(ctx, ident)
    except errors.NodeNotFound:
        known = None
    if not known:
        raise errors.PortgroupNotFound(portgroup=None)
    path = "ports/detail" if detail else "ports"
    return show(ctx, dict(asked) | {"node_uuid": known}, detail=detail, path=path)


def _fields(ctx: Context, asked: Mapping[str, Any], *, detail: bool) -> tuple[str, ...] | None:
    fields = asked.get("fields")
    documents.refuse_both(fields, detail=detail or asked.get("detail"))
    if fields is not None:
        documents.check_fields(fields, model.FIELDS, ctx.version, also=ports.ALSO_ASKED)
        return tuple(fields)
    return None if detail or asked.get("detail") else DEFAULT


def _query(
    ctx: Context,
    asked: Mapping[str, Any],
    page: paging.Page,
    columns: tuple[str, ...],
) -> db.Query:
    _check_combination(asked)
    attributes.check_text("description_contains", asked.get("description_contains"))
    equal: Json = {}
    if ports.asked_node(asked):
        equal["node_uuid"] = lookup.uuid_of(ctx, str(ports.asked_node(asked)))
    if "portgroup" in asked:
        equal["portgroup_uuid"] = _group_uuid(ctx, asked["portgroup"])
    if "address" in asked:
        equal["address"] = idents.mac(asked["address"])
    return db.Query(
        columns=columns,
        equal=equal,
        shards=asked.get("shard"),
        conductor_groups=asked.get("conductor_groups"),
        description_contains=asked.get("description_contains"),
        sort_key=page.sort_key,
        descending=page.descending,
        marker=page.marker,
        limit=page.limit,
    )


def _group_uuid(ctx: Context, ident: str) -> str:
    with ctx.services.db.read() as conn:
        found = db.find_group_uuid(conn, ident)
    if found is None:
        raise errors.PortgroupNotFound(portgroup=ident)
    return found


def _check_combination(asked: Mapping[str, Any]) -> None:
    if sum(name in asked for name in ONE_PARENT) > 1:
        raise errors.OperationNotPermitted(
            reason=f"give at most one of the filters {', '.join(ONE_PARENT)}",
        )
    if "conductor_groups" in asked and any(name in asked for name in NOT_WITH_GROUPS):
        raise errors.InvalidParameterValue(
            reason=f"conductor_groups does not go with {', '.join(NOT_WITH_GROUPS)}",
        )
