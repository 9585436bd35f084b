"""/v1/nodes/<ident>/management: the boot device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import endpoint
from bloomery.api.routing import Rest
from bloomery.operations import management

BOOT_DEVICE: Final = {
    "boot_device": Arg(arguments.text, required=True),
    "persistent": Arg(arguments.boolean),
}


class Supported(Rest):
    @endpoint(rule="baremetal:node:get_boot_device")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return management.supported_boot_devices(call.context, node)


class BootDevice(Rest):
    children: ClassVar[Mapping[str, Rest]] = {"supported": Supported()}

    @endpoint(rule="baremetal:node:get_boot_device")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return management.boot_device(call.context, node)

    @endpoint(rule="baremetal:node:set_boot_device", status=204, named=BOOT_DEVICE)
    def put(self, call: Call, node: str, *, boot_device: str, persistent: bool = False) -> None:
        management.set_boot_device(call.context, node, boot_device, persistent=persistent)


class Management(Rest):
    children: ClassVar[Mapping[str, Rest]] = {"boot_device": BootDevice()}
