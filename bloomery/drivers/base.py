"""The interface between conductor and drivers: ``DriverTask``, and the classes of drivers.

A driver is a hardware type with its interfaces.  An interface is one object per process without
state; state goes to the node, into ``task.node.driver_internal_info``.  Most interfaces need few of
the methods:

    class RelayPower(base.Power):
        def get_power_state(self, task): ...
        def set_power_state(self, task, state, timeout_s=None): ...
        def reboot(self, task, timeout_s=None): ...

**Two kinds of methods.**  Methods that return an ``Outcome`` run in a step of a flow, under the
node's exclusive lock, in a worker.  After ``Again`` they are called again with ``task.turn`` one
higher; None means Done.  They must be idempotent: the same turn may be repeated after silence of
the BMC or a crash.  All others are plain calls, which block their caller for at most
``task.budget_s`` and return a value.  No method sleeps.

**Errors.**  ``BmcUnreachable``: no answer, a retry may help; the runner repeats the turn of a
resumable step for [conductor]bmc_outage_budget seconds, unless a user waits for it (power, manage,
boot mode, console).  ``BmcBusy``: the same, from a BMC that answers "not now".  ``BmcRefused``: the
BMC refused, a retry will not help.  ``BmcFailed``: it failed, and may have carried out the order.
``BmcLoginRefused``: wrong login.  ``MissingParameterValue``, ``InvalidParameterValue`` (400): a
setting of the operator, by name.  ``UnsupportedDriverExtension`` (400,
``self.unsupported(task, "what")``): not with this interface.  ``StepFailure``: any other failure of
a step.  Their texts reach users, so they must hold no secrets.  Any other exception fails the step,
too, and is logged with its traceback.
``LockLost`` must pass through.

**Units.**  Seconds are floats ending in ``_s``; sizes have their unit in the name (``memory_mb``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol, TypedDict

from bloomery import errors
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import raid_config, steps
from bloomery.drivers.looks import Look
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup
from bloomery.model.step import Step
from bloomery.model.volume import VolumeConnector, VolumeTarget
from bloomery.outcome import DONE, Outcome

WRITE_BUDGET_S: Final = 20.0  # longest time from the lease check until the BMC gets a write


class DriverTask(Protocol):
    """A node and the driver's view of its task.

    ``node``: plain values; changes are written when the step ends or waits, or by ``save``.  A
    shared task (power sync) writes nothing. ``turn``: the number of earlier calls of this
    step in this run. ``reads``: a cache for hardware reads of this turn, by keys of the driver;
    None where nothing may be kept. ``insists``: a user's request, which may call a BMC in back-off.
    ``budget_s``: time limit of one call to the BMC; None: [bmc]call_timeout.
    """

    node: Node
    turn: int
    reads: dict[str, Any] | None
    insists: bool
    budget_s: float | None

    @property
    def driver(self) -> Driver:
        """The node's interfaces: ``task.driver.power.set_power_state(task, ...)``."""

    @property
    def driver_info(self) -> Mapping[str, Any]:
        """The node's driver_info with readable secrets.  Never store or log it.

        ``task.node.driver_info`` has them sealed.
        """

    def opened(self, value: Any) -> Any:
        """Return a value of the node, such as of instance_info, with readable secrets.

        Never store or log it.
        """

    @property
    def ports(self) -> Sequence[Port]:
        """The node's ports, read at the first use, as are the lists below."""

    @property
    def portgroups(self) -> Sequence[Portgroup]: ...
    @property
    def volume_connectors(self) -> Sequence[VolumeConnector]: ...
    @property
    def volume_targets(self) -> Sequence[VolumeTarget]:
        """The node's volumes with readable secrets.  Never store them."""

    def save(self) -> None:
        """Write the node's changes now.  Raises LockLost: then stop at once.

        Call it before an act that a successor must know of after a crash.
        """

    def sealed(self, value: Any) -> Any:
        """Return a value of the node with sealed secrets, to store it: what ``opened`` opens."""

    def others_of_bmc(self) -> AbstractContextManager[Sequence[DriverTask]]:
        """Lock the other nodes behind the node's BMC, each for its own task, within ``with``.

        Raises NodeLocked where one is in use.
        """

    def forget_agent(self) -> None:
        """End the session of the node's agent: the next agent gets a new token."""

    def make_agent_token(self) -> str:
        """Return the token for the kernel parameters of the next agent; lookup then gives none.

        It is stored first, and stays the same until ``forget_agent``.  Never log it.
        """

    def record(self, sentence: str) -> None:
        """Add a sentence to the node's history, with the node's changes.  Raises LockLost."""

    def assert_exclusive(self) -> None:
        """Raise ExclusiveLockRequired unless the lock is exclusive."""

    def assert_lease(self) -> None:
        """Raise LockLost if another conductor may have taken over.

        Call it before each write to a BMC; the gateway (``drivers/bmc``) does so.
        """


