"""Endpoints for agents in ramdisks: /v1/lookup, /v1/heartbeat/<node>, /v1/continue_inspection.

No login is needed, except for a heartbeat that names its node in the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Schema, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import ramdisk as views
from bloomery.operations import agents

SINCE: Final = 22
TOKEN_SINCE: Final = 62
LOOKUP: Final[arguments.Args] = {
    "addresses": Arg(arguments.words),
    "node_uuid": Arg(arguments.uuid),
}
HEARTBEAT: Final[dict[str, Arg]] = {
    "callback_url": Arg(arguments.text, required=True),
    "agent_version": Arg(arguments.text_or_null),
    "agent_token": Arg(arguments.text_or_null),
    "agent_verify_ca": Arg(arguments.text_or_null),
    "agent_status": Arg(arguments.text_or_null),
    "agent_status_message": Arg(arguments.text_or_null),
}
# The microversion of each argument of a heartbeat; older clients that send it get 400.
FIELDS_SINCE: Final[Mapping[str, int]] = {
    "agent_version": 36, "agent_verify_ca": 68, "agent_status": 72, "agent_status_message": 72,
}  # fmt: skip
INSPECTION_SINCE: Final = 84
MOST_INTERFACES: Final = 1000  # far above the interfaces of any machine
INSPECTOR: Final = 1  # the version of clients that still call as for ironic-inspector
INVENTORY: Final = Schema(
    thing="inventory",
    source={
        "type": "object",
        "properties": {
            "inventory": {
                "type": "object",
                "properties": {
                    "bmc_address": {"type": ["string", "null"]},
                    "bmc_v6address": {"type": ["string", "null"]},
                    "interfaces": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MOST_INTERFACES,
                        "items": {
                            "type": "object",
                            "properties": {"mac_address": {"type": "string"}},
                            "required": ["mac_address"],
                        },
                    },
                },
                "required": ["interfaces"],
            },
        },
        "required": ["inventory"],
    },
)


class Lookup(Rest):
    since = SINCE

    @endpoint(
        rule="baremetal:driver:ipa_lookup", since=SINCE, query=LOOKUP,
        too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS,
    )  # fmt: skip
    def get_all(
        self, call: Call, *, addresses: tuple[str, ...] = (), node_uuid: str | None = None
    ) -> dict[str, Any]:
        """Return the agent's node, its configuration and, once, the agent token."""
        makes_token = call.version >= TOKEN_SINCE
        node = agents.lookup(
            call.context, call.caller, addresses, node_uuid, makes_token=makes_token
        )
        return views.document(call, node)


class Heartbeats(Rest):
    since = SINCE

    @endpoint(
        rule="baremetal:node:ipa_heartbeat", since=SINCE, status=202,
        named=HEARTBEAT | {"node_ident": Arg(arguments.ident, required=True)},
        too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS,
    )  # fmt: skip
    def post(self, call: Call, *, node_ident: str, **fields: str | None) -> None:
        """Record a heartbeat of the node in the body."""
        _hear(call, node_ident, fields)

    @endpoint(
        rule="baremetal:node:ipa_heartbeat", since=SINCE, status=202, named=HEARTBEAT,
        too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS,
    )  # fmt: skip
    def post_one(self, call: Call, node: str, **fields: str | None) -> None:
        """Record a heartbeat and the URL of the agent's API."""
        _hear(call, node, fields)


def _hear(call: Call, node: str, fields: Mapping[str, str | None]) -> None:
    for name, since in FIELDS_SINCE.items():
        if fields.get(name) and call.version < since:
            raise errors.InvalidParameterValue(reason=f'Field "{name}" not recognised')
    heartbeat = agents.HeartbeatRequest(**fields)  # type: ignore[arg-type]
    agents.heartbeat(call.context, call.caller, node, heartbeat, is_forwarded=call.is_forwarded)


class ContinueInspection(Rest):
    """Since 1.84, and in 1.1 for clients of ironic-inspector."""

    since = INSPECTION_SINCE

    @endpoint(
        rule="baremetal:driver:ipa_continue_inspection", since=INSPECTION_SINCE,
        also_in=(INSPECTOR,), too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS, status=202,
        body=INVENTORY, query={"node_uuid": Arg(arguments.uuid)},
    )  # fmt: skip
    def post(
        self, call: Call, *, body: dict[str, Any], node_uuid: str | None = None
    ) -> dict[str, Any]:
        """Store inspection data and resume the waiting inspection."""
        is_new = call.version >= INSPECTION_SINCE
        if not is_new and node_uuid is not None:
            raise errors.NotFound(reason=f"API version 1.{INSPECTION_SINCE} or newer is required")
        node = agents.continue_inspection(
            call.context, call.caller, body, node_uuid, makes_token=is_new
        )
        return views.document(call, node) if is_new else {"uuid": node.row.uuid}
