"""Firmware images that a BMC keeps beside the active one, to return to.

Source: DMTF DSP2046, Manager 1.6 and Bios 1.1, Links: SoftwareImages has the images of ``bmc`` or
``bios``, and a link that is written to ActiveSoftwareImage chooses the one of the next start.  An
iDRAC has the former images in its inventory, and takes the path of one as that of an update
(Dell's iDRAC-Redfish-Scripting, DeviceFirmwareRollbackREDFISH).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from bloomery import errors
from bloomery.drivers.redfish import reading

COMPONENTS: Final = ("bios", "bmc")
_DELL: Final = {"bios": "Previous-159-", "bmc": "Previous-25227-"}  # 159, 25227: of its catalogue
_RESET: Final = "#Manager.Reset"
_RESETS: Final = ("GracefulRestart", "ForceRestart")


class Image(NamedTuple):
    """``owner``: the path of the document whose link chooses the image; "": an update takes it."""

    owner: str
    path: str
    version: str | None


def kept(system: Any, component: str) -> list[Image]:
    """Return the images of ``bios`` or ``bmc`` that are not active; [] where none is kept."""
    if str(system.manufacturer).startswith("Dell"):
        service = reading.follow(system, system.root.json, "UpdateService")
        inventory = reading.follow(system, service, "FirmwareInventory")
        return [
            _image(system, "", path)
            for path in reading.links(inventory, "Members")
            if path.rpartition("/")[2].startswith(_DELL[component])
        ]
    if component == "bmc":
        manager = next(reading.managers(system), None)
        document = {} if manager is None else manager.json
    else:
        document = reading.follow(system, system.json, "Bios")
    owner, links = document.get("@odata.id"), document.get("Links")
    if not isinstance(owner, str) or not isinstance(links, dict):
        return []
    active = reading.links({"active": [links.get("ActiveSoftwareImage")]}, "active")
    paths = [path for path in reading.links(links, "SoftwareImages") if path not in active]
    return [_image(system, owner, path) for path in paths] if active else []


def _image(system: Any, owner: str, path: str) -> Image:
    version = (reading.optional(reading.fetch, system, path) or {}).get("Version")
    return Image(owner, path, version if isinstance(version, str) else None)


def choose(system: Any, component: str, version: str | None) -> Image:
    """Return the kept image of a version, None: the only one.  Raises InvalidParameterValue."""
    images = kept(system, component)
    if not images:
        raise errors.InvalidParameterValue(
            reason=f"its BMC keeps no other image of {component} (SoftwareImages of Redfish, or "
            "Previous of an iDRAC): write the former version by firmware.update",
        )
    fitting = [each for each in images if version in (None, each.version)]
    if len(fitting) != 1:
        versions = ", ".join(each.version or "one without a version" for each in images)
        raise errors.InvalidParameterValue(
            reason=f"its BMC keeps these images of {component}: {versions}; name one as version",
        )
    return fitting[0]


def activate(system: Any, owner: str, path: str) -> None:
    """Choose an image for the next start; to repeat it changes nothing."""
    body = {"Links": {"ActiveSoftwareImage": {"@odata.id": path}}}
    system.root._conn.patch(owner, data=body)  # noqa: SLF001  sushy has no such call


def restart_bmc(system: Any) -> None:
    """Restart the BMC.  Raises InvalidParameterValue where it offers no restart."""
    manager = next(reading.managers(system), None)
    action = {} if manager is None else (manager.json.get("Actions") or {}).get(_RESET) or {}
    allowed = action.get("ResetType@Redfish.AllowableValues") or _RESETS
    reset = next((each for each in _RESETS if each in allowed), None)
    if not action.get("target") or reset is None:
        raise errors.InvalidParameterValue(
            reason="its BMC offers no restart, which its other firmware needs: restart it by hand",
        )
    system.root._conn.post(action["target"], data={"ResetType": reset})  # noqa: SLF001
