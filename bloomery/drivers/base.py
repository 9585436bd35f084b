"""The seam between conductor and hardware: what a driver is given, and what it must offer.

An interface is one object per process, without state of its own: what must be remembered
stands on the node.  A step is a marked method:

    class Erase(Deploy):
        @clean_step(priority=10, resumable=True)
        def erase_devices(self, held: HeldNode) -> Outcome | None: ...

A method that is called again (after ``Again``, or after a crash when ``resumable``) must land
in the same place; ``held.turn`` counts its calls within one run.
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


class HeldNode(Protocol):
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

    def validate(self, held: HeldNode) -> None:
        """Raise MissingParameterValue or InvalidParameterValue if the node lacks something."""

    def steps(self, phase: str) -> tuple[Step, ...]:
        """Return the steps that this interface offers in ``phase``."""
        return self._steps[phase]

    def run_step(self, held: HeldNode, step: Step) -> Outcome:
        """Call the step's method with its arguments; a method that returns nothing is done.

        Raises StepNotFound for a method that is no step.
        """
        method = getattr(self, step.step, None)
        if not hasattr(method, "step_marks"):
            offered = sorted({one.name for phase in PHASES for one in self.steps(phase)})
            raise errors.StepNotFound(
                verb="run a step on",
                node=held.node.uuid,
                steps=step.name,
                offered=", ".join(offered) or "none",
            )
        said: Outcome | None = method(held, **step.args)  # type: ignore[misc]
        return said or DONE

    def unsupported(self, held: HeldNode, what: str) -> errors.UnsupportedDriverExtension:
        return errors.UnsupportedDriverExtension(driver=held.node.driver, extension=what)


def _collect(cls: type[Interface], phase: str) -> tuple[Step, ...]:
    found = []
    for name in dir(cls):
        facts = getattr(getattr(cls, name, None), "step_marks", {}).get(phase)
        if facts is not None:
            found.append(Step(interface=cls.kind, step=name, **facts))
    return tuple(found)


class Power(Interface):
    kind = "power"

    def get_power_state(self, held: HeldNode) -> str | None:
        """Return ``power on``, ``power off``, ``error``, or None: cannot tell.

        Raises BmcUnreachable (a retry may help) or BmcRefused (it will not).
        """
        raise NotImplementedError

    def set_power_state(
        self,
        held: HeldNode,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Ask for power ``state``.  Again while the BMC works, Done once it reads so.

        What is done is recorded in ``node.power_state``: no caller does.
        """
        raise NotImplementedError

    def reboot(self, held: HeldNode, timeout_s: float | None = None) -> Outcome:
        """Switch off if on, then on; recorded as ``set_power_state`` does."""
        raise NotImplementedError

    def get_supported_power_states(self, held: HeldNode) -> Sequence[str]:
        return (PowerState.ON, PowerState.OFF, PowerState.REBOOT)

    def supports_power_sync(self, held: HeldNode) -> bool:
        return True

    def describe_bmc(self, held: HeldNode) -> dict[str, Any] | None:
        """Return what is remembered of the node's BMC, without asking it; None: nothing is."""
        return None

    def is_suspect(self, held: HeldNode) -> bool:
        """Tell, without asking the BMC, whether it failed to answer the last time."""
        return False

    def has_answered(self, held: HeldNode, since: datetime) -> bool:
        """Tell, without asking the BMC, whether it answered after ``since`` (``bloomery.clock``).

        Who does not remember that has one outage budget for each step, however often it answers.
        """
        return False


class Management(Interface):
    kind = "management"

    def get_supported_boot_devices(self, held: HeldNode) -> Sequence[str]:
        raise NotImplementedError

    def set_boot_device(self, held: HeldNode, device: str, persistent: bool = False) -> None:
        raise NotImplementedError

    def get_boot_device(self, held: HeldNode) -> dict[str, Any]:
        """Return {"boot_device": name or None, "persistent": bool or None}."""
        raise NotImplementedError

    def get_supported_boot_modes(self, held: HeldNode) -> Sequence[str]:
        raise self.unsupported(held, "get_supported_boot_modes")

    def set_boot_mode(self, held: HeldNode, mode: str) -> Outcome | None:
        raise self.unsupported(held, "set_boot_mode")

    def get_boot_mode(self, held: HeldNode) -> str | None:
        raise self.unsupported(held, "get_boot_mode")

    def get_secure_boot_state(self, held: HeldNode) -> bool | None:
        raise self.unsupported(held, "get_secure_boot_state")

    def set_secure_boot_state(self, held: HeldNode, on: bool) -> Outcome | None:
        raise self.unsupported(held, "set_secure_boot_state")

    def get_sensors_data(self, held: HeldNode) -> dict[str, Any]:
        raise self.unsupported(held, "get_sensors_data")

    def inject_nmi(self, held: HeldNode) -> None:
        raise self.unsupported(held, "inject_nmi")

    def detect_vendor(self, held: HeldNode) -> str | None:
        raise self.unsupported(held, "detect_vendor")


