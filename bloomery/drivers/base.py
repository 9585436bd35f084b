"""The seam between conductor and hardware: what a driver is given, and what it must offer.

An interface is one object per process, without state of its own: what must be remembered
stands on the node.  A step is a marked method:

    class Erase(Deploy):
        @clean_step(priority=10, resumable=True)
        def erase_devices(self, held: HeldNode) -> Outcome | None: ...

A method that is called again (after ``Again``, or after a crash when ``resumable``) must land
in the same place; ``task.turn`` counts its calls within one run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol, TypeVar

from bloomery import errors
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.step import Step
from bloomery.outcome import DONE, Outcome

PHASES: Final = ("clean", "deploy", "service", "verify")
M = TypeVar("M", bound=Callable[..., Any])


class DriverTask(Protocol):
    """What a driver may see of a task.

    ``reads``: what was read of the hardware in this turn of a flow, by whoever read it; None
    where nothing may be kept.  ``insists``: a person asked just now, and a BMC that is left
    alone may be tried.  ``budget_s``: how long one call to the BMC may take; None: as long as any.
    """

    node: Node
    turn: int
    reads: dict[str, Any] | None
    insists: bool
    budget_s: float | None

    @property
    def driver(self) -> Driver: ...
    @property
    def ports(self) -> Sequence[Port]: ...
    @property
    def driver_info(self) -> Mapping[str, Any]:
        """The node's driver_info with its secrets readable.  Never store or log it."""

    def save(self) -> None:
        """Write what changed on the node.  Raises LockLost: then stop at once."""

    def assert_exclusive(self) -> None:
        """Raise ExclusiveLockRequired unless the lock is exclusive."""

    def assert_lease(self) -> None:
        """Raise LockLost if another conductor may have taken over: ask before each BMC write."""


# ----------------------------------------------------------------------------- marked steps


def _mark(phase: str, **facts: Any) -> Callable[[M], M]:
    def mark(method: M) -> M:
        marks: dict[str, dict[str, Any]] = getattr(method, "step_marks", {})
        method.step_marks = marks | {phase: facts}  # type: ignore[attr-defined]
        return method

    return mark


def clean_step(
    priority: int,
    *,
    abortable: bool = False,
    argsinfo: dict[str, Any] | None = None,
    requires_ramdisk: bool = True,
    resumable: bool = False,
) -> Callable[[M], M]:
    """Offer a method for cleaning; priority 0: only on request."""
    return _mark(
        "clean", priority=priority, abortable=abortable, argsinfo=argsinfo,
        requires_ramdisk=requires_ramdisk, resumable=resumable,
    )  # fmt: skip


def deploy_step(
    priority: int,
    *,
    abortable: bool = True,
    argsinfo: dict[str, Any] | None = None,
    resumable: bool = False,
) -> Callable[[M], M]:
    """Offer a method for deploying; priority 0: only on request."""
    return _mark(
        "deploy", priority=priority, abortable=abortable, argsinfo=argsinfo, resumable=resumable,
    )  # fmt: skip


def service_step(
    *,
    abortable: bool = False,
    argsinfo: dict[str, Any] | None = None,
    requires_ramdisk: bool = True,
    resumable: bool = False,
) -> Callable[[M], M]:
    """Offer a method for servicing, which always runs on request."""
    return _mark(
        "service", priority=0, abortable=abortable, argsinfo=argsinfo,
        requires_ramdisk=requires_ramdisk, resumable=resumable,
    )  # fmt: skip


def verify_step(priority: int) -> Callable[[M], M]:
    """Offer a method for verifying; reads only, so it may always be repeated."""
    return _mark("verify", priority=priority, resumable=True)


# ------------------------------------------------------------------------------- interfaces


class Interface:
    """What all interfaces share.  ``kind`` is one of the thirteen, ``name`` its entry point."""

    kind: ClassVar[str]
    name: str = "unnamed"
    _steps: ClassVar[dict[str, tuple[Step, ...]]] = {}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if hasattr(cls, "kind"):
            cls._steps = {phase: _collect(cls, phase) for phase in PHASES}

    def __init__(self, conf: Conf) -> None:
        self.conf = conf

    def get_properties(self) -> dict[str, str]:
        """Return {driver_info key: description, beginning "Required." where it is}."""
        return {}

    def close(self) -> None:
        """Give back what is kept at BMCs: the conductor ends.  Must not take long."""

    def validate(self, task: DriverTask) -> None:
        """Raise MissingParameterValue or InvalidParameterValue if the node lacks something."""

    def steps(self, phase: str) -> tuple[Step, ...]:
        """Return the steps that this interface offers in ``phase``."""
        return self._steps[phase]

    def run_step(self, task: DriverTask, step: Step) -> Outcome:
        """Call the step's method with its arguments; a method that returns nothing is done.

        Raises StepNotFound for a method that is no step.
        """
        method = getattr(self, step.step, None)
        if not hasattr(method, "step_marks"):
            offered = sorted({one.name for phase in PHASES for one in self.steps(phase)})
            raise errors.StepNotFound(
                verb="run a step on",
                node=task.node.uuid,
                steps=step.name,
                offered=", ".join(offered) or "none",
            )
        said: Outcome | None = method(task, **step.args)  # type: ignore[misc]
        return said or DONE

    def unsupported(self, task: DriverTask, what: str) -> errors.UnsupportedDriverExtension:
        return errors.UnsupportedDriverExtension(driver=task.node.driver, extension=what)


