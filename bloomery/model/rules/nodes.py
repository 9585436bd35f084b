"""Rules of nodes: valid attributes, and the states that allow a change or a deletion.

``node`` is a ``Node``, or a row of the columns that a rule reads; ``changed`` the fields that a
patch changes, with their new values.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.model import capabilities
from bloomery.model import node as model
from bloomery.model.node import INTERFACES, Node
from bloomery.model.rules import attributes, idents, network_data, patches
from bloomery.model.rules.patches import Patch

Json: TypeAlias = dict[str, Any]

ATTRIBUTES: Final = attributes.Checker("node", model.FIELDS)
SIZES: Final = ("memory_mb", "local_gb")  # among the properties
INTERFACE_FIELDS: Final = frozenset(f"{kind}_interface" for kind in INTERFACES)
MOST_TRAITS: Final = 50
_REQUIRED: Final = frozenset({"driver"})
_SWITCHES: Final = frozenset({"protected", "retired", "disable_power_off"})  # null is off
_NO_GROUP: Final = ""
_SIZE: Final = re.compile(r"[0-9]{1,18}")  # fits into the integers of every client
_CUSTOM_TRAIT: Final = re.compile(r"CUSTOM_[A-Z0-9_]+")
TRAIT: Final[Json] = {"$ref": "#/components/schemas/Trait"}  # ``trait_schema``, in the document
TRAITS: Final[Json] = {"items": TRAIT, "maxItems": MOST_TRAITS}
_MOST_CAUSE: Final = 300
_MOST_TRAIT: Final = 255  # characters
_USUAL_CLASS: Final = re.compile(r"[\w.-]*", re.ASCII)


# ------------------------------------------------------------------------------------- values


def stored(name: str, value: Any) -> Any:
    """Return an attribute's value as it is stored, for POST and PATCH.

    Raises Invalid, naming the attribute.
    """
    if name == "name":
        idents.check_node_name(value)
    value = ATTRIBUTES.cleaned(name, value)
    if name == "conductor_group":
        return (value or _NO_GROUP).lower()
    if name == "properties":
        check_properties(value)
    return value


def check_properties(properties: Json | None) -> None:
    """Check the sizes memory_mb and local_gb."""
    for name in SIZES:
        check_size(name, (properties or {}).get(name))


def check_size(name: str, value: Any) -> None:
    """Raise unless a property is a natural number: an integer, digits, or null."""
    is_count = type(value) is int and value >= 0
    is_digits = isinstance(value, str) and _SIZE.fullmatch(value) is not None
    if value is not None and not is_count and not is_digits:
        text = attributes.shortened(repr(value))
        raise errors.InvalidParameterValue(
            reason=f"Schema error for node: properties/{name} must be an integer of at least 0 "
            f"or null, not {text}",
        )


def refuse_boot_mode(
    holders: Iterable[Mapping[str, Any] | None],
    disallowed: Collection[str],
    option: str,
) -> None:
    """Raise BootModeNotAllowed if the first boot mode among capabilities is disallowed.

    ``holders``: instance_info, properties, in the order of precedence; ``option``: the name of the
    operator's list.
    """
    if disallowed:
        modes = (capabilities.of(holder).get("boot_mode") for holder in holders)
        mode = next(filter(None, modes), None)
        if mode in disallowed:
            raise errors.BootModeNotAllowed(mode=mode, option=option)


def no_such_node(argument: str, ident: str) -> errors.InvalidParameterValue:
    """Return the error for a missing or invisible node in a body."""
    return errors.InvalidParameterValue(
        reason=f"cannot set {argument} to {ident!r}: no such node",
    )


def require_chassis(uuid: str | None, *, exists: bool) -> None:
    """Raise unless the node's chassis exists; None removes the node from its chassis."""
    if uuid is not None and not exists:
        raise errors.InvalidParameterValue(
            reason=f"cannot set chassis_uuid to {uuid}: Chassis {uuid} could not be found.",
        )


def check_trait(trait: Any) -> None:
    """Raise Invalid unless it is a standard trait or a custom one."""
    is_text = isinstance(trait, str) and 0 < len(trait) <= _MOST_TRAIT
    if not is_text or not (_CUSTOM_TRAIT.fullmatch(trait) or trait in _standard_traits()):
        raise errors.Invalid(
            reason=f"Schema error for trait: {attributes.shortened(repr(trait))} must be a "
            "standard trait of os-traits, or CUSTOM_ followed by A-Z, 0-9 and _ "
            f"({_MOST_TRAIT} characters at most)",
        )


