"""A JSON patch of a node: what may be in it, and the values that it may set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.model import node as model
from bloomery.model.rules import nodes as rules
from bloomery.model.rules import patches
from bloomery.model.rules.patches import Patch
from bloomery.operations import node_values, versions
from bloomery.operations.context import Context

Json = dict[str, Any]

RESET_INTERFACES_SINCE: Final = 45
UNSET_CHASSIS_SINCE: Final = 25
REQUIRED: Final = frozenset({"driver"})
_EMPTY_GROUP: Final = ""


def check(ctx: Context, patch: Patch, reset_interfaces: bool | None) -> None:
    """Refuse, before the node is looked up, what no node would take from this client."""
    patches.check_form(patch)
    patches.check_roots(patch, model.PATCHABLE)
    patches.refuse_sealed(patch)
    newer = _newer(patch, ctx.version)
    if newer:
        raise versions.refused(model.FIELDS[newer[0]].since, f"field {newer[0]}")
    if _unsets_chassis(patch):
        versions.require(ctx.version, UNSET_CHASSIS_SINCE, "removal of chassis_uuid")
    if reset_interfaces is not None:
        _check_reset(ctx, patch)


def _newer(patch: Patch, version: int) -> list[str]:
    """Return the attributes that some add or replace touches and ``version`` does not know."""
    touched = {patches.root_of(one) for one in patch if one["op"] != "remove"}
    return sorted(name for name in touched if model.FIELDS[name].since > version)


def _unsets_chassis(patch: Patch) -> bool:
    values = patches.last_values(patch)
    return "chassis_uuid" in values and values["chassis_uuid"] is None


def _check_reset(ctx: Context, patch: Patch) -> None:
    versions.require(ctx.version, RESET_INTERFACES_SINCE, "reset_interfaces")
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
        node_values.check_name(value, ctx.version)
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