def _collect(cls: type[Interface], phase: str) -> tuple[Step, ...]:
    found = []
    for name in dir(cls):
        facts = getattr(getattr(cls, name, None), "step_marks", {}).get(phase)
        if facts is not None:
            found.append(Step(interface=cls.kind, step=name, **facts))
    return tuple(found)


class Power(Interface):
    kind = "power"

    def get_power_state(self, task: DriverTask) -> str | None:
        """Return ``power on``, ``power off``, ``error``, or None: cannot tell.

        Raises BmcUnreachable (a retry may help) or BmcRefused (it will not).
        """
        raise NotImplementedError

    def set_power_state(
        self,
        task: DriverTask,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Ask for power ``state``.  Again while the BMC works, Done once it reads so.

        What is done is recorded in ``node.power_state``: no caller does.
        """
        raise NotImplementedError

    def reboot(self, task: DriverTask, timeout_s: float | None = None) -> Outcome:
        """Switch off if on, then on; recorded as ``set_power_state`` does."""
        raise NotImplementedError

    def get_supported_power_states(self, task: DriverTask) -> Sequence[str]:
        return (PowerState.ON, PowerState.OFF, PowerState.REBOOT)

    def supports_power_sync(self, task: DriverTask) -> bool:
        return True

    def describe_bmc(self, task: DriverTask) -> dict[str, Any] | None:
        """Return what is remembered of the node's BMC, without asking it; None: nothing is."""
        return None

    def is_suspect(self, task: DriverTask) -> bool:
        """Tell, without asking the BMC, whether it failed to answer the last time."""
        return False

    def has_answered(self, task: DriverTask, since: datetime) -> bool:
        """Tell, without asking the BMC, whether it answered after ``since`` (``bloomery.clock``).

        Who does not remember that has one outage budget for each step, however often it answers.
        """
        return False


class Management(Interface):
    kind = "management"

    def get_supported_boot_devices(self, task: DriverTask) -> Sequence[str]:
        raise NotImplementedError

    def set_boot_device(self, task: DriverTask, device: str, persistent: bool = False) -> None:
        raise NotImplementedError

    def get_boot_device(self, task: DriverTask) -> dict[str, Any]:
        """Return {"boot_device": name or None, "persistent": bool or None}."""
        raise NotImplementedError

    def get_supported_boot_modes(self, task: DriverTask) -> Sequence[str]:
        raise self.unsupported(task, "get_supported_boot_modes")

    def set_boot_mode(self, task: DriverTask, mode: str) -> Outcome | None:
        raise self.unsupported(task, "set_boot_mode")

    def get_boot_mode(self, task: DriverTask) -> str | None:
        raise self.unsupported(task, "get_boot_mode")

    def get_secure_boot_state(self, task: DriverTask) -> bool | None:
        raise self.unsupported(task, "get_secure_boot_state")

    def set_secure_boot_state(self, task: DriverTask, on: bool) -> Outcome | None:
        raise self.unsupported(task, "set_secure_boot_state")

    def get_sensors_data(self, task: DriverTask) -> dict[str, Any]:
        raise self.unsupported(task, "get_sensors_data")

    def inject_nmi(self, task: DriverTask) -> None:
        raise self.unsupported(task, "inject_nmi")

    def detect_vendor(self, task: DriverTask) -> str | None:
        raise self.unsupported(task, "detect_vendor")


class Boot(Interface):
    kind = "boot"
    capabilities: ClassVar[frozenset[str]] = frozenset()

    def check_machine(self, task: DriverTask) -> None:
        """Ask the machine whether it can be booted this way, before its power is touched.

        Raises InvalidParameterValue or BmcRefused if it cannot.
        """

    def prepare_ramdisk(self, task: DriverTask, params: Mapping[str, str]) -> Outcome | None:
        raise NotImplementedError

    def clean_up_ramdisk(self, task: DriverTask) -> Outcome | None:
        raise NotImplementedError

    def prepare_instance(self, task: DriverTask) -> Outcome | None:
        raise NotImplementedError

    def clean_up_instance(self, task: DriverTask) -> Outcome | None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What an agent says when it calls."""

    callback_url: str
    agent_version: str | None = None
    status: str | None = None
    status_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """A look at nodes every second, as data: which ones, and what to ask.

    ``look`` gets a node under a shared lock and returns what its agent would say by now, or
    None.  It is asked of idle nodes in ``states`` whose deploy interface is the one that names it.
    """

    states: tuple[str, ...]
    look: Callable[[DriverTask], Heartbeat | None]


class Deploy(Interface):
    kind = "deploy"

    def periodics(self) -> Sequence[Periodic]:
        """What the conductor should do from time to time for nodes with this interface."""
        return ()

    def prepare(self, task: DriverTask) -> Outcome | None:
        """Make the node ready for the deploy steps."""

    def clean_up(self, task: DriverTask) -> Outcome | None:
        """Take away what ``prepare`` made, after a deployment that failed."""

    def tear_down(self, task: DriverTask) -> Outcome | None:
        """Take the instance away: power off, disconnect."""

    def prepare_cleaning(self, task: DriverTask) -> Outcome | None:
        """Make the node ready for the clean steps; WaitForCall where an agent must boot."""

    def tear_down_cleaning(self, task: DriverTask) -> Outcome | None:
        """Take away what ``prepare_cleaning`` made."""

    def prepare_service(self, task: DriverTask) -> Outcome | None:
        """Make the node ready for service steps; WaitForCall where an agent must boot."""

    def tear_down_service(self, task: DriverTask) -> Outcome | None:
        """Take away what ``prepare_service`` made."""

    def take_over(self, task: DriverTask) -> None:
        """Become responsible for an active node that another conductor deployed."""

    def on_heartbeat(self, task: DriverTask, heartbeat: Heartbeat) -> Outcome | None:
        """Say what the call of an agent means for the step that waits.

        None: nothing; Done: it is finished; WaitForCall: go on waiting.  Raise if the agent
        reports a failure.
        """
        return DONE


class Inspect(Interface):
    kind = "inspect"

    def inspect_hardware(self, task: DriverTask) -> Outcome | None:
        """Find out what the node is made of: Done(result={"inventory": ..., ...})."""
        raise NotImplementedError

    def abort(self, task: DriverTask) -> None:
        raise self.unsupported(task, "abort")


class Network(Interface):
    kind = "network"

    def vif_attach(self, task: DriverTask, vif_info: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def vif_detach(self, task: DriverTask, vif_id: str) -> None:
        raise NotImplementedError

    def vif_list(self, task: DriverTask) -> list[dict[str, Any]]:
        raise NotImplementedError


class Bios(Interface):
    kind = "bios"

    def cache_bios_settings(self, task: DriverTask) -> Outcome | None:
        """Done(result={"bios_settings": [...]}), or nothing where there are none."""


class Console(Interface):
    kind = "console"

    def start_console(self, task: DriverTask) -> None:
        """Let users reach the console.  Asked twice, it lands in the same place."""
        raise self.unsupported(task, "start_console")

    def stop_console(self, task: DriverTask) -> None:
        """Let nobody reach it any more.  Stopping what does not run succeeds."""
        raise self.unsupported(task, "stop_console")

    def get_console(self, task: DriverTask) -> dict[str, str]:
        """Return {"type": kind, "url": where}."""
        raise self.unsupported(task, "get_console")


class Firmware(Interface):
    kind = "firmware"

    def cache_firmware_components(self, task: DriverTask) -> Outcome | None:
        """Done(result={"firmware": [...]}), or nothing where there are none."""


class Raid(Interface):
    kind = "raid"


class Rescue(Interface):
    kind = "rescue"

    def rescue(self, task: DriverTask) -> Outcome | None:
        raise self.unsupported(task, "rescue")

    def unrescue(self, task: DriverTask) -> Outcome | None:
        raise self.unsupported(task, "unrescue")

    def clean_up(self, task: DriverTask) -> Outcome | None:
        """Take away what ``rescue`` made."""


class Storage(Interface):
    kind = "storage"

    def attach_volumes(self, task: DriverTask) -> None:
        """Attach the node's volume targets."""

    def detach_volumes(self, task: DriverTask) -> None:
        """Detach them again."""

    def should_write_image(self, task: DriverTask) -> bool:
        return True


class Vendor(Interface):
    kind = "vendor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The interfaces that one node uses: siblings that may call each other."""

    bios: Bios
    boot: Boot
    console: Console
    deploy: Deploy
    firmware: Firmware
    inspect: Inspect
    management: Management
    network: Network
    power: Power
    raid: Raid
    rescue: Rescue
    storage: Storage
    vendor: Vendor

    def interface(self, kind: str) -> Interface:
        found: Interface = getattr(self, kind)
        return found


class HardwareType:
    """A kind of hardware: which interfaces it works with, the preferred ones first.

    ``lenient`` types take any enabled interface (fake hardware does).
    """

    supported: ClassVar[Mapping[str, Sequence[str]]]
    lenient: ClassVar[bool] = False

    def check_driver_info(self, driver_info: Mapping[str, Any]) -> None:
        """Refuse, as it is written, what no node of this type could ever use.

        What is merely missing yet is the business of the interfaces' ``validate``.  Secrets are
        sealed here.  Raises InvalidParameterValue.
        """