class Interface:
    """The base of all interfaces.  ``kind``: one of the thirteen; ``name``: its entry point."""

    kind: ClassVar[str]
    name: str = "unnamed"
    asks_agents: ClassVar[bool] = False  # runs steps of the node's agent, which may take seconds
    _steps: ClassVar[dict[str, tuple[Step, ...]]] = {}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if hasattr(cls, "kind"):
            cls._steps = {phase: steps.marked_in(cls, cls.kind, phase) for phase in steps.PHASES}

    def __init__(self, conf: Conf) -> None:
        """Called once at the conductor's start.  Raises CannotStart for wrong options."""
        self.conf = conf

    def get_properties(self) -> dict[str, str]:
        """Return {driver_info key: description}; required keys have "Required." in it.

        When: GET /v1/drivers/NAME/properties, for a type's default interfaces.
        """
        return {}

    def close(self) -> None:
        """Release what is kept at BMCs.

        When: once, at the conductor's end.  Must return within seconds.
        """

    def validate(self, task: DriverTask) -> None:
        """Check that the node has the settings of this interface; asks no BMC.

        When: GET /v1/nodes/ID/validate; and before work begins: ``power`` of every verb and every
        power sync, ``deploy`` of active and rebuild, ``boot`` of adopt, ``network`` of clean,
        service, rescue, inspect, active and rebuild, and ``inspect``, ``rescue``, ``console``,
        ``management`` before their own requests.  Raises MissingParameterValue,
        InvalidParameterValue.
        """

    def list_ineffective(self, task: DriverTask) -> Sequence[str]:
        """Return the names of the node's settings that this interface ignores.

        When: GET validate, as the reason of a valid result; and in the log when a deployment
        begins.
        """
        return ()

    def steps(self, phase: str) -> tuple[Step, ...]:
        """Return the steps of ``phase``: clean, deploy, service or verify.

        When: a flow is planned.  Override it where the steps are not methods.
        """
        return self._steps[phase]

    def run_step(self, task: DriverTask, step: Step) -> Outcome:
        """Call the step's method with its arguments; None means Done.

        When: each turn of each step.  Raises StepNotFound for a method that is no step.
        """
        method = getattr(self, step.step, None)
        if not steps.is_step(method):
            offered = sorted({step.name for phase in steps.PHASES for step in self.steps(phase)})
            raise errors.StepNotFound(
                verb="run a step on",
                node=errors.name_of(task.node),
                steps=step.name,
                offered=", ".join(offered) or f"no steps of {self.kind}",
            )
        outcome: Outcome | None = method(task, **step.args)  # type: ignore[misc]
        return outcome or DONE

    def unsupported(self, task: DriverTask, what: str) -> errors.UnsupportedDriverExtension:
        """Return the error of a method that this interface does not offer."""
        return errors.UnsupportedDriverExtension(driver=task.node.driver, extension=what)


