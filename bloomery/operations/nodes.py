"""Nodes: read, list, create, change and delete their rows.

nodes.create(ctx, {"driver": "fake-hardware", "name": "web-1"})
nodes.update(ctx, "web-1", [{"op": "replace", "path": "/extra/rack", "value": 7}])
"""

from __future__ import annotations

import contextlib
import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.db import nodes as db
from bloomery.model.fields import Column
from bloomery.model.node import FAULTS
from bloomery.model.request import Page
from bloomery.model.rules import attributes, idents, network_data, patches
from bloomery.model.rules import nodes as rules
from bloomery.model.rules.patches import Patch
from bloomery.operations import lookup, policy, policy_rules
from bloomery.operations.context import Context

Json = dict[str, Any]

EQUAL: Final = (
    "instance_uuid", "maintenance", "retired", "provision_state", "driver", "resource_class",
    "fault", "conductor_group", "owner", "lessee", "chassis_uuid", "instance_name",
)  # fmt: skip
_MAINTENANCE_RULES: Final = {
    True: "baremetal:node:set_maintenance", False: "baremetal:node:clear_maintenance",
}  # fmt: skip
ONLY_ACCEPTED: Final = frozenset({"boot_mode", "secure_boot"})  # POST accepts and ignores them


def count_by_shard(ctx: Context) -> list[tuple[str | None, int]]:
    """Count nodes by shard, the fullest first; None: in no shard."""
    policy.authorize(ctx, "baremetal:shards:get")
    with ctx.services.db.read() as conn:
        return db.count_by_shard(conn)


def get_row(ctx: Context, ident: str, columns: tuple[Column, ...]) -> Any:
    """Return columns of one node by UUID or name.  Raises NodeNotFound.

    Objects are JSON text as they are stored, traits joined by commas.
    """
    return policy.get_node(ctx, ident, "baremetal:node:get", columns=columns)


def get_states(ctx: Context, ident: str, columns: tuple[Column, ...]) -> Any:
    """Return a node's columns of states; see ``get_row``."""
    return policy.get_node(ctx, ident, "baremetal:node:get_states", columns=columns)


def find_host(ctx: Context, driver: str, group: str, uuid: str) -> str | None:
    """Return the host name of the conductor that serves a node, or None."""
    return ctx.services.rpc.ring.find_host(driver=driver, group=group, uuid=uuid)


# -------------------------------------------------------------------------------------- lists


def list_rows(
    ctx: Context,
    columns: tuple[Column, ...],
    filters: Mapping[str, Any],
    page: Page,
) -> tuple[Sequence[Any], str | None]:
    """Return a page of rows of these columns, and the marker of a possible next page.

    Rows are as those of ``get_row``.  The filter ``conductor`` applies to the page, not to the
    table, so that such a page may have fewer rows than its limit.
    """
    project = policy.visible_project(ctx, "node", filters.get("project"))
    host = filters.get("conductor")
    needed = ("uuid",) if host is None else ("uuid", "driver", "conductor_group")
    extra = tuple(name for name in needed if name not in columns)
    _check_filters(filters)
    equal = {name: filters[name] for name in EQUAL if name in filters}
    if equal.get("chassis_uuid") is not None:
        with ctx.services.db.read() as conn:
            if not db.chassis_exists(conn, equal["chassis_uuid"]):
                raise errors.ChassisNotFound(chassis=equal["chassis_uuid"])
    include_children = bool(filters.get("include_children"))
    if "parent_node" in filters and not include_children:
        equal["parent_node"] = filters["parent_node"]
        with contextlib.suppress(errors.NodeNotFound):  # an unknown node has no children
            equal["parent_node"] = policy.get_uuid(ctx, filters["parent_node"])
    query = db.Query(
        columns=columns + extra,
        equal=equal,
        among={"shard": filters["shard"]} if "shard" in filters else {},
        associated=filters.get("associated"),
        project=project,
        description_contains=filters.get("description_contains"),
        sharded=filters.get("sharded"),
        include_children=include_children or "parent_node" in equal,
        sort_key=page.sort_key,
        descending=page.descending,
        marker=page.marker,
        limit=page.limit,
    )
    with ctx.services.db.read() as conn:
        rows = db.list_rows(conn, query)
    marker = rows[-1].uuid if page.is_full(rows) else None
    if host is not None:
        rows = [
            row for row in rows if host == find_host(ctx, row.driver, row.conductor_group, row.uuid)
        ]
    return [row[: len(columns)] for row in rows] if extra else rows, marker


