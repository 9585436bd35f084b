"""Nodes: one to show, many to list, and what POST, PATCH and DELETE may ask.

nodes.create(ctx, {"driver": "fake-hardware", "name": "web-1"})
nodes.update(ctx, "web-1", [{"op": "replace", "path": "/extra/rack", "value": 7}])
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.model import node as model
from bloomery.model.rules import attributes
from bloomery.model.rules import nodes as rules
from bloomery.model.rules.patches import Patch
from bloomery.operations import lookup, node_documents, node_patches, node_values, versions
from bloomery.operations.context import Context

Json = dict[str, Any]

ENROLL_SINCE: Final = 11
ONLY_ACCEPTED: Final = frozenset({"boot_mode", "secure_boot"})  # POST takes them and learns better


def show(ctx: Context, ident: str, fields: Iterable[str] | None = None) -> Json:
    """Return one node; all that the version knows, or the ``fields`` asked."""
    if fields is not None:
        node_documents.check_fields(ctx, fields)
    serializer = node_documents.Serializer(ctx, fields, parts=fields is None)
    return serializer.write(lookup.row(ctx, ident, serializer.columns))


# ------------------------------------------------------------------------------------- create


def create(ctx: Context, body: Json) -> Json:
    """Enrol a node; return it as it was stored.

    Checks in the reference's order: versions, name, owner, chassis, conductor and interfaces,
    uniqueness.  ``body`` has passed the schema.
    """
    given = {name: value for name, value in body.items() if value is not None}
    _check_versions(ctx, given)
    _check_values(ctx, given)
    values = _stored(ctx, given)
    with lookup.no_host_is_a_bad_request():
        conductor = ctx.services.rpc.conductor_for_node(
            driver=values["driver"],
            group=values["conductor_group"],
            uuid=values["uuid"],
        )
    conductor.create_node(ctx.request, values)
    return show(ctx, values["uuid"])


def _check_versions(ctx: Context, given: Json) -> None:
    for name in given:
        if name == "conductor_group" and not given[name]:
            continue
        versions.require(ctx.version, model.FIELDS[name].since, f"field {name}")


def _check_values(ctx: Context, given: Json) -> None:
    if "name" in given:
        node_values.check_name(given["name"], ctx.version)
    if "owner" in given:
        raise errors.Invalid(
            reason="cannot set owner while creating a node: without projects (auth_strategy is "
            "not keystone) it is set by PATCH",
        )
    attributes.refuse_sealed_in(given)
    properties = given.get("properties")
    rules.check_properties(properties)
    disallowed = ctx.services.conf.api.disallowed_enrollment_boot_modes
    rules.refuse_boot_mode([properties], disallowed, "[api]disallowed_enrollment_boot_modes")
    if given.get("network_data"):
        rules.check_network_data(given["network_data"])
    if "chassis_uuid" in given:
        node_values.check_chassis(ctx, given["chassis_uuid"])


def _stored(ctx: Context, given: Json) -> Json:
    """Return what the conductor is to store: words as booleans, idents as UUIDs, defaults."""
    defaults = ctx.services.conf.default
    cleaned = {
        name: rules.ATTRIBUTES.cleaned(name, value)
        for name, value in given.items()
        if name not in ONLY_ACCEPTED
    }
    values = {
        "uuid": str(uuids.uuid4()),
        "resource_class": defaults.default_resource_class,
        "conductor_group": defaults.default_conductor_group,
        "provision_state": State.ENROLL if ctx.version >= ENROLL_SINCE else State.AVAILABLE,
    } | cleaned
    values["conductor_group"] = values["conductor_group"].lower()
    if "parent_node" in values:
        values["parent_node"] = node_values.parent_uuid(ctx, values["parent_node"], None)
    return values


# ------------------------------------------------------------------------------------- update


def update(ctx: Context, ident: str, patch: Patch, reset_interfaces: bool | None = None) -> Json:
    """Apply a JSON patch; return the node as it was stored.

    The conductor applies it to the row that it reads in its own transaction: what others
    changed meanwhile stays.
    """
    node_patches.check(ctx, patch, reset_interfaces)
    node = lookup.row(ctx, ident)
    _check_state(ctx, node, patch)
    cleaned = node_patches.cleaned(ctx, node, patch)
    with lookup.no_host_is_a_bad_request():
        conductor = lookup.conductor_of(ctx, node_patches.Destination.of(node, cleaned))
    conductor.update_node(ctx.request, node.uuid, cleaned, bool(reset_interfaces))
    return show(ctx, node.uuid)


def _check_state(ctx: Context, node: Any, patch: Patch) -> None:
    rules.refuse_while_busy(node, patch)
    if rules.frees_instance_only(patch) and node.maintenance:
        return
    state = node.provision_state
    if state == State.INSPECTING and ctx.version >= node_documents.INSPECT_WAIT_SINCE:
        raise errors.Conflict(
            reason=f"Cannot update node {node.uuid} while it is in state {state}; "
            "wait for the inspection to end.",
        )


# ------------------------------------------------------------------------------------- delete


def delete(ctx: Context, ident: str) -> None:
    """Delete a node; the conductor decides whether its state allows that."""
    node = lookup.row(ctx, ident)
    lookup.conductor_of(ctx, node).destroy_node(ctx.request, node.uuid)


# --------------------------------------------------------------------------------- maintenance


def set_maintenance(ctx: Context, ident: str, on: bool, reason: str | None = None) -> None:
    """Begin maintenance with a reason, or end it and forget reason and fault."""
    attributes.check_text("reason", reason)
    node = lookup.row(ctx, ident)
    with lookup.no_host_is_a_bad_request():
        conductor = lookup.conductor_of(ctx, node)
    conductor.set_maintenance(ctx.request, node.uuid, on, reason)


def validate(ctx: Context, ident: str) -> Json:
    """Ask each interface of the node whether it has what it needs."""
    node = lookup.row(ctx, ident)
    return lookup.conductor_of(ctx, node).validate_driver_interfaces(ctx.request, node.uuid)
