"""Conductors and their drivers: /v1/conductors and /v1/drivers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.controllers.v1 import vendor_passthru
from bloomery.api.declare import Call, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import conductors as views
from bloomery.api.views import pagination, projection
from bloomery.model import conductor as model
from bloomery.operations import conductors

SINCE: Final = 49
RAID_SINCE: Final = 12
FIELDS: Final = {"fields": Arg(arguments.words)}
LIST: Final = {
    **arguments.PAGING,
    **FIELDS,
    "marker": Arg(arguments.text),
    "detail": Arg(arguments.boolean),
}
DRIVER_FIELDS: Final = {"fields": Arg(arguments.words, since=77)}
DRIVER_LIST: Final = {
    **DRIVER_FIELDS,
    "type": Arg(arguments.text, since=30),
    "detail": Arg(arguments.boolean, since=30),
}


class Conductors(Rest):
    since = SINCE

    @endpoint(rule="baremetal:conductor:get", since=SINCE, too_old=TooOld.NOT_FOUND, query=LIST)
    def get_all(self, call: Call, **query: Any) -> dict[str, Any]:
        page = pagination.read(call, query, model.FIELDS)
        shown = views.listed_fields(query)
        return views.list_document(
            call, query, page, conductors.list_page(call.context, page), shown
        )

    @endpoint(rule="baremetal:conductor:get", since=SINCE, too_old=TooOld.NOT_FOUND, query=FIELDS)
    def get_one(
        self,
        call: Call,
        hostname: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        shown = views.DETAIL if fields is None else fields
        projection.check_fields(shown, model.FIELDS, call.version, also=views.ALSO_ASKED)
        return views.document(call, conductors.get(call.context, hostname), shown)


class Properties(Rest):
    @endpoint(rule="baremetal:driver:get_properties")
    def get(self, call: Call, driver: str) -> dict[str, Any]:
        return conductors.get_driver_properties(call.context, driver)


class LogicalDiskProperties(Rest):
    @endpoint(
        rule="baremetal:driver:get_raid_logical_disk_properties",
        since=RAID_SINCE,
        too_old=TooOld.NOT_ACCEPTABLE,
    )
    def get(self, call: Call, driver: str) -> dict[str, Any]:
        return conductors.get_raid_logical_disk_properties(call.context, driver)


class Raid(Rest):
    """A path without methods of its own."""

    children: ClassVar[Mapping[str, Rest]] = {"logical_disk_properties": LogicalDiskProperties()}


class Drivers(Rest):
    since = 1
    subresources: ClassVar[Mapping[str, Rest]] = {
        "properties": Properties(),
        "raid": Raid(),
        "vendor_passthru": vendor_passthru.DriverPassthru(),
    }

    @endpoint(rule="baremetal:driver:get", query=DRIVER_LIST)
    def get_all(self, call: Call, **query: Any) -> dict[str, Any]:
        """List all drivers; no classic driver exists."""
        kind, detail, fields = query.get("type"), query.get("detail"), query.get("fields")
        views.check_driver_type(call, kind, detail=detail)
        projection.refuse_both(fields, detail=detail)
        views.check_driver_fields(call, fields)
        drivers = [] if kind == "classic" else conductors.list_drivers(call.context)
        return {
            "drivers": [views.driver(call, each, fields, detail=bool(detail)) for each in drivers]
        }

    @endpoint(rule="baremetal:driver:get", query=DRIVER_FIELDS)
    def get_one(
        self,
        call: Call,
        driver: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        views.check_driver_fields(call, fields)
        return views.driver(call, conductors.get_driver(call.context, driver), fields)
