"""The one contract between callers and conductors: version 1.0.

A method of ``Conductor`` is an RPC method; ``since`` names the contract version that brought it,
and ``METHODS`` lists them.  Arguments and results are JSON, ``Request`` apart: it comes first in
every method and says who asks, under which request id, and how long he is willing to wait
(``wait_s``).  Times are seconds, sizes as the attribute says.  Callers get errors back as their
own class.  There are three kinds of methods:

- **changes of records**: validated by the caller, checked again under the node's lock, and
  committed when the method returns; row, event rows and release of the lock are one commit;
- **orders**: a move or a flow's first row is committed and a worker has been started when the
  method returns; what becomes of it shows on the node (state, last_error, history, events);
- **questions**: answered when the method returns; what needs a BMC is asked in a worker, and
  a call to the BMC takes at most 30 s.

Whatever is asked of a node may raise, besides what a method names: NodeNotFound (404), NodeLocked
(409: as long as ``wait_s`` says, the node stayed busy; not for questions that need no lock),
DriverNotFound (404) and InterfaceNotFoundInEntrypoint (400) of a node whose driver is not enabled
any more, DatabaseBusy (503: nothing was written), LockLost (409: another conductor took the node
over; nothing was written).  Orders and questions to a BMC may raise NoFreeConductorWorker (503,
nothing written), questions ApiThreadsBusy (503), too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from bloomery.model.request import Request

VERSION: Final = "1.0"

F = TypeVar("F", bound=Callable[..., Any])
Json = dict[str, Any]


def since(version: str) -> Callable[[F], F]:
    """Say which contract version brought a method."""

    def mark(method: F) -> F:
        method.since = version  # type: ignore[attr-defined]
        return method

    return mark


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


class Provisioning(Protocol):
    """The verbs of provisioning, and the calls of agents.

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

    @since("1.0")
    def heartbeat(
        self,
        request: Request,
        node_uuid: str,
        callback_url: str,
        agent_version: str | None,
        agent_status: str | None,
        agent_status_message: str | None,
    ) -> None:
        """An agent calls: note where it is reached, and go on with the flow that waits for it.

        ``callback_url``: where the agent listens; ``agent_status``: start, end or error, with a
        message for people.  Committed when it returns, also where no flow waits.  Raises NodeLocked
        and NoFreeConductorWorker at once, without waiting: agents ask again.
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

    @since("1.0")
    def get_boot_device(self, request: Request, node_uuid: str) -> Json:
        """Return {"boot_device": name or None, "persistent": bool or None}; holds the node.

        Raises BmcUnreachable and BmcRefused (500), and what ``validate`` raises.
        """

    @since("1.0")
    def get_supported_boot_devices(self, request: Request, node_uuid: str) -> list[str]:
        """Return names such as "pxe", "disk", "cdrom"; needs no lock."""

    @since("1.0")
    def set_console_mode(self, request: Request, node_uuid: str, enabled: bool) -> None:
        """Order the console on or off; nothing happens where it is so already.

        Raises what the console's ``validate`` raises: UnsupportedDriverExtension (400) where the
        interface has none.
        """

    @since("1.0")
    def get_console_information(self, request: Request, node_uuid: str) -> Json | None:
        """Return {"type": kind, "url": where}, as the driver has it; None while it is off.

        Needs no lock.  Raises what the console's ``validate`` raises.
        """

    @since("1.0")
    def validate_driver_interfaces(self, request: Request, node_uuid: str) -> Json:
        """Return {interface: {"result": True} or {"result": False, "reason": text}}; needs no lock.

        All interfaces but vendor.  No BMC is asked.
        """

    @since("1.0")
    def describe_bmc(self, request: Request, node_uuid: str) -> Json | None:
        """Return what this conductor remembers of the node's BMC, without asking it; needs no lock.

        None where it never spoke with it.  Keys: address, last_contact_at, last_error,
        last_error_at, left_alone, latency.
        """

    @since("1.0")
    def get_driver_properties(self, request: Request, driver: str) -> Json:
        """Return {property: description} over the default interfaces of a hardware type.

        Raises DriverNotFound (404).
        """


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

    @since("1.0")
    def vif_list(self, request: Request, node_uuid: str) -> list[Json]:
        """Return [{"id": ...}, ...]; needs no lock."""


class Conductor(Records, Provisioning, Power, Network, Protocol):
    """What a conductor does for callers."""


METHODS: Final[dict[str, str]] = {
    name: method.since
    for name, method in inspect.getmembers(Conductor, inspect.isfunction)
    if hasattr(method, "since")
}
