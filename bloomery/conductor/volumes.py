"""What a volume connector or target asks of its node: that the machine does not run on it."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.records import Rules
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import DELETE_ALLOWED_STATES, Power
from bloomery.model.node import Node

Json = dict[str, Any]


def check_change(
    _context: Context, _conn: sa.Connection, node: Node, _record: Any, changed: Json
) -> None:
    """A change needs a machine that is known to be off: Ironic takes no other word for it."""
    if changed and node.power_state != Power.OFF:
        raise _refused("update volume", node)


def check_deletion(node: Node, _record: Any) -> None:
    if node.power_state != Power.OFF and (node.provision_state not in DELETE_ALLOWED_STATES):
        raise _refused("delete volume", node)


RULES: Final = Rules(update=check_change, destroy=check_deletion)


def _refused(action: str, node: Node) -> errors.InvalidStateRequested:
    return errors.InvalidStateRequested(
        action=action, node=node.uuid, state=node.power_state, advice=" Power it off first."
    )
