"""Events of ports from other services: checked and logged, as in Ironic."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from bloomery.model.rules import idents
from bloomery.operations import policy
from bloomery.operations.context import Context

LOG = logging.getLogger(__name__)

KINDS: Final = ("network.bind_port", "network.unbind_port", "network.delete_port")
_UUIDS: Final = ("port_id", "device_id", "binding:host_id")


def post(ctx: Context, events: Sequence[dict[str, Any]]) -> None:
    """Log the events, all or none.  Raises InvalidUUID, InvalidMAC (400)."""
    policy.authorize(ctx, "baremetal:events:post")
    for event in events:
        for name in _UUIDS:
            if event.get(name) is not None:
                idents.check_uuid(name, event[name])
        idents.mac(event["mac_address"])
    for event in events:
        LOG.info(
            "event %s: port %s, address %s", event["event"], event["port_id"], event["mac_address"]
        )
