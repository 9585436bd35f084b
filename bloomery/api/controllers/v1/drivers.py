"""Drivers: /v1/drivers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import conductors as views
from bloomery.api.views import projection
from bloomery.operations import conductors

FIELDS: Final = {"fields": Arg(arguments.words, since=77)}
LIST: Final = {
    **FIELDS,
    "type": Arg(arguments.text, since=30),
    "detail": Arg(arguments.boolean, since=30),
}


class Properties(Rest):
    @endpoint(rule="baremetal:driver:get_properties")
    def get(self, call: Call, driver: str) -> dict[str, Any]:
        return conductors.get_driver_properties(call.context, driver)


class Drivers(Rest):
    since: ClassVar[int] = 1
    subresources: ClassVar[Mapping[str, Rest]] = {"properties": Properties()}

    @endpoint(rule="baremetal:driver:get", query=LIST)
    def get_all(self, call: Call, **asked: Any) -> dict[str, Any]:
        """Return every driver; classic ones there are none."""
        kind, detail, fields = asked.get("type"), asked.get("detail"), asked.get("fields")
        views.check_driver_type(call, kind, detail=detail)
        projection.refuse_both(fields, detail=detail)
        views.check_driver_fields(call, fields)
        drivers = [] if kind == "classic" else conductors.list_drivers(call.context)
        return {
            "drivers": [views.driver(call, each, fields, detail=bool(detail)) for each in drivers]
        }

    @endpoint(rule="baremetal:driver:get", query=FIELDS)
    def get_one(
        self,
        call: Call,
        driver: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        views.check_driver_fields(call, fields)
        return views.driver(call, conductors.get_driver(call.context, driver), fields)