def trait_schema() -> Json:
    """Return the JSON schema of a trait, for the OpenAPI document."""
    custom = {"pattern": f"^{_CUSTOM_TRAIT.pattern}$", "maxLength": _MOST_TRAIT}
    return {"type": "string", "anyOf": [custom, {"enum": sorted(_standard_traits())}]}


@lru_cache(maxsize=1)
def _standard_traits() -> frozenset[str]:
    import os_traits  # a second of work that most sites never need

    return frozenset(os_traits.get_traits())


def check_instance(node: Node, disallowed: Collection[str]) -> None:
    """Raise unless the node fits the instance in its instance_info.

    ``disallowed``: the boot modes that the operator disallows for deployments.
    """
    traits = node.instance_info.get("traits") or []
    if not isinstance(traits, list) or not all(isinstance(trait, str) for trait in traits):
        raise errors.InvalidParameterValue(
            reason=f"cannot deploy node {errors.name_of(node)}: instance_info/traits must be a "
            "list of names",
        )
    if missing := [trait for trait in traits if trait not in node.traits]:
        raise errors.InvalidParameterValue(
            reason=f"cannot deploy node {errors.name_of(node)}: its instance asks for traits that "
            f"it lacks: {', '.join(missing)}",
        )
    option = "[conductor]disallowed_deployment_boot_modes"
    refuse_boot_mode((node.instance_info, node.properties), disallowed, option)


def list_doubts(node: Node) -> list[str]:
    """Return sentences on values that are stored, and probably mistakes."""
    holders = {"properties": node.properties, "instance_info": node.instance_info}
    sentences = [
        f"{name}/capabilities has no effect with {piece!r}: write name:value, and for boot_mode "
        "uefi or bios"
        for name, holder in holders.items()
        for piece in capabilities.list_ignored(holder)
    ]
    if not _USUAL_CLASS.fullmatch(node.resource_class or ""):
        sentences.append(
            f"resource_class {node.resource_class!r} has other characters than letters, digits, "
            "_, . and -: an allocation must name it exactly so"
        )
    return sentences


def check_number_of_traits(node: Node, traits: Collection[str]) -> None:
    if len(traits) > MOST_TRAITS:
        raise errors.InvalidParameterValue(
            reason=f"cannot set more than {MOST_TRAITS} traits on node {errors.name_of(node)}",
        )


# ------------------------------------------------------------------------- updates: the patch


def check_patch(patch: Patch) -> None:
    """Refuse patches that are invalid for any node."""
    patches.check_form(patch)
    patches.check_roots(patch, model.PATCHABLE)
    patches.refuse_sealed(patch)


def check_reset(patch: Patch) -> None:
    """Allow a reset of interfaces only with a new driver."""
    if "driver" not in patches.roots(patch):
        raise errors.Invalid(
            reason="The reset_interfaces parameter can only be used when changing the node's "
            "driver: add an operation on /driver.",
        )


def stored_patch(patch: Patch) -> Patch:
    """Return the patch with its values as they are stored.  Raises Invalid, PatchError."""
    return [_stored_operation(operation) for operation in patch]


def _stored_operation(operation: Json) -> Json:
    name, is_removal = patches.root_of(operation), operation["op"] == "remove"
    if not patches.is_whole(operation):
        # inside of an object only the sizes among the properties have a form
        member = operation["path"].split("/")[2]
        if name not in model.OBJECTS:
            raise errors.PatchError(patch=operation["path"], reason=f"{name} has no members")
        if not is_removal and name == "properties" and member in SIZES:
            check_size(member, operation["value"])
        return operation
    if is_removal and name in _REQUIRED:
        raise errors.PatchError(patch=operation["path"], reason=f"{name} cannot be removed")
    if is_removal and name == "conductor_group":
        return {"op": "replace", "path": operation["path"], "value": _NO_GROUP}
    if is_removal:
        return operation
    if name in _SWITCHES and operation["value"] is None:
        return operation | {"value": False}
    if name == "parent_node" and operation["value"] is None:
        raise errors.Invalid(reason="parent_node cannot be null: remove it instead")
    if name == "network_data":
        network_data.check(operation["value"])
    return operation | {"value": stored(name, operation["value"])}


# ------------------------------------------------------------------------- updates: the states


