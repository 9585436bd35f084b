"""/Managers: the BMCs, their restart, and their virtual media."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.refusal import Refusal, Rule, checked, missing, needed
from bloomery.lab.resources import logs, updates
from bloomery.lab.routing import (
    HEALTHY,
    NO_CONTENT,
    Answer,
    Ask,
    Json,
    actions,
    ref,
    route,
    route_lists,
    stamp,
)
from bloomery.lab.system import System

_RESETS: Final = ["GracefulRestart", "ForceRestart"]
_INSERT: Final[dict[str, Rule]] = {
    "Image": str, "Inserted": bool, "WriteProtected": bool, "UserName": str, "Password": str,
    "TransferMethod": str, "TransferProtocolType": str, "MediaType": str,
}  # fmt: skip

route_lists(("/Managers/*/VirtualMedia", "VirtualMedia", lambda system: system.media))


@route("GET", "/Managers/*")
def show(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system, path = bmc.system(ident), f"/Managers/{ident}"
    return {
        "@odata.type": "#Manager.v1_9_0.Manager",
        "Id": ident, "Name": f"BMC of {system.name}", "ManagerType": "BMC", "UUID": ident,
        "FirmwareVersion": system.firmware["BMC"], "Model": "Lab BMC", "Status": HEALTHY,
        "PowerState": "On", "DateTime": stamp(system.bmc_time, system.utc_offset),
        "DateTimeLocalOffset": system.utc_offset,
        "LastResetTime": stamp(system.bmc_reset_at),
        "VirtualMedia": ref(f"{path}/VirtualMedia"), **logs.link(system, "Managers"),
        "Links": {
            "ManagerForServers": [ref(f"/Systems/{ident}")],
            "ManagerForChassis": [ref(f"/Chassis/{ident}")],
            **updates.image_links(system, "BMC"),
        },
        "Actions": actions(path, Manager_Reset={"ResetType@Redfish.AllowableValues": _RESETS}),
    }  # fmt: skip


@route("PATCH", "/Managers/*")
def change(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    """Set the clock, as strictly as an iDRAC: whole seconds, in the BMC's zone; or the image."""
    system = bmc.system(ident)
    body = checked(ask.body, {"DateTime": str, "DateTimeLocalOffset": str, "Links": dict})
    if "Links" in body:
        updates.activate_image(bmc, system, "BMC", body["Links"])
        return NO_CONTENT
    if not system.spec.sets_clock:
        name = next(iter(body), "")
        raise Refusal(400, f"{name} is a read only property", "PropertyNotWritable")
    offset = body.get("DateTimeLocalOffset", system.utc_offset)
    try:
        wanted = datetime.fromisoformat(body.get("DateTime") or stamp(system.bmc_time, offset))
        is_plain = stamp(wanted.timestamp(), offset) == wanted.isoformat()
    except ValueError:
        is_plain = False
    if not is_plain:
        raise Refusal(400, "DateTime is invalid", "PropertyValueFormatError")
    if "DateTime" in body:
        system.clock_s = wanted.timestamp() - time.time()
    system.utc_offset = offset
    system.note(f"clock set to {wanted.isoformat()}")
    return NO_CONTENT


@route("POST", "/Managers/*/Actions/Manager.Reset")
def reset(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    needed(checked(ask.body, {"ResetType": _RESETS}), "ResetType")
    bmc.restart(system)
    return NO_CONTENT


@route("GET", "/Managers/*/VirtualMedia/*")
def show_media(bmc: SimulatedBmc, ask: Ask, ident: str, device: str) -> Answer:
    path = f"/Managers/{ident}/VirtualMedia/{device}"
    system = _with_device(bmc, ident, device)
    url = system.media[device]
    offered: Json = {
        "Actions": actions(path, VirtualMedia_InsertMedia={}, VirtualMedia_EjectMedia={}),
    }
    return {
        "@odata.type": "#VirtualMedia.v1_3_0.VirtualMedia",
        "Id": device, "Name": "Virtual CD", "MediaTypes": list(dict(system.spec.media)[device]),
        "Image": url, "ImageName": url.rsplit("/", 1)[-1] if url else None,
        "Inserted": bool(url), "ConnectedVia": "URI" if url else "NotConnected",
        "WriteProtected": True, "TransferProtocolType": None,
    } | ({} if system.spec.media_by_patch else offered)  # fmt: skip


def _with_device(bmc: SimulatedBmc, ident: str, device: str) -> System:
    system = bmc.system(ident)
    if device not in system.media:
        raise missing(device)
    return system


@route("PATCH", "/Managers/*/VirtualMedia/*")
def change_media(bmc: SimulatedBmc, ask: Ask, ident: str, device: str) -> Answer:
    """Insert or eject, for BMCs without the actions."""
    system = _with_device(bmc, ident, device)
    if not system.spec.media_by_patch:
        raise Refusal(405, f"PATCH is not supported at {ask.path}", "OperationNotAllowed")
    body = checked(ask.body, _INSERT | {"Image": (str, type(None))})
    url = needed(body, "Image")
    if url is None:
        system.eject(device)
    else:
        system.insert(url, device)
    return NO_CONTENT


@route("POST", "/Managers/*/VirtualMedia/*/Actions/VirtualMedia.(InsertMedia|EjectMedia)")
def act(bmc: SimulatedBmc, ask: Ask, ident: str, device: str, action: str) -> Answer:
    system = _with_device(bmc, ident, device)
    if system.spec.media_by_patch:
        raise missing(ask.path)
    if action == "EjectMedia":
        system.eject(device)
    else:
        system.insert(needed(checked(ask.body, _INSERT), "Image"), device)
    return NO_CONTENT
