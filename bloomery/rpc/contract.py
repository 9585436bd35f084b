"""The one contract between callers and conductors.

A method of ``Conductor`` is an RPC method, its ``since`` the version that brought it, and its
arguments are JSON-able; ``METHODS`` lists them.  Every method takes the ``Request`` first and
may raise any ``errors.Failure``; callers get the same class back.
Orders are committed before they are acknowledged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from bloomery.model.request import Request

VERSION: Final = "1.0"

F = TypeVar("F", bound=Callable[..., Any])
Json = dict[str, Any]


def since(version: str, *, cast: bool = False) -> Callable[[F], F]:
    """Say which contract version brought a method; ``cast``: nobody waits for its end."""

    def mark(method: F) -> F:
        method.rpc = (version, cast)  # type: ignore[attr-defined]
        return method

    return mark


class Records(Protocol):
    """Nodes and what belongs to them, as records."""

    @since("1.0")
    def create_node(self, request: Request, values: Json) -> None:
        """Store a validated node, its interfaces chosen and checked.

        ``values``: uuid, driver, provision_state and what the client sent.  Raises
        InvalidParameterValue and the interface errors (400), the *Exists errors (409).
        """

    @since("1.0")
    def update_node(
        self,
        request: Request,
        node_uuid: str,
        patch: list[Json],
        reset_interfaces: bool,
    ) -> None:
        """Apply a validated JSON patch to the row that is read in the same transaction."""

    @since("1.0")
    def destroy_node(self, request: Request, node_uuid: str) -> None:
        """Delete a node and what belongs to it.  NodeAssociated, InvalidState, NodeProtected."""

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
    ) -> None: ...

    @since("1.0")
    def remove_node_traits(
        self,
        request: Request,
        node_uuid: str,
        traits: list[str] | None,
    ) -> None:
        """Remove these traits, or all.  Raises NodeTraitNotFound."""

    @since("1.0")
    def create_record(self, request: Request, noun: str, values: Json) -> None:
        """Store a validated record of a noun (``model.nouns``): its uuid and what was sent.

        Needs no lock.  Raises what the noun has for values that are taken (409) and for what
        does not go with its node or its parents (400, 409).
        """

    @since("1.0")
    def update_record(self, request: Request, noun: str, uuid: str, patch: list[Json]) -> None:
        """Apply a validated JSON patch to the row that is read in the same transaction."""

    @since("1.0")
    def destroy_record(self, request: Request, noun: str, uuid: str) -> None:
        """Delete a record.  Raises what the noun has for one that others belong to (400)."""


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
        """Carry out a provision verb: any key of ``conductor.states.VERBS``.

        ``arguments``: fields of ``model.provision.ProvisionArguments``, those that the verb reads;
        {}: none.  Acknowledged once the move is committed and a worker was started; the flow
        goes on after that, and its failure shows on the node.
        Raises NoFreeConductorWorker (503, nothing written), NodeLocked (409), NodeNotFound,
        InvalidStateRequested (400: the state has no such edge any more), NodeInMaintenance,
        NodeProtected, NodeIsRetired, ConcurrentActionLimit (503), InstanceDeployFailure,
        InstanceRescueFailure, BootModeNotAllowed, and what the interfaces' ``validate`` raises.
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
        """An agent calls: go on with the flow that waits for it.  NodeLocked at once if busy."""


class Power(Protocol):
    """Power, management and consoles: what is asked of a node's hardware."""

    @since("1.0")
    def change_node_power_state(
        self,
        request: Request,
        node_uuid: str,
        new_state: str,
        timeout_s: float | None,
    ) -> None: ...

    @since("1.0")
    def change_node_boot_mode(self, request: Request, node_uuid: str, new_mode: str) -> None: ...

    @since("1.0")
    def change_node_secure_boot(self, request: Request, node_uuid: str, on: bool) -> None: ...

    @since("1.0")
    def set_boot_device(
        self,
        request: Request,
        node_uuid: str,
        device: str,
        persistent: bool,
    ) -> None: ...

    @since("1.0")
    def get_boot_device(self, request: Request, node_uuid: str) -> Json:
        """Return {"boot_device": name or None, "persistent": bool or None}."""

    @since("1.0")
    def get_supported_boot_devices(self, request: Request, node_uuid: str) -> list[str]: ...

    @since("1.0")
    def set_console_mode(self, request: Request, node_uuid: str, enabled: bool) -> None:
        """Switch the console on or off; nothing happens where it is so already."""

    @since("1.0")
    def get_console_information(self, request: Request, node_uuid: str) -> Json | None:
        """Return {"type": kind, "url": where}, as the driver has it; None while it is off."""

    @since("1.0")
    def validate_driver_interfaces(self, request: Request, node_uuid: str) -> Json:
        """Return {interface: {"result": True} or {"result": False, "reason": text}}."""

    @since("1.0")
    def describe_bmc(self, request: Request, node_uuid: str) -> Json | None:
        """Return what this conductor remembers of the node's BMC, without asking it.

        None where it never spoke with it.  Keys: address, last_contact_at, last_error,
        last_error_at, left_alone, latency.
        """

    @since("1.0")
    def get_driver_properties(self, request: Request, driver: str) -> Json:
        """Return {property: description} over the default interfaces of a hardware type."""


class Network(Protocol):
    """Virtual interfaces of nodes."""

    @since("1.0")
    def vif_attach(self, request: Request, node_uuid: str, vif_info: Json) -> None: ...

    @since("1.0")
    def vif_detach(self, request: Request, node_uuid: str, vif_id: str) -> None: ...

    @since("1.0")
    def vif_list(self, request: Request, node_uuid: str) -> list[Json]: ...


class Conductor(Records, Provisioning, Power, Network, Protocol):
    """What a conductor does for callers."""


METHODS: Final[dict[str, tuple[str, bool]]] = {
    name: method.rpc
    for name, method in inspect.getmembers(Conductor, inspect.isfunction)
    if hasattr(method, "rpc")
}
