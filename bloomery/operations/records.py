"""Records of any noun: read, list, create, change and delete; events of ports.

    records.create(ctx, PORT, {"address": mac, "node_uuid": node})
    records.update(ctx, PORT, "eth0", [{"op": "replace", "path": "/extra/rack", "value": 7}])

Objects in rows are JSON text, as they are stored.  ``waived`` names rules of the noun that the
caller does not have yet.
"""

from __future__ import annotations

import logging
import uuid as uuids
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.db import records as db
from bloomery.model import nouns
from bloomery.model.fields import Column
from bloomery.model.noun import INSPECTION, Noun, checked, pinned_change
from bloomery.model.request import Page
from bloomery.model.rules import attributes, idents, patches
from bloomery.model.rules import nodes as rules
from bloomery.model.rules.patches import Patch
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context
from bloomery.rpc.contract import Conductor

LOG = logging.getLogger(__name__)

Json = dict[str, Any]
NODE_COLUMNS: Final = ("node_uuid", "node_ident")
PORT_EVENTS: Final = ("network.bind_port", "network.unbind_port", "network.delete_port")
_EVENT_UUIDS: Final = ("port_id", "device_id", "binding:host_id")


def get(ctx: Context, noun: Noun, ident: str, columns: Sequence[Column]) -> Any:
    """Return columns of one record by UUID, or by name where the noun has names."""
    policy.authorize_record(ctx, noun, ident, "get")
    return _row(ctx, noun, ident, columns)


def _row(ctx: Context, noun: Noun, ident: str, columns: Sequence[Column]) -> Any:
    with ctx.services.db.read() as conn:
        row = db.find_row(conn, noun, ident, columns)
    if row is None:
        raise noun.missing(ident)
    return row


# -------------------------------------------------------------------------------------- lists


def list_rows(
    ctx: Context, noun: Noun, columns: Sequence[Column], filters: Mapping[str, Any], page: Page
) -> Sequence[Any]:
    """Return a page of rows of these columns, in that order; ``filters`` by their names."""
    project = policy.visible_records(ctx, noun, filters.get("owner"))
    noun.check_filters(filters)
    attributes.check_text("description_contains", filters.get("description_contains"))
    query = db.Query(
        columns=columns,
        equal={
            column: find(ctx, filters[name])
            for name, (column, find) in EQUAL.items()
            if name in filters
        },
        shards=filters.get("shard"),
        conductor_groups=filters.get("conductor_groups"),
        project=project,
        description_contains=filters.get("description_contains"),
        page=page,
    )
    with ctx.services.db.read() as conn:
        return db.list_rows(conn, noun, query)


def _portgroup(ctx: Context, ident: str) -> str:
    policy.authorize_record(ctx, nouns.PORTGROUP, ident)
    return str(_row(ctx, nouns.PORTGROUP, ident, ("uuid",)).uuid)


EQUAL: Final[Mapping[str, tuple[str, Callable[[Context, Any], Any]]]] = {
    "node": ("node_uuid", policy.get_uuid),
    "node_uuid": ("node_uuid", policy.get_uuid),
    "portgroup": ("portgroup_uuid", _portgroup),
    "phase": ("phase", lambda _, phase: phase),
    "address": ("address", lambda _, mac: idents.mac(mac)),
    "resource_class": ("resource_class", lambda _, text: text),
    "state": ("state", lambda _, text: text),
}  # filter -> column, and the column's value


# ------------------------------------------------------------------------------------- create


def create(ctx: Context, noun: Noun, body: Json, waived: Collection[str] = ()) -> str:
    """Create a record; return its UUID.  ``body`` has passed the schema."""
    policy.authorize_new_record(ctx, noun, body)
    attributes.refuse_sealed_in(body)
    node, values = None, {"uuid": str(uuids.uuid4())}
    if noun.of_node:
        idents_of_node = [body[name] for name in noun.node_arguments if body.get(name) is not None]
        if len(idents_of_node) != 1:
            raise errors.InvalidParameterValue(
                reason=f"a {noun.name} needs exactly one of {' and '.join(noun.node_arguments)}",
            )
        if body.get("node_uuid") is not None:
            idents.check_uuid("node_uuid", body["node_uuid"])
        node = lookup.row(ctx, _node_uuid(ctx, noun, idents_of_node[0], "create"))
        values["node_uuid"] = node.uuid
        body = {name: value for name, value in body.items() if name not in NODE_COLUMNS}
    values |= {n: checked(noun, n, value) for n, value in body.items() if value is not None}
    _require_portgroup(ctx, values.get("portgroup_uuid"))
    _refuse_under_inspection(noun, "create", node, waived)
    _conductor(ctx, node).create_record(ctx.request, noun.name, values)
    return str(values["uuid"])


