"""Ports: the network cards of nodes."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Mapping
from typing import Any, Final

import jsonpatch
import orjson

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.db import ports as db
from bloomery.model import port as model
from bloomery.model.rules import attributes, idents, patches
from bloomery.model.rules.patches import Patch
from bloomery.operations import documents, links, lookup, port_values, versions
from bloomery.operations.context import Context
from bloomery.rpc.contract import Conductor

Json = dict[str, Any]

PROJECTIONS: Final = documents.Projections(model.FIELDS, "uuid")
ALSO_ASKED: Final = ("links",)
NODE_IDENT_SINCE: Final = 94
INSPECTING_LOCKS_SINCE: Final = 39
PATCHABLE: Final = model.PATCHABLE | {"node_ident"}
REQUIRED: Final = frozenset({"address"})
KEEPS_NODE: Final = frozenset({"node_uuid", "node_ident"})  # their removal changes nothing


class Serializer:
    """Turns rows of one answer into documents; read by ``columns``."""

    def __init__(self, ctx: Context, asked: Iterable[str] | None) -> None:
        self._shape = PROJECTIONS.of(ctx.version, asked)
        self._link = links.Maker(ctx.url, "ports")
        self.columns = self._shape.columns

    def write(self, row: Any) -> Json:
        found = self._shape.values(row)
        found["links"] = self._link(found["uuid"])
        return self._shape.finish(found)


def show(ctx: Context, ident: str, fields: Iterable[str] | None = None) -> Json:
    """Return one port by UUID or name."""
    if fields is not None:
        documents.check_fields(fields, model.FIELDS, ctx.version, also=ALSO_ASKED)
    serializer = Serializer(ctx, fields)
    return serializer.write(_row(ctx, ident, serializer.columns))


def _row(ctx: Context, ident: str, columns: Iterable[str]) -> Any:
    with ctx.services.db.read() as conn:
        found = db.find_row(conn, ident, tuple(columns))
    if found is None:
        raise errors.PortNotFound(port=ident)
    return found


# ------------------------------------------------------------------------------------- create


def create(ctx: Context, body: Json) -> Json:
    """Add a port to a node; return it as it was stored.  ``body`` has passed the schema."""
    _check_versions(ctx, body)
    attributes.refuse_sealed_in(body)
    node = _node(ctx, body)
    values = {
        name: port_values.cleaned(ctx, name, value)
        for name, value in body.items()
        if name not in KEEPS_NODE and value is not None
    }
    values = {"uuid": str(uuids.uuid4()), "node_uuid": node.uuid} | values
    _refuse_while_inspecting(ctx, node)
    _conductor(ctx, node).create_port(ctx.request, values)
    return show(ctx, values["uuid"])


def _check_versions(ctx: Context, body: Json) -> None:
    for name in body:
        since = NODE_IDENT_SINCE if name == "node_ident" else model.FIELDS[name].since
        versions.require(ctx.version, since, f"field {name}")


def _node(ctx: Context, body: Json) -> Any:
    given = [body[name] for name in sorted(KEEPS_NODE) if body.get(name) is not None]
    if len(given) != 1:
        raise errors.InvalidParameterValue(
            reason="a port needs exactly one of node_uuid and node_ident",
        )
    if "node_uuid" in body and not idents.is_uuid(body["node_uuid"]):
        raise errors.InvalidUUID(argument="node_uuid", value=body["node_uuid"])
    return lookup.row(ctx, lookup.uuid_in_body(ctx, given[0], "the node of a port"))


# --------------------------------------------------------------------------- update and delete


def update(ctx: Context, ident: str, patch: Patch) -> Json:
    """Apply a JSON patch to a port; return it as it was stored."""
    patches.check_form(patch)
    patches.check_roots(patch, PATCHABLE)
    patches.refuse_sealed(patch)
    _check_patch_versions(ctx, patch)
    port = _row(ctx, ident, ("uuid", "node_uuid", "local_link_connection"))
    cleaned = [one for one in (_operation(ctx, port, each) for each in patch) if one]
    _check_link_after(ctx, port, cleaned)
    node = lookup.row(ctx, port.node_uuid)
    _refuse_while_inspecting(ctx, node)
    _conductor(ctx, node).update_port(ctx.request, port.uuid, cleaned)
    return show(ctx, port.uuid)


def _check_patch_versions(ctx: Context, patch: Patch) -> None:
    for name in patches.roots(patch) & port_values.PATCH_GATED:
        versions.require(ctx.version, model.FIELDS[name].since, f"field {name}")


def _operation(ctx: Context, port: Any, operation: Json) -> Json | None:
    """Return an operation as the conductor takes it; None: it changes nothing."""
    name = patches.root_of(operation)
    if not patches.is_whole(operation):
        if name not in model.OBJECTS:
            raise errors.PatchError(patch=operation["path"], reason=f"{name} has no members")
        return operation
    if name in KEEPS_NODE:
        _check_same_node(ctx, port, operation)
        return None
    if operation["op"] == "remove":
        if name in REQUIRED:
            raise errors.PatchError(patch=operation["path"], reason=f"{name} cannot be removed")
        return operation
    return operation | {"value": port_values.cleaned(ctx, name, operation["value"])}


def _check_same_node(ctx: Context, port: Any, operation: Json) -> None:
    """A port stays with its node; naming that node again is no change."""
    if operation["op"] == "remove":
        return
    named = lookup.uuid_in_body(ctx, str(operation["value"]), "the node of a port")
    if named != port.node_uuid:
        raise errors.InvalidParameterValue(
            reason=f"cannot move port {port.uuid} to node {named}: delete it and create it there",
        )


def _check_link_after(ctx: Context, port: Any, patch: Patch) -> None:
    """The connection as a whole must fit a form, also after a change of one key."""
    touching = [one for one in patch if patches.root_of(one) == "local_link_connection"]
    if all(patches.is_whole(one) for one in touching):
        return
    before = {"local_link_connection": orjson.loads(port.local_link_connection)}
    try:
        after = jsonpatch.apply_patch(before, touching)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        raise errors.PatchError(
            patch=touching[0]["path"],
            reason="there is no such place in the connection that the port has",
        ) from None
    port_values.check_link(ctx, after.get("local_link_connection"))


def delete(ctx: Context, uuid: str) -> None:
    """Delete a port, by UUID only."""
    port = _row(ctx, uuid, ("uuid", "node_uuid"))
    node = lookup.row(ctx, port.node_uuid)
    _conductor(ctx, node).destroy_port(ctx.request, port.uuid)


def _refuse_while_inspecting(ctx: Context, node: Any) -> None:
    if node.provision_state == State.INSPECTING and ctx.version >= INSPECTING_LOCKS_SINCE:
        raise errors.Conflict(
            reason=f"Cannot change the ports of node {node.uuid} while it is in state "
            f"{node.provision_state}; wait for the inspection to end.",
        )


def _conductor(ctx: Context, node: Any) -> Conductor:
    with lookup.no_host_is_a_bad_request():
        return lookup.conductor_of(ctx, node)


def asked_node(asked: Mapping[str, Any]) -> str | None:
    """Return the node that a list is limited to, however it was named."""
    return asked.get("node") or asked.get("node_uuid")
