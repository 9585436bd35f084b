"""The fake hardware type and its interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.conductor.states import ENDS_ON, WAIT_STATES
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base, steps
from bloomery.drivers.fake import behaviour
from bloomery.outcome import DONE, Done, Outcome, WaitForCall


class FakeHardware(base.HardwareType):
    """Takes any enabled interface; prefers the fake ones."""

    lenient = True
    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        "bios": ("fake", "no-bios"),
        "boot": ("fake",),
        "console": ("fake", "no-console"),
        "deploy": ("fake",),
        "firmware": ("fake", "no-firmware"),
        "inspect": ("fake", "no-inspect"),
        "management": ("fake",),
        "network": ("noop",),
        "power": ("fake",),
        "raid": ("fake", "no-raid"),
        "rescue": ("fake", "no-rescue"),
        "storage": ("fake", "noop"),
        "vendor": ("fake", "no-vendor"),
    }

    def check_driver_info(self, driver_info: Mapping[str, Any]) -> None:
        behaviour.check(driver_info, BEHAVES)


class _Fake(base.Interface):
    def validate(self, task: base.DriverTask) -> None:
        behaviour.check(task.driver_info, BEHAVES)

    def act(
        self,
        task: base.DriverTask,
        method: str,
        limit_s: float | None = None,
    ) -> Outcome | None:
        return behaviour.act(self.conf, task, self.kind, method, limit_s)

    def answer(self, task: base.DriverTask, method: str) -> None:
        behaviour.answer(self.conf, task, self.kind, method)


class FakePower(_Fake, base.Power):
    """The machine is in the state that was asked for last: it never differs from the row."""

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


class FakeManagement(_Fake, base.Management):
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

    def get_sensors_data(self, task: base.DriverTask) -> dict[str, Any]:
        return {}

    def get_supported_boot_modes(self, task: base.DriverTask) -> Sequence[str]:
        return ("bios", "uefi")

    def set_boot_mode(self, task: base.DriverTask, mode: str) -> Outcome:
        return self.act(task, "set_boot_mode") or DONE

    def get_boot_mode(self, task: base.DriverTask) -> str | None:
        """Return what was set last, as power does: it never differs from the row."""
        self.answer(task, "get_boot_mode")
        return task.node.boot_mode

    def set_secure_boot_state(self, task: base.DriverTask, on: bool) -> Outcome:
        return self.act(task, "set_secure_boot_state") or DONE

    def get_secure_boot_state(self, task: base.DriverTask) -> bool | None:
        self.answer(task, "get_secure_boot_state")
        return task.node.secure_boot


class FakeBoot(_Fake, base.Boot):
    capabilities = frozenset({"ipxe_boot", "pxe_boot"})

    def prepare_ramdisk(self, task: base.DriverTask, params: Mapping[str, str]) -> Outcome | None:
        return self.act(task, "prepare_ramdisk")

    def clean_up_ramdisk(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "clean_up_ramdisk")

    def prepare_instance(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "prepare_instance")

    def clean_up_instance(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "clean_up_instance")


class FakeDeploy(_Fake, base.Deploy):
    """One step; nothing is written anywhere.  A fake agent calls back for nodes that wait."""

    def periodics(self) -> Sequence[base.Periodic]:
        return (base.Periodic(states=tuple(sorted(WAIT_STATES)), look=behaviour.agent_call),)

    def prepare(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "prepare")

    @steps.deploy_step(priority=100, resumable=True)
    def deploy(self, task: base.DriverTask) -> Outcome | None:
        """Take as long as told, or wait for the fake agent; then be deployed."""
        return self.act(task, "deploy")

    def clean_up(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "clean_up")

    def take_over(self, task: base.DriverTask) -> None:
        self.answer(task, "take_over")

    def tear_down(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "tear_down")

    def prepare_cleaning(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "prepare_cleaning")

    def tear_down_cleaning(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "tear_down_cleaning")

    def prepare_service(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "prepare_service")

    def tear_down_service(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "tear_down_service")


class FakeInspect(_Fake, base.Inspect):
    def inspect_hardware(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "inspect_hardware") or Done()

    def abort(self, task: base.DriverTask) -> None:
        self.answer(task, "abort")


class FakeBios(_Fake, base.Bios):
    pass


class FakeConsole(_Fake, base.Console):
    def start_console(self, task: base.DriverTask) -> None:
        self.answer(task, "start_console")

    def stop_console(self, task: base.DriverTask) -> None:
        self.answer(task, "stop_console")

    def get_console(self, task: base.DriverTask) -> dict[str, str]:
        return {}


class FakeFirmware(_Fake, base.Firmware):
    pass


class FakeRaid(_Fake, base.Raid):
    pass


class FakeRescue(_Fake, base.Rescue):
    def rescue(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "rescue")

    def unrescue(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "unrescue")

    def clean_up(self, task: base.DriverTask) -> Outcome | None:
        return self.act(task, "clean_up")


class FakeStorage(_Fake, base.Storage):
    pass


class FakeVendor(_Fake, base.Vendor):
    def get_properties(self) -> dict[str, str]:
        return {"B1": "B1 description. Required.", "B2": "B2 description. Required."}

    @steps.clean_step(priority=1, resumable=True)
    @steps.service_step(resumable=True)
    def log_passthrough(self, task: base.DriverTask) -> Outcome | None:
        """Do nothing that would show: the step that automated cleaning of fake nodes runs."""
        return self.act(task, "log_passthrough")

    @steps.service_step(resumable=True)
    def trigger_servicewait(self, task: base.DriverTask) -> Outcome | None:
        """Wait until an operator, or an agent, moves the node on."""
        return self.act(task, "trigger_servicewait") or WaitForCall(reason="as the step says")


_FAKES: Final = (
    FakeBios, FakeBoot, FakeConsole, FakeDeploy, FakeFirmware, FakeInspect, FakeManagement,
    FakePower, FakeRaid, FakeRescue, FakeStorage, FakeVendor,
)  # fmt: skip
BEHAVES: Final = frozenset(fake.kind for fake in _FAKES) | frozenset(
    f"{fake.kind}.{method}" for fake in _FAKES for method in dir(fake) if method[0] != "_"
)
