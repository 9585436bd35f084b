"""The one contract between callers and conductors: version 1.0.

A method of ``Conductor`` is an RPC method; ``since`` names the contract version that brought it,
``METHODS`` lists them, and ``RELEASES`` says which release knows which version.  Arguments and
results are JSON, ``Request`` apart: it comes first in every method and says who asks, under which
request id, and how long he is willing to wait (``wait_s``).  Times are seconds, sizes as the
attribute says.  Callers get errors back as their own class.  There are three kinds of methods:

- **changes of records**: validated by the caller, checked again under the node's lock, and
  committed when the method returns; row, event rows and release of the lock are one commit;
- **orders**: a move or a flow's first row is committed and a worker has been started when the
  method returns; what becomes of it shows on the node (state, last_error, history, events);
- **questions**: answered when the method returns; what needs a BMC is asked in a worker, and
  a call to the BMC takes at most 30 s, and waits as long at most for its turn.

Whatever is asked of a node may raise, besides what a method names: NodeNotFound (404), NodeLocked
(409: as long as ``wait_s`` says, the node stayed busy; not for questions that need no lock),
DriverNotFound (404) and InterfaceNotFoundInEntrypoint (400) of a node whose driver is not enabled
any more, DatabaseBusy (503: nothing was written), LockLost (409: another conductor took the node
over; nothing was written).  Orders and questions to a BMC may raise NoFreeConductorWorker (503,
nothing written), questions ApiThreadsBusy (503), too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from bloomery.model.request import Request
from bloomery.rpc.methods import Method, list_methods, since

VERSION: Final = "1.0"
RELEASES: Final[Mapping[str, str]] = {"0.1": "1.0"}  # release -> contract version that it knows

Json = dict[str, Any]


class Records(Protocol):
    """Nodes and what belongs to them, as records: no BMC is asked.

    ``patch`` is a JSON patch (RFC 6902) within [api]'s limits, its paths checked against the
    fields; it is applied to the row that is read in the same transaction, so that two callers
    who change different keys of one object both keep their change.
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
        self,
        request: Request,
        node_uuid: str,
        patch: list[Json],
        reset_interfaces: bool,
    ) -> None:
        """Change a node; ``reset_interfaces``: those that are not named fall back to defaults.

        Raises PatchError (400), InvalidParameterValue (400), InvalidState (409: the node is on its
        way, or its state does not allow the change), DuplicateName, NodeAssociated (409).
        """

    @since("1.0")
    def destroy_node(self, request: Request, node_uuid: str) -> None:
        """Delete a node and what belongs to it; a console that runs is stopped before.

        Raises NodeAssociated (409), InvalidState (409), NodeProtected (403).
        """

    @since("1.0")
    def set_maintenance(
        self,
        request: Request,
        node_uuid: str,
        maintenance: bool,
        reason: str | None,
    ) -> None:
        """Set maintenance and its reason, or clear both and the fault."""

    @since("1.0")
    def add_node_traits(
        self,
        request: Request,
        node_uuid: str,
        traits: list[str],
        replace: bool,
    ) -> None:
        """Add traits, or ``replace`` all by them; one that is there already stays as it is.

        Raises InvalidParameterValue (400): the node would have more than 50.
        """

    @since("1.0")
    def remove_node_traits(
        self,
        request: Request,
        node_uuid: str,
        traits: list[str] | None,
    ) -> None:
        """Remove these traits; None: all.  Raises NodeTraitNotFound (404), nothing is removed."""

    @since("1.0")
    def create_record(self, request: Request, noun: str, values: Json) -> None:
        """Store a validated record of a noun (``model.nouns``): its uuid and what was sent.

        Needs no lock.  Raises what the noun has for values that are taken (409) and for what
        does not go with its node or its parents (400, 409).
        """

    @since("1.0")
    def update_record(self, request: Request, noun: str, uuid: str, patch: list[Json]) -> None:
        """Change a record of a noun, under the lock of its node, if it belongs to one.

        Raises the noun's error for a missing one (404), PatchError and InvalidParameterValue
        (400), Conflict (409: the node's state does not allow it), and what the noun has for values
        that are taken (409).
        """

    @since("1.0")
    def destroy_record(self, request: Request, noun: str, uuid: str) -> None:
        """Delete a record, under the lock of its node, if it belongs to one.

        Raises the noun's error for a missing one (404), and what the noun has for one that others
        belong to (400), or that is in use (409).
        """