def _node_uuid(ctx: Context, noun: Noun, ident: Any, verb: str) -> str:
    """Return the UUID of a body's node, if the caller may do the verb to it."""
    argument = f"the node of a {noun.name}"
    uuid = lookup.uuid_in_body(ctx, str(ident), argument)
    hidden = rules.no_such_node(argument, str(ident))
    policy.authorize_named(ctx, uuid, hidden, f"baremetal:{noun.policy}:{verb}")
    return uuid


# --------------------------------------------------------------------------- update and delete


def update(
    ctx: Context,
    noun: Noun,
    ident: str,
    patch: Patch,
    *,
    admit: Callable[[Patch], None] = lambda patch: None,
    waived: Collection[str] = (),
) -> str:
    """Apply a JSON patch to a record; return its UUID.

    ``admit`` refuses attributes newer than the client, after the form and before the record.
    """
    policy.authorize_record(ctx, noun, ident, "update")
    patches.check_form(patch)
    patches.check_roots(patch, noun.patchable)
    patches.refuse_sealed(patch)
    admit(patch)
    row = _row(ctx, noun, ident, noun.columns)
    operations = [
        operation for operation in (_operation(ctx, noun, row, each) for each in patch) if operation
    ]
    noun.check_patch(row, patch, waived)
    node = lookup.row(ctx, row.node_uuid) if noun.of_node else None
    _refuse_under_inspection(noun, "update", node, waived)
    _conductor(ctx, node).update_record(ctx.request, noun.name, row.uuid, operations)
    return str(row.uuid)


def _operation(ctx: Context, noun: Noun, row: Any, operation: Json) -> Json | None:
    """Return an operation in the conductor's form; None: it changes nothing."""
    name, is_removal = patches.root_of(operation), operation["op"] == "remove"
    value = None if is_removal else operation["value"]
    if not patches.is_whole(operation):
        if name not in noun.objects:
            raise errors.PatchError(patch=operation["path"], reason=f"{name} has no members")
        return operation
    if name in noun.pinned:  # only its current value, for which the node's name will do
        if is_removal and name in NODE_COLUMNS:
            return None
        if name in NODE_COLUMNS:
            name, value = "node_uuid", _node_uuid(ctx, noun, value, "update")
        if value != getattr(row, name):
            raise pinned_change(noun, row.uuid, name, value)
        return None
    if value is None and name in noun.kept:
        raise errors.PatchError(patch=operation["path"], reason=f"{name} cannot be removed")
    if is_removal and noun.fields[name].kind == "bool":  # as in Ironic, whatever POST begins with
        return {"op": "replace", "path": operation["path"], "value": False}
    if is_removal:
        return None if name in NODE_COLUMNS else operation
    if name == "node_uuid":
        return operation | {"value": _node_uuid(ctx, noun, checked(noun, name, value), "update")}
    value = checked(noun, name, value)
    if name == "portgroup_uuid":
        _require_portgroup(ctx, value)
    return operation | {"value": value}


def _require_portgroup(ctx: Context, uuid: str | None) -> None:
    """Raise unless the caller may read the port group."""
    if uuid is not None and ctx.services.policies.enforced:
        policy.authorize_record(ctx, nouns.PORTGROUP, uuid)


def destroy(ctx: Context, noun: Noun, ident: str) -> None:
    """Delete a record; the conductor checks its children and its node."""
    policy.authorize_record(ctx, noun, ident, "delete")
    row = _row(ctx, noun, ident, ("uuid", "node_uuid") if noun.of_node else ("uuid",))
    node = lookup.row(ctx, row.node_uuid) if noun.of_node else None
    _conductor(ctx, node).destroy_record(ctx.request, noun.name, row.uuid)


def _refuse_under_inspection(noun: Noun, verb: str, node: Any, waived: Collection[str]) -> None:
    if node is None or verb not in noun.left_alone or INSPECTION in waived:
        return
    if node.provision_state == State.INSPECTING:
        raise errors.Conflict(
            reason=f"Cannot change the {noun.plural} of node {errors.name_of(node)} while it is "
            f"in state {node.provision_state}; wait for the inspection to end.",
        )


def _conductor(ctx: Context, node: Any) -> Conductor:
    """Return the conductor of the node, or any without a node."""
    if node is None:
        return ctx.services.rpc.any_conductor()
    with lookup.no_host_is_a_bad_request():
        return lookup.conductor_of(ctx, node)


def log_port_events(ctx: Context, events: Sequence[dict[str, Any]]) -> None:
    """Log events of ports from other services, all or none, as Ironic does.

    Raises InvalidUUID, InvalidMAC (400).
    """
    policy.authorize(ctx, "baremetal:events:post")
    for event in events:
        for name in _EVENT_UUIDS:
            if event.get(name) is not None:
                idents.check_uuid(name, event[name])
        idents.mac(event["mac_address"])
    for event in events:
        LOG.info(
            "event %s: port %s, address %s", event["event"], event["port_id"], event["mac_address"]
        )
