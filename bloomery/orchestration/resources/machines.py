"""The interface of resources to the bare-metal service, as ``children`` is to child stacks.

Each call has the rights of the caller whose order was accepted last, and the newest microversion of
the bare-metal API.  No call waits: for an object that another caller has locked it raises ``Busy``.
Values are maps with the field names of that API.  Kinds derive the UUIDs of new objects from their
own UUID, so that a repeated create makes no second object.

    try:
        node = machines.get_node("rack-1-u7")
        machines.set_provision_state(node["uuid"], "active", configdrive=drive)
    except Busy: ...       # the engine does this: it repeats the check later, and shows the reason
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from bloomery import errors
from bloomery.outcome import FlowOutcome

Json = dict[str, Any]
FindNode: TypeAlias = Callable[[str], Json | None]  # by UUID or name; None: not found
Patch = Sequence[Mapping[str, Any]]

ALLOCATION: Final = "allocation"
DEPLOY_TEMPLATE: Final = "deploytemplate"
PORT: Final = "port"
PORTGROUP: Final = "portgroup"
RUNBOOK: Final = "runbook"
VOLUME_CONNECTOR: Final = "volumeconnector"
VOLUME_TARGET: Final = "volumetarget"
QUEUE: Final = "queue:"  # prefix of queue names, among the UUIDs of other sources
MARK: Final = "stack"  # the key of extra or instance_info that names the resource and stack


class Busy(Exception):
    """The bare-metal service cannot serve the call now, usually because ``uuid`` is locked.

    The engine repeats the check of the resource after growing intervals, and when the object
    changes.
    """

    def __init__(self, reason: str, uuid: str | None = None) -> None:
        super().__init__(reason)
        self.uuid = uuid


class Queued(Busy):
    """The budget of a verb is used up; the first resource of ``queue`` tries again later."""

    def __init__(self, reason: str, queue: str) -> None:
        super().__init__(f"queued: {reason}", queue)


class Machines(Protocol):
    """The nodes and their records that the last caller of a stack may see.

    Each call raises Busy, Forbidden, and the errors of the API operation; an object that the caller
    may not see is not found.  A noun is a constant of this module, such as ``PORT``.
    """

    def get_node(self, ident: str) -> Json:
        """Return a node by UUID or name, its secrets masked.  Raises NodeNotFound."""

    def list_available(self, resource_class: str) -> list[Json]:
        """Return uuid, name and traits of at most 1000 available, unallocated nodes of a class."""

    def list_class(self, resource_class: str) -> list[Json]:
        """Return at most 1000 nodes of a class, used or not, with their failure domains."""

    def list_nodes(self, filters: Json) -> list[Json]:
        """Return all nodes that fit filters of the API; ``is_free``: an allocation may take it."""

    def create_node(self, fields: Json) -> None:
        """Enrol a node; ``fields`` includes its uuid."""

    def update_node(self, uuid: str, patch: Patch) -> None: ...
    def delete_node(self, uuid: str) -> None: ...
    def set_traits(self, uuid: str, traits: Sequence[str]) -> None:
        """Give a node exactly these traits."""

    def set_maintenance(self, uuid: str, on: bool, reason: str | None = None) -> None: ...
    def set_provision_state(
        self, uuid: str, verb: str, *, order_id: str | None = None, **arguments: Any
    ) -> None:
        """Order a verb; ``arguments`` as in the body of states/provision.

        ``order_id``: the key of ``find_flow``, at most 20 characters.
        """

    def find_flow(self, uuid: str, order_id: str) -> FlowOutcome | None:
        """Return the state of the flow that an order has begun, or None."""

    def has_aborted_cleaning(self, uuid: str) -> bool:
        """Tell whether this stack ordered the last cleaning of a node, and it was aborted."""

    def set_power_state(self, uuid: str, target: str) -> None: ...
    def set_boot(self, uuid: str, field: str, value: Any) -> None:
        """Begin to set ``boot_mode`` or ``secure_boot``; the node is reserved until the end."""

    def list_ports(self, uuid: str) -> tuple[list[Json], list[Json]]:
        """Return the ports of a node, and its port groups."""

    def list_addresses(self, uuids: Sequence[str]) -> dict[str, list[str]]:
        """Return the MAC addresses of the ports of each node, sorted."""

    def list_vifs(self, uuid: str) -> list[str]:
        """Return the ids of the virtual interfaces that are attached to a node."""

    def attach_vif(self, uuid: str, vif: Json) -> None: ...
    def detach_vif(self, uuid: str, vif_id: str) -> None: ...
    def set_runbook_traits(self, uuid: str, traits: Sequence[str]) -> None:
        """Give a runbook exactly these traits; it runs on nodes with any of them."""

    def list_bios_settings(self, uuid: str) -> Mapping[str, str | None]:
        """Return the stored BIOS settings of a node: value by name."""

    def list_firmware(self, uuid: str) -> list[Json]:
        """Return the stored firmware components of a node."""

    def list_firmware_updates(self, uuid: str) -> tuple[str | None, list[Json], bool]:
        """Return the digest of the catalogue of firmware, or None, and what it updates on a node.

        The last value tells whether the catalogue has an entry for any component that was read.

        An update has component, current_version, catalogue_version, and ``setting``, the entry of
        the step firmware.update.
        """

    def get_inventory(self, uuid: str) -> Json:
        """Return the data of a node's last inspection.  Raises InventoryNotFound."""

    def find_console(self, uuid: str) -> str | None:
        """Return the URL of a node's console, or None."""

    def list_steps(self, uuid: str, phase: str) -> list[Json]:
        """Return step and duration of the newest run of a phase, such as deploy, on a node."""

    def find(self, noun: str, ident: str) -> Json | None:
        """Return a record by UUID, or by name where the noun has names, or None."""

    def create(self, noun: str, fields: Json) -> None:
        """Create a record; ``fields`` includes its uuid."""

    def update(self, noun: str, uuid: str, patch: Patch) -> None: ...
    def delete(self, noun: str, uuid: str) -> None: ...
    def is_live_stack(self, stack_id: str) -> bool:
        """Tell whether a stack of this ID exists, in any project."""


def find_node(machines: Machines | None, ident: str) -> Json | None:
    """Return a node by UUID or name, or None without the node or the service.  Raises Busy."""
    try:
        return None if machines is None else machines.get_node(ident)
    except errors.NodeNotFound:
        return None


def find_no_node(ident: str) -> None:
    """Find nothing, as the ``FindNode`` of plans without a bare-metal service."""