class Allocations(Protocol):
    """Who wants a node, of which kind, and gives it back.  Changes are ``update_record``."""

    @since("1.0")
    def create_allocation(self, request: Request, values: Json, node_uuid: str | None) -> None:
        """Store a validated allocation; a worker looks for its node, at once.

        ``values``: uuid and what the client sent, by field name, candidates as UUIDs.
        ``node_uuid``: the active node whose allocation it is to be; committed when this returns.
        Raises AllocationAlreadyExists, AllocationDuplicateName (409); with a node
        NodeAssociated (409: it has another instance), AllocationFailed (400: it is not active,
        or not as ``values`` say; the allocation is stored in error).
        """

    @since("1.0")
    def destroy_allocation(self, request: Request, uuid: str) -> None:
        """Delete an allocation, under the lock of its node, if it has one; the node is free again.

        Raises AllocationNotFound (404), InvalidState (409: the node is active or on its way, and
        not in maintenance).
        """


class Provisioning(Protocol):
    """The verbs of provisioning.

    Ironic has a method per verb (``do_node_deploy``, ``do_node_tear_down``, ``do_node_clean``, ...)
    and ``do_provisioning_action`` for those without arguments.  Here the latter takes all of them:
    what a verb is stands in one table, ``conductor/verbs.py``, and a caller needs none of its own.
    """

    @since("1.0")
    def do_provisioning_action(
        self, request: Request, node_uuid: str, verb: str, arguments: Json
    ) -> None:
        """Order a provision verb: any key of ``conductor.states.VERBS``.

        ``arguments``: fields of ``model.provision.ProvisionArguments``, those that the verb reads;
        {}: none.  Asked twice, the second is refused by the state that the first has brought.

        Raises InvalidStateRequested (400: the state has no edge for the verb, any more),
        NodeInMaintenance, NodeIsRetired, BootModeNotAllowed (400), NodeProtected (403),
        ConcurrentActionLimit (503: as many nodes deploy, or clean, as may), InstanceDeployFailure
        (with the status of what ``validate`` raised), InstanceRescueFailure (500), Conflict (409:
        aborting a service in maintenance), and from inspect and service what ``validate`` raises.
        """


class Agents(Protocol):
    """The calls of agents in ramdisks."""

    @since("1.0")
    def get_node_with_token(self, request: Request, node_uuid: str) -> Json:
        """Return {"uuid": UUID, "agent_token": token}; a token that was given out before is stars.

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
        """An agent calls: note where it is reached, and go on with the flow that waits for it.

        ``callback_url``: where the agent listens; ``agent_verify_ca``: the certificate that it
        shows there, PEM; ``agent_status``: start, end or error, with a message for people.
        Committed when it returns, also where no flow waits; in a state that has no use for agents
        nothing is.  A busy node whose agent called before is left alone: the agent calls again.
        Raises NodeLocked for the first call of an agent, and NoFreeConductorWorker, at once;
        InvalidParameterValue (400): no version, a wrong token, not https, another certificate.
        """

    @since("1.0")
    def continue_inspection(
        self, request: Request, node_uuid: str, inventory: Json, plugin_data: Json
    ) -> None:
        """Go on with an inspection that waits for its agent: order.

        ``inventory``: {"interfaces": [{"mac_address": MAC, ...}, ...], ...} as ironic-python-agent
        has it; ``plugin_data``: what came beside it.  A node in enroll is taken, too, where
        [auto_discovery]enabled says so.  Raises NotFound (404) in other states,
        UnsupportedDriverExtension (400) where no agent inspects.
        """


class Power(Protocol):
    """Power, management and consoles: what is asked of a node's hardware."""

    @since("1.0")
    def change_node_power_state(
        self,
        request: Request,
        node_uuid: str,
        new_state: str,
        timeout_s: float | None,
    ) -> None:
        """Order a power state: any of ``conductor.states.POWER_TARGETS``.

        ``timeout_s``: how long the machine may take; None: what the driver has, for the soft ones
        [conductor]soft_power_off_timeout.  Until the end node.target_power_state shows it.  A
        machine that is there already is left alone.
        Raises InvalidStateRequested (400), InvalidParameterValue (400: the driver does not know
        it), PowerStateFailure (409: disable_power_off), and what ``validate`` raises.
        """

    @since("1.0")
    def change_node_boot_mode(self, request: Request, node_uuid: str, new_mode: str) -> None:
        """Order a boot mode, "bios" or "uefi"; the machine may need a restart to take it.

        Raises InvalidParameterValue (400), Conflict (409: the node is on its way).
        """

    @since("1.0")
    def change_node_secure_boot(self, request: Request, node_uuid: str, on: bool) -> None:
        """Order secure boot on or off.  Raises Conflict (409: the node is on its way)."""

    @since("1.0")
    def set_boot_device(
        self,
        request: Request,
        node_uuid: str,
        device: str,
        persistent: bool,
    ) -> None:
        """Set the boot device, for one boot or ``persistent``; as a question: set when it returns.

        Raises InvalidParameterValue (400: none of the supported ones), BmcUnreachable and
        BmcRefused (500), and what ``validate`` raises.
        """

    @since("1.0", question=True)
    def get_boot_device(self, request: Request, node_uuid: str) -> Json:
        """Return {"boot_device": name or None, "persistent": bool or None}; holds the node.

        Raises BmcUnreachable and BmcRefused (500), and what ``validate`` raises.
        """

    @since("1.0", question=True)
    def get_supported_boot_devices(self, request: Request, node_uuid: str) -> list[str]:
        """Return names such as "pxe", "disk", "cdrom"; needs no lock."""

    @since("1.0")
    def set_console_mode(self, request: Request, node_uuid: str, enabled: bool) -> None:
        """Order the console on or off; nothing happens where it is so already.

        Raises what the console's ``validate`` raises: UnsupportedDriverExtension (400) where the
        interface has none.
        """

    @since("1.0", question=True)
    def get_console_information(self, request: Request, node_uuid: str) -> Json | None:
        """Return {"type": kind, "url": where}, as the driver has it; None while it is off.

        Needs no lock.  Raises what the console's ``validate`` raises.
        """

    @since("1.0", question=True)
    def validate_driver_interfaces(self, request: Request, node_uuid: str) -> Json:
        """Return {interface: {"result": True} or {"result": False, "reason": text}}; needs no lock.

        All interfaces but vendor.  No BMC is asked.
        """

    @since("1.0", question=True, longest_s=3)
    def describe_work(self, request: Request, node_uuid: str) -> Json:
        """Return {"bmc": facts or None, "no_worker_since": time or None}; needs no lock.

        ``bmc``: what this conductor remembers of the node's BMC, without asking it; None where it
        never spoke with it.  Keys: address, last_contact_at, last_error, last_error_at,
        silent_since, left_alone, next_try_at, login_refused, latency.
        ``no_worker_since``: for how long the flow's turn waits for one of its workers.
        """

    @since("1.0", question=True)
    def get_driver_properties(self, request: Request, driver: str) -> Json:
        """Return {property: description} over the default interfaces of a hardware type.

        Raises DriverNotFound (404).
        """


