"""The hardware type ``idrac`` and its interfaces: redfish's, with what an iDRAC does otherwise."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from bloomery.conductor.states import State
from bloomery.drivers import base, steps, substeps
from bloomery.drivers.idrac import oem, reset
from bloomery.drivers.redfish.bios import RedfishBios
from bloomery.drivers.redfish.boot import RedfishVirtualMedia
from bloomery.drivers.redfish.hardware import RedfishHardware
from bloomery.drivers.redfish.management import RedfishManagement
from bloomery.drivers.redfish.raid import RedfishRaid
from bloomery.outcome import Outcome

LOG = logging.getLogger(__name__)
M = TypeVar("M", bound=Callable[..., Any])

_DEVICE: Final = "ServerBoot.1.FirstBootDevice"
_ONCE: Final = "ServerBoot.1.BootOnce"
_VIRTUAL_CD: Final = "VCD-DVD"
_NONE: Final = "Normal"


class IdracHardware(RedfishHardware):
    """A Dell machine whose iDRAC speaks Redfish."""

    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        **RedfishHardware.supported,
        "bios": ("idrac-redfish", "redfish", "no-bios"),
        "boot": ("idrac-redfish-virtual-media", *RedfishHardware.supported["boot"][1:]),
        "inspect": ("idrac-redfish", "agent", "no-inspect"),
        "management": ("idrac-redfish",),
        "power": ("idrac-redfish", "redfish"),
        "raid": ("idrac-redfish", "no-raid", "agent"),
        "vendor": ("idrac-redfish", "redfish", "no-vendor"),
    }


class IdracBios(oem.JobQueueInterface, RedfishBios):
    pass


class IdracRaid(oem.JobQueueInterface, RedfishRaid):
    pass


class IdracVirtualMedia(RedfishVirtualMedia):
    """Boots by virtual media; the standard boot device Cd may be a real drive.

    The iDRAC's attribute ServerBoot names the virtual one, for one boot or for each.
    """

    def choose_device(
        self, task: base.DriverTask, device: str, *, persistent: bool, address: str | None = None
    ) -> Outcome | None:
        """Choose the virtual CD by the iDRAC's attribute, and other devices as redfish does."""
        is_cd = device == "cdrom"

        def choose(system: Any) -> bool:
            """Return whether the attributes name the virtual CD; reset them for other devices."""
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

        if self.access.change(task, choose, repeatable=True):
            return None
        return super().choose_device(task, device, persistent=persistent, address=address)


def _step(method: M) -> M:
    """Offer a method for cleaning and verifying, on request and without an agent."""
    clean = steps.clean_step(priority=0, requires_ramdisk=False, resumable=True)
    return steps.keeps_disks(clean(steps.verify_step(priority=0)(method)))


class IdracManagement(oem.JobQueueInterface, RedfishManagement):
    @_step
    def clear_job_queue(self, task: base.DriverTask) -> None:
        """Delete the iDRAC's jobs that do not run yet.

        An iDRAC without a job service is left alone while its node is verified.
        """
        if task.node.provision_state == State.VERIFYING and not self.access.read(
            task, lambda system: oem.service(system, oem.JOB_SERVICE)
        ):
            LOG.warning("node %s: the BMC has no job queue to clear", task.node.uuid)
            return
        self.access.change(task, oem.clear_jobs, repeatable=True)

    @_step
    def reset_idrac(self, task: base.DriverTask) -> Outcome | None:
        """Restart the iDRAC, and wait until it is ready."""
        return reset.run(self.access, task)

    @_step
    def known_good_state(self, task: base.DriverTask) -> Outcome:
        """Restart the iDRAC, then clear its job queue."""
        return substeps.run_in_order(
            task,
            "idrac_good_state",
            lambda: self.reset_idrac(task),
            lambda: self.clear_job_queue(task),
        )
