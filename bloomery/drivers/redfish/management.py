"""Management by Redfish: boot device and mode, secure boot, NMI, lights, media, log and clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.drivers import base, passwords, steps
from bloomery.drivers.redfish import (
    bmc_clock,
    bmc_log,
    boot_device,
    indicators,
    media,
    reading,
    reset,
    sensors,
)
from bloomery.drivers.redfish.bmc_write import REQUEST_S, BiosSetting, BmcWrite
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.drivers.redfish.passwords import RedfishPasswordChange
from bloomery.outcome import Outcome

_CLOCK_ARGS: Final = {
    "target_datetime": {
        "description": "The time to set, in ISO 8601 with its zone; by default that of the "
        "conductor",
        "required": False,
    },
    "datetime_local_offset": {
        "description": "The BMC's offset from UTC, such as +00:00; by default it stays",
        "required": False,
    },
}


class RedfishManagement(RedfishInterface, base.Management):
    def get_supported_boot_devices(self, task: base.DriverTask) -> Sequence[str]:
        """Return the BMC's devices; all that redfish knows while the BMC is silent."""
        try:
            return tuple(self.access.read(task, boot_device.supported))
        except errors.BmcUnreachable:
            return tuple(boot_device.TARGETS)

    def set_boot_device(self, task: base.DriverTask, device: str, persistent: bool = False) -> None:
        """Set the device.  Raises InvalidState for a BMC that does not show it then."""
        try:
            boot_device.choose(self.access, task, device, persistent=persistent).apply_now()
        except errors.StepFailure as no:
            raise errors.InvalidState(
                reason=f"cannot set the boot device of node {errors.name_of(task.node)}: "
                f"{no.facts['reason']}",
            ) from None

    def get_boot_device(self, task: base.DriverTask) -> dict[str, Any]:
        return self.access.read(task, boot_device.chosen)

    def get_supported_boot_modes(self, task: base.DriverTask) -> Sequence[str]:
        return tuple(self.access.read(task, boot_device.modes))

    def get_boot_mode(self, task: base.DriverTask) -> str | None:
        return self.access.read(task, boot_device.mode_of)

    def set_boot_mode(self, task: base.DriverTask, mode: str) -> Outcome:
        """Set the mode; restart the machine where needed."""
        if mode not in boot_device.MODES:
            raise errors.InvalidParameterValue(
                reason=f"redfish cannot set boot mode {mode!r}: it knows "
                f"{', '.join(boot_device.MODES)}",
            )
        return BiosSetting(
            access=self.access,
            task=task,
            what=f"set boot mode {mode}",
            limit_s=self.conf.redfish.boot_mode_config_timeout,
            settles_s=self.conf.redfish.boot_device_timeout,
            change=self.unblocked(lambda system: boot_device.set_mode(system, mode)),
            is_so=lambda system: boot_device.mode_of(system) == mode,
        ).apply()

    def get_secure_boot_state(self, task: base.DriverTask) -> bool | None:
        """Return None where the BMC has no secure boot."""
        return self.access.read(task, lambda system: reading.optional(_secure_boot, system))

    def set_secure_boot_state(self, task: base.DriverTask, on: bool) -> Outcome:
        """Switch secure boot, which only UEFI has."""
        if on and self.get_boot_mode(task) == "bios":
            raise errors.InvalidParameterValue(
                reason=f"cannot enable secure boot on node {errors.name_of(task.node)}: it "
                "boots in mode bios; set boot mode uefi first",
            )
        return BiosSetting(
            access=self.access,
            task=task,
            what=f"switch secure boot {'on' if on else 'off'}",
            limit_s=self.conf.redfish.boot_mode_config_timeout,
            settles_s=self.conf.redfish.boot_device_timeout,
            change=self.unblocked(lambda system: system.secure_boot.set_enabled(on)),
            is_so=lambda system: _secure_boot(system) == on,
        ).apply()

    def get_node_health(self, task: base.DriverTask) -> str | None:
        return reading.health(self.access.document(task))

    def get_sensors_data(self, task: base.DriverTask) -> dict[str, dict[str, dict[str, Any]]]:
        return self.access.read(task, lambda system: reading.run(system, sensors.read(system.json)))

    def read_bmc_log(self, task: base.DriverTask) -> dict[str, Any]:
        document = self.access.read(
            task, lambda system: reading.run(system, bmc_log.read(system.json))
        )
        self.access.bmc(task).note_clock(document["clock_difference_s"])
        return document

    @steps.keeps_disks
    @steps.out_of_band_step()
    def clear_bmc_log(self, task: base.DriverTask) -> Outcome:
        """Clear the log of hardware, and read that it is empty."""
        return bmc_log.clear(self.access, task)

    @steps.keeps_disks
    @steps.out_of_band_step(_CLOCK_ARGS)
    def set_bmc_clock(
        self,
        task: base.DriverTask,
        target_datetime: Any = None,
        datetime_local_offset: Any = None,
    ) -> Outcome:
        """Set the BMC's clock, and read that it shows the time."""
        target = bmc_clock.parse(target_datetime)
        if target_datetime is not None and target is None:
            raise errors.InvalidParameterValue(
                reason="target_datetime takes a time in ISO 8601, such as "
                f"2026-11-29T12:00:00+00:00, not {errors.shortened(str(target_datetime))!r}",
            )
        if datetime_local_offset is not None and not bmc_clock.is_offset(datetime_local_offset):
            raise errors.InvalidParameterValue(
                reason="datetime_local_offset takes an offset from UTC, such as +00:00, not "
                f"{errors.shortened(str(datetime_local_offset))!r}",
            )
        return bmc_clock.set_time(self.access, task, target, datetime_local_offset)

    @steps.verify_step(priority=1)
    def verify_bmc_clock(self, task: base.DriverTask) -> Outcome | None:
        """Set the clock where it differs, if [redfish]enable_verify_bmc_clock is set."""
        if not self.conf.redfish.enable_verify_bmc_clock:
            return None
        if not task.turn:
            _, shown = self.access.read(task, bmc_clock.read)
            if shown is not None and not shown.is_off:
                self.access.bmc(task).note_clock(shown.difference_s)
                return None
        return bmc_clock.set_time(self.access, task, None)

    def inject_nmi(self, task: base.DriverTask) -> None:
        self.access.change(task, lambda system: reset.send(system, "Nmi"))

    def get_supported_indicators(
        self, task: base.DriverTask, component: str | None = None
    ) -> dict[str, dict[str, base.Indicator]]:
        def read(system: Any) -> dict[str, dict[str, base.Indicator]]:
            facts: dict[str, dict[str, base.Indicator]] = {}
            for light in indicators.of(system, component):
                facts.setdefault(light.component, {})[light.name] = light.facts()
            return facts

        return self.access.read(task, read)

    def get_indicator_state(self, task: base.DriverTask, component: str, indicator: str) -> str:
        return self.access.read(
            task, lambda system: indicators.find(system, component, indicator).read()
        )

    def set_indicator_state(
        self, task: base.DriverTask, component: str, indicator: str, state: str
    ) -> None:
        """Switch a light, and read that it is on or off; some blink where others are lit."""

        def light(system: Any) -> indicators.Light:
            return indicators.find(system, component, indicator)

        BmcWrite(
            access=self.access, task=task, what=f"switch {indicator}@{component} {state}",
            change=lambda system: light(system).switch(state),
            is_so=lambda system: (light(system).read() == "off") == (state == "off"),
            limit_s=REQUEST_S,
        ).apply_now()  # fmt: skip

    def get_virtual_media(self, task: base.DriverTask) -> list[dict[str, Any]]:
        return self.access.read(task, media.show)

    def attach_virtual_media(
        self, task: base.DriverTask, device_type: str, image_url: str
    ) -> Outcome:
        """Insert an image; its URL must be reachable for the BMC."""
        return media.write_insert(self.access, task, image_url, media.KINDS[device_type]).apply()

    def detach_virtual_media(
        self, task: base.DriverTask, device_types: Sequence[str] | None = None
    ) -> Outcome:
        kinds = tuple(kind for each in device_types or () for kind in media.KINDS[each])
        return media.write_eject(self.access, task, kinds).apply()

    @steps.keeps_disks
    @steps.clean_step(
        priority=0, argsinfo=passwords.STEP_ARGS, requires_ramdisk=False, resumable=True
    )
    @steps.service_step(argsinfo=passwords.STEP_ARGS, requires_ramdisk=False, resumable=True)
    def set_bmc_password(self, task: base.DriverTask, password: Any = None) -> Outcome | None:
        """Change the password of driver_info at the BMC, for all nodes with that account."""
        return RedfishPasswordChange(self.access, task, password).run()

    def change_factory_password(self, task: base.DriverTask) -> Outcome | None:
        other = passwords.find_other(task, self.access.account(task))
        try:
            self.access.document(task)
        except errors.BmcPasswordChangeRequired:
            return RedfishPasswordChange(self.access, task).run()
        is_open = other is not None and other.role == passwords.NEW
        return RedfishPasswordChange(self.access, task).run() if is_open else None

    def detect_vendor(self, task: base.DriverTask) -> str | None:
        return self.access.read(task, _vendor)


def _secure_boot(system: Any) -> bool | None:
    enabled: bool | None = system.secure_boot.enabled
    return enabled


def _vendor(system: Any) -> str | None:
    vendor = system.manufacturer or system.root.json.get("Vendor")
    return str(vendor) if vendor else None
