"""Bare-metal machines as kinds see them: a seam, as ``children`` is one.

What is asked is asked in the name of whoever owns the stack, as the newest client of the
bare-metal API would ask it, and no call waits: what another works at is ``Busy``.  Values are maps
with the names of that API.  Kinds choose the UUIDs of what they make, from their own, so that
whatever is asked twice lands in the same place.

    try:
        node = machines.get_node("rack-1-u7")
        machines.set_provision_state(node["uuid"], "active", configdrive=drive)
    except Busy: ...       # the engine asks again, later each time, and says why on the resource
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from bloomery import errors
from bloomery.outcome import FlowOutcome

Json = dict[str, Any]
FindNode: TypeAlias = Callable[[str], Json | None]  # by UUID or name; None: nobody sees such a node
Patch = Sequence[Mapping[str, Any]]

ALLOCATION: Final = "allocation"
DEPLOY_TEMPLATE: Final = "deploytemplate"
PORT: Final = "port"
PORTGROUP: Final = "portgroup"
RUNBOOK: Final = "runbook"
VOLUME_CONNECTOR: Final = "volumeconnector"
VOLUME_TARGET: Final = "volumetarget"
QUEUE: Final = "queue:"  # how the names of queues begin, among the UUIDs that are waited for
MARK: Final = "stack"  # the key of extra, or of instance_info, that names who made a thing


class Busy(Exception):
    """The bare-metal service cannot do it now, because another works at the object ``uuid``.

    The engine asks the check of the resource again, later each time, and when the object changes.
    """

    def __init__(self, reason: str, uuid: str | None = None) -> None:
        super().__init__(reason)
        self.uuid = uuid


class Queued(Busy):
    """As many nodes as may be do the same; ``queue`` is called, and its first one asks again."""

    def __init__(self, reason: str, queue: str) -> None:
        super().__init__(f"queued: {reason}", queue)


class Machines(Protocol):
    """The nodes, and what belongs to them, that the owner of one stack may see.

    Each call raises Busy, Forbidden, and what the operation of the API raises; what the owner may
    not see is not found.  A noun is one of the words above.
    """

    def get_node(self, ident: str) -> Json:
        """Return a node by UUID or name, its secrets masked.  Raises NodeNotFound."""

    def list_available(self, resource_class: str) -> list[Json]:
        """Return uuid and name of nodes of a class that nobody has; a thousand at most."""

    def list_class(self, resource_class: str) -> list[Json]:
        """Return the nodes of a class, used or not, and where they are; a thousand at most."""

    def create_node(self, fields: Json) -> None:
        """Enrol a node; ``fields`` has its uuid."""

    def update_node(self, uuid: str, patch: Patch) -> None: ...
    def delete_node(self, uuid: str) -> None: ...
    def set_traits(self, uuid: str, traits: Sequence[str]) -> None:
        """Give a node exactly these traits."""

    def set_maintenance(self, uuid: str, on: bool, reason: str | None = None) -> None: ...
    def set_provision_state(
        self, uuid: str, verb: str, *, order_id: str | None = None, **arguments: Any
    ) -> None:
        """Order a verb; ``arguments`` as in the body of states/provision.

        ``order_id``: at most 20 characters, by which ``find_flow`` finds what the order began.
        """

    def find_flow(self, uuid: str, order_id: str) -> FlowOutcome | None:
        """Return how the flow goes that an order has begun; None: it has begun none."""

    def has_aborted_cleaning(self, uuid: str) -> bool:
        """Tell whether the last cleaning of a node was one of this stack, and was aborted."""

    def set_power_state(self, uuid: str, target: str) -> None: ...
    def set_boot(self, uuid: str, field: str, value: Any) -> None:
        """Ask for a ``boot_mode``, or for ``secure_boot``; the node is reserved until it is set."""

    def list_ports(self, uuid: str) -> tuple[list[Json], list[Json]]:
        """Return the ports of a node, and its port groups."""

    def list_vifs(self, uuid: str) -> list[str]:
        """Return the ids of the virtual interfaces that are attached to a node."""

    def attach_vif(self, uuid: str, vif: Json) -> None: ...
    def detach_vif(self, uuid: str, vif_id: str) -> None: ...
    def set_runbook_traits(self, uuid: str, traits: Sequence[str]) -> None:
        """Let a runbook be for nodes that have one of exactly these traits."""

    def list_bios_settings(self, uuid: str) -> Mapping[str, str | None]:
        """Return the BIOS settings of a node, as they were read last: value by name."""

    def list_firmware(self, uuid: str) -> list[Json]:
        """Return the firmware components of a node, as they were read last."""

    def get_inventory(self, uuid: str) -> Json:
        """Return what the last inspection of a node read.  Raises InventoryNotFound."""

    def find_console(self, uuid: str) -> str | None:
        """Return the address of a node's console; None where it has none."""

    def list_steps(self, uuid: str, phase: str) -> list[Json]:
        """Return step and duration of the newest run of a phase, such as deploy, on a node."""

    def find(self, noun: str, ident: str) -> Json | None:
        """Return a record by UUID, or by name where the noun has names; None: it is not there."""

    def create(self, noun: str, fields: Json) -> None:
        """Add a record; ``fields`` has its uuid."""

    def update(self, noun: str, uuid: str, patch: Patch) -> None: ...
    def delete(self, noun: str, uuid: str) -> None: ...
    def is_live_stack(self, stack_id: str) -> bool:
        """Tell whether a stack of this id is there, whoever owns it."""


def find_node(machines: Machines | None, ident: str) -> Json | None:
    """Return a node by UUID or name; None: it is not there, or no machine is.  Raises Busy."""
    try:
        return None if machines is None else machines.get_node(ident)
    except errors.NodeNotFound:
        return None


def find_no_node(ident: str) -> None:
    """Find none: where nobody can be asked."""
