"""/v1/nodes/<ident>/management and /vifs: boot device, NMI, lights, virtual interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.controllers.v1 import node_hardware
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import node as schemas
from bloomery.api.views import nodes as views
from bloomery.model.rules import idents
from bloomery.operations import management

VIFS_SINCE: Final = 28
BOOT_DEVICE: Final = {
    "boot_device": Arg(arguments.text, required=True),
    "persistent": Arg(arguments.boolean_or_null),
}


class Supported(Rest):
    @endpoint(rule="baremetal:node:get_boot_device")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        devices = management.list_boot_devices(call.context, views.known_ident(call, node))
        return {"supported_boot_devices": devices}


class BootDevice(Rest):
    children: ClassVar[Mapping[str, Rest]] = {"supported": Supported()}

    @endpoint(rule="baremetal:node:get_boot_device")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return management.get_boot_device(call.context, views.known_ident(call, node))

    @endpoint(rule="baremetal:node:set_boot_device", status=204, named=BOOT_DEVICE)
    def put(
        self, call: Call, node: str, *, boot_device: str, persistent: bool | None = None
    ) -> None:
        ident = views.known_ident(call, node)
        management.set_boot_device(call.context, ident, boot_device, persistent=bool(persistent))


class Management(Rest):
    children: ClassVar[Mapping[str, Rest]] = {
        "boot_device": BootDevice(),
        "inject_nmi": node_hardware.InjectNmi(),
        "indicators": node_hardware.Indicators(),
    }


class Vifs(Rest):
    @endpoint(rule="baremetal:node:vif:list", since=VIFS_SINCE)
    def get_all(self, call: Call, node: str) -> dict[str, Any]:
        return {"vifs": management.list_vifs(call.context, node)}

    @endpoint(rule="baremetal:node:vif:attach", status=204, since=VIFS_SINCE, body=schemas.VIF)
    def post(self, call: Call, node: str, *, body: dict[str, Any]) -> None:
        management.attach_vif(call.context, node, body)

    @endpoint(rule="baremetal:node:vif:detach", status=204, since=VIFS_SINCE)
    def delete(self, call: Call, node: str, vif: str) -> None:
        management.detach_vif(call.context, node, idents.check_ident("vif_id", vif))
