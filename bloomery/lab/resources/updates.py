"""/UpdateService: firmware versions, and updates as tasks.

The new version is the image's file name; one with "bad" in it fails, and one with "ignored" ends
well and changes nothing.  BIOS and NIC with "boot" in their name run after the next boot; a BMC
update restarts the BMC.  An iDRAC that keeps images has them in its inventory, as
Previous-ID-VERSION, and takes the path of one as ImageURI.
"""

from __future__ import annotations

import json
from typing import Final

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.refusal import Refusal, Rule, checked, missing, needed
from bloomery.lab.resources import services
from bloomery.lab.routing import HEALTHY, Answer, Ask, Json, actions, collection, ref, route
from bloomery.lab.system import System

_PROTOCOLS: Final = ["HTTP", "HTTPS"]
_SLOTS: Final = ("A", "B")  # of images
_INVENTORY: Final = "/UpdateService/FirmwareInventory"
_DELL: Final = {"BIOS": "159", "BMC": "25227"}  # IDs of components
_BODY: Final[dict[str, Rule]] = {
    "ImageURI": str, "Targets": list, "Username": str, "Password": str, "ForceUpdate": bool,
    "TransferProtocol": _PROTOCOLS,
}  # fmt: skip


@route("GET", "/UpdateService")
def show(bmc: SimulatedBmc, ask: Ask) -> Answer:
    offered = {"TransferProtocol@Redfish.AllowableValues": _PROTOCOLS}
    return {
        "@odata.type": "#UpdateService.v1_8_0.UpdateService",
        "Id": "UpdateService", "Name": "Update service", "ServiceEnabled": True,
        "FirmwareInventory": ref(_INVENTORY),
        "Actions": actions("/UpdateService", UpdateService_SimpleUpdate=offered),
    }  # fmt: skip


@route("GET", _INVENTORY)
def inventory(bmc: SimulatedBmc, ask: Ask) -> Answer:
    parts = [f"{s.id}.{part}" for s in bmc.systems.values() for part in s.firmware]
    return collection(_INVENTORY, "SoftwareInventory", [*parts, *_previous(bmc)])


def _previous(bmc: SimulatedBmc) -> dict[str, tuple[System, str]]:
    """Return the former images of an iDRAC by their names: the machine and the component."""
    return {
        f"Previous-{_DELL[part]}-{version}__{part}.1-1": (system, part)
        for system in bmc.systems.values()
        for part, version in system.firmware_kept.items()
        if system.spec.idrac and part in _DELL
    }


@route("GET", f"{_INVENTORY}/*")
def show_part(bmc: SimulatedBmc, ask: Ask, name: str) -> Answer:
    """Show a component, ID.BMC or ID.BIOS, or its image in a slot, ID.BMC.A or ID.BMC.B."""
    if (previous := _previous(bmc).get(name)) is not None:
        system, part = previous
        version: str = system.firmware_kept[part]
        return {"Id": name, "Name": part, "Version": version, "Status": {"State": "Disabled"}}
    own, dot, slot = name.rpartition(".")
    is_image = dot and slot in _SLOTS
    system, part = _part(bmc, own if is_image else name)
    version = system.firmware[part]
    if is_image and slot != system.firmware_slots[part]:
        if part not in system.firmware_kept:
            raise missing(f"image {name}")
        version = system.firmware_kept[part]
    return {
        "@odata.type": "#SoftwareInventory.v1_2_3.SoftwareInventory",
        "Id": name, "Name": part, "Version": version, "Updateable": True, "Status": HEALTHY,
    }  # fmt: skip


def image_links(system: System, part: str) -> Json:
    """Return the links of a BMC or BIOS to its images, {} where no image is kept."""
    if not system.spec.keeps_images or system.spec.idrac:
        return {}
    active = system.firmware_slots[part]
    slots = _SLOTS if part in system.firmware_kept else (active,)
    path = f"{_INVENTORY}/{system.id}.{part}"
    return {
        "ActiveSoftwareImage": ref(f"{path}.{active}"),
        "SoftwareImages": [ref(f"{path}.{slot}") for slot in slots],
    }


def activate_image(bmc: SimulatedBmc, system: System, part: str, links: Json) -> None:
    """Let the kept image of a component run: a BMC's after its restart, a BIOS's at the boot."""
    link = needed(checked(links, {"ActiveSoftwareImage": dict}, "Links"), "ActiveSoftwareImage")
    slot = str(link.get("@odata.id")).rpartition(".")[2]
    if not system.spec.keeps_images or slot not in _SLOTS:
        raise Refusal(400, "ActiveSoftwareImage is a read only property", "PropertyNotWritable")
    if slot == system.firmware_slots[part]:
        system.firmware_next.pop(part, None)
        return
    if part not in system.firmware_kept:
        raise missing("that image")
    system.firmware_next[part] = system.firmware_kept[part]
    system.note(f"next {part} firmware is {system.firmware_next[part]}")
    if part == "BMC" and system.spec.restarts_for_image:
        bmc.restart(system)


def _part(bmc: SimulatedBmc, name: str) -> tuple[System, str]:
    """Return the machine and component of an inventory entry: ID.BMC, ID.BIOS."""
    ident, _, part = name.rpartition(".")
    system = bmc.system(ident)
    if part not in system.firmware:
        raise missing(f"component {name}")
    return system, part


@route("POST", "/UpdateService/Actions/UpdateService.SimpleUpdate")
def update(bmc: SimulatedBmc, ask: Ask) -> Answer:
    """Update the Targets.

    Inventory entries, or systems, where the file name chooses BMC, NIC or BIOS.
    """
    body = checked(ask.body, _BODY)
    version = needed(body, "ImageURI").rsplit("/", 1)[-1] or "unknown"
    targets = [str(target) for target in body.get("Targets", [])]
    if bmc.view is not None:
        targets = [bmc.view.generic(target) for target in targets]
    names = [target.rsplit("/", 1)[-1] for target in targets]
    if not names and len(bmc.systems) == 1:
        names = list(bmc.systems)
    suffix = next(
        (f".{part.upper()}" for part in ("bmc", "nic") if part in version.lower()), ".BIOS"
    )
    parts = [_part(bmc, name + suffix if name in bmc.systems else name) for name in names]
    if (previous := _previous(bmc).get(version)) is not None:
        version, parts = previous[0].firmware_kept[previous[1]], [previous]
    elif body["ImageURI"].startswith("/"):
        raise missing(f"image {body['ImageURI']}")
    if not parts:
        raise Refusal(400, "Targets is needed: there are many systems", "ActionParameterMissing")

    def apply() -> None:
        if "bad" in version:
            raise Refusal(500, f"cannot verify {body['ImageURI']}")
        for system, part in parts if "ignored" not in version else ():
            waits = part != "BMC" and (previous is not None or "boot" in version)
            if waits:
                system.firmware_next[part] = version
            else:
                system.install(part, version)
            system.note(f"{'next ' if waits else ''}{part} firmware is {version}")
            if part == "BMC":
                bmc.restart(system)

    request = {
        "HttpOperation": ask.method, "TargetUri": ask.path, "JsonBody": json.dumps(ask.body),
    }  # fmt: skip
    payload = request if bmc.view is None else None  # makes with their own paths show none
    name = f"update with {version}"
    return services.accepted(bmc.begin(name, bmc.rules.update_s, apply, payload))
