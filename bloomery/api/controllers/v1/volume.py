"""Volumes: /v1/volume and /v1/nodes/<ident>/volume, with connectors and targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery.api.controllers.v1 import records
from bloomery.api.declare import Call, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import nodes, projection
from bloomery.model import nouns
from bloomery.model.volume import SINCE
from bloomery.operations import policy

Json = dict[str, Any]
LIST: Final = "baremetal:volume:list"
READ: Final = "baremetal:volume:get"


def document(call: Call, path: str) -> Json:
    """Return the links to connectors and targets below ``path``."""
    links = {
        name: projection.links(call.url, f"{path}/{name}") for name in ("connectors", "targets")
    }
    return {"links": projection.links(call.url, f"{path}/"), **links}


class Volume(Rest):
    """/v1/volume."""

    since = SINCE
    children: ClassVar[Mapping[str, Rest]] = {
        noun.plural: records.Collection(
            noun, has_detail_path=False, detail_since=SINCE, too_old=TooOld.NO_PAGE
        )
        for noun in (nouns.VOLUME_CONNECTOR, nouns.VOLUME_TARGET)
    }

    @endpoint(rule=LIST, since=SINCE, too_old=TooOld.NOT_FOUND)
    def get(self, call: Call) -> Json:
        policy.authorize(call.context, LIST)
        return document(call, "volume")


class VolumeOfNode(Rest):
    """/v1/nodes/<ident>/volume; the lists below take the node's UUID only."""

    children: ClassVar[Mapping[str, Rest]] = {
        noun.plural: records.Sublist(
            noun,
            parent="node",
            find=records.of_node,
            since=SINCE,
            detail_since=SINCE,
            has_detail_path=False,
        )
        for noun in (nouns.VOLUME_CONNECTOR, nouns.VOLUME_TARGET)
    }

    @endpoint(rule=READ, since=SINCE, too_old=TooOld.NOT_FOUND)
    def get(self, call: Call, node: str) -> Json:
        uuid = policy.get_uuid(call.context, nodes.known_ident(call, node))
        policy.authorize_node(call.context, uuid, READ)
        return document(call, f"nodes/{uuid}/volume")


VOLUME: Final = Volume()
OF_NODES: Final = VolumeOfNode()
