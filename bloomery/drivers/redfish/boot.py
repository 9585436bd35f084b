"""Boot of ISOs: the BMC presents one as a CD, or the machine's firmware fetches one.

The agent's ISO is ready-made (``deploy_iso``) or built here from a kernel and a ramdisk
(``agent_boot``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from bloomery import errors, fetching, secrets
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import base, boot_rules, secure_boot, substeps
from bloomery.drivers.agent_boot import http_client, isos, parameters, sources
from bloomery.drivers.bmc.meanings import Meaning
from bloomery.drivers.redfish import boot_device, media
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.model import capabilities
from bloomery.outcome import Again, Done, Outcome

_MOST_PAUSE_S: Final = 30.0
_POST_TRIES: Final = "redfish_post"  # in driver_internal_info


class IsoBoot(RedfishInterface, base.Boot):
    """Boots an ISO from ``device``."""

    is_measured = True
    device: ClassVar[str]
    agent_params: ClassVar[Mapping[str, str]] = {}  # kernel parameters of each agent

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self._isos = isos.AgentIsos(conf)

    def get_properties(self) -> dict[str, str]:
        ready = {
            "deploy_iso": "URL of a ready ISO with the agent; it beats the others. Optional.",
            "rescue_iso": "URL of a ready ISO for a rescue; unset: as for a deployment, unless a "
            "rescue_kernel is named. Optional.",
        }
        return super().get_properties() | ready | isos.PROPERTIES | boot_rules.PROPERTIES

    def validate(self, task: base.DriverTask) -> None:
        """Raise unless the BMC and the image URLs are valid."""
        super().validate(task)
        boot_rules.check_architecture(task)
        boot_rules.is_persistent(task, persistent=False)
        ready = {key: task.driver_info.get(key) for key in ("deploy_iso", "rescue_iso")}
        named = ready | {"boot_iso": task.opened(task.node.instance_info.get("boot_iso"))}
        for key, url in named.items():
            if url is not None and not fetching.is_http(url):
                value = secrets.mask_address(url) if isinstance(url, str) else url
                raise errors.InvalidParameterValue(
                    reason=f"{key} must be an http or https URL that the BMC can fetch, "
                    f"not {value!r}",
                )

    def validate_ramdisk(self, task: base.DriverTask) -> None:
        """Raise unless the agent's ISO is named or can be built."""
        self._validate_agent(task, sources.purpose_of(task))

    def validate_rescue(self, task: base.DriverTask) -> None:
        self._validate_agent(task, sources.RESCUE)

    def _validate_agent(self, task: base.DriverTask, purpose: str) -> None:
        self.validate(task)
        if _ready_iso(task, purpose) is None:
            self._isos.validate(task, self._mode(task), purpose)

    def list_ineffective(self, task: base.DriverTask) -> list[str]:
        """Return the settings that a ready ISO ignores."""
        if not task.driver_info.get("deploy_iso"):
            return []
        return [*parameters.list_ineffective(task), *parameters.list_sources(task)]

    def prepare_ramdisk(self, task: base.DriverTask, params: Mapping[str, str]) -> Outcome:
        """Boot the agent's ISO once; ``params`` reach only an ISO that is built here."""
        self.validate_ramdisk(task)
        ready = _ready_iso(task, sources.purpose_of(task))

        def insert() -> Outcome | None:
            """Insert this boot's CD; build it first unless an earlier attempt on this host did."""
            pending = None
            if not ready and self._isos.url(task) is None:
                pending = self._isos.build(task, self._mode(task), {**params, **self.agent_params})
            return pending or self._insert(task, ready or self._built(task))

        return substeps.run_in_order(
            task,
            "redfish_boot",
            lambda: self.check_machine(task),
            lambda: _off(task),
            lambda: self._isos.remove(task),
            insert,
            lambda: self._sync_mode(task),
            lambda: secure_boot.undo(task),
            lambda: self._choose_iso(task, ready or self._built(task), persistent=False),
        )

    def clean_up_ramdisk(self, task: base.DriverTask) -> Outcome:
        return substeps.run_in_order(
            task,
            "redfish_boot",
            lambda: _off(task),
            lambda: self._eject(task),
        )

    def prepare_instance(self, task: base.DriverTask) -> Outcome:
        """Boot ``instance_info/boot_iso`` persistently; without one, the disk."""
        image = task.opened(task.node.instance_info.get("boot_iso"))
        if image is not None:
            iso = base.RemoteFile(name="instance_info/boot_iso", url=str(image))
            parts: tuple[substeps.Substep, ...] = (
                lambda: http_client.check(self.conf, http_client.list_checkable(self.conf, [iso])),
                lambda: self._insert(task, image),
                lambda: self._isos.remove(task),
                lambda: self._sync_mode(task),
                lambda: secure_boot.prepare(task),
                lambda: self._choose_iso(task, image, persistent=True),
            )
        else:
            parts = (
                lambda: self._eject(task),
                lambda: secure_boot.prepare(task),
                lambda: self._choose(task, "disk", persistent=True),
            )
        return substeps.run_in_order(task, "redfish_boot", *parts)

    def clean_up_instance(self, task: base.DriverTask) -> Outcome:
        return substeps.run_in_order(
            task,
            "redfish_boot",
            lambda: self._eject(task),
            lambda: secure_boot.undo(task),
        )

    def _built(self, task: base.DriverTask) -> str:
        url = self._isos.url(task)
        if url is None:
            raise errors.StepFailure(reason="the agent's ISO is gone from this host; try again")
        return url

    def _insert(self, _task: base.DriverTask, _image: str) -> Outcome | None:
        """Give the BMC the image, where it takes one before the boot device."""
        return None

    def _eject(self, task: base.DriverTask) -> Outcome | None:
        """Let the BMC and this host forget the image."""
        self._isos.remove(task)
        return None

    def _mode(self, task: base.DriverTask) -> str | None:
        """Return the boot mode that the ISO must support; None: any."""
        return capabilities.mode_of(task.node)

    def _sync_mode(self, task: base.DriverTask) -> Outcome | None:
        mode = capabilities.boot_mode(task.node.instance_info, task.node.properties)
        if mode is None:
            return None
        return task.driver.management.set_boot_mode(task, mode)

    def _choose_iso(self, task: base.DriverTask, image: str, *, persistent: bool) -> Outcome | None:
        return self._choose(task, self.device, persistent=persistent)

    def _choose(
        self, task: base.DriverTask, device: str, *, persistent: bool, address: str | None = None
    ) -> Outcome | None:
        persistent = boot_rules.is_persistent(task, persistent)
        return self.choose_device(task, device, persistent=persistent, address=address)

    def choose_device(
        self, task: base.DriverTask, device: str, *, persistent: bool, address: str | None = None
    ) -> Outcome | None:
        """Set the boot device; retry while the BMC refuses during POST."""
        limits, memory = self.conf.redfish, task.node.driver_internal_info
        try:
            outcome = boot_device.choose(
                self.access, task, device, persistent=persistent, address=address,
                mode=capabilities.boot_mode(task.node.instance_info, task.node.properties),
            ).apply()  # fmt: skip
        except errors.BmcBusy as busy:
            if busy.facts.get("meaning") != Meaning.IN_POST:
                raise
            tries = memory.pop(_POST_TRIES, 0) + 1
            if tries >= limits.post_boot_retry_attempts:
                raise
            memory[_POST_TRIES] = tries
            pause_s = min(_MOST_PAUSE_S, limits.post_boot_retry_delay * 2.0 ** (tries - 1))
            return Again(after_s=pause_s, reason="the machine is in POST")
        memory.pop(_POST_TRIES, None)
        return outcome


