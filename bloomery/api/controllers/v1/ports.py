"""Ports: /v1/ports, and /v1/nodes/<uuid>/ports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bloomery import errors
from bloomery.api import arguments, versions
from bloomery.api.controllers.v1 import records
from bloomery.api.declare import Call
from bloomery.api.views import records as views
from bloomery.model import nouns
from bloomery.model.noun import Noun
from bloomery.model.port import VTEP
from bloomery.model.rules import patches

Json = dict[str, Any]

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


def admit_body(call: Call, noun: Noun, body: Json) -> None:
    views.admit_body(call, noun, body)
    _admit_link(call.version, body.get("local_link_connection") or ())


def admit_patch(call: Call, noun: Noun, patch: patches.Patch) -> None:
    for name in patches.roots(patch) & PATCH_GATED:
        versions.require(call.version, noun.fields[name].since, f"field {name}")
    for operation in patch:
        if patches.root_of(operation) == "local_link_connection":
            _admit_link(call.version, _keys_of(operation))


def _keys_of(operation: Json) -> Iterable[str]:
    """Return the keys of local_link_connection that a patch operation writes."""
    if operation["op"] == "remove":
        return ()
    if not patches.is_whole(operation):
        return (operation["path"].split("/")[2],)
    value = operation["value"]
    return value if isinstance(value, dict) else ()


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


PORTS: Final = records.Collection(
    nouns.PORT,
    gates=records.Gates(body=admit_body, patch=admit_patch),
    deleted_by=arguments.uuid,
)
OF_NODES: Final = records.Sublist(nouns.PORT, parent="node", find=records.of_node)