class Hardware(Protocol):
    """What is asked of one machine beyond power: RAID, NMI, lights, virtual media, vendor calls.

    Whatever asks a BMC may raise BmcUnreachable and BmcRefused (500), UnsupportedDriverExtension
    (400) where the interface does not know how, and what its ``validate`` raises (400).
    """

    @since("1.0")
    def set_target_raid_config(
        self, request: Request, node_uuid: str, target_raid_config: Json
    ) -> None:
        """Store the RAID configuration that the next steps shall make; {} clears it.

        Raises InvalidParameterValue (400): the RAID interface does not take it.
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
        """Return on, off, blinking or unknown; holds the node."""

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
        """Order an image to be inserted; ``device_type``: cdrom, disk or floppy.

        A failure goes to last_error.  ``image_download_source`` is who fetches the image: whatever
        it says, the BMC does.
        """

    @since("1.0")
    def detach_virtual_media(
        self, request: Request, node_uuid: str, device_types: list[str] | None
    ) -> None:
        """Order images to be ejected; None: from all devices.  A failure goes to last_error."""

    @since("1.0", question=True)
    def get_virtual_media(self, request: Request, node_uuid: str) -> list[Json]:
        """Return [{"media_types": names, "inserted": bool, "image": address}]; needs no lock."""

    @since("1.0")
    def vendor_passthru(
        self, request: Request, node_uuid: str, driver_method: str, http_method: str, info: Json
    ) -> Json:
        """Call a method of the node's vendor interface with the arguments ``info``.

        Returns {"return": JSON, "async": bool, "attach": bool}: an asynchronous one is an order
        and returns None; of one with attach ``return`` is bytes in base64.  Raises
        InvalidParameterValue (400): no such method, not with this ``http_method``, arguments.
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
    """Virtual interfaces (VIFs) of nodes; the network interface decides what they are."""

    @since("1.0")
    def vif_attach(self, request: Request, node_uuid: str, vif_info: Json) -> None:
        """Attach a VIF: {"id": ...} and what else the interface reads; attached when it returns.

        Raises what the interface raises: UnsupportedDriverExtension (400) where it has none.
        """

    @since("1.0")
    def vif_detach(self, request: Request, node_uuid: str, vif_id: str) -> None:
        """Detach a VIF; detached when it returns.  Raises what the interface raises."""

    @since("1.0", question=True)
    def vif_list(self, request: Request, node_uuid: str) -> list[Json]:
        """Return [{"id": ...}, ...]; needs no lock."""


class Conductor(Records, Allocations, Provisioning, Agents, Power, Hardware, Network, Protocol):
    """What a conductor does for callers."""


METHODS: Final[Mapping[str, Method]] = list_methods(Conductor)
