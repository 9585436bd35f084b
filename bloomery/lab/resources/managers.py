"""/Managers: the BMCs themselves, their restart, and the virtual media that they offer."""

from __future__ import annotations

import time
from typing import Final

from bloomery.lab.bmc import Bmc
from bloomery.lab.refusal import Rule, checked, missing, needed
from bloomery.lab.routing import (
    HEALTHY,
    NO_CONTENT,
    Answer,
    Ask,
    actions,
    collection,
    ref,
    route,
    stamp,
)

_RESETS: Final = ["GracefulRestart", "ForceRestart"]
_INSERT: Final[dict[str, Rule]] = {
    "Image": str, "Inserted": bool, "WriteProtected": bool, "UserName": str, "Password": str,
    "TransferMethod": str, "TransferProtocolType": str, "MediaType": str,
}  # fmt: skip


@route("GET", "/Managers/*")
def show(bmc: Bmc, ask: Ask, ident: str) -> Answer:
    system, path = bmc.system(ident), f"/Managers/{ident}"
    return {
        "@odata.type": "#Manager.v1_9_0.Manager",
        "Id": ident, "Name": f"BMC of {system.name}", "ManagerType": "BMC", "UUID": ident,
        "FirmwareVersion": system.firmware["BMC"], "Model": "Lab BMC", "Status": HEALTHY,
        "PowerState": "On", "DateTime": stamp(time.time()),
        "VirtualMedia": ref(f"{path}/VirtualMedia"),
        "Links": {
            "ManagerForServers": [ref(f"/Systems/{ident}")],
            "ManagerForChassis": [ref(f"/Chassis/{ident}")],
        },
        "Actions": actions(path, Manager_Reset={"ResetType@Redfish.AllowableValues": _RESETS}),
    }  # fmt: skip


@route("POST", "/Managers/*/Actions/Manager.Reset")
def reset(bmc: Bmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    needed(checked(ask.body, {"ResetType": _RESETS}), "ResetType")
    system.bmc_back_at = time.monotonic() + bmc.rules.restart_s
    if len(bmc.systems) == 1:  # else other machines' callers have their sessions here, too
        with bmc.lock:
            bmc.sessions.clear()
    return NO_CONTENT


@route("GET", "/Managers/*/VirtualMedia")
def list_media(bmc: Bmc, ask: Ask, ident: str) -> Answer:
    path = f"/Managers/{ident}/VirtualMedia"
    return collection(path, "VirtualMedia", list(bmc.system(ident).media))


@route("GET", "/Managers/*/VirtualMedia/*")
def show_media(bmc: Bmc, ask: Ask, ident: str, device: str) -> Answer:
    system, path = bmc.system(ident), f"/Managers/{ident}/VirtualMedia/{device}"
    if device not in system.media:
        raise missing(device)
    url = system.media[device]
    return {
        "@odata.type": "#VirtualMedia.v1_3_0.VirtualMedia",
        "Id": device, "Name": "Virtual CD", "MediaTypes": ["CD", "DVD"],
        "Image": url, "ImageName": url.rsplit("/", 1)[-1] if url else None,
        "Inserted": bool(url), "ConnectedVia": "URI" if url else "NotConnected",
        "WriteProtected": True, "TransferProtocolType": None,
        "Actions": actions(path, VirtualMedia_InsertMedia={}, VirtualMedia_EjectMedia={}),
    }  # fmt: skip


@route("POST", "/Managers/*/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia")
def insert(bmc: Bmc, ask: Ask, ident: str) -> Answer:
    bmc.system(ident).insert(needed(checked(ask.body, _INSERT), "Image"))
    return NO_CONTENT


@route("POST", "/Managers/*/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia")
def eject(bmc: Bmc, ask: Ask, ident: str) -> Answer:
    bmc.system(ident).eject()
    return NO_CONTENT
