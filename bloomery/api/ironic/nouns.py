"""What single nouns have beside ``records``: rules of older clients, and paths of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from bloomery import errors
from bloomery.api import arguments, versions
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Reply
from bloomery.api.ironic import nodes, records
from bloomery.api.views import nodes as node_views
from bloomery.api.views import projection
from bloomery.api.views import records as views
from bloomery.model import nouns
from bloomery.model.allocation import BACKFILL_SINCE, AllocationState
from bloomery.model.noun import Noun
from bloomery.model.port import VTEP
from bloomery.model.rules import idents, patches
from bloomery.model.rules import nodes as rules
from bloomery.model.runbook import TRAITS_SINCE
from bloomery.operations import allocations, policy, runbooks
from bloomery.operations import records as operations

Json = dict[str, Any]

RUNBOOK_TRAITS: Final = {  # of any number, unlike those of a node
    "traits": Arg(arguments.array, required=True, form={"items": rules.TRAIT})
}

# --------------------------------------------------------------------------------- allocations

# As in Ironic, the response precedes the search for a node.
_NEW: Final = {
    "state": AllocationState.ALLOCATING,
    "node_uuid": None,
    "last_error": None,
    "updated_at": None,
}


def admit_allocation(call: Call, noun: Noun, body: Json) -> None:
    """Refuse ``node`` below its version as an unknown key, newer fields with 406, as Ironic."""
    fields = {name: value for name, value in body.items() if name != "node"}
    views.admit_body(call, noun, fields)
    if "node" in body and call.version < BACKFILL_SINCE:
        raise errors.Invalid(
            reason=f"cannot take node with API version 1.{call.version}: ask with version "
            f"1.{BACKFILL_SINCE} or newer",
        )


def _check_fields(call: Call, fields: tuple[str, ...] | None) -> None:
    """Refuse unknown fields; as in Ironic, fields newer than the client's version are unknown."""
    try:
        views.check_fields(call, nouns.ALLOCATION, fields or ())
    except errors.NotAcceptable as exc:
        raise errors.Invalid(reason=str(exc)) from exc


class Allocations(records.Collection):
    """Allocations, which conductors create and delete by RPC."""

    def list_page(self, call: Call, **query: Any) -> Json:
        _check_fields(call, query.get("fields"))
        try:
            return super().list_page(call, **query)
        except errors.NodeNotFound as exc:  # the filter ``node`` names no node
            raise errors.InvalidParameterValue(reason=str(exc)) from exc

    def get(
        self, call: Call, ident: str, *, fields: tuple[str, ...] | None = None
    ) -> orjson.Fragment:
        _check_fields(call, fields)
        return super().get(call, ident, fields=fields)

    def update(self, call: Call, ident: str, *, body: patches.Patch) -> orjson.Fragment:
        """Update an allocation; as in Ironic, a missing allocation precedes faults of the patch."""
        operations.get(call.context, self.noun, self._ident(ident), ("uuid",))
        return super().update(call, ident, body=body)

    def create(self, call: Call, *, body: Json) -> Reply:
        self.gates.body(call, self.noun, body)
        uuid = allocations.create(call.context, body)
        return Reply(
            document=self._document(call, uuid, fixed={} if body.get("node") else _NEW),
            location=call.at(f"{self.noun.path}/{uuid}"),
        )

    def delete(self, call: Call, ident: str) -> None:
        allocations.destroy(call.context, self._ident(ident))


def get_allocation_of_node(
    call: Call, node: str, *, fields: tuple[str, ...] | None = None
) -> orjson.Fragment:
    """Return the allocation of a node; as in Ironic, an unknown node gives 400."""
    try:
        uuid = allocations.uuid_of_node(call.context, node_views.known_ident(call, node))
    except errors.NodeNotFound as exc:
        raise errors.InvalidParameterValue(reason=str(exc)) from exc
    _check_fields(call, fields)
    serializer = views.Serializer(call, nouns.ALLOCATION, fields)
    return serializer.write(
        operations.get(call.context, nouns.ALLOCATION, uuid, serializer.columns)
    )


def delete_allocation_of_node(call: Call, node: str) -> None:
    uuid = allocations.uuid_of_node(call.context, node_views.known_ident(call, node))
    allocations.destroy(call.context, uuid)


# ------------------------------------------------------------------------------------- chassis


def list_nodes_of_chassis(call: Call, chassis: str, **query: Any) -> Json:
    query["chassis_uuid"] = arguments.uuid("chassis_uuid", chassis)
    return nodes.read_page(call, query)


def list_nodes_of_chassis_in_detail(call: Call, chassis: str, **query: Any) -> Json:
    query["chassis_uuid"] = arguments.uuid("chassis_uuid", chassis)
    return nodes.read_page(call, query, detail=True)


# ----------------------------------------------------------------------- ports and port groups

VTEP_SINCE, VTEP_UNTIL = 90, 105
NETWORK_TYPE_SINCE: Final = 64
# Fields that PATCH refuses below their version; other fields are accepted and hidden, as in Ironic.
PATCH_GATED: Final = frozenset(
    {
        "pxe_enabled",
        "local_link_connection",
        "portgroup_uuid",
        "physical_network",
        "is_smartnic",
    },
)


