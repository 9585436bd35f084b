"""The seam between conductor and hardware: what a driver is handed, and what it must offer.

A driver is a hardware type and the interfaces that are its own.  An interface is one object per
process, without state of its own: what must be remembered stands on the node, in
``task.node.driver_internal_info``.  Most interfaces need few of the methods below:

    class RelayPower(base.Power):
        def get_power_state(self, task): ...
        def set_power_state(self, task, state, timeout_s=None): ...
        def reboot(self, task, timeout_s=None): ...

**Two kinds of methods.**  Those that return an ``Outcome`` run in a step of a flow, under the
node's exclusive lock, in a worker: they may answer ``Again`` and are then called again with
``task.turn`` one higher; None means Done.  They must be idempotent: the same turn may be taken
twice, after silence of the BMC or a crash.  All others are plain calls: they keep their caller
waiting, at most ``task.budget_s``, and return a value.  No method sleeps.

**Errors.**  ``BmcUnreachable``: no answer, asking again may help; the runner takes the turn of a
resumable step again, for [conductor]bmc_outage_budget seconds, unless a person waits for it (power,
manage, boot mode, console).  ``BmcRefused``: the BMC said no,
asking again will not help.  ``BmcLoginRefused``: it does not take the login.
``MissingParameterValue``, ``InvalidParameterValue`` (400): what the operator wrote is wrong, by
name.  ``UnsupportedDriverExtension`` (400, ``self.unsupported(task, "what")``): not with this
interface.  ``StepFailure``: anything else that fails a step.  Their text reaches users: no
secrets.  Whatever else a driver raises fails the step, too, and is logged with its traceback.
``LockLost`` must pass through.

**Units.**  Seconds are floats ending in ``_s``; sizes stand in the names (``memory_mb``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol, TypedDict

from bloomery import errors
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import raid_config, steps
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup
from bloomery.model.step import Step
from bloomery.model.volume import VolumeConnector, VolumeTarget
from bloomery.outcome import DONE, Outcome

WRITE_BUDGET_S: Final = 20.0  # from the look at the lease until a BMC has an order, or will not


class DriverTask(Protocol):
    """A node in the hands of a driver: all that it may see of the conductor.

    ``node``: plain values; change them in place, or set them, and they are written when the step
    ends or begins to wait, or by ``save``.  A shared task (power sync, sensors) writes nothing.
    ``turn``: how often this step was called before in this run; 0 is the first time.
    ``reads``: a place for what was read of the hardware in this turn, by keys of one's own, so
    that it is read once; None where nothing may be kept.
    ``insists``: a person asked just now, and a BMC that is left alone may be tried.
    ``budget_s``: seconds that one call to the BMC may take; None: [bmc]call_timeout.
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
        """The node's driver_info with its secrets readable.  Never store or log it.

        ``task.node.driver_info`` is the same with its secrets sealed.
        """

    def opened(self, value: Any) -> Any:
        """Return a value of the node, such as of instance_info, with its secrets readable.

        Never store or log it.
        """

    @property
    def ports(self) -> Sequence[Port]:
        """The node's ports, read when first asked for, as are the lists below."""

    @property
    def portgroups(self) -> Sequence[Portgroup]: ...
    @property
    def volume_connectors(self) -> Sequence[VolumeConnector]: ...
    @property
    def volume_targets(self) -> Sequence[VolumeTarget]:
        """The node's volumes, the secrets of their properties readable: never to be stored."""

    def save(self) -> None:
        """Write what changed on the node now.  Raises LockLost: then stop at once.

        Call it before an act that a successor must know of after a crash.
        """

    def forget_agent(self) -> None:
        """End the session of the node's agent: the one that boots next gets a token of its own."""

    def make_agent_token(self) -> str:
        """Return the token of the agent that boots next, for its kernel: then lookup gives none.

        The row has it before it is returned, and it stays the same until ``forget_agent``.
        Never log it.
        """

    def assert_exclusive(self) -> None:
        """Raise ExclusiveLockRequired unless the lock is exclusive."""

    def assert_lease(self) -> None:
        """Raise LockLost if another conductor may have taken over.

        Ask before each write to a BMC; the gateway (``drivers/bmc``) does it for you.
        """


