"""Hardware of one node beyond power: RAID, NMI, indicators, virtual media."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import node as schemas
from bloomery.api.views import nodes as views
from bloomery.api.views import projection
from bloomery.operations import hardware

RAID_SINCE: Final = 12
NMI_SINCE: Final = 29
VMEDIA_SINCE: Final = 89
VMEDIA_LIST_SINCE: Final = 93


class RaidState(Rest):
    """/v1/nodes/<ident>/states/raid."""

    @endpoint(
        rule="baremetal:node:set_raid_state",
        status=204,
        since=RAID_SINCE,
        too_old=TooOld.NOT_ACCEPTABLE,
        body=schemas.RAID,
    )
    def put(self, call: Call, node: str, *, body: dict[str, Any]) -> None:
        hardware.set_target_raid_config(call.context, node, body)


class InjectNmi(Rest):
    """/v1/nodes/<ident>/management/inject_nmi."""

    @endpoint(
        rule="baremetal:node:inject_nmi",
        status=204,
        since=NMI_SINCE,
        too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS,
        named={},
    )
    def put(self, call: Call, node: str) -> None:
        hardware.inject_nmi(call.context, node)


class Indicators(Rest):
    """/v1/nodes/<ident>/management/indicators; no microversion hides it."""

    @endpoint(rule="baremetal:node:get_indicator_state")
    def get_all(self, call: Call, node: str) -> dict[str, Any]:
        indicators = hardware.list_indicators(call.context, views.known_ident(call, node))
        path = f"nodes/{node}/management/indicators"
        return {
            "indicators": [
                each | {"links": projection.links(call.url, f"{path}/{each['name']}")}
                for each in indicators
            ]
        }

    @endpoint(rule="baremetal:node:get_indicator_state")
    def get_one(self, call: Call, node: str, indicator: str) -> dict[str, Any]:
        ident = views.known_ident(call, node)
        return {"state": hardware.get_indicator(call.context, ident, indicator)}

    @endpoint(
        rule="baremetal:node:set_indicator_state",
        status=204,
        named={"state": Arg(arguments.text, required=True)},
    )
    def put(self, call: Call, node: str, indicator: str, *, state: str) -> None:
        ident = views.known_ident(call, node)
        hardware.set_indicator(call.context, ident, indicator, state)


class Vmedia(Rest):
    """/v1/nodes/<ident>/vmedia."""

    unknown_before: ClassVar[int] = VMEDIA_SINCE

    @endpoint(
        rule="baremetal:node:vmedia:get",
        since=VMEDIA_LIST_SINCE,
        too_old=TooOld.NOT_FOUND,
        answers="array",
    )
    def get(self, call: Call, node: str) -> list[dict[str, Any]]:
        return hardware.list_virtual_media(call.context, node)

    @endpoint(
        rule="baremetal:node:vmedia:attach", status=204, since=VMEDIA_SINCE, body=schemas.VMEDIA
    )
    def post(self, call: Call, node: str, *, body: dict[str, Any]) -> None:
        hardware.attach_virtual_media(call.context, node, body)

    @endpoint(
        rule="baremetal:node:vmedia:detach",
        status=204,
        since=VMEDIA_SINCE,
        named={"device_types": Arg(arguments.words)},
    )
    def delete(self, call: Call, node: str, *, device_types: tuple[str, ...] | None = None) -> None:
        hardware.detach_virtual_media(call.context, node, device_types)
