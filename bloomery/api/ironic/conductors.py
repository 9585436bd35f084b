"""Conductors, their drivers, and shards: /v1/conductors, /v1/drivers and /v1/shards."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api import arguments, versions
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call
from bloomery.api.views import conductors as views
from bloomery.api.views import pagination, projection
from bloomery.model import conductor as model
from bloomery.model.fields import selectable
from bloomery.operations import conductors, nodes

FIELDS: Final = arguments.fields(selectable(model.FIELDS, also=views.LINKS))
LIST: Final = {
    **arguments.paging(model.FIELDS),
    **FIELDS,
    "marker": Arg(arguments.text),
    "detail": Arg(arguments.boolean),
}
DRIVER_FIELDS: Final = arguments.fields(views.driver_fields(versions.MAX), since=77)
DRIVER_LIST: Final = {
    **DRIVER_FIELDS,
    "type": Arg(arguments.text, since=30, form={"enum": list(views.TYPES)}),
    "detail": Arg(arguments.boolean, since=30),
}


def list_conductors(call: Call, **query: Any) -> dict[str, Any]:
    page = pagination.read(call, query, model.FIELDS)
    fields = views.listed_fields(query)
    return views.list_document(call, query, page, conductors.list_page(call.context, page), fields)


def get_conductor(
    call: Call, hostname: str, *, fields: tuple[str, ...] | None = None
) -> dict[str, Any]:
    names = views.DETAIL if fields is None else fields
    projection.check_fields(names, model.FIELDS, call.version, also=views.LINKS)
    return views.document(call, conductors.get(call.context, hostname), names)


def list_drivers(call: Call, **query: Any) -> dict[str, Any]:
    """List all drivers; no classic driver exists."""
    kind, detail, fields = query.get("type"), query.get("detail"), query.get("fields")
    views.check_driver_type(call, kind, detail=detail)
    projection.refuse_both(fields, detail=detail)
    views.check_driver_fields(call, fields)
    drivers = [] if kind == "classic" else conductors.list_drivers(call.context)
    return {"drivers": [views.driver(call, each, fields, detail=bool(detail)) for each in drivers]}


def get_driver(call: Call, driver: str, *, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
    views.check_driver_fields(call, fields)
    return views.driver(call, conductors.get_driver(call.context, driver), fields)


def get_driver_properties(call: Call, driver: str) -> dict[str, Any]:
    return conductors.get_driver_properties(call.context, driver)


def get_logical_disk_properties(call: Call, driver: str) -> dict[str, Any]:
    return conductors.get_raid_logical_disk_properties(call.context, driver)


def count_shards(call: Call) -> dict[str, Any]:
    """Count nodes by shard; as in Ironic, nodes without a shard count under the text ``None``."""
    counts = nodes.count_by_shard(call.context)
    return {"shards": [{"name": str(shard), "count": count} for shard, count in counts]}