class Power(Interface):
    """Power control.

    Source: DMTF DSP2046, ComputerSystem, PowerState and action Reset; IPMI 2.0, section 28, Chassis
    Control.
    """

    kind = "power"
    only_restarts: ClassVar[bool] = False  # by the node's agent; an operator does all else

    def get_power_state(self, task: DriverTask) -> str | None:
        """Return ``power on``, ``power off``, ``error`` (the BMC says so), or None: unknown.

        When: manage, adopt, before a power change, each power sync (shared lock, 10 s), and to
        detect the recovery of a node in maintenance after a power failure.  Raises BmcUnreachable,
        BmcRefused.
        """
        raise NotImplementedError

    def set_power_state(
        self,
        task: DriverTask,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Bring power to ``state``: Again while the BMC works, Done once the state is read.

        ``state``: one of ``get_supported_power_states``: ``power on``, ``power off``,
        ``rebooting``, ``soft power off``, ``soft rebooting``. ``timeout_s``: time limit; None:
        [conductor]power_state_change_timeout. When: PUT states/power, the steps power_on and
        power_off, and by other interfaces such as deploy. Sets ``task.node.power_state`` to the
        state reached. Raises PowerStateFailure at the time limit, BmcUnreachable, BmcRefused,
        InvalidParameterValue for a state that the BMC does not offer.
        """
        raise NotImplementedError

    def reboot(self, task: DriverTask, timeout_s: float | None = None) -> Outcome:
        """Switch off if on, then on; arguments, result and errors as of ``set_power_state``.

        When: PUT states/power with rebooting, the step reboot, and by other interfaces.  A node
        with ``disable_power_off`` must restart without going off.
        """
        raise NotImplementedError

    def get_supported_power_states(self, task: DriverTask) -> Sequence[str]:
        """Return the supported targets, without asking the BMC.

        When: before PUT states/power, which refuses others with 400.
        """
        return (PowerState.ON, PowerState.OFF, PowerState.REBOOT)

    def supports_power_sync(self, task: DriverTask) -> bool:
        """Return whether power sync may bring the machine to the recorded state.

        When: power sync has read another state.  False: the record follows the machine.
        """
        return True

    def describe_bmc(self, task: DriverTask) -> dict[str, Any] | None:
        """Return the known state of the node's BMC as JSON, or None.

        When: GET /ext/v1/nodes/ID/why.  Asks no BMC; the gateway's ``BmcState.describe`` does it.
        """
        return None

    def examine_bmc(self, task: DriverTask) -> dict[str, Any]:
        """Return the report of the node's BMC (``drivers/bmc/state``); reads alone.

        When: GET /ext/v1/nodes/ID/bmc; shared lock.  The report has the error of a silent BMC.
        """
        raise self.unsupported(task, "examine_bmc")

    def look(self, task: DriverTask, former: Look | None) -> Look | None:
        """Return how the pulse may ask the node's BMC from now on, or None: within tasks alone.

        When: power sync and recovery, after each change of the node.  Asks no BMC.  ``former``: the
        last one, which is returned while it asks the same BMC in the same way.
        """
        return None

    def has_answered(self, task: DriverTask, since: datetime) -> bool:
        """Return whether the BMC answered after ``since`` (``bloomery.clock``); asks no BMC.

        When: a step returns Again after silence; an answer starts a new outage budget.  An
        interface without this has one budget per step.
        """
        return False


class Indicator(TypedDict):
    """An indicator light: whether it is read-only, and its states."""

    readonly: bool
    states: list[str]


class Management(Interface):
    """Boot device and mode, secure boot, indicators, virtual media.

    Source: DMTF DSP2046, ComputerSystem, property Boot, and SecureBoot; IPMI 2.0, section 28.12,
    Set System Boot Options.
    """

    kind = "management"

    def get_supported_boot_devices(self, task: DriverTask) -> Sequence[str]:
        """Return Ironic's names: pxe, disk, cdrom, bios, safe, uefihttp.

        When: GET management/boot_device/supported.  May ask the BMC.
        """
        raise NotImplementedError

    def set_boot_device(self, task: DriverTask, device: str, persistent: bool = False) -> None:
        """Boot from ``device`` at the next boot, or at every boot if ``persistent``.

        When: PUT management/boot_device, and by boot interfaces within a step.  Exclusive lock.
        Raises InvalidParameterValue for an unknown device, BmcUnreachable, BmcRefused.
        """
        raise NotImplementedError

    def get_boot_device(self, task: DriverTask) -> dict[str, Any]:
        """Return {"boot_device": name or None, "persistent": bool or None}; None: unknown.

        When: GET management/boot_device.  Raises BmcUnreachable, BmcRefused.
        """
        raise NotImplementedError

    def get_supported_boot_modes(self, task: DriverTask) -> Sequence[str]:
        """Return some of uefi, bios.  Raises as ``get_boot_device``."""
        raise self.unsupported(task, "get_supported_boot_modes")

    def set_boot_mode(self, task: DriverTask, mode: str) -> Outcome | None:
        """Boot in ``mode``, uefi or bios; Again while the machine restarts to apply it.

        When: PUT states/boot_mode, and by boot interfaces.  Done without a restart where the mode
        is set.  Raises InvalidParameterValue, StepFailure when it does not take effect in time.
        """
        raise self.unsupported(task, "set_boot_mode")

    def get_boot_mode(self, task: DriverTask) -> str | None:
        """Return uefi, bios, or None: unknown.

        When: manage, which records it; a failure is only logged.
        """
        raise self.unsupported(task, "get_boot_mode")

    def get_secure_boot_state(self, task: DriverTask) -> bool | None:
        """Return whether secure boot is on, or None where there is none.  When: manage."""
        raise self.unsupported(task, "get_secure_boot_state")

    def set_secure_boot_state(self, task: DriverTask, on: bool) -> Outcome | None:
        """Switch secure boot; as ``set_boot_mode``.  When: also PUT states/secure_boot."""
        raise self.unsupported(task, "set_secure_boot_state")

    def inject_nmi(self, task: DriverTask) -> None:
        """Interrupt the running system.  When: PUT management/inject_nmi; exclusive lock."""
        raise self.unsupported(task, "inject_nmi")

    def change_factory_password(self, task: DriverTask) -> Outcome | None:
        """Change the BMC's password where the BMC accepts no other order before.

        When: manage, before the power check, with [redfish]change_factory_password.
        """
        return None

    def detect_vendor(self, task: DriverTask) -> str | None:
        """Return the vendor's name, or None.  When: manage, as ``properties/vendor``."""
        raise self.unsupported(task, "detect_vendor")

    def get_node_health(self, task: DriverTask) -> str | None:
        """Return OK, Warning, Critical, or None: unknown.  When: verify, power sync."""
        raise self.unsupported(task, "get_node_health")

    def get_sensors_data(self, task: DriverTask) -> dict[str, dict[str, dict[str, Any]]]:
        """Return {type: {sensor: {field: value}}} in Ironic's form, or {} where there are none.

        When: [sensor_data]interval; shared lock.  Raises BmcUnreachable, BmcRefused.
        """
        raise self.unsupported(task, "get_sensors_data")

    def read_bmc_log(self, task: DriverTask) -> dict[str, Any]:
        """Return the BMC's log of hardware (``drivers/bmc/logs``), its newest entries first.

        ``name``: None where it has none; ``total``: its entries as the BMC counts them;
        ``clock_difference_s``: the BMC's clock less this host's; ``entries``: each with id,
        created_at, severity (OK, Warning, Critical, or None) and message, secrets masked.
        When: GET /ext/v1/nodes/ID/bmc_log, and after a failed flow; shared lock.  Raises
        BmcUnreachable, BmcRefused.
        """
        raise self.unsupported(task, "read_bmc_log")

    def get_supported_indicators(
        self, task: DriverTask, component: str | None = None
    ) -> dict[str, dict[str, Indicator]]:
        """Return {component: {name: {"readonly": bool, "states": names}}}, of one or all.

        Components: system, chassis, disk, power, nic; states: on, off, blinking, unknown.  When:
        GET management/indicators; shared lock.  Raises InvalidParameterValue for an unknown
        component.
        """
        raise self.unsupported(task, "get_supported_indicators")

    def get_indicator_state(self, task: DriverTask, component: str, indicator: str) -> str:
        """Return the state of one indicator.  Raises as ``set_indicator_state``."""
        raise self.unsupported(task, "get_indicator_state")

    def set_indicator_state(
        self, task: DriverTask, component: str, indicator: str, state: str
    ) -> None:
        """Set an indicator.  When: PUT management/indicators/NAME; exclusive lock.

        Raises InvalidParameterValue for an unknown indicator or state.
        """
        raise self.unsupported(task, "set_indicator_state")

    def get_virtual_media(self, task: DriverTask) -> list[dict[str, Any]]:
        """Return [{"media_types": names, "inserted": bool, "image": address or ""}, ...].

        When: GET vmedia; shared lock.
        """
        raise self.unsupported(task, "get_virtual_media")

    def attach_virtual_media(
        self, task: DriverTask, device_type: str, image_url: str
    ) -> Outcome | None:
        """Insert an image into a device of ``device_type``: cdrom, disk or floppy.

        When: POST vmedia, within a step.  Raises InvalidParameterValue where there is no such
        device.
        """
        raise self.unsupported(task, "attach_virtual_media")

    def detach_virtual_media(
        self, task: DriverTask, device_types: Sequence[str] | None = None
    ) -> Outcome | None:
        """Eject the media in devices of these types; None: in all.  Fine where there are none.

        When: DELETE vmedia, within a step.
        """
        raise self.unsupported(task, "detach_virtual_media")


class Boot(Interface):
    """Boots the machine into an agent's ramdisk, and into its instance.

    ``capabilities``, for deploy interfaces: ``ramdisk_boot`` (a persistent ISO),
    ``ramdisk_boot_configdrive``, ``iscsi_volume_boot``, ``pxe_boot``, ``ipxe_boot``.  Deploy and
    rescue interfaces call the methods within a step; each but ``check_machine`` may return Again.
    ``is_measured``: it notes what GRUB measures of the agent's boot (``agent_boot.measurements``).
    """

    kind = "boot"
    is_measured: ClassVar[bool] = False
    capabilities: ClassVar[frozenset[str]] = frozenset()

    def check_machine(self, task: DriverTask) -> None:
        """Check, before any power change, that the machine supports this boot.

        Raises InvalidParameterValue or BmcRefused if it does not.
        """

    def validate_ramdisk(self, task: DriverTask) -> None:
        """Check that an agent's ramdisk can be booted; asks no BMC.

        When: ``validate`` of deploy interfaces that need an agent.  Raises as ``validate``, and
        UnsupportedDriverExtension where this interface boots no ramdisk.
        """
        raise self.unsupported(task, f"an agent's ramdisk by boot interface {self.name}")

    def validate_rescue(self, task: DriverTask) -> None:
        """Check that an agent for a rescue can be booted.  When: ``validate`` of ``agent`` rescue.

        Raises as ``validate_ramdisk``.
        """
        self.validate_ramdisk(task)

    def validate_inspection(self, task: DriverTask) -> None:
        """Check that an agent for inspection can be booted.  When: in-band inspection.

        Raises as ``validate_ramdisk``.
        """
        self.validate_ramdisk(task)

    def prepare_ramdisk(self, task: DriverTask, params: Mapping[str, str]) -> Outcome | None:
        """Make the next boot that of the agent's ramdisk; the machine is off.

        ``params``: kernel parameters, such as {"ipa-api-url": URL}.  The caller switches on.
        Raises MissingParameterValue where the ramdisk is not named.
        """
        raise NotImplementedError

    def clean_up_ramdisk(self, task: DriverTask) -> Outcome | None:
        """Undo ``prepare_ramdisk``, if anything was prepared."""
        raise NotImplementedError

    def prepare_instance(self, task: DriverTask) -> Outcome | None:
        """Make every further boot that of the instance: its disk, volume or ``boot_iso``."""
        raise NotImplementedError

    def clean_up_instance(self, task: DriverTask) -> Outcome | None:
        """Undo ``prepare_instance``, if anything was prepared."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file that a flow will fetch: the name of its field, and its URL.

    ``read`` asks for more than the file's beginning; it gets an HTTP client, and raises
    StepFailure.
    """

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[Any], object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """An agent's heartbeat: POST /v1/heartbeat/ID.

    ``status``: start, end or error, with ``status_message`` for users.  ``verify_ca``: the
    certificate of the agent's API, as PEM text.
    """

    callback_url: str
    agent_version: str | None = None
    verify_ca: str | None = None
    status: str | None = None
    status_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """A poll of waiting nodes.

    ``look`` gets a node under a shared lock.  It returns the heartbeat of the node's agent, or the
    seconds until the next poll, or None: not before the node's row changes.  It is called for idle
    nodes in ``states`` with this deploy interface.
    """

    states: tuple[str, ...]
    look: Callable[[DriverTask], Heartbeat | float | None]


class Deploy(Interface):
    """Deploys an instance by its steps, and prepares the machine for other flows.

    ``prepare*`` and ``tear_down*`` are steps around those of all interfaces; they may be repeated
    after a crash. The undo of a failed flow is called once, and its failure is logged.
    """

    kind = "deploy"

    def takes(self, node: Node) -> bool:
        """Return whether ``autodetect`` may choose this interface for the node's instance.

        When: each task of a node with the deploy interface ``autodetect``.
        """
        return False

    def remote_files(self, task: DriverTask) -> Sequence[RemoteFile]:
        """Return the files of the instance that a deployment fetches after a boot.

        When: after ``validate``, for a look at them before the deployment begins.
        """
        return ()

    def expects_steps(self, node: Node, phase: str) -> bool:
        """Return whether the node's agent, not booted yet, may offer steps that are unknown here.

        When: a deployment with steps of the user is planned.
        """
        return False

    def agent_steps(self, node: Node, phase: str) -> Sequence[Step]:
        """Return the known steps of the node's agent.

        When: a flow is planned, in addition to ``steps``, which override agent steps of the same
        name.
        """
        return ()

    def periodics(self) -> Sequence[Periodic]:
        """Return the polls for nodes with this interface.  When: start."""
        return ()

    def prepare(self, task: DriverTask) -> Outcome | None:
        """Prepare the node for the deploy steps.  When: first step of active and rebuild."""

    def clean_up(self, task: DriverTask) -> Outcome | None:
        """Undo ``prepare``.  When: a deployment failed or was aborted."""

    def tear_down(self, task: DriverTask) -> Outcome | None:
        """Remove the instance: power off, disconnect.  When: the verb deleted."""

    def prepare_cleaning(self, task: DriverTask) -> Outcome | None:
        """Prepare the node for the clean steps; WaitForCall where an agent must boot.

        When: first step of cleaning.
        """

    def tear_down_cleaning(self, task: DriverTask) -> Outcome | None:
        """Undo ``prepare_cleaning``.  When: after cleaning, successful or not."""

    def prepare_service(self, task: DriverTask) -> Outcome | None:
        """As ``prepare_cleaning``.  When: first step of the verb service."""

    def tear_down_service(self, task: DriverTask) -> Outcome | None:
        """As ``tear_down_cleaning``, and boot the instance again.  When: after servicing."""

    def collect_logs(self, task: DriverTask, flow: str, *, failed: bool) -> None:
        """Store the logs of the node's agent, if the options ask for them; never fail.

        When: a cleaning has ended; and before the agent of a failed or aborted flow is removed.
        """

    def take_over(self, task: DriverTask) -> None:
        """Take over an active node without changing its machine.  When: adopt."""

    def on_heartbeat(self, task: DriverTask, heartbeat: Heartbeat) -> Outcome | None:
        """Return whether a heartbeat resumes the waiting step.

        When: an agent called and the node is in a wait state; the answer must be quick.  The lock
        is shared, as most heartbeats change nothing.  It is called again under the exclusive lock,
        with the final answer, where the step goes on, or sets a field of the node, or asks for that
        lock.  Done: the step continues as its WaitForCall said (``then``).  None, WaitForCall: it
        waits on, and its time-out restarts.  Raises StepFailure if the agent reports a failure.
        """
        return DONE


class Inspect(Interface):
    """Inspection; ``in_band``: an agent inspects and posts its inventory while the node waits."""

    kind = "inspect"
    in_band: ClassVar[bool] = False

    @property
    def hooks(self) -> tuple[str, ...]:
        """The inspection hooks for the inventory, in order."""
        return ()

    def inspect_hardware(self, task: DriverTask) -> Outcome | None:
        """Inspect the node; WaitForCall where an agent does it.

        When: the verb inspect.  Returns Done with a result of these optional keys: ``inventory``:
        {"inventory": in ironic-python-agent's form, "plugin_data": {}}, for hooks and rules;
        ``node``: {"properties": all of them, with memory_mb, cpus, cpu_arch, local_gb}. Raises
        HardwareInspectionFailure for missing required values.
        """
        raise NotImplementedError

    def finish(self, task: DriverTask) -> Outcome | None:
        """Release the agent's machine.  When: in band, after its inventory was processed."""

    def abort(self, task: DriverTask) -> Outcome | None:
        """Stop a waiting inspection.  When: the verb abort or a time-out; a failure is logged."""
        raise self.unsupported(task, "abort")


class Network(Interface):
    """Connects ports to networks.  VIFs: plain calls, all but ``vif_list`` under the lock."""

    kind = "network"

    def connect(self, task: DriverTask, role: str) -> Outcome | None:
        """Connect the node's ports to the network of a role; Again until the switches show it.

        ``role``: cleaning, provisioning, inspection, rescuing, servicing, tenant, or idle.  When:
        between power off and power on, by deploy, inspect and rescue interfaces that boot an agent
        or an instance; repeated after a crash.  None: networks are managed elsewhere.
        """

    def vif_attach(self, task: DriverTask, vif_info: Mapping[str, Any]) -> None:
        """Attach a virtual interface to a free port or port group.

        ``vif_info``: {"id": text, "port_uuid" or "portgroup_uuid": UUID, if named}.  When: POST
        /v1/nodes/ID/vifs.  Raises InvalidParameterValue where none is free.
        """
        raise NotImplementedError

    def vif_detach(self, task: DriverTask, vif_id: str) -> None:
        """Detach a virtual interface.  When: DELETE /v1/nodes/ID/vifs/VIF."""
        raise NotImplementedError

    def vif_list(self, task: DriverTask) -> list[dict[str, Any]]:
        """Return [{"id": text}, ...].  When: GET /v1/nodes/ID/vifs."""
        raise NotImplementedError


class Bios(Interface):
    """BIOS settings.  Source: DMTF DSP2046, Bios and AttributeRegistry."""

    kind = "bios"

    def cache_bios_settings(self, task: DriverTask) -> Outcome | None:
        """Return Done(result={"bios_settings": rows}), or None where there are none.

        When: a cleaning begins (Again is not supported); a failure is logged.  A row has ``name``,
        ``value`` (text or None), and where known ``attribute_type``, ``allowable_values``,
        ``lower_bound``, ``upper_bound``, ``min_length``, ``max_length``, ``read_only``,
        ``reset_required``, ``unique``.  The rows replace the old ones.
        """

    def cache_bios_values(self, task: DriverTask) -> Outcome | None:
        """Return the same without parts that need many requests and are not cached.

        When: manage, for which a user waits.
        """
        return self.cache_bios_settings(task)


class Console(Interface):
    """A console for users.  Plain calls, under the exclusive lock except ``get_console``."""

    kind = "console"

    def start_console(self, task: DriverTask) -> None:
        """Start the console; idempotent.

        When: PUT states/console, and adopt where it was on.
        """
        raise self.unsupported(task, "start_console")

    def stop_console(self, task: DriverTask) -> None:
        """Stop the console, if it runs.

        When: PUT states/console, the verb deleted, and before the node is deleted.
        """
        raise self.unsupported(task, "stop_console")

    def release(self, nodes: Sequence[str]) -> None:
        """Stop the consoles of these nodes here, because another conductor has started them.

        When: [conductor]check_provision_state_interval.  Nodes without a console here are skipped.
        """

    def get_console(self, task: DriverTask) -> dict[str, str]:
        """Return {"type": such as socat, "url": URL}.  When: GET states/console, if it is on."""
        raise self.unsupported(task, "get_console")


class Firmware(Interface):
    """Firmware versions.  Source: DMTF DSP2046, UpdateService and FirmwareVersion."""

    kind = "firmware"

    def cache_firmware_components(self, task: DriverTask) -> Outcome | None:
        """Return Done(result={"firmware": rows}), or None where there are none.

        When: as ``cache_bios_settings``.  A row has ``component`` (bios, bmc, ...),
        ``current_version``, and where known ``last_version_flashed``, ``vendor``, ``model``,
        ``serial_number``.  The conductor keeps the first version by itself.
        """

    def cache_firmware_versions(self, task: DriverTask) -> Outcome | None:
        """Return the same without components that need many requests.

        When: manage, for which a user waits.
        """
        return self.cache_firmware_components(task)


class Raid(Interface):
    """RAID by steps; by convention ``create_configuration``, ``delete_configuration``."""

    kind = "raid"

    def validate_raid_config(self, task: DriverTask, config: Mapping[str, Any]) -> None:
        """Raise InvalidParameterValue for an impossible target.  When: PUT states/raid."""
        raid_config.check(config)

    def get_logical_disk_properties(self) -> dict[str, str] | None:
        """Return {property: description}, or None where there is no RAID.

        When: GET /v1/drivers/NAME/raid/logical_disk_properties, of a type's default interface.
        """
        return dict(raid_config.PROPERTIES)


class Rescue(Interface):
    """Boots a rescue ramdisk on a machine with an instance."""

    kind = "rescue"

    def rescue(self, task: DriverTask) -> Outcome | None:
        """Boot the ramdisk; ``instance_info/rescue_password`` has the sealed password.

        When: the verb rescue.  WaitForCall until its agent calls.
        """
        raise self.unsupported(task, "rescue")

    def unrescue(self, task: DriverTask) -> Outcome | None:
        """Boot the instance again.  When: the verb unrescue."""
        raise self.unsupported(task, "unrescue")

    def clean_up(self, task: DriverTask) -> Outcome | None:
        """Undo ``rescue``.  When: it failed, was aborted, or the node is deleted."""


class Storage(Interface):
    """Remote volumes; no flow uses them yet."""

    kind = "storage"


class Vendor(Interface):
    """Vendor-specific steps, and methods exposed by ``vendor_methods``."""

    kind = "vendor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The interfaces of one node, which may call each other."""

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
        """Return the interface of this kind ("power", "deploy", …)."""
        interface: Interface = getattr(self, kind)
        return interface

    def steps(self, node: Node, phase: str, kinds: Iterable[str]) -> list[Step]:
        """Return every step that the interfaces of these kinds, or an agent, offer in ``phase``."""
        own = [step for kind in kinds for step in self.interface(kind).steps(phase)]
        if agents := self.deploy.agent_steps(node, phase):
            names = {step.name for step in own}
            own += [
                step for step in agents
                if step.name not in names and self.interface(step.interface).asks_agents
            ]  # fmt: skip
        return own


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcSystem:
    """A system behind a BMC, normalised for comparison.

    ``host``: as in driver_info; ``port`` None: the default; ``system`` None: the BMC's only one.
    ``text``: what each driver_info of this BMC contains, to search for.
    """

    host: str
    port: int | None = None
    system: str | None = None
    text: str = field(compare=False)

    def is_same(self, other: BmcSystem) -> bool:
        """Return whether both are one system; a missing system name matches any."""
        is_same_bmc = (self.host, self.port) == (other.host, other.port)
        return is_same_bmc and (None in (self.system, other.system) or self.system == other.system)


class HardwareType:
    """A kind of hardware, named by its entry point; created once at the conductor's start.

    ``supported``: {kind: names of interfaces} for each of the thirteen kinds, the preferred first;
    ``no-console`` and others, or ``noop``, for missing ones.  ``lenient``: nodes may use any
    enabled interface (fake hardware).
    """

    supported: ClassVar[Mapping[str, Sequence[str]]]
    lenient: ClassVar[bool] = False

    def check_driver_info(self, driver_info: Mapping[str, Any]) -> None:
        """Refuse values that no node of this type could use.

        When: POST and PATCH of nodes.  Missing values are left to the interfaces' ``validate``.
        Secrets are sealed here.  Raises InvalidParameterValue.
        """

    def bmc_system(self, info: Mapping[str, Any]) -> BmcSystem | None:
        """Return the system that a driver_info names, or None where it is unclear.

        When: POST and PATCH of nodes, GET validate and why, to detect two nodes with one system.
        The database has an index of the hosts of ``redfish``, ``idrac`` and ``ipmi`` (revision
        0017), and searches the nodes of other types one by one.
        """
        return None
