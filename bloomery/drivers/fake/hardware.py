"""The fake hardware type and its interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bloomery import errors
from bloomery.conductor.states import ENDS_ON, WAIT_STATES
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base
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
        behaviour.check(driver_info)


class _Fake(base.Interface):
    def validate(self, held: base.HeldNode) -> None:
        behaviour.validate(held)

    def act(
        self,
        held: base.HeldNode,
        method: str,
        limit_s: float | None = None,
    ) -> Outcome | None:
        return behaviour.act(self.conf, held, self.kind, method, limit_s)

    def answer(self, held: base.HeldNode, method: str) -> None:
        behaviour.answer(self.conf, held, self.kind, method)


class FakePower(_Fake, base.Power):
    """The machine is in the state that was asked for last: it never differs from the row."""

    def get_power_state(self, held: base.HeldNode) -> str | None:
        self.answer(held, "get_power_state")
        return held.node.power_state

    def set_power_state(
        self,
        held: base.HeldNode,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        pending = self.act(held, "set_power_state", timeout_s)
        if pending is None:
            held.node.power_state = PowerState.ON if state in ENDS_ON else PowerState.OFF
        return pending or DONE

    def reboot(self, held: base.HeldNode, timeout_s: float | None = None) -> Outcome:
        pending = self.act(held, "reboot", timeout_s)
        if pending is None:
            held.node.power_state = PowerState.ON
        return pending or DONE

    def get_supported_power_states(self, held: base.HeldNode) -> Sequence[str]:
        return tuple(PowerState.__members__.values())[:-1]


class FakeManagement(_Fake, base.Management):
    def get_supported_boot_devices(self, held: base.HeldNode) -> Sequence[str]:
        return ("pxe",)

    def set_boot_device(self, held: base.HeldNode, device: str, persistent: bool = False) -> None:
        if device not in self.get_supported_boot_devices(held):
            raise errors.InvalidParameterValue(
                reason=f"Invalid boot device {device} specified: fake hardware takes pxe only",
            )
        self.answer(held, "set_boot_device")

    def get_boot_device(self, held: base.HeldNode) -> dict[str, Any]:
        self.answer(held, "get_boot_device")
        return {"boot_device": "pxe", "persistent": False}

    def get_sensors_data(self, held: base.HeldNode) -> dict[str, Any]:
        return {}


class FakeBoot(_Fake, base.Boot):
    capabilities = frozenset({"ipxe_boot", "pxe_boot"})

    def prepare_ramdisk(self, held: base.HeldNode, params: Mapping[str, str]) -> Outcome | None:
        return self.act(held, "prepare_ramdisk")

    def clean_up_ramdisk(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "clean_up_ramdisk")

    def prepare_instance(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "prepare_instance")

    def clean_up_instance(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "clean_up_instance")


class FakeDeploy(_Fake, base.Deploy):
    """One step; nothing is written anywhere.  A fake agent calls back for nodes that wait."""

    def periodics(self) -> Sequence[base.Periodic]:
        return (base.Periodic(states=tuple(sorted(WAIT_STATES)), look=behaviour.agent_call),)

    def prepare(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "prepare")

    @base.deploy_step(priority=100, resumable=True)
    def deploy(self, held: base.HeldNode) -> Outcome | None:
        """Take as long as told, or wait for the fake agent; then be deployed."""
        return self.act(held, "deploy")

    def clean_up(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "clean_up")

    def take_over(self, held: base.HeldNode) -> None:
        self.answer(held, "take_over")

    def tear_down(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "tear_down")

    def prepare_cleaning(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "prepare_cleaning")

    def tear_down_cleaning(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "tear_down_cleaning")

    def prepare_service(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "prepare_service")

    def tear_down_service(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "tear_down_service")


class FakeInspect(_Fake, base.Inspect):
    def inspect_hardware(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "inspect_hardware") or Done()

    def abort(self, held: base.HeldNode) -> None:
        self.answer(held, "abort")


class FakeBios(_Fake, base.Bios):
    pass


class FakeConsole(_Fake, base.Console):
    def start_console(self, held: base.HeldNode) -> None:
        self.answer(held, "start_console")

    def stop_console(self, held: base.HeldNode) -> None:
        self.answer(held, "stop_console")

    def get_console(self, held: base.HeldNode) -> dict[str, str]:
        return {}


class FakeFirmware(_Fake, base.Firmware):
    pass


class FakeRaid(_Fake, base.Raid):
    pass


class FakeRescue(_Fake, base.Rescue):
    def rescue(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "rescue")

    def unrescue(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "unrescue")

    def clean_up(self, held: base.HeldNode) -> Outcome | None:
        return self.act(held, "clean_up")


class FakeStorage(_Fake, base.Storage):
    pass


class FakeVendor(_Fake, base.Vendor):
    def get_properties(self) -> dict[str, str]:
        return {"B1": "B1 description. Required.", "B2": "B2 description. Required."}

    @base.clean_step(priority=1, resumable=True)
    @base.service_step(resumable=True)
    def log_passthrough(self, held: base.HeldNode) -> Outcome | None:
        """Do nothing that would show: the step that automated cleaning of fake nodes runs."""
        return self.act(held, "log_passthrough")

    @base.service_step(resumable=True)
    def trigger_servicewait(self, held: base.HeldNode) -> Outcome | None:
        """Wait until an operator, or an agent, moves the node on."""
        return self.act(held, "trigger_servicewait") or WaitForCall(reason="as the step says")