class Interface:
    """What all interfaces share.  ``kind`` is one of the thirteen, ``name`` its entry point."""

    kind: ClassVar[str]
    name: str = "unnamed"
    _steps: ClassVar[dict[str, tuple[Step, ...]]] = {}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if hasattr(cls, "kind"):
            cls._steps = {phase: steps.marked_in(cls, cls.kind, phase) for phase in steps.PHASES}

    def __init__(self, conf: Conf) -> None:
        """Called once, when the conductor starts.  Raises CannotStart for wrong options."""
        self.conf = conf

    def get_properties(self) -> dict[str, str]:
        """Return {driver_info key: description}, with the word "Required." where it is.

        When: GET /v1/drivers/NAME/properties, for a type's default interfaces.
        """
        return {}

    def close(self) -> None:
        """Give back what is kept at BMCs.

        When: once, as the conductor ends.  Must return within seconds, whatever BMCs do.
        """

    def validate(self, task: DriverTask) -> None:
        """Look whether the node has what this interface needs; asks no BMC.

        When: GET /v1/nodes/ID/validate; and before work begins: ``power`` of every verb and
        every power sync, ``deploy`` of active and rebuild, ``boot`` of adopt, ``network`` of
        clean, service and rescue, ``inspect``, ``rescue``, ``console``, ``management`` of theirs.
        Raises MissingParameterValue, InvalidParameterValue.
        """

    def list_ineffective(self, task: DriverTask) -> Sequence[str]:
        """Return the names of what the node sets and this interface does not carry out.

        When: GET validate, as the reason of what is valid; and in the log as a deployment begins.
        """
        return ()

    def steps(self, phase: str) -> tuple[Step, ...]:
        """Return the marked steps of ``phase``: clean, deploy, service or verify.

        When: a flow is planned.  Override it where the steps are not known as methods.
        """
        return self._steps[phase]

    def run_step(self, task: DriverTask, step: Step) -> Outcome:
        """Call the step's method with its arguments; a method that returns nothing is done.

        When: each turn of each step.  Raises StepNotFound for a method that is no step.
        """
        method = getattr(self, step.step, None)
        if not steps.is_step(method):
            offered = sorted({step.name for phase in steps.PHASES for step in self.steps(phase)})
            raise errors.StepNotFound(
                verb="run a step on",
                node=task.node.uuid,
                steps=step.name,
                offered=", ".join(offered) or f"no steps of {self.kind}",
            )
        outcome: Outcome | None = method(task, **step.args)  # type: ignore[misc]
        return outcome or DONE

    def unsupported(self, task: DriverTask, what: str) -> errors.UnsupportedDriverExtension:
        """Return the error of a method that this interface does not offer."""
        return errors.UnsupportedDriverExtension(driver=task.node.driver, extension=what)