class RedfishVirtualMedia(IsoBoot):
    """The BMC fetches the ISO, and presents it as a CD."""

    capabilities = frozenset({"iscsi_volume_boot", "ramdisk_boot", "ramdisk_boot_configdrive"})
    device = "cdrom"
    agent_params: ClassVar[Mapping[str, str]] = {"boot_method": "vmedia"}

    def check_machine(self, task: base.DriverTask) -> None:
        """Raise InvalidParameterValue for a machine without a virtual CD."""
        if not self.access.read(task, media.has_drive):
            raise errors.InvalidParameterValue(
                reason=f"cannot boot node {errors.name_of(task.node)} by virtual media: "
                f"{media.NO_DRIVE}; boot interface redfish-https needs no drive",
            )

    def _insert(self, task: base.DriverTask, image: str) -> Outcome | None:
        return media.write_insert(self.access, task, image).apply()

    def _eject(self, task: base.DriverTask) -> Outcome | None:
        pending = media.write_eject(self.access, task).apply()
        return pending if not isinstance(pending, Done) else super()._eject(task)


class RedfishHttps(IsoBoot):
    """The machine's UEFI firmware fetches the ISO from an http or https URL; no virtual drive.

    The node's boot mode must be uefi, or unknown.
    """

    capabilities = frozenset({"ramdisk_boot"})
    device = boot_rules.BY_URL

    def validate(self, task: base.DriverTask) -> None:
        super().validate(task)
        boot_rules.check_uefi(self, task)

    def check_machine(self, task: base.DriverTask) -> None:
        """Raise InvalidParameterValue for a machine that boots from no URL."""
        self.access.read(task, boot_device.check_uri)

    def _eject(self, task: base.DriverTask) -> Outcome | None:
        self.access.change(task, boot_device.forget_address, repeatable=True)
        return super()._eject(task)

    def _mode(self, _task: base.DriverTask) -> str | None:
        return "uefi"

    def _choose_iso(self, task: base.DriverTask, image: str, *, persistent: bool) -> Outcome | None:
        """Send the URL with the boot device: without one, firmware asks DHCP."""
        return self._choose(task, self.device, persistent=persistent, address=image)


def _ready_iso(task: base.DriverTask, purpose: str) -> str | None:
    """Return the URL of the ISO that the node names for an agent; None: one is built."""
    info = task.driver_info
    own = info.get("rescue_iso") if purpose == sources.RESCUE else None
    builds = purpose == sources.RESCUE and info.get("rescue_kernel")
    return own or (None if builds else info.get("deploy_iso"))


def _off(task: base.DriverTask) -> Outcome | None:
    """Switch off, unless that is forbidden; the caller then restarts the machine."""
    if task.node.disable_power_off:
        return None
    return task.driver.power.set_power_state(task, PowerState.OFF)
