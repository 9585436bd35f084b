"""The payload of each event, in Ironic's messages, and in Heat's: ``orchestration.stack.*``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from bloomery.objects.payloads import BY_NOUN, PAYLOADS, Payload

_CRUD: Final = "CRUDPayload"
STACK_OBJECTS: Final = ("stack", "resource")  # of event rows
STACK_EXCHANGE: Final = "heat"
RESOURCE_FIELDS: Final = ("resource_name", "resource_type", "physical_resource_id")


class Route(NamedTuple):
    """The payload of an event, with the class of Ironic's notification."""

    payload: str
    notification: str


_MAINTENANCE: Final = Route("NodePayload", "NodeMaintenanceNotification")
_CONSOLE: Final = Route("NodePayload", "NodeConsoleNotification")
ROUTES: Final[Mapping[tuple[str, str], Route]] = {
    (noun, action): Route(each.name, each.name.removesuffix("Payload") + "Notification")
    for noun, group in BY_NOUN.items()
    for each in group
    if each.name.endswith(_CRUD)
    for action in ("create", "update", "delete")
} | {
    ("node", "maintenance_set"): _MAINTENANCE,
    ("node", "console_set"): _CONSOLE,
    ("node", "console_restore"): _CONSOLE,
    ("node", "console_stop"): _CONSOLE,
    ("node", "power_set"): Route("NodeSetPowerStatePayload", "NodeSetPowerStateNotification"),
    ("node", "power_state_corrected"): Route(
        "NodeCorrectedPowerStatePayload", "NodeCorrectedPowerStateNotification"
    ),
    ("node", "provision_set"): Route(
        "NodeSetProvisionStatePayload", "NodeSetProvisionStateNotification"
    ),
}


def find(noun: str, action: str) -> Payload | None:
    """Return the payload of an event; None for events that Ironic does not have."""
    route = ROUTES.get((noun, action))
    return None if route is None else PAYLOADS[route.payload]


def stack_payload(stack_uuid: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return Heat's payload of a stack; ``facts`` are those of the event row.

    The payload is a plain map without a version, sent to the topics of
    [oslo_messaging_notifications].  Events of resources add three fields.  The description, which
    is in the template only, is null.
    """
    project, name, user = facts.get("project"), facts.get("stack_name"), facts.get("user")
    return {
        "tenant_id": project,
        "user_id": user,
        "user_identity": user,
        "username": user,
        "stack_identity": f"arn:openstack:heat::{project}:stacks/{name}/{stack_uuid}",
        "stack_name": name,
        "state": facts.get("state"),
        "state_reason": facts.get("state_reason"),
        "create_at": _time(facts.get("created_at")),
        "updated_at": _time(facts.get("updated_at")),
        "description": None,
        "tags": facts.get("tags") or [],
    } | {name: facts[name] for name in RESOURCE_FIELDS if name in facts}


def _time(value: str | None) -> str | None:
    return None if value is None else f"{datetime.fromisoformat(value):%Y-%m-%dT%H:%M:%SZ}"