class Power(Interface):
    """Switches the machine, and tells whether it is on.

    Source: DMTF DSP2046, ComputerSystem, PowerState and action Reset; IPMI 2.0, section 28,
    Chassis Control.
    """

    kind = "power"

    def get_power_state(self, task: DriverTask) -> str | None:
        """Return ``power on``, ``power off``, ``error`` (the BMC says so), or None: cannot tell.

        When: manage, adopt, before a power change, each power sync (shared lock, 10 s), and to
        see whether a node in maintenance after a power failure has recovered.
        Raises BmcUnreachable, BmcRefused.
        """
        raise NotImplementedError

    def set_power_state(
        self,
        task: DriverTask,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Bring power to ``state``: Again while the BMC works, Done once it reads so.

        ``state``: one of ``get_supported_power_states``: ``power on``, ``power off``,
        ``rebooting``, ``soft power off``, ``soft rebooting``.
        ``timeout_s``: how long it may take; None: [conductor]power_state_change_timeout.
        When: PUT states/power, the steps power_on and power_off, and by siblings such as deploy.
        Sets ``task.node.power_state`` to what was reached: no caller does.
        Raises PowerStateFailure when the time is up, BmcUnreachable, BmcRefused,
        InvalidParameterValue for a state that the BMC does not offer.
        """
        raise NotImplementedError

    def reboot(self, task: DriverTask, timeout_s: float | None = None) -> Outcome:
        """Switch off if on, then on; arguments, result and errors as of ``set_power_state``.

        When: PUT states/power with rebooting, the step reboot, and by siblings.  A node with
        ``disable_power_off`` must be restarted without going off.
        """
        raise NotImplementedError

    def get_supported_power_states(self, task: DriverTask) -> Sequence[str]:
        """Return the states that may be asked for, without asking the BMC.

        When: before PUT states/power, which refuses others with 400.
        """
        return (PowerState.ON, PowerState.OFF, PowerState.REBOOT)

    def supports_power_sync(self, task: DriverTask) -> bool:
        """Tell whether power sync may drive the machine back to the recorded state.

        When: a power sync met a difference.  False: the row follows the machine.
        """
        return True

    def describe_bmc(self, task: DriverTask) -> dict[str, Any] | None:
        """Return what is remembered of the node's BMC, as JSON; None: nothing is.

        When: GET /ext/v1/nodes/ID/why.  Asks no BMC; ``BmcState.describe`` of the gateway does it.
        """
        return None

    def is_suspect(self, task: DriverTask) -> bool:
        """Tell, without asking the BMC, whether it failed to answer the last time.

        When: each power sync, which then asks it later, behind those that live.
        """
        return False

    def has_answered(self, task: DriverTask, since: datetime) -> bool:
        """Tell, without asking the BMC, whether it answered after ``since`` (``bloomery.clock``).

        When: a step answers Again after silence; an answer begins a new outage budget.  Who does
        not remember has one budget for each step, however often the BMC answers.
        """
        return False


class Indicator(TypedDict):
    """A light of a machine: may it be switched, and which states it has."""

    readonly: bool
    states: list[str]


class Management(Interface):
    """Boot device and mode, secure boot, sensors, lights, virtual media.

    Source: DMTF DSP2046, ComputerSystem, property Boot, and SecureBoot; IPMI 2.0, section 28.12,
    Set System Boot Options.
    """

    kind = "management"

    def get_supported_boot_devices(self, task: DriverTask) -> Sequence[str]:
        """Return names of Ironic: pxe, disk, cdrom, bios, safe, uefihttp.

        When: GET management/boot_device/supported.  May ask the BMC.
        """
        raise NotImplementedError

    def set_boot_device(self, task: DriverTask, device: str, persistent: bool = False) -> None:
        """Boot from ``device`` the next time, or each time if ``persistent``.

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
        """Boot in ``mode``, uefi or bios; Again while the machine restarts to take it.

        When: PUT states/boot_mode, and by boot interfaces.  Done without a restart where it is so.
        Raises InvalidParameterValue, StepFailure when it does not take effect in time.
        """
        raise self.unsupported(task, "set_boot_mode")

    def get_boot_mode(self, task: DriverTask) -> str | None:
        """Return uefi, bios, or None: the BMC does not tell.

        When: manage, which records it; a failure is logged and does no harm.
        """
        raise self.unsupported(task, "get_boot_mode")

    def get_secure_boot_state(self, task: DriverTask) -> bool | None:
        """Tell whether secure boot is on; None: there is none to show.  When: manage."""
        raise self.unsupported(task, "get_secure_boot_state")

    def set_secure_boot_state(self, task: DriverTask, on: bool) -> Outcome | None:
        """Switch secure boot; as ``set_boot_mode``.  When: also PUT states/secure_boot."""
        raise self.unsupported(task, "set_secure_boot_state")

    def get_sensors_data(self, task: DriverTask) -> dict[str, Any]:
        """Return {kind: {sensor: {name: value}}}, kinds such as Fan, Temperature, Power, Drive.

        When: sensors are collected; shared lock.  What cannot be read is left out.
        """
        raise self.unsupported(task, "get_sensors_data")

    def inject_nmi(self, task: DriverTask) -> None:
        """Interrupt the running system.  When: PUT management/inject_nmi; exclusive lock."""
        raise self.unsupported(task, "inject_nmi")

    def detect_vendor(self, task: DriverTask) -> str | None:
        """Return the maker's name; None: unknown.  When: manage, as ``properties/vendor``."""
        raise self.unsupported(task, "detect_vendor")

    def get_node_health(self, task: DriverTask) -> str | None:
        """Return OK, Warning, Critical, or None: the BMC does not tell.  When: power sync."""
        raise self.unsupported(task, "get_node_health")

    def get_supported_indicators(
        self, task: DriverTask, component: str | None = None
    ) -> dict[str, dict[str, Indicator]]:
        """Return {component: {name: {"readonly": bool, "states": names}}}, of one or of all.

        Components: system, chassis, disk, power, nic; states: on, off, blinking, unknown.
        When: GET management/indicators; shared lock.  Raises InvalidParameterValue for a
        component that the machine lacks.
        """
        raise self.unsupported(task, "get_supported_indicators")

    def get_indicator_state(self, task: DriverTask, component: str, indicator: str) -> str:
        """Return the state of one indicator.  Raises as ``set_indicator_state``."""
        raise self.unsupported(task, "get_indicator_state")

    def set_indicator_state(
        self, task: DriverTask, component: str, indicator: str, state: str
    ) -> None:
        """Light an indicator, or not.  When: PUT management/indicators/NAME; exclusive lock.

        Raises InvalidParameterValue for one that is not there, or a state that it does not have.
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
        """Eject what is in the devices of these types; None: of all.  Fine where there is nothing.

        When: DELETE vmedia, within a step.
        """
        raise self.unsupported(task, "detach_virtual_media")


class Boot(Interface):
    """Boots the machine into an agent's ramdisk, and into its instance.

    ``capabilities``: what it can do, asked by deploy interfaces: ``ramdisk_boot`` (an ISO for
    good), ``ramdisk_boot_configdrive``, ``iscsi_volume_boot``, ``pxe_boot``, ``ipxe_boot``.
    All methods are called by deploy and rescue interfaces, within a step; each but
    ``check_machine`` may answer Again.
    """

    kind = "boot"
    capabilities: ClassVar[frozenset[str]] = frozenset()

    def check_machine(self, task: DriverTask) -> None:
        """Ask the machine whether it can be booted this way, before its power is touched.

        Raises InvalidParameterValue or BmcRefused if it cannot.
        """

    def validate_ramdisk(self, task: DriverTask) -> None:
        """Look whether an agent's ramdisk could be booted; asks no BMC.

        When: ``validate`` of deploy interfaces that need an agent.  Raises
        UnsupportedDriverExtension where it must come from elsewhere, and as ``validate``.
        """
        raise self.unsupported(task, f"an agent's ramdisk by boot interface {self.name}")

    def validate_inspection(self, task: DriverTask) -> None:
        """Look whether an agent that inspects could be booted.  When: inspection in band.

        Raises as ``validate_ramdisk``.
        """
        self.validate_ramdisk(task)

    def prepare_ramdisk(self, task: DriverTask, params: Mapping[str, str]) -> Outcome | None:
        """Make the next boot that of the agent's ramdisk, with the machine off.

        ``params``: kernel parameters, such as {"ipa-api-url": URL}.  The caller switches on.
        Raises MissingParameterValue where the ramdisk is not named.
        """
        raise NotImplementedError

    def clean_up_ramdisk(self, task: DriverTask) -> Outcome | None:
        """Take away what ``prepare_ramdisk`` made; fine where there is nothing."""
        raise NotImplementedError

    def prepare_instance(self, task: DriverTask) -> Outcome | None:
        """Make every further boot that of the instance: its disk, volume or ``boot_iso``."""
        raise NotImplementedError

    def clean_up_instance(self, task: DriverTask) -> Outcome | None:
        """Take away what ``prepare_instance`` made; fine where there is nothing."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What an agent says when it calls: POST /v1/heartbeat/ID.

    ``status``: start, end or error, with ``status_message`` for people.  ``verify_ca``: the
    certificate that the agent's own API shows, as PEM text.
    """

    callback_url: str
    agent_version: str | None = None
    verify_ca: str | None = None
    status: str | None = None
    status_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """A look at nodes that wait, as data: which ones, and what to ask.

    ``look`` gets a node under a shared lock and returns what its agent would say by now; or the
    seconds until it is to be asked again; or None: not before the node's row has changed.  It is
    asked of idle nodes in ``states`` whose deploy interface is the one that names it.
    """

    states: tuple[str, ...]
    look: Callable[[DriverTask], Heartbeat | float | None]


class Deploy(Interface):
    """Puts an instance on the machine by its deploy steps, and makes it ready for other flows.

    ``prepare*`` and ``tear_down*`` are steps around those of all interfaces; they may be repeated
    after a crash.  What undoes a failed flow is called once, and a failure of it is logged.
    """

    kind = "deploy"
    asks_agents: ClassVar[bool] = False  # on_heartbeat may take seconds

    def agent_steps(self, node: Node, phase: str) -> Sequence[Step]:
        """Return the steps that the agent of ``node`` offers, as far as that is known.

        When: a flow is planned, beside ``steps``; of two of one name the interface's own counts.
        """
        return ()

    def periodics(self) -> Sequence[Periodic]:
        """Return what the conductor should look at for nodes with this interface.  When: start."""
        return ()

    def prepare(self, task: DriverTask) -> Outcome | None:
        """Make the node ready for the deploy steps.  When: first step of active and rebuild."""

    def clean_up(self, task: DriverTask) -> Outcome | None:
        """Take away what ``prepare`` made.  When: a deployment failed or was aborted."""

    def tear_down(self, task: DriverTask) -> Outcome | None:
        """Take the instance away: power off, disconnect.  When: the verb deleted."""

    def prepare_cleaning(self, task: DriverTask) -> Outcome | None:
        """Make the node ready for the clean steps; WaitForCall where an agent must boot.

        When: first step of cleaning.
        """

    def tear_down_cleaning(self, task: DriverTask) -> Outcome | None:
        """Take away what ``prepare_cleaning`` made.  When: after cleaning, however it ended."""

    def prepare_service(self, task: DriverTask) -> Outcome | None:
        """As ``prepare_cleaning``.  When: first step of the verb service."""

    def tear_down_service(self, task: DriverTask) -> Outcome | None:
        """As ``tear_down_cleaning``, and boot the instance again.  When: after servicing."""

    def take_over(self, task: DriverTask) -> None:
        """Become responsible for an active node, without touching its machine.  When: adopt."""

    def on_heartbeat(self, task: DriverTask, heartbeat: Heartbeat) -> Outcome | None:
        """Say what the call of an agent means for the step that waits.

        When: an agent called, and the node is in a wait state; at once.  The lock is shared, for
        most calls change nothing.  Asked again under the exclusive one, which is what counts:
        unless it waits on, or if it sets anything on the node, or asks for that lock.
        Done: the step goes on, as its WaitForCall said (``then``); None, WaitForCall: it waits
        on, and its time counts anew.  Raises StepFailure if the agent reports a failure.
        """
        return DONE


class Inspect(Interface):
    """``in_band``: an agent inspects, and hands its inventory in while the node waits."""

    kind = "inspect"
    in_band: ClassVar[bool] = False

    @property
    def hooks(self) -> tuple[str, ...]:
        """The inspection hooks that process an inventory, by name, in their order."""
        return ()

    def inspect_hardware(self, task: DriverTask) -> Outcome | None:
        """Find out what the node is made of; WaitForCall where an agent finds it out.

        When: the verb inspect.  Returns Done with a result of these keys, each optional:
        ``inventory``: {"inventory": as ironic-python-agent has it, "plugin_data": {}}, which
        hooks and inspection rules make ports and more of;
        ``node``: {"properties": all of them, with memory_mb, cpus, cpu_arch, local_gb}.
        Raises HardwareInspectionFailure for what must be known and is not.
        """
        raise NotImplementedError

    def finish(self, task: DriverTask) -> Outcome | None:
        """Let the agent's machine go.  When: in band, after its inventory was processed."""

    def abort(self, task: DriverTask) -> Outcome | None:
        """Stop an inspection that waits.  When: the verb abort, time is up; a failure is logged."""
        raise self.unsupported(task, "abort")


class Network(Interface):
    """Wires ports to networks.  Plain calls, under the exclusive lock but for ``vif_list``."""

    kind = "network"

    def vif_attach(self, task: DriverTask, vif_info: Mapping[str, Any]) -> None:
        """Attach a virtual interface to a free port or port group.

        ``vif_info``: {"id": text, "port_uuid" or "portgroup_uuid": UUID, if named}.
        When: POST /v1/nodes/ID/vifs.  Raises InvalidParameterValue where none is free.
        """
        raise NotImplementedError

    def vif_detach(self, task: DriverTask, vif_id: str) -> None:
        """Detach it again.  When: DELETE /v1/nodes/ID/vifs/VIF."""
        raise NotImplementedError

    def vif_list(self, task: DriverTask) -> list[dict[str, Any]]:
        """Return [{"id": text}, ...].  When: GET /v1/nodes/ID/vifs."""
        raise NotImplementedError


class Bios(Interface):
    """BIOS settings.  Source: DMTF DSP2046, Bios, and AttributeRegistry for what is allowed."""

    kind = "bios"

    def cache_bios_settings(self, task: DriverTask) -> Outcome | None:
        """Return Done(result={"bios_settings": rows}), or None where there are none.

        When: a cleaning begins, at once (Again is not heard); a failure is logged.  A row:
        ``name``, ``value`` (text or None), and as far as it is known ``attribute_type``,
        ``allowable_values``, ``lower_bound``, ``upper_bound``, ``min_length``, ``max_length``,
        ``read_only``, ``reset_required``, ``unique``.  They replace those of before.
        """

    def cache_bios_values(self, task: DriverTask) -> Outcome | None:
        """Return the same, without what takes many requests and is not known yet.

        When: manage, at once, as a person waits for it.
        """
        return self.cache_bios_settings(task)


class Console(Interface):
    """A console for users.  Plain calls, under the exclusive lock but for ``get_console``."""

    kind = "console"

    def start_console(self, task: DriverTask) -> None:
        """Let users reach the console; asked twice, it lands in the same place.

        When: PUT states/console, and adopt where it was on.
        """
        raise self.unsupported(task, "start_console")

    def stop_console(self, task: DriverTask) -> None:
        """Let nobody reach it any more; fine where it does not run.

        When: PUT states/console, the verb deleted, and before the node itself is deleted.
        """
        raise self.unsupported(task, "stop_console")

    def get_console(self, task: DriverTask) -> dict[str, str]:
        """Return {"type": such as socat, "url": where}.  When: GET states/console, if it is on."""
        raise self.unsupported(task, "get_console")


class Firmware(Interface):
    """Versions of firmware.  Source: DMTF DSP2046, UpdateService and FirmwareVersion."""

    kind = "firmware"

    def cache_firmware_components(self, task: DriverTask) -> Outcome | None:
        """Return Done(result={"firmware": rows}), or None where there are none.

        When: manage, and as ``cache_bios_settings``.  A row: ``component`` (bios, bmc, ...),
        ``current_version``, and as far as it is known ``last_version_flashed``, ``vendor``,
        ``model``, ``serial_number``.  The version that was seen first is kept by itself.
        """


class Raid(Interface):
    """RAID by steps; by convention ``create_configuration``, ``delete_configuration``."""

    kind = "raid"

    def validate_raid_config(self, task: DriverTask, config: Mapping[str, Any]) -> None:
        """Raise InvalidParameterValue for a target that cannot be.  When: PUT states/raid."""
        raid_config.check(config)

    def get_logical_disk_properties(self) -> dict[str, str] | None:
        """Return {property: description}; None: there is no RAID.

        When: GET /v1/drivers/NAME/raid/logical_disk_properties, of a type's default interface.
        """
        return dict(raid_config.PROPERTIES)


class Rescue(Interface):
    """Boots a rescue system on a machine that has an instance."""

    kind = "rescue"

    def rescue(self, task: DriverTask) -> Outcome | None:
        """Boot it; its password stands, sealed, in ``instance_info/rescue_password``.

        When: the verb rescue.  WaitForCall until its agent calls.
        """
        raise self.unsupported(task, "rescue")

    def unrescue(self, task: DriverTask) -> Outcome | None:
        """Boot the instance again.  When: the verb unrescue."""
        raise self.unsupported(task, "unrescue")

    def clean_up(self, task: DriverTask) -> Outcome | None:
        """Take away what ``rescue`` made.  When: it failed, was aborted, or the node is deleted."""


class Storage(Interface):
    """Volumes of other machines.  Called by deploy interfaces, within a step."""

    kind = "storage"

    def attach_volumes(self, task: DriverTask) -> None:
        """Attach ``task.volume_targets`` to ``task.volume_connectors``; twice is fine."""

    def detach_volumes(self, task: DriverTask) -> None:
        """Detach them again; fine where they are not attached."""

    def should_write_image(self, task: DriverTask) -> bool:
        """Tell whether a local disk gets the image; False where a volume holds the system."""
        return True


class Vendor(Interface):
    """What only this hardware can do: steps, and methods that ``vendor_methods`` marks."""

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
        """Return the interface of ``kind``, such as power."""
        interface: Interface = getattr(self, kind)
        return interface

    def steps(self, node: Node, phase: str, kinds: Iterable[str]) -> list[Step]:
        """Return every step that the interfaces of these kinds, or an agent, offer in ``phase``."""
        own = [step for kind in kinds for step in self.interface(kind).steps(phase)]
        if agents := self.deploy.agent_steps(node, phase):
            names = {step.name for step in own}
            own += [step for step in agents if step.name not in names]
        return own


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcSystem:
    """A system behind a BMC, in the same words however driver_info spells them.

    ``host`` stands in driver_info, in whatever case; ``port`` None: the usual one; ``system``
    None: the only one of the BMC.
    """

    host: str
    port: int | None = None
    system: str | None = None

    def is_same(self, other: BmcSystem) -> bool:
        """Tell whether both are one system; a system without a name is the only one of its BMC."""
        is_same_bmc = (self.host, self.port) == (other.host, other.port)
        return is_same_bmc and (None in (self.system, other.system) or self.system == other.system)


class HardwareType:
    """A kind of hardware, named by its entry point; made once, when the conductor starts.

    ``supported``: {kind: names of interfaces}, for each of the thirteen kinds, the preferred
    first; ``no-console`` and its like, or ``noop``, for what there is not.
    ``lenient``: nodes may use any enabled interface, listed or not (fake hardware).
    """

    supported: ClassVar[Mapping[str, Sequence[str]]]
    lenient: ClassVar[bool] = False

    def check_driver_info(self, driver_info: Mapping[str, Any]) -> None:
        """Refuse what no node of this type could ever use.

        When: POST and PATCH of nodes.  What is merely missing yet is the business of the
        interfaces' ``validate``.  Secrets are sealed here.  Raises InvalidParameterValue.
        """

    def bmc_system(self, info: Mapping[str, Any]) -> BmcSystem | None:
        """Return the system that a driver_info leads to; None: it cannot be told.

        When: POST and PATCH of nodes, GET validate and why: two nodes may have the same one.
        """
        return None