class Boot(Interface):
    kind = "boot"
    capabilities: ClassVar[frozenset[str]] = frozenset()

    def check_machine(self, held: HeldNode) -> None:
        """Ask the machine whether it can be booted this way, before its power is touched.

        Raises InvalidParameterValue or BmcRefused if it cannot.
        """

    def prepare_ramdisk(self, held: HeldNode, params: Mapping[str, str]) -> Outcome | None:
        raise NotImplementedError

    def clean_up_ramdisk(self, held: HeldNode) -> Outcome | None:
        raise NotImplementedError

    def prepare_instance(self, held: HeldNode) -> Outcome | None:
        raise NotImplementedError

    def clean_up_instance(self, held: HeldNode) -> Outcome | None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
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
    look: Callable[[HeldNode], Beat | None]


class Deploy(Interface):
    kind = "deploy"

    def periodics(self) -> Sequence[Periodic]:
        """What the conductor should do from time to time for nodes with this interface."""
        return ()

    def prepare(self, held: HeldNode) -> Outcome | None:
        """Make the node ready for the deploy steps."""

    def clean_up(self, held: HeldNode) -> Outcome | None:
        """Take away what ``prepare`` made, after a deployment that failed."""

    def tear_down(self, held: HeldNode) -> Outcome | None:
        """Take the instance away: power off, disconnect."""

    def prepare_cleaning(self, held: HeldNode) -> Outcome | None:
        """Make the node ready for the clean steps; WaitForCall where an agent must boot."""

    def tear_down_cleaning(self, held: HeldNode) -> Outcome | None:
        """Take away what ``prepare_cleaning`` made."""

    def prepare_service(self, held: HeldNode) -> Outcome | None:
        """Make the node ready for service steps; WaitForCall where an agent must boot."""

    def tear_down_service(self, held: HeldNode) -> Outcome | None:
        """Take away what ``prepare_service`` made."""

    def take_over(self, held: HeldNode) -> None:
        """Become responsible for an active node that another conductor deployed."""

    def on_heartbeat(self, held: HeldNode, beat: Beat) -> Outcome | None:
        """Say what the call of an agent means for the step that waits.

        None: nothing; Done: it is finished; WaitForCall: go on waiting.  Raise if the agent
        reports a failure.
        """
        return DONE


class Inspect(Interface):
    kind = "inspect"

    def inspect_hardware(self, held: HeldNode) -> Outcome | None:
        """Find out what the node is made of: Done(result={"inventory": ..., ...})."""
        raise NotImplementedError

    def abort(self, held: HeldNode) -> None:
        raise self.unsupported(held, "abort")


class Network(Interface):
    kind = "network"

    def vif_attach(self, held: HeldNode, vif_info: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def vif_detach(self, held: HeldNode, vif_id: str) -> None:
        raise NotImplementedError

    def vif_list(self, held: HeldNode) -> list[dict[str, Any]]:
        raise NotImplementedError


class Bios(Interface):
    kind = "bios"

    def cache_bios_settings(self, held: HeldNode) -> Outcome | None:
        """Done(result={"bios_settings": [...]}), or nothing where there are none."""


class Console(Interface):
    kind = "console"

    def start_console(self, held: HeldNode) -> None:
        """Let users reach the console.  Asked twice, it lands in the same place."""
        raise self.unsupported(held, "start_console")

    def stop_console(self, held: HeldNode) -> None:
        """Let nobody reach it any more.  Stopping what does not run succeeds."""
        raise self.unsupported(held, "stop_console")

    def get_console(self, held: HeldNode) -> dict[str, str]:
        """Return {"type": kind, "url": where}."""
        raise self.unsupported(held, "get_console")


class Firmware(Interface):
    kind = "firmware"

    def cache_firmware_components(self, held: HeldNode) -> Outcome | None:
        """Done(result={"firmware": [...]}), or nothing where there are none."""


class Raid(Interface):
    kind = "raid"


class Rescue(Interface):
    kind = "rescue"

    def rescue(self, held: HeldNode) -> Outcome | None:
        raise self.unsupported(held, "rescue")

    def unrescue(self, held: HeldNode) -> Outcome | None:
        raise self.unsupported(held, "unrescue")

    def clean_up(self, held: HeldNode) -> Outcome | None:
        """Take away what ``rescue`` made."""


class Storage(Interface):
    kind = "storage"

    def attach_volumes(self, held: HeldNode) -> None:
        """Attach the node's volume targets."""

    def detach_volumes(self, held: HeldNode) -> None:
        """Detach them again."""

    def should_write_image(self, held: HeldNode) -> bool:
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
