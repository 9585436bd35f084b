"""What was found out: /v1/nodes/<ident>/bios, /firmware and /inventory."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import endpoint
from bloomery.api.routing import Rest
from bloomery.operations import hardware

BIOS_SINCE: Final = 40
BIOS_DETAIL_SINCE: Final = 74
FIRMWARE_SINCE: Final = 86
INVENTORY_SINCE: Final = 81
BIOS_LIST: Final = {
    "detail": Arg(arguments.boolean, since=BIOS_DETAIL_SINCE),
    "fields": Arg(arguments.words, since=BIOS_DETAIL_SINCE),
}
FIRMWARE_LIST: Final = {"fields": Arg(arguments.words)}


class Bios(Rest):
    @endpoint(rule="baremetal:node:bios:get", since=BIOS_SINCE, query=BIOS_LIST)
    def get_all(
        self,
        call: Call,
        node: str,
        *,
        detail: bool | None = None,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        return hardware.bios(call.context, node, detail=detail, fields=fields)

    @endpoint(rule="baremetal:node:bios:get", since=BIOS_SINCE)
    def get_one(self, call: Call, node: str, setting: str) -> dict[str, Any]:
        return hardware.bios_setting(call.context, node, setting)


class Firmware(Rest):
    @endpoint(rule="baremetal:node:firmware:get", since=FIRMWARE_SINCE, query=FIRMWARE_LIST)
    def get(
        self,
        call: Call,
        node: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        return hardware.firmware(call.context, node, fields)


class Inventory(Rest):
    @endpoint(rule="baremetal:node:inventory:get", since=INVENTORY_SINCE)
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return hardware.inventory(call.context, node)
