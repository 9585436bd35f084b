"""A JSON patch of a node: what may be in it, and the values that it may set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.model import node as model
from bloomery.model.rules import idents, patches
from bloomery.model.rules import nodes as rules
from bloomery.model.rules.patches import Patch
from bloomery.operations import node_values
from bloomery.operations.context import Context

Json = dict[str, Any]

REQUIRED: Final = frozenset({"driver"})
_EMPTY_GROUP: Final = ""


def check(patch: Patch) -> None:
    """Refuse, before the node is looked up, what no node would take."""
    patches.check_form(patch)
    patches.check_roots(patch, model.PATCHABLE)
    patches.refuse_sealed(patch)


def check_reset(patch: Patch) -> None:
    """Interfaces are reset only where the driver changes."""
    if "driver" not in patches.roots(patch):
        raise errors.Invalid(
            reason="The reset_interfaces parameter can only be used when changing the node's "
            "driver: add an operation on /driver.",
        )


def cleaned(ctx: Context, node: Any, patch: Patch) -> Patch:
    """Return the patch with its values as they are to be stored."""
    return [_operation(ctx, node, one) for one in patch]


def _operation(ctx: Context, node: Any, operation: Json) -> Json:
    if not patches.is_whole(operation):
        _check_inner(operation)
        return operation
    name = patches.root_of(operation)
    if operation["op"] == "remove":
        return _removal(name, operation)
    return operation | {"value": _value(ctx, node, name, operation["value"])}


def _removal(name: str, operation: Json) -> Json:
    if name in REQUIRED:
        raise errors.PatchError(patch=operation["path"], reason=f"{name} cannot be removed")
    if name == "conductor_group":
        return {"op": "replace", "path": operation["path"], "value": _EMPTY_GROUP}
    return operation


def _value(ctx: Context, node: Any, name: str, value: Any) -> Any:
    if name == "name":
        idents.check_node_name(value)
    if name == "conductor_group":
        return str(rules.ATTRIBUTES.cleaned(name, value) or _EMPTY_GROUP).lower()
    value = rules.ATTRIBUTES.cleaned(name, value)
    if name == "properties":
        rules.check_properties(value)
    if name == "network_data":
        rules.check_network_data(value)
    if name == "chassis_uuid" and value is not None:
        node_values.check_chassis(ctx, value)
    if name == "parent_node" and value is not None:
        return node_values.parent_uuid(ctx, value, node.owner)
    return value


def _check_inner(operation: Json) -> None:
    """A change inside an object: only the sizes among the properties have a form."""
    parts = operation["path"].split("/")[1:]
    if parts[0] not in model.OBJECTS:
        raise errors.PatchError(patch=operation["path"], reason=f"{parts[0]} has no members")
    if operation["op"] != "remove" and parts[0] == "properties" and parts[1] in rules.SIZES:
        rules.check_size(parts[1], operation["value"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where the node will belong after the patch: that conductor applies it."""

    uuid: str
    driver: str
    conductor_group: str

    @classmethod
    def of(cls, node: Any, patch: Patch) -> Destination:
        values = patches.last_values(patch)
        return cls(
            uuid=node.uuid,
            driver=values.get("driver", node.driver),
            conductor_group=values.get("conductor_group", node.conductor_group),
        )
