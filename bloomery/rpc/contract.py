"""The contract between callers and conductors: version 1.5.

A method of ``Conductor`` is an RPC method; ``since`` names its first contract version, ``METHODS``
lists the methods, and ``RELEASES`` maps releases to versions.  Arguments and results are JSON,
except ``Request``, the first argument of every method, with the caller, the request id and the time
that the caller waits for a locked node (``wait_s``).  Times are seconds, sizes as the attribute
declares.  Callers get errors as the same class.  There are three kinds of methods:

- **changes of records**: validated by the caller, checked again under the node's lock, and
  committed when the method returns; row, event rows and release of the lock are one commit;
- **orders**: a transition or a flow's first row is committed and a worker has been started when the
  method returns; the node shows the result (state, last_error, history, events);
- **questions**: answered when the method returns; a worker calls the BMC, for at most 30 s,
  after at most 30 s in the queue.

Any method about a node may also raise: NodeNotFound (404), NodeLocked (409: the node stayed locked
for ``wait_s``; not for questions without a lock), DriverNotFound (404) and
InterfaceNotFoundInEntrypoint (400) for a disabled driver, DatabaseBusy (503: nothing was written),
LockLost (409: another conductor took the node over; nothing was written).  Orders and questions to
a BMC may raise NoFreeConductorWorker (503, nothing written), questions ApiThreadsBusy (503), too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from bloomery.model.request import Request
from bloomery.rpc.methods import Method, list_methods, since

VERSION: Final = "1.5"
RELEASES: Final[Mapping[str, str]] = {"0.1": "1.0"}  # release -> its contract version

Json = dict[str, Any]


class Records(Protocol):
    """Records of nodes and their children: no BMC is called.

    ``patch`` is a JSON patch (RFC 6902) within [api]'s limits, its paths checked against the
    fields; it is applied to the row that is read in the same transaction, so that two callers who
    change different keys of one object both keep their change.
    """

    @since("1.0")
    def create_node(self, request: Request, values: Json) -> None:
        """Store a node; its interfaces are chosen and checked, its secrets sealed.

        ``values``: uuid, driver, provision_state and what the client sent, by field name.  Needs
        no lock.  Raises InvalidParameterValue (400: an unknown chassis, a driver or interface that
        is not enabled, a driver_info that no such machine could use), DuplicateName,
        NodeAlreadyExists, NodeAssociated (409).
        """

    @since("1.0")
    def update_node(
        self, request: Request, node_uuid: str, patch: list[Json], reset_interfaces: bool
    ) -> None:
        """Change a node; ``reset_interfaces``: interfaces outside of the patch return to defaults.

        Raises PatchError (400), InvalidParameterValue (400), InvalidState (409: the node is in a
        transient state, or its state does not allow the change), DuplicateName, NodeAssociated
        (409).
        """

    @since("1.0")
    def destroy_node(self, request: Request, node_uuid: str) -> None:
        """Delete a node and its children; a running console is stopped before.

        Raises NodeAssociated (409), InvalidState (409), NodeProtected (403).
        """

    @since("1.3")
    def forget_node(self, request: Request, node_uuid: str, force: bool) -> None:
        """Order the removal of a node from whoever holds it; its machine stays as it is.

        ``force``: with an instance on it, too.  Raises NodeHasInstance (409), NodeProtected (403).
        """

    @since("1.0")
    def set_maintenance(
        self, request: Request, node_uuid: str, maintenance: bool, reason: str | None
    ) -> None:
        """Set maintenance and its reason, or clear both and the fault."""

    @since("1.0")
    def add_node_traits(
        self, request: Request, node_uuid: str, traits: list[str], replace: bool
    ) -> None:
        """Add traits, or ``replace`` all by them.

        Raises InvalidParameterValue (400): the node would have more than 50.
        """

    @since("1.0")
    def remove_node_traits(
        self, request: Request, node_uuid: str, traits: list[str] | None
    ) -> None:
        """Remove these traits, by default all; on NodeTraitNotFound (404) none is removed."""

    @since("1.0")
    def create_record(self, request: Request, noun: str, values: Json) -> None:
        """Store a validated record of a noun (``model.nouns``): its uuid and the client's values.

        Needs no lock.  Raises the noun's errors of duplicate values (409) and of values that do not
        fit its node or its parents (400, 409).
        """

    @since("1.0")
    def update_record(self, request: Request, noun: str, uuid: str, patch: list[Json]) -> None:
        """Change a record of a noun, under the lock of its node, if any.

        Raises the noun's error for a missing one (404), PatchError and InvalidParameterValue (400),
        Conflict (409: the node's state does not allow it), and the noun's errors of duplicate
        values (409).
        """

    @since("1.0")
    def destroy_record(self, request: Request, noun: str, uuid: str) -> None:
        """Delete a record, under the lock of its node, if any.

        Raises the noun's error for a missing record (404), and for a record with children (400), or
        in use (409).
        """


class Allocations(Protocol):
    """Allocations.  Changes are ``update_record``."""

    @since("1.0")
    def create_allocation(self, request: Request, values: Json, node_uuid: str | None) -> None:
        """Store a validated allocation; a worker searches for its node at once.

        ``values``: uuid and the client's values, by field name, candidates as UUIDs. ``node_uuid``:
        the active node of a backfill; committed when this returns. Raises AllocationAlreadyExists,
        AllocationDuplicateName (409); with a node NodeAssociated (409: it has another instance),
        AllocationFailed (400: the node is not active, or does not match ``values``; the allocation
        is stored in error).
        """

    @since("1.0")
    def destroy_allocation(self, request: Request, uuid: str) -> None:
        """Delete an allocation, under the lock of its node, if any; the node is free again.

        Raises AllocationNotFound (404), InvalidState (409: the node is active or in a transient
        state, and not in maintenance).
        """


class Provisioning(Protocol):
    """Provision verbs.

    Ironic has a method per verb (``do_node_deploy``, ``do_node_tear_down``, ``do_node_clean``, ...)
    and ``do_provisioning_action`` for those without arguments.  Here the latter takes all verbs:
    one table, ``conductor/verbs.py``, defines them.
    """

    @since("1.0")
    def do_provisioning_action(
        self, request: Request, node_uuid: str, verb: str, arguments: Json
    ) -> None:
        """Order a provision verb: any key of ``conductor.states.VERBS``.

        ``arguments``: fields of ``model.request.ProvisionArguments``, those that the verb reads;
        {}: none.  A repetition is refused by the new state.

        Raises InvalidStateRequested (400: the state has no edge for the verb), NodeInMaintenance,
        NodeIsRetired, BootModeNotAllowed (400), NodeProtected (403), ConcurrentActionLimit (503:
        the limit of deploying, or cleaning, nodes), InstanceDeployFailure (with the status of the
        error of ``validate``), InstanceRescueFailure (500), Conflict (409: aborting a service in
        maintenance), and from inspect and service the errors of ``validate``.
        """


class Agents(Protocol):
    """The calls of agents in ramdisks."""

    @since("1.0", fields={"caller": "1.2"}, drops_new_fields=True)
    def get_node_with_token(
        self, request: Request, node_uuid: str, caller: str | None = None
    ) -> Json:
        """Return {"uuid": UUID, "agent_token": token}; a token that was issued before is masked.

        The agent at the address ``caller`` gets its token again until it has sent a heartbeat.
        The token belongs to one session of an agent: it is dropped when a flow begins or ends.
        Needs no lock, and never raises NodeLocked.
        """

    @since("1.0", drops_new_fields=True)
    def heartbeat(
        self,
        request: Request,
        node_uuid: str,
        callback_url: str,
        agent_version: str | None,
        agent_token: str | None,
        agent_verify_ca: str | None,
        agent_status: str | None,
        agent_status_message: str | None,
    ) -> None:
        """Record a heartbeat and the agent's URL, and continue the flow that waits for it.

        ``callback_url``: where the agent listens; ``agent_verify_ca``: its certificate, PEM;
        ``agent_status``: start, end or error, with a message for people. Committed when it returns,
        also without a waiting flow; states without agents record nothing. A locked node whose agent
        called before is skipped: the agent calls again. Raises NodeLocked for the first call of an
        agent, and NoFreeConductorWorker, at once; InvalidParameterValue (400): no version, a wrong
        token, not https, another certificate.
        """

    @since("1.0")
    def continue_inspection(
        self, request: Request, node_uuid: str, inventory: Json, plugin_data: Json
    ) -> None:
        """Continue an inspection that waits for its agent: order.

        ``inventory``: {"interfaces": [{"mac_address": MAC, ...}, ...], ...} as ironic-python-agent
        sends it; ``plugin_data``: the other data.  A node in enroll is accepted where
        [auto_discovery]enabled is set.  Raises NotFound (404) in other states,
        UnsupportedDriverExtension (400) without inspection by an agent.
        """


class Power(Protocol):
    """Power, management and consoles of a node."""

    @since("1.0")
    def change_node_power_state(
        self, request: Request, node_uuid: str, new_state: str, timeout_s: float | None
    ) -> None:
        """Order a power state: any of ``conductor.states.POWER_TARGETS``.

        ``timeout_s``: the machine's time limit; None: the driver's, for soft targets
        [conductor]soft_power_off_timeout.  Until the end node.target_power_state shows it.  A
        machine in the target state stays as it is. Raises InvalidStateRequested (400),
        InvalidParameterValue (400: unsupported by the driver), PowerStateFailure (409:
        disable_power_off), and the errors of ``validate``.
        """

    @since("1.0")
    def change_node_boot_mode(self, request: Request, node_uuid: str, new_mode: str) -> None:
        """Order a boot mode, "bios" or "uefi"; the machine may need a restart to take it.

        Raises InvalidParameterValue (400), Conflict (409: the node is in a transient state).
        """

    @since("1.0")
    def change_node_secure_boot(self, request: Request, node_uuid: str, on: bool) -> None:
        """Order secure boot on or off.  Raises Conflict (409: the node is in a transient state)."""

    @since("1.0")
    def set_boot_device(
        self, request: Request, node_uuid: str, device: str, persistent: bool
    ) -> None:
        """Set the boot device, for one boot or ``persistent``; a question: set when it returns.

        Raises InvalidParameterValue (400: an unsupported device), BmcUnreachable (502), BmcRefused
        (400), and the errors of ``validate``.
        """

    @since("1.0", question=True)
    def get_boot_device(self, request: Request, node_uuid: str) -> Json:
        """Return {"boot_device": name or None, "persistent": bool or None}; locks the node.

        Raises BmcUnreachable (502), BmcRefused (400), and the errors of ``validate``.
        """

    @since("1.0", question=True)
    def get_supported_boot_devices(self, request: Request, node_uuid: str) -> list[str]:
        """Return names such as "pxe", "disk", "cdrom"; needs no lock."""

    @since("1.0")
    def set_console_mode(self, request: Request, node_uuid: str, enabled: bool) -> None:
        """Order the console on or off; no change if it is so already.

        Raises the errors of the console's ``validate``: UnsupportedDriverExtension (400) without a
        console.
        """

    @since("1.0", question=True)
    def get_console_information(self, request: Request, node_uuid: str) -> Json | None:
        """Return {"type": kind, "url": URL} from the driver, or None while it is off.

        Needs no lock.  Raises the errors of the console's ``validate``.
        """

    @since("1.0", question=True)
    def validate_driver_interfaces(self, request: Request, node_uuid: str) -> Json:
        """Return {interface: {"result": True} or {"result": False, "reason": text}}; needs no lock.

        All interfaces but vendor.  No BMC is called.
        """

    @since("1.1", question=True)
    def list_steps(self, request: Request, node_uuid: str, phase: str) -> list[Json]:
        """Return the steps that the node's interfaces offer in a phase; needs no lock.

        Each has interface, step, priority, abortable, argsinfo and keeps_disks.  No BMC is called.
        """

    @since("1.0", question=True, longest_s=3)
    def describe_work(self, request: Request, node_uuid: str) -> Json:
        """Return the keys below; needs no lock.

        ``bmc``: this conductor's memory of the node's BMC, without a call; None before the first
        call. Keys: address, last_contact_at, last_error, last_error_at, silent_since, left_alone,
        next_try_at, login_refused, latency. ``bmc_shared``: the node with the same BMC.
        ``driver_info_fault``: why driver_info names no BMC, None where it does.
        ``no_worker_since``: since when the flow's step waits for a worker. ``deploy_refusal``: why
        an available node would refuse its deployment, None where it would not.
        """

    @since("1.0", question=True, longest_s=3)
    def list_bmcs(self, request: Request) -> list[Json]:
        """Return this conductor's memory of each BMC that it has called, without a call.

        Keys: those of ``describe_work`` but ``login_refused``, and accounts, refused_logins,
        sessions.
        """

    @since("1.1", question=True)
    def examine_bmc(self, request: Request, node_uuid: str) -> Json:
        """Return the report of the node's BMC (``drivers/bmc/state``), by reads alone.

        Needs no lock.  A silent BMC is an error of the report.  Raises UnsupportedDriverExtension
        (400) for hardware without a BMC, and the errors of ``validate``.
        """

    @since("1.4", question=True)
    def read_bmc_log(self, request: Request, node_uuid: str) -> Json:
        """Return the newest entries of the BMC's own log (``Management.read_bmc_log``).

        Needs no lock.  Raises BmcUnreachable (502), BmcRefused (400), UnsupportedDriverExtension
        (400), and the errors of ``validate`` (400).
        """

    @since("1.5", question=True, longest_s=3)
    def get_sensors(self, request: Request, node_uuid: str) -> Json:
        """Return this conductor's memory of the node's sensor readings, without a call.

        Keys: interval_s, is_read, reason (why they are not read, or None), kept_since, sensors
        (name, kind, unit, status, readings: [[time, value], ...]).  Needs no lock.
        """

    @since("1.0", question=True)
    def get_driver_properties(self, request: Request, driver: str) -> Json:
        """Return {property: description} over the default interfaces of a hardware type.

        Raises DriverNotFound (404).
        """


class Hardware(Protocol):
    """Hardware of one machine beyond power: RAID, NMI, indicators, virtual media, vendor calls.

    Calls of a BMC may raise BmcUnreachable (502), BmcRefused (400), UnsupportedDriverExtension
    (400) for an unsupported feature, and the errors of the interface's ``validate`` (400).
    """

    @since("1.0")
    def set_target_raid_config(
        self, request: Request, node_uuid: str, target_raid_config: Json
    ) -> None:
        """Store the RAID configuration for the next steps; {} clears it.

        Raises InvalidParameterValue (400): the RAID interface refuses it.
        """

    @since("1.0", question=True)
    def get_raid_logical_disk_properties(self, request: Request, driver: str) -> Json:
        """Return {property of a logical disk: description} of a hardware type.

        Raises DriverNotFound (404), UnsupportedDriverExtension (400).
        """

    @since("1.0")
    def inject_nmi(self, request: Request, node_uuid: str) -> None:
        """Interrupt the machine (NMI); done when it returns."""

    @since("1.0", question=True)
    def get_supported_indicators(
        self, request: Request, node_uuid: str, component: str | None
    ) -> Json:
        """Return {component: {indicator: {"readonly": bool, "states": names}}}; needs no lock."""

    @since("1.0", question=True)
    def get_indicator_state(
        self, request: Request, node_uuid: str, component: str, indicator: str
    ) -> str:
        """Return on, off, blinking or unknown; locks the node."""

    @since("1.0")
    def set_indicator_state(
        self, request: Request, node_uuid: str, component: str, indicator: str, state: str
    ) -> None:
        """Switch an indicator; done when it returns.  Raises InvalidParameterValue (400)."""

    @since("1.0")
    def attach_virtual_media(
        self,
        request: Request,
        node_uuid: str,
        device_type: str,
        image_url: str,
        image_download_source: str | None,
    ) -> None:
        """Order the insertion of an image; ``device_type``: cdrom, disk or floppy.

        A failure goes to last_error.  ``image_download_source`` is ignored: the BMC fetches the
        image.
        """

    @since("1.0")
    def detach_virtual_media(
        self, request: Request, node_uuid: str, device_types: list[str] | None
    ) -> None:
        """Order the ejection of images, by default of all.  A failure goes to last_error."""

    @since("1.0", question=True)
    def get_virtual_media(self, request: Request, node_uuid: str) -> list[Json]:
        """Return [{"media_types": names, "inserted": bool, "image": address}]; needs no lock."""

    @since("1.0")
    def vendor_passthru(
        self, request: Request, node_uuid: str, driver_method: str, http_method: str, info: Json
    ) -> Json:
        """Call a method of the node's vendor interface with the arguments ``info``.

        Returns {"return": JSON, "async": bool, "attach": bool}: an asynchronous method is an order
        and returns None; with attach ``return`` is bytes in base64.  Raises InvalidParameterValue
        (400): an unknown method, another ``http_method``, invalid arguments.
        """

    @since("1.0")
    def driver_vendor_passthru(
        self, request: Request, driver: str, driver_method: str, http_method: str, info: Json
    ) -> Json:
        """As ``vendor_passthru``, of a hardware type's default interface, without a node.

        Raises DriverNotFound (404).
        """

    @since("1.0", question=True)
    def get_node_vendor_passthru_methods(self, request: Request, node_uuid: str) -> Json:
        """Return {method: facts}; needs no lock.

        Facts: async, attach, require_exclusive_lock (booleans), description, http_methods.
        """

    @since("1.0", question=True)
    def get_driver_vendor_passthru_methods(self, request: Request, driver: str) -> Json:
        """As ``get_node_vendor_passthru_methods``.  Raises DriverNotFound (404)."""


class Network(Protocol):
    """Virtual interfaces (VIFs) of nodes; the network interface implements them."""

    @since("1.0")
    def vif_attach(self, request: Request, node_uuid: str, vif_info: Json) -> None:
        """Attach a VIF: {"id": ...} and other keys of the interface; attached when it returns.

        Raises the interface's errors: UnsupportedDriverExtension (400) without VIFs.
        """

    @since("1.0")
    def vif_detach(self, request: Request, node_uuid: str, vif_id: str) -> None:
        """Detach a VIF; detached when it returns.  Raises the interface's errors."""

    @since("1.0", question=True)
    def vif_list(self, request: Request, node_uuid: str) -> list[Json]:
        """Return [{"id": ...}, ...]; needs no lock."""


class Conductor(Records, Allocations, Provisioning, Agents, Power, Hardware, Network, Protocol):
    """All methods of a conductor."""


METHODS: Final[Mapping[str, Method]] = list_methods(Conductor)