def admit_port(call: Call, noun: Noun, body: Json) -> None:
    views.admit_body(call, noun, body)
    _admit_link(call.version, body.get("local_link_connection") or ())


def admit_port_patch(call: Call, noun: Noun, patch: patches.Patch) -> None:
    for name in patches.roots(patch) & PATCH_GATED:
        versions.require(call.version, noun.fields[name].since, f"field {name}")
    for operation in patch:
        is_link = patches.root_of(operation) == "local_link_connection"
        if not is_link or operation["op"] == "remove":
            continue
        if patches.is_whole(operation):
            value = operation["value"]
            _admit_link(call.version, value if isinstance(value, dict) else ())
        else:
            _admit_link(call.version, (operation["path"].split("/")[2],))


def _admit_link(version: int, keys: Iterable[str]) -> None:
    if "network_type" in keys:
        versions.require(version, NETWORK_TYPE_SINCE, "local_link_connection.network_type")
    if not VTEP.isdisjoint(keys):
        versions.require(version, VTEP_SINCE, "VTEP keys of local_link_connection")
        if version >= VTEP_UNTIL:
            raise errors.NotAcceptable(
                reason="cannot use VTEP keys of local_link_connection from version "
                f"1.{VTEP_UNTIL} on",
            )


PORTGROUP_GATED: Final = (
    "mode",
    "properties",
)  # PATCH ignores newer fields for older clients, as in Ironic


def admit_portgroup(call: Call, noun: Noun, body: Json) -> None:
    for name in PORTGROUP_GATED:
        if body.get(name):
            versions.require(call.version, noun.fields[name].since, f"field {name}")


def admit_portgroup_patch(call: Call, noun: Noun, patch: patches.Patch) -> None:
    for name in patches.roots(patch).intersection(PORTGROUP_GATED):
        versions.require(call.version, noun.fields[name].since, f"field {name}")


def of_portgroup(call: Call, ident: str) -> Json:
    """Return the filter of a port group, by UUID only."""
    if not idents.is_uuid(ident):
        raise errors.PortgroupNotFound(portgroup=ident)
    operations.get(call.context, nouns.PORTGROUP, ident, ("uuid",))
    return {"portgroup": ident}


# ------------------------------------------------------------------------------------ runbooks


def admit_runbook(call: Call, noun: Noun, body: Json) -> None:
    """Validate a body by version: older clients need a trait as name and have no description."""
    if call.version < TRAITS_SINCE and "description" in body:
        raise errors.Invalid(
            reason=f"Schema error for runbook: description needs version 1.{TRAITS_SINCE}"
        )
    views.admit_body(call, noun, body)
    if call.version < TRAITS_SINCE:
        rules.check_trait(body["name"])


def admit_runbook_patch(call: Call, noun: Noun, patch: patches.Patch) -> None:
    for each in patch:
        name = patches.root_of(each)
        versions.require(call.version, noun.fields[name].since, f"field {name}")
        if name == "name" and call.version < TRAITS_SINCE and "value" in each:
            rules.check_trait(each["value"])


class Runbooks(records.Collection):
    """Runbooks; a new runbook belongs to the caller's project."""

    def create(self, call: Call, *, body: Json) -> Reply:
        return super().create(call, body=runbooks.with_owner(call.context, body))

    def update(self, call: Call, ident: str, *, body: patches.Patch) -> orjson.Fragment:
        runbooks.authorize_change(call.context, ident, body)
        return super().update(call, ident, body=body)


def list_runbook_traits(call: Call, runbook: str) -> Json:
    return {"traits": runbooks.list_traits(call.context, runbook)}


def set_runbook_traits(
    call: Call, runbook: str, trait: str | None = None, *, traits: list[Any] | None = None
) -> Reply:
    """Replace all traits, or add the trait that the path names."""
    if trait is None:
        runbooks.set_traits(call.context, runbook, traits or [])
        return Reply()
    runbooks.add_trait(call.context, runbook, trait)
    return Reply(location=call.at(f"runbooks/{runbook}/traits/{trait}"))


def remove_runbook_trait(call: Call, runbook: str, trait: str | None = None) -> None:
    runbooks.remove_trait(call.context, runbook, trait)


# ------------------------------------------------------------------------------------- volumes

READ_VOLUMES: Final = "baremetal:volume:get"
LIST_VOLUMES: Final = "baremetal:volume:list"


def get_volume(call: Call) -> Json:
    policy.authorize(call.context, LIST_VOLUMES)
    return _volume(call, "volume")


def get_volume_of_node(call: Call, node: str) -> Json:
    uuid = policy.get_uuid(call.context, node_views.known_ident(call, node))
    policy.authorize_node(call.context, uuid, READ_VOLUMES)
    return _volume(call, f"nodes/{uuid}/volume")


def _volume(call: Call, path: str) -> Json:
    """Return the links to connectors and targets below ``path``."""
    links = {
        name: projection.links(call.url, f"{path}/{name}") for name in ("connectors", "targets")
    }
    return {"links": projection.links(call.url, f"{path}/"), **links}