def _check_filters(filters: Mapping[str, Any]) -> None:
    state = filters.get("provision_state")
    if state is not None and state not in set(State):
        raise errors.InvalidParameterValue(
            reason=f'Provision state "{state}" is not valid; '
            f"allowed are {', '.join(sorted(State))}",
        )
    fault = filters.get("fault")
    if fault is not None and fault not in FAULTS:
        raise errors.InvalidParameterValue(
            reason=f'Unrecognized fault "{fault}" is specified, allowed faults are {FAULTS}',
        )
    attributes.check_text("description_contains", filters.get("description_contains"))


def list_children(ctx: Context, ident: str) -> tuple[str, list[str]]:
    """Return the UUIDs of a node and of its children."""
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:get")
    project = policy.visible_project(ctx, "node")
    query = db.Query(columns=("uuid",), equal={"parent_node": uuid}, project=project)
    with ctx.services.db.read() as conn:
        return uuid, [row.uuid for row in db.list_rows(conn, query)]


# ------------------------------------------------------------------------------------- create


def create(
    ctx: Context, fields: Json, state: State = State.ENROLL, also: Json | None = None
) -> str:
    """Enrol a node in ``state``; return its UUID.

    Checks in Ironic's order: name, owner, chassis, conductor and interfaces, uniqueness. ``fields``
    have passed the schema; ``also``: what else is stored of a node that was another service's.
    """
    policy.authorize(ctx, "baremetal:node:create")
    fields = {name: value for name, value in fields.items() if value is not None}
    _check_fields(ctx, fields)
    defaults = ctx.services.conf.default
    values: Json = {
        "provision_state": state,
        "uuid": str(uuids.uuid4()),
        "resource_class": defaults.default_resource_class,
        "conductor_group": defaults.default_conductor_group.lower(),
    }
    values |= {n: rules.stored(n, value) for n, value in fields.items() if n not in ONLY_ACCEPTED}
    if ctx.request.project is not None and _enrols_for_itself(ctx):
        values["owner"] = ctx.request.project
    if "parent_node" in values:
        values["parent_node"] = _parent_uuid(ctx, values["parent_node"], values.get("owner"))
    values |= also or {}
    with lookup.no_host_is_a_bad_request():
        conductor = ctx.services.rpc.conductor_for_node(
            driver=values["driver"],
            group=values["conductor_group"],
            uuid=values["uuid"],
        )
    conductor.create_node(ctx.request, values)
    return str(values["uuid"])


def _check_fields(ctx: Context, fields: Json) -> None:
    if "name" in fields:
        idents.check_node_name(fields["name"])
    if _enrols_for_itself(ctx) and fields.get("owner") not in (None, ctx.request.project):
        raise errors.Invalid(
            reason=f"cannot enrol a node for project {fields['owner']}: who enrols for the own "
            "project, or has none, sets no other owner; PATCH does",
        )
    attributes.refuse_sealed_in(fields)
    properties = fields.get("properties")
    rules.check_properties(properties)
    disallowed = ctx.services.conf.api.disallowed_enrollment_boot_modes
    rules.refuse_boot_mode([properties], disallowed, "[api]disallowed_enrollment_boot_modes")
    if fields.get("network_data"):
        network_data.check(fields["network_data"])
    if "chassis_uuid" in fields:
        _require_chassis(ctx, fields["chassis_uuid"])


def _require_chassis(ctx: Context, uuid: str) -> None:
    with ctx.services.db.read() as conn:
        rules.require_chassis(uuid, exists=db.chassis_exists(conn, uuid))


def _enrols_for_itself(ctx: Context) -> bool:
    """Does a new node always belong to the caller's project?"""
    own = ctx.services.conf.api.project_admin_can_manage_own_nodes
    rule = "baremetal:node:create:self_owned_node"
    return own and ctx.request.system_scope != "all" and policy.may(ctx, rule)


def _parent_uuid(ctx: Context, ident: str, owner: str | None) -> str:
    """Return the UUID of a new node's parent, which must have the same owner."""
    uuid = lookup.uuid_in_body(ctx, ident, "parent_node")
    policy.authorize_named(ctx, uuid, rules.no_such_node("parent_node", ident))
    parent = lookup.row(ctx, uuid, ("owner",))
    if parent.owner != owner:
        raise errors.InvalidParameterValue(
            reason=f"cannot set parent_node to {ident}: it has another owner",
        )
    return uuid


# ------------------------------------------------------------------------------------- update


def _anything(patch: Patch) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTerms:
    """Limits of an update beyond the common rules; the defaults are for pages and stacks.

    ``check_patch`` is called before the node's lookup, ``check_names`` after the check of its
    state; both may refuse.  ``while_inspecting``: a node may be changed during inspection.
    """

    check_patch: Callable[[Patch], None] = _anything
    check_names: Callable[[Patch], None] = _anything
    while_inspecting: bool = False


