"""/Systems/ID/Storage: one controller, its drives and volumes."""

from __future__ import annotations

from typing import Final

from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.refusal import Refusal, checked, missing, needed
from bloomery.lab.resources import services
from bloomery.lab.resources.systems import LEDS
from bloomery.lab.routing import (
    HEALTHY,
    NO_CONTENT,
    Answer,
    Ask,
    Reply,
    collection,
    item,
    ref,
    route,
    route_lists,
)

_LEVELS: Final = ["RAID0", "RAID1"]
_APPLY: Final = "@Redfish.OperationApplyTime"

route_lists(("/Systems/*/Storage", "Storage", lambda _: ["1"]))


@route("GET", "/Systems/*/Storage/1")
def show_controller(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    path, count = f"/Systems/{ident}/Storage/1", len(bmc.system(ident).spec.disks_gib)
    controller = {
        "MemberId": "0", "Name": "Lab RAID", "Status": HEALTHY, "SpeedGbps": 12,
        "SupportedRAIDTypes": _LEVELS,
    }  # fmt: skip
    return {
        "@odata.type": "#Storage.v1_8_0.Storage",
        "Id": "1", "Name": "RAID controller", "Status": HEALTHY,
        "StorageControllers": [controller],
        "Drives": [ref(f"{path}/Drives/{n}") for n in range(count)], "Drives@odata.count": count,
        "Volumes": ref(f"{path}/Volumes"),
    }  # fmt: skip


@route("GET", "/Systems/*/Storage/1/Drives/*")
def show_drive(bmc: SimulatedBmc, ask: Ask, ident: str, number: str) -> Answer:
    size_gib = item(bmc.system(ident).spec.disks_gib, number)
    return {
        "@odata.type": "#Drive.v1_7_0.Drive",
        "Id": number, "Name": f"Drive {number}", "CapacityBytes": size_gib << 30,
        "MediaType": "SSD", "Protocol": "SAS", "Model": "LAB-DISK", "Manufacturer": "Lab",
        "SerialNumber": f"D{number}", "Status": HEALTHY,
        "IndicatorLED": bmc.system(ident).drive_leds.get(number, "Off"),
    }  # fmt: skip


@route("PATCH", "/Systems/*/Storage/1/Drives/*")
def change_drive(bmc: SimulatedBmc, ask: Ask, ident: str, number: str) -> Answer:
    system = bmc.system(ident)
    item(system.spec.disks_gib, number)
    system.drive_leds[number] = needed(checked(ask.body, {"IndicatorLED": LEDS}), "IndicatorLED")
    return NO_CONTENT


@route("GET", "/Systems/*/Storage/1/Volumes")
def list_volumes(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    path = f"/Systems/{ident}/Storage/1/Volumes"
    listed = collection(path, "Volume", [v["Id"] for v in bmc.system(ident).volumes])
    support = {
        "@odata.type": "#Settings.v1_2_0.OperationApplyTimeSupport",
        "SupportedValues": ["Immediate"],
    }
    return listed | {"@Redfish.OperationApplyTimeSupport": support}


@route("POST", "/Systems/*/Storage/1/Volumes")
def add_volume(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    if ask.body.get("RAIDType", "RAID0") not in _LEVELS:
        raise Refusal(400, f"RAIDType must be one of {_LEVELS}", "PropertyValueNotInList")
    if ask.body.get(_APPLY, "Immediate") != "Immediate":
        raise Refusal(400, "volumes are made at once, not later", "PropertyValueNotInList")
    with system.lock:
        if "RAID" in system.jobs:
            raise Refusal(400, "a configuration job of RAID is pending", "STOR023")
        system.volumes_made += 1
        number = str(system.volumes_made)
    volume = {"Name": f"Volume {number}"} | ask.body | {"Id": number}
    if bmc.rules.volume_s:
        begun = bmc.begin(
            "create volume", bmc.rules.volume_s, lambda: system.volumes.append(volume)
        )
        return services.accepted(begun)
    system.volumes.append(volume)
    path = f"{ROOT}{ask.path.removeprefix(ROOT).rstrip('/')}/{number}"
    return Reply(201, volume | {"@odata.id": path}, {"Location": path})


@route("GET|DELETE", "/Systems/*/Storage/1/Volumes/*")
def show_volume(bmc: SimulatedBmc, ask: Ask, ident: str, number: str) -> Answer:
    system = bmc.system(ident)
    with system.lock:
        volume = next((v for v in system.volumes if v["Id"] == number), None)
        if volume is None:
            raise missing(f"volume {number}")
        if ask.method == "DELETE":
            system.volumes.remove(volume)
            return NO_CONTENT
        return volume | {"@odata.type": "#Volume.v1_4_0.Volume", "Status": HEALTHY}
