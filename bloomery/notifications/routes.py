"""The payload of each event, in Ironic's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from bloomery.objects.payloads import BY_NOUN, PAYLOADS, Payload

_CRUD: Final = "CRUDPayload"


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
