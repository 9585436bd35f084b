"""/v1/events: events of network ports, sent by Neutron."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.declare import Call, Schema, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import events

SINCE: Final = 54
_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
EVENTS: Final = Schema(
    thing="events",
    source={
        "type": "object",
        "properties": {
            "events": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "event": {"enum": list(events.KINDS)},
                        "port_id": _TEXT,
                        "mac_address": _TEXT,
                        "status": _TEXT,
                        "device_id": _TEXT_OR_NULL,
                        "binding:host_id": _TEXT_OR_NULL,
                        "binding:vnic_type": _TEXT_OR_NULL,
                    },
                    "required": ["event", "port_id", "mac_address", "status"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["events"],
        "additionalProperties": False,
    },
)


class Events(Rest):
    since = SINCE

    @endpoint(
        rule="baremetal:events:post", since=SINCE, status=204, too_old=TooOld.NOT_FOUND, body=EVENTS
    )
    def post(self, call: Call, *, body: dict[str, Any]) -> None:
        """Accept events; as in Ironic, no action follows yet."""
        events.post(call.context, body["events"])
