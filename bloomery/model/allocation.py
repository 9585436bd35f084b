"""An allocation: a request for a node, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.model.fields import NAME, NAME_OR_EMPTY, Field, FieldTable, table
from bloomery.model.noun import Noun
from bloomery.model.rules import idents
from bloomery.model.rules import nodes as node_rules

Json = dict[str, Any]
SINCE: Final = 52
PATCH_SINCE: Final = 57
BACKFILL_SINCE: Final = 58


class AllocationState(StrEnum):
    """The state of an allocation; only ``allocating`` ever changes."""

    ALLOCATING = "allocating"
    ACTIVE = "active"
    ERROR = "error"


@dataclass(slots=True, kw_only=True)
class Allocation:
    """``candidate_nodes``: the UUIDs to choose from, in the client's order; []: no limit.

    ``owner``: the project whose own or leased nodes are eligible.  ``last_error``: the reason of a
    failure or a wait.  ``conductor_affinity``: the host that searches for a node.
    """

    uuid: str
    id: int = 0
    name: str | None = None
    node_uuid: str | None = None
    resource_class: str | None = None
    state: str = AllocationState.ALLOCATING
    last_error: str | None = None
    candidate_nodes: list[str] = field(default_factory=list)
    traits: list[str] = field(default_factory=list)
    extra: Json = field(default_factory=dict)
    owner: str | None = None
    conductor_affinity: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C"),
    Field("name", "text", access="RW", form=NAME_OR_EMPTY),
    Field("node_uuid", "uuid", sortable=False),
    Field("resource_class", "text", access="C", limit=80),
    Field("state", "text"),
    Field("last_error", "text"),
    Field("candidate_nodes", "list", access="C", form={"items": {"type": "string"} | NAME}),
    Field("traits", "list", access="C", form=node_rules.TRAITS),
    Field("extra", "object", access="RW"),
    Field("owner", "text", since=60, access="C", limit=255),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)


def name(text: str) -> str:
    """Return a name as it is stored; unlike a node's it may look like a UUID, or be ""."""
    if text and not idents.is_logical_name(text):
        raise errors.InvalidName(
            reason=f"cannot name an allocation {text!r}: a name has 1 to 255 letters, digits "
            "or -._~",
        )
    return text


def _traits(traits: list[Any]) -> list[Any]:
    for trait in traits:
        node_rules.check_trait(trait)
    if (count := len(set(traits))) > node_rules.MOST_TRAITS:
        raise errors.Invalid(
            reason=f"Schema error for allocation: traits must be {node_rules.MOST_TRAITS} at most, "
            f"as many as a node may have, not {count}",
        )
    return traits


def _candidate_nodes(idents_of_nodes: list[Any]) -> list[Any]:
    for ident in idents_of_nodes:
        idents.check_ident("candidate_nodes", ident)
    return idents_of_nodes


_CLASS: Final = {
    "required": ["resource_class"],
    "properties": {"resource_class": {"type": "string", "minLength": 1}},
}
NOUN: Final = Noun(
    name="allocation",
    plural="allocations",
    value=Allocation,
    table="allocations",
    fields=FIELDS,
    listed=(),
    since=SINCE,
    missing=lambda ident: errors.AllocationNotFound(allocation=ident),
    taken={
        "uuid": lambda uuid: errors.AllocationAlreadyExists(uuid=uuid),
        "name": lambda name: errors.AllocationDuplicateName(name=name),
    },
    form={"anyOf": [_CLASS, {"required": ["node"]}]},
    filters={"node": 1, "resource_class": 1, "state": 1, "owner": 60},
    rules={"name": name, "traits": _traits, "candidate_nodes": _candidate_nodes},
    null_when_empty=frozenset({"candidate_nodes", "traits"}),
)


# ----------------------------------------------------------------------------- rules of the node


def check_removable(node: Any, uuid: str) -> None:
    """Raise InvalidState unless the node may lose its allocation; in maintenance it always may."""
    if node.maintenance:
        return
    busy = node.target_provision_state and node.provision_state not in states.UPDATE_ALLOWED_STATES
    if busy or node.provision_state == State.ACTIVE:
        raise errors.InvalidState(
            reason=f"cannot delete allocation {uuid}: its node {errors.name_of(node)} is in state "
            f'"{node.provision_state}"; undeploy the node, or set it in maintenance',
        )


def check_instance_removable(node: Any) -> None:
    """Raise InvalidState unless a patch may remove the instance, and its allocation."""
    if node.maintenance or node.provision_state in states.INTERFACE_CHANGE_STATES:
        return
    raise errors.InvalidState(
        reason=f"cannot remove instance_uuid of node {errors.name_of(node)}, whose allocation "
        f'would go, in state "{node.provision_state}": only in '
        f"{', '.join(sorted(states.INTERFACE_CHANGE_STATES))}, or in maintenance",
    )


def backfill_obstacles(allocation: Allocation, node: Any) -> str:
    """Return why an allocation cannot be backfilled for an active node; "": it can."""
    obstacles = []
    if node.provision_state != State.ACTIVE:
        obstacles.append(f'the node must be in state "active", not "{node.provision_state}"')
    if allocation.resource_class and allocation.resource_class != node.resource_class:
        obstacles.append(
            f"its resource class is {node.resource_class}, not {allocation.resource_class}"
        )
    if missing := [trait for trait in allocation.traits if trait not in node.traits]:
        obstacles.append(f"it has no traits {', '.join(missing)}")
    if allocation.candidate_nodes and node.uuid not in allocation.candidate_nodes:
        obstacles.append("it is none of the candidate nodes")
    if not obstacles:
        return ""
    return f"cannot backfill an allocation for node {errors.name_of(node)}: {'; '.join(obstacles)}"
