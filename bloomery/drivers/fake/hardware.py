"""The fake hardware type and its interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors, secrets
from bloomery.conductor.states import ENDS_ON, WAIT_STATES
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base, steps, vendor_methods
from bloomery.drivers.fake import behaviour
from bloomery.drivers.fake import configuration as _configuration  # noqa: F401  behaves by name
from bloomery.drivers.fake.behaviour import FakeInterface, acts, answers
from bloomery.outcome import DONE, Done, Outcome, WaitForCall

_MEDIA: Final = "fake_virtual_media"  # in driver_internal_info: {device: address of the image}
_DEVICES: Final = ("cdrom", "disk", "floppy")
_INDICATORS: Final[Mapping[str, Mapping[str, base.Indicator]]] = {
    "chassis": {"led-0": {"readonly": True, "states": ["off", "on"]}},
    "system": {"led": {"readonly": False, "states": ["blinking", "off", "on"]}},
}


class FakeHardware(base.HardwareType):
    """Accepts any enabled interface; supports the fake ones and those of agents."""

    lenient = True
    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        "bios": ("fake", "no-bios"),
        "boot": ("fake", "ipxe", "pxe"),
        "console": ("fake", "no-console", "console-server"),
        "deploy": ("fake", "direct", "ramdisk", "custom-agent", "bootc", "autodetect"),
        "firmware": ("fake", "no-firmware"),
        "inspect": ("fake", "agent", "no-inspect"),
        "management": ("fake",),
        "network": ("noop", "ironic-networking"),
        "power": ("fake",),
        "raid": ("fake", "no-raid", "agent"),
        "rescue": ("fake", "no-rescue", "agent"),
        "storage": ("fake", "noop"),
        "vendor": ("fake", "no-vendor"),
    }

    def check_driver_info(self, driver_info: Mapping[str, Any]) -> None:
        behaviour.check(driver_info)


class FakePower(FakeInterface, base.Power):
    """The machine is in the state that was set last, so it never differs from the row."""

    def get_power_state(self, task: base.DriverTask) -> str | None:
        self.answer(task, "get_power_state")
        return task.node.power_state

    def set_power_state(
        self,
        task: base.DriverTask,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        pending = self.act(task, "set_power_state", timeout_s)
        if pending is None:
            task.node.power_state = PowerState.ON if state in ENDS_ON else PowerState.OFF
        return pending or DONE

    def reboot(self, task: base.DriverTask, timeout_s: float | None = None) -> Outcome:
        pending = self.act(task, "reboot", timeout_s)
        if pending is None:
            task.node.power_state = PowerState.ON
        return pending or DONE

    def get_supported_power_states(self, task: base.DriverTask) -> Sequence[str]:
        return tuple(PowerState.__members__.values())[:-1]


class FakeManagement(FakeInterface, base.Management):
    def get_supported_boot_devices(self, task: base.DriverTask) -> Sequence[str]:
        return ("pxe",)

    def set_boot_device(self, task: base.DriverTask, device: str, persistent: bool = False) -> None:
        if device not in self.get_supported_boot_devices(task):
            raise errors.InvalidParameterValue(
                reason=f"Invalid boot device {device} specified: fake hardware takes pxe only",
            )
        self.answer(task, "set_boot_device")

    def get_boot_device(self, task: base.DriverTask) -> dict[str, Any]:
        self.answer(task, "get_boot_device")
        return {"boot_device": "pxe", "persistent": False}

    def get_supported_boot_modes(self, task: base.DriverTask) -> Sequence[str]:
        return ("bios", "uefi")

    def set_boot_mode(self, task: base.DriverTask, mode: str) -> Outcome:
        return self.act(task, "set_boot_mode") or DONE

    def get_boot_mode(self, task: base.DriverTask) -> str | None:
        """Return the mode that was set last."""
        self.answer(task, "get_boot_mode")
        return task.node.boot_mode

    def set_secure_boot_state(self, task: base.DriverTask, on: bool) -> Outcome:
        return self.act(task, "set_secure_boot_state") or DONE

    def get_secure_boot_state(self, task: base.DriverTask) -> bool | None:
        self.answer(task, "get_secure_boot_state")
        return task.node.secure_boot

    def get_supported_indicators(
        self, task: base.DriverTask, component: str | None = None
    ) -> dict[str, dict[str, base.Indicator]]:
        self.answer(task, "get_supported_indicators")
        if component not in (None, *_INDICATORS):
            raise errors.InvalidParameterValue(
                reason=f"Invalid component {component}: fake hardware has {', '.join(_INDICATORS)}",
            )
        return {name: dict(_INDICATORS[name]) for name in _INDICATORS if component in (None, name)}

    def get_indicator_state(self, task: base.DriverTask, component: str, indicator: str) -> str:
        """Return on for every light: fake lights cannot be switched, as in Ironic."""
        names = self.get_supported_indicators(task, component)[component]
        if indicator not in names:
            raise errors.InvalidParameterValue(
                reason=f"Invalid indicator {indicator} of {component}: it has {', '.join(names)}",
            )
        self.answer(task, "get_indicator_state")
        return "on"

    def get_virtual_media(self, task: base.DriverTask) -> list[dict[str, Any]]:
        self.answer(task, "get_virtual_media")
        inserted = task.node.driver_internal_info.get(_MEDIA) or {}
        return [
            {"media_types": [device], "inserted": device in inserted,
             "image": inserted.get(device, "")}
            for device in _DEVICES
        ]  # fmt: skip

    def attach_virtual_media(
        self, task: base.DriverTask, device_type: str, image_url: str
    ) -> Outcome | None:
        pending = self.act(task, "attach_virtual_media")
        if pending is None:
            inserted = task.node.driver_internal_info.get(_MEDIA) or {}
            task.node.driver_internal_info[_MEDIA] = inserted | {
                device_type: secrets.mask_address(image_url)
            }
        return pending

    def detach_virtual_media(
        self, task: base.DriverTask, device_types: Sequence[str] | None = None
    ) -> Outcome | None:
        pending = self.act(task, "detach_virtual_media")
        if pending is None:
            inserted = task.node.driver_internal_info.pop(_MEDIA, None) or {}
            rest = {k: v for k, v in inserted.items() if device_types and k not in device_types}
            if rest:
                task.node.driver_internal_info[_MEDIA] = rest
        return pending


class FakeBoot(FakeInterface, base.Boot):
    capabilities = frozenset({"ipxe_boot", "pxe_boot"})

    validate_ramdisk = answers("validate_ramdisk")
    validate_inspection = answers("validate_inspection")
    prepare_ramdisk = acts("prepare_ramdisk")
    clean_up_ramdisk = acts("clean_up_ramdisk")
    prepare_instance = acts("prepare_instance")
    clean_up_instance = acts("clean_up_instance")


class FakeDeploy(FakeInterface, base.Deploy):
    """One step that writes nothing.  A fake agent sends heartbeats for waiting nodes."""

    def periodics(self) -> Sequence[base.Periodic]:
        return (base.Periodic(states=tuple(sorted(WAIT_STATES)), look=behaviour.agent_call),)

    prepare = acts("prepare")

    @steps.deploy_step(priority=100, resumable=True)
    def deploy(self, task: base.DriverTask) -> Outcome | None:
        """Take the configured time, or wait for the fake agent."""
        return self.act(task, "deploy")

    clean_up = acts("clean_up")
    take_over = answers("take_over")
    tear_down = acts("tear_down")
    prepare_cleaning = acts("prepare_cleaning")
    tear_down_cleaning = acts("tear_down_cleaning")
    prepare_service = acts("prepare_service")
    tear_down_service = acts("tear_down_service")


class FakeInspect(FakeInterface, base.Inspect):
    """Reports ``driver_info["fake_inventory"]``; nothing without it."""

    @property
    def hooks(self) -> tuple[str, ...]:
        return self.conf.inspector.hooks

    def get_properties(self) -> dict[str, str]:
        return {"fake_inventory": "What an inspection sees, in the form of ironic-python-agent."}

    def validate(self, task: base.DriverTask) -> None:
        super().validate(task)
        inventory = task.driver_info.get("fake_inventory")
        if inventory is not None and not isinstance(inventory, dict):
            raise errors.InvalidParameterValue(
                reason="driver_info/fake_inventory takes an object, such as "
                '{"interfaces": [{"name": "eth0", "mac_address": "52:54:00:00:00:01"}]}',
            )

    def inspect_hardware(self, task: base.DriverTask) -> Outcome | None:
        outcome = self.act(task, "inspect_hardware")
        inventory = task.driver_info.get("fake_inventory")
        if outcome is not None or inventory is None:
            return outcome or Done()
        return Done(result={"inventory": {"inventory": inventory}})

    abort = answers("abort")


class FakeConsole(FakeInterface, base.Console):
    start_console = answers("start_console")
    stop_console = answers("stop_console")

    def get_console(self, task: base.DriverTask) -> dict[str, str]:
        return {}


class FakeRescue(FakeInterface, base.Rescue):
    rescue = acts("rescue")
    unrescue = acts("unrescue")
    clean_up = acts("clean_up")


class FakeVendor(FakeInterface, base.Vendor):
    def get_properties(self) -> dict[str, str]:
        return {"B1": "B1 description. Required.", "B2": "B2 description. Required."}

    @vendor_methods.passthru(("POST",), description="Take its time, in the background.")
    def second_method(self, task: base.DriverTask, bar: Any, **_: Any) -> Outcome | None:
        return self.act(task, "second_method")

    @vendor_methods.passthru(
        ("POST",), async_call=False, description="Tell whether bar is the word meow."
    )
    def third_method_sync(self, task: base.DriverTask, bar: Any, **_: Any) -> bool:
        self.answer(task, "third_method_sync")
        return bool(bar == "meow")

    @vendor_methods.passthru(
        ("POST",),
        require_exclusive_lock=False,
        description="Take its time, beside whatever holds the node.",
    )
    def fourth_method_shared_lock(self, task: base.DriverTask, bar: Any, **_: Any) -> None:
        self.answer(task, "fourth_method_shared_lock")

    @steps.keeps_disks
    @steps.clean_step(priority=1, resumable=True)
    @steps.service_step(resumable=True)
    @vendor_methods.passthru(("POST",), description="Do nothing that would show.", resumable=True)
    def log_passthrough(self, task: base.DriverTask, **_: Any) -> Outcome | None:
        """Do nothing: the step that automated cleaning of fake nodes runs."""
        return self.act(task, "log_passthrough")

    @steps.keeps_disks
    @steps.service_step(resumable=True)
    def trigger_servicewait(self, task: base.DriverTask) -> Outcome | None:
        """Wait for a heartbeat or an operator.

        The fake agent sends one only where ``driver_info/fake/wait`` names this step.
        """
        return self.act(task, "trigger_servicewait") or WaitForCall(reason="as the step says")
