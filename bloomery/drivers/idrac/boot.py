"""Boot of Dell machines by virtual media.

The standard boot device Cd may be a real drive.  The iDRAC's attribute ServerBoot names the virtual
one, for one boot or for each.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery.drivers import base
from bloomery.drivers.idrac import oem
from bloomery.drivers.redfish.boot import RedfishVirtualMedia
from bloomery.outcome import Outcome

_DEVICE: Final = "ServerBoot.1.FirstBootDevice"
_ONCE: Final = "ServerBoot.1.BootOnce"
_VIRTUAL_CD: Final = "VCD-DVD"
_NONE: Final = "Normal"


class IdracVirtualMedia(RedfishVirtualMedia):
    def choose_device(
        self, task: base.DriverTask, device: str, *, persistent: bool, address: str | None = None
    ) -> Outcome | None:
        """Choose the virtual CD by the iDRAC's attribute, and other devices as redfish does."""

        def choose(system: Any) -> bool:
            return _choose(system, is_cd=device == "cdrom", persistent=persistent)

        if self.access.change(task, choose, repeatable=True):
            return None
        return super().choose_device(task, device, persistent=persistent, address=address)


def _choose(system: Any, *, is_cd: bool, persistent: bool) -> bool:
    """Return whether the attributes name the virtual CD; stop naming it for other devices."""
    path = oem.attributes_path(system)
    if path is None:
        return False
    connection = system.root._conn  # noqa: SLF001  sushy has no class
    current = connection.get(path).json().get("Attributes") or {}
    if _DEVICE not in current:
        return False
    once = "Disabled" if persistent else "Enabled"
    values = {_DEVICE: _VIRTUAL_CD, _ONCE: once} if is_cd else {_DEVICE: _NONE}
    if is_cd or current[_DEVICE] == _VIRTUAL_CD:
        connection.patch(path, data={"Attributes": values})
    return is_cd