def frees_instance_only(patch: Sequence[Json]) -> bool:
    """Is the patch exactly the removal of /instance_uuid?"""
    return [(operation["op"], operation["path"]) for operation in patch] == [
        ("remove", "/instance_uuid"),
    ]


def refuse_while_busy(node: Node, patch: Sequence[Json]) -> None:
    """Raise InvalidState while the node is in a transient state.

    In maintenance the instance may be removed.
    """
    if node.maintenance and frees_instance_only(patch):
        return
    if node.target_provision_state and node.provision_state not in states.UPDATE_ALLOWED_STATES:
        raise errors.InvalidState(
            reason=f"Node {errors.name_of(node)} can not be updated while a state transition is "
            f'in progress ("{node.provision_state}" on the way to '
            f'"{node.target_provision_state}").',
        )


def refuse_in_state(node: Node, changed: Json) -> None:
    """Allow changes of interfaces and resource class in safe states only.

    Maintenance lets interfaces change, but no resource class.
    """
    if "driver" in changed and node.console_enabled:
        raise errors.Conflict(
            reason=f"cannot change the driver of node {errors.name_of(node)}: stop its console "
            "first",
        )
    fixed = set() if node.maintenance else changed.keys() & INTERFACE_FIELDS
    if "resource_class" in changed and node.resource_class is not None:
        fixed = fixed | {"resource_class"}
    if not fixed or node.provision_state in states.INTERFACE_CHANGE_STATES:
        return
    raise errors.InvalidState(
        reason=f"cannot change {', '.join(sorted(fixed))} of node {errors.name_of(node)} in state "
        f'"{node.provision_state}": only in {", ".join(sorted(states.INTERFACE_CHANGE_STATES))}; '
        "interfaces also in maintenance",
    )


# -------------------------------------------------------------------- maintenance and its owner
#
# A fault says that the service began the maintenance, and only then may the service end it.


def maintenance_of_operator(on: bool, reason: str | None) -> Json:
    """Return the columns of a maintenance that an operator begins, takes over or ends."""
    return {
        "maintenance": on, "maintenance_reason": reason if on else None, "fault": None,
        "maintenance_at": datetime.now(UTC) if on else None,
    }  # fmt: skip


def begin_fault(node: Node, fault: str, reason: str) -> None:
    """Put a node into maintenance for a fault; the reason of an operator's maintenance stays."""
    if not (node.maintenance and node.fault is None and node.maintenance_reason):
        node.maintenance_reason = reason
    if not node.maintenance or node.fault != fault:
        node.maintenance_at = datetime.now(UTC)
    node.maintenance, node.fault = True, fault


def end_fault(node: Node, fault: str) -> bool:
    """End the maintenance and the error of this fault; return False if the node has no such one."""
    if not node.maintenance or node.fault != fault:
        return False
    if node.last_error == node.maintenance_reason:
        node.last_error = None
    node.maintenance, node.fault, node.maintenance_reason = False, None, None
    node.maintenance_at = None
    return True


# ------------------------------------------------------------- what is wrong, in lists and events


def code_of(name: str) -> str:
    """Return the code of a fault or a bad state."""
    return name.replace(" ", "_")


PROBLEMS: Final = {code_of(each): str(each) for each in (*model.FAULTS, *states.BAD_STATES)} | {
    "power_failure": "the BMC does not answer",
    "error": "tear-down failed",
    "no_conductor": "no conductor serves the node",
    "maintenance": "in maintenance",
    "last_error": "the last order failed",
}  # words of each code


def words_of(code: str) -> str:
    return PROBLEMS.get(code, code.replace("_", " "))


def find_problem(row: Any, host: str | None, *, hides_error: bool = False) -> str | None:
    """Return the code of what is wrong with a node, the worst first; None: nothing is."""
    if row.maintenance and row.fault:
        return code_of(str(row.fault))
    if row.provision_state in states.BAD_STATES:
        return code_of(str(row.provision_state))
    if host is None:
        return "no_conductor"
    if row.maintenance:
        return "maintenance"
    return "last_error" if row.last_error and not hides_error else None


def describe_problem(
    row: Any, host: str | None, mask: Callable[[str], str], *, hides_error: bool = False
) -> Json:
    """Return the code of the problem, and what is stored of it: masked, shortened, else words."""
    code = find_problem(row, host, hides_error=hides_error)
    if code is None:
        return {"cause_code": None, "cause": None}
    error = None if hides_error else row.last_error
    reason = None if code == "no_conductor" else row.maintenance_reason or error
    text = mask(reason or words_of(code))
    return {"cause_code": code, "cause": text[:_MOST_CAUSE]}


