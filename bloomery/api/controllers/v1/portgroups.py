"""Port groups: /v1/portgroups, their ports, and /v1/nodes/<uuid>/portgroups."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.api import versions
from bloomery.api.controllers.v1 import records
from bloomery.api.declare import Call
from bloomery.model import nouns
from bloomery.model.noun import Noun
from bloomery.model.rules import idents, patches
from bloomery.operations import records as operations

Json = dict[str, Any]

BELOW_SINCE: Final = 24
GATED: Final = ("mode", "properties")  # PATCH ignores newer fields for older clients, as in Ironic


def admit_body(call: Call, noun: Noun, body: Json) -> None:
    for name in GATED:
        if body.get(name):
            versions.require(call.version, noun.fields[name].since, f"field {name}")


def admit_patch(call: Call, noun: Noun, patch: patches.Patch) -> None:
    for name in patches.roots(patch).intersection(GATED):
        versions.require(call.version, noun.fields[name].since, f"field {name}")


def of_portgroup(call: Call, ident: str) -> Json:
    """Return the filter of a port group, by UUID only."""
    if not idents.is_uuid(ident):
        raise errors.PortgroupNotFound(portgroup=ident)
    operations.get(call.context, nouns.PORTGROUP, ident, ("uuid",))
    return {"portgroup": ident}


PORTGROUPS: Final = records.Collection(
    nouns.PORTGROUP,
    gates=records.Gates(body=admit_body, patch=admit_patch),
    subresources={
        "ports": records.Sublist(
            nouns.PORT, parent="portgroup", find=of_portgroup, since=BELOW_SINCE
        ),
    },
)
OF_NODES: Final = records.Sublist(
    nouns.PORTGROUP, parent="node", find=records.of_node, since=BELOW_SINCE
)
