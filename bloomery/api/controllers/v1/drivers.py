"""Drivers: /v1/drivers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import endpoint
from bloomery.api.routing import Rest
from bloomery.operations import drivers

FIELDS: Final = {"fields": Arg(arguments.words, since=77)}
LIST: Final = {
    **FIELDS,
    "type": Arg(arguments.text, since=30),
    "detail": Arg(arguments.boolean, since=30),
}


class Properties(Rest):
    @endpoint(rule="baremetal:driver:get_properties")
    def get(self, call: Call, driver: str) -> dict[str, Any]:
        return drivers.properties(call.context, driver)


class Drivers(Rest):
    since: ClassVar[int] = 1
    subresources: ClassVar[Mapping[str, Rest]] = {"properties": Properties()}

    @endpoint(rule="baremetal:driver:get", query=LIST)
    def get_all(self, call: Call, **asked: Any) -> dict[str, Any]:
        return drivers.show(
            call.context,
            kind=asked.get("type"),
            detail=asked.get("detail"),
            fields=asked.get("fields"),
        )

    @endpoint(rule="baremetal:driver:get", query=FIELDS)
    def get_one(
        self,
        call: Call,
        driver: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        return drivers.one(call.context, driver, fields)