# ------------------------------------------------------------------- updates: between the fields


def with_consequences(node: Node, changed: Json) -> Json:
    """Return ``changed`` with the consequences in other fields.

    Maintenance clears its reason and fault, the end of a protection its reason, that of an instance
    its allocation.  Raises NodeAssociated, InvalidState, InvalidParameterValue.
    """
    changed = dict(changed)
    if "conductor_group" in changed:
        changed["conductor_group"] = changed["conductor_group"].lower()
    if "maintenance" in changed:
        changed |= maintenance_of_operator(changed["maintenance"], None)
    check_properties(changed.get("properties"))
    if changed.get("network_data"):
        network_data.check(changed["network_data"])
    if changed.get("instance_uuid") and node.instance_uuid:
        raise errors.NodeAssociated(node=errors.name_of(node), instance=node.instance_uuid)
    consequences: Json = {}
    display_name = (changed.get("instance_info") or {}).get("display_name")
    if display_name and node.instance_name is None and "instance_name" not in changed:
        consequences["instance_name"] = str(display_name)[:255]
    if "instance_uuid" in changed and changed["instance_uuid"] is None:
        consequences["allocation_uuid"] = None
    allowed = (State.ACTIVE, State.RESCUE)
    if changed.get("protected") and node.provision_state not in allowed:
        raise errors.InvalidState(
            reason=f"cannot make node {errors.name_of(node)} protected in state "
            f'"{node.provision_state}": only in {" or ".join(allowed)}',
        )
    consequences |= _reason_beside(node, changed, "protected")
    if changed.get("retired") and node.provision_state == State.AVAILABLE:
        raise errors.InvalidState(
            reason=f"cannot retire node {errors.name_of(node)} while it is available: manage it "
            "first",
        )
    return changed | consequences | _reason_beside(node, changed, "retired")


def _reason_beside(node: Node, changed: Json, flag: str) -> Json:
    """Allow a reason only together with its flag."""
    reason = f"{flag}_reason"
    if changed.get(flag, getattr(node, flag)):
        return {}
    if changed.get(reason):
        raise errors.InvalidParameterValue(
            reason=f"cannot set {reason} of node {errors.name_of(node)}: it is not {flag}",
        )
    return {reason: None} if flag in changed else {}


# ------------------------------------------------------------------------------------ console


def console_advice(node: Any) -> str:
    """Return what to do about a console that is not enabled."""
    name = errors.name_of(node)
    if node.console_interface in (None, "no-console"):
        return (
            f"choose one first: baremetal node set {name} --console-interface ipmitool-socat, or "
            "console-server"
        )
    return f"enable it: baremetal node console enable {name}"


def console_place(info: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return host and port of ``console_info``, or None where it names no TCP port."""
    try:
        parts = urllib.parse.urlsplit(str(info.get("url")))
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return (host, port) if parts.scheme == "tcp" and host and port else None


# ------------------------------------------------------------------------------------- delete


def check_forgettable(node: Node, *, force: bool) -> None:
    """Raise NodeProtected, or NodeHasInstance without ``force``; no other state matters."""
    if node.protected:
        raise errors.NodeProtected(node=errors.name_of(node), action="forget")
    has_instance = node.instance_uuid is not None or node.provision_state in states.INSTANCE_STATES
    if has_instance and not force:
        what = f'instance {node.instance_uuid or "without a UUID"} (state "{node.provision_state}")'
        raise errors.NodeHasInstance(node=errors.name_of(node), instance=what)


def check_deletable(node: Node, *, also_available: bool) -> None:
    """Raise unless the node may be deleted; ``also_available``: also in state available.

    Raises NodeProtected, NodeAssociated, InvalidState.  In maintenance only protection counts.
    """
    if node.protected:
        raise errors.NodeProtected(node=errors.name_of(node), action="delete")
    if node.maintenance:
        return
    if node.instance_uuid is not None:
        raise errors.NodeAssociated(node=errors.name_of(node), instance=node.instance_uuid)
    allowed = states.DELETE_ALLOWED_STATES | ({State.AVAILABLE} if also_available else set())
    if node.provision_state not in allowed:
        raise errors.InvalidState(
            reason=f"Can not delete node {errors.name_of(node)} while it is in state "
            f'"{node.provision_state}": only in {", ".join(sorted(allowed))}, or in maintenance',
        )