def update(
    ctx: Context,
    ident: str,
    patch: Patch,
    reset_interfaces: bool | None = None,
    terms: UpdateTerms = UpdateTerms(),
) -> str:
    """Apply a JSON patch to a node; return its UUID.

    The conductor applies the patch to the row in its own transaction, so that concurrent changes
    are kept.
    """
    policy.authorize_node(ctx, ident, *policy_rules.of_patch(patch))
    rules.check_patch(patch)
    terms.check_patch(patch)
    if reset_interfaces:
        rules.check_reset(patch)
    node = lookup.row(ctx, ident)
    _check_update(ctx, node, patch, while_inspecting=terms.while_inspecting)
    terms.check_names(patch)
    patch = [_resolved(ctx, node, operation) for operation in rules.stored_patch(patch)]
    values = patches.last_values(patch)
    with lookup.no_host_is_a_bad_request():  # that of the patched node applies the patch
        conductor = ctx.services.rpc.conductor_for_node(
            driver=values.get("driver", node.driver),
            group=values.get("conductor_group", node.conductor_group),
            uuid=node.uuid,
        )
    conductor.update_node(ctx.request, node.uuid, patch, bool(reset_interfaces))
    return str(node.uuid)


def _check_update(ctx: Context, node: Any, patch: Patch, *, while_inspecting: bool) -> None:
    """Refuse a patch that the node's state forbids."""
    rules.refuse_while_busy(node, patch)
    state, name = node.provision_state, errors.name_of(node)
    frees_instance = rules.frees_instance_only(patch) and node.maintenance
    if state == State.INSPECTING and not while_inspecting and not frees_instance:
        raise errors.Conflict(
            reason=f"Cannot update node {name} while it is in state {state}; "
            "wait for the inspection to end.",
        )
    rule = "baremetal:node:update_owner_provisioned"
    is_moved = state == State.ACTIVE and "owner" in patches.roots(patch)
    if is_moved and not policy.may(ctx, rule, policy.node_target(node)):
        raise errors.Conflict(
            reason=f"cannot change the owner of node {name} while it is in state "
            f"{state}: policy {rule} does not allow it to you",
        )


def _resolved(ctx: Context, node: Any, operation: Json) -> Json:
    """Return an operation with the parent's UUID; a chassis must exist.

    A parent below the node is refused: both would vanish from lists.
    """
    if operation["op"] == "remove" or operation["value"] is None:
        return operation
    if operation["path"] == "/chassis_uuid":
        _require_chassis(ctx, operation["value"])
    if operation["path"] != "/parent_node":
        return operation
    parent = _parent_uuid(ctx, operation["value"], node.owner)
    seen: set[str] = set()
    ancestor: str | None = parent
    while ancestor is not None and ancestor not in seen:
        if ancestor == node.uuid:
            raise errors.InvalidParameterValue(
                reason=f"cannot set parent_node of node {node.uuid} to {parent}: that is the node "
                "itself, or a child of it",
            )
        seen.add(ancestor)
        ancestor = lookup.row(ctx, ancestor, ("parent_node",)).parent_node
    return operation | {"value": parent}


# ------------------------------------------------------------------------------------- delete


def delete(ctx: Context, ident: str) -> None:
    """Delete a node; the conductor checks its state."""
    node = policy.get_node(ctx, ident, "baremetal:node:delete")
    lookup.conductor_of(ctx, node).destroy_node(ctx.request, node.uuid)


def forget(ctx: Context, ident: str, *, force: bool = False) -> None:
    """Order the end of all work on a node, and the removal of its record."""
    node = policy.get_node(ctx, ident, "baremetal:node:forget")
    lookup.conductor_of(ctx, node).forget_node(ctx.request, node.uuid, force)


# --------------------------------------------------------------------------------- maintenance


def set_maintenance(ctx: Context, ident: str, on: bool, reason: str | None = None) -> None:
    """Begin maintenance with a reason, or end it and clear reason and fault."""
    policy.authorize_node(ctx, ident, _MAINTENANCE_RULES[on])
    attributes.check_text("reason", reason)
    node = lookup.row(ctx, ident)
    with lookup.no_host_is_a_bad_request():
        conductor = lookup.conductor_of(ctx, node)
    conductor.set_maintenance(ctx.request, node.uuid, on, reason)


def validate(ctx: Context, ident: str) -> Json:
    """Validate each interface of the node."""
    node = policy.get_node(ctx, ident, "baremetal:node:validate")
    return lookup.conductor_of(ctx, node).validate_driver_interfaces(ctx.request, node.uuid)
