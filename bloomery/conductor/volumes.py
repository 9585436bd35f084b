"""The rule of volume connectors and targets: they change only while the machine is off."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.records import Rules
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import DELETE_ALLOWED_STATES, Power
from bloomery.model.node import Node
from bloomery.model.volume import VolumeTarget

Json = dict[str, Any]


def check_change(
    _context: Context, _conn: sa.Connection, node: Node, record: Any, _changed: Json
) -> None:
    """Refuse a patch, even an empty one, unless the machine is known to be off."""
    if node.power_state != Power.OFF:
        raise _refused(record, "update", node)


def check_deletion(node: Node, record: Any) -> None:
    if node.power_state != Power.OFF and (node.provision_state not in DELETE_ALLOWED_STATES):
        raise _refused(record, "deletion", node)


RULES: Final = Rules(update=check_change, destroy=check_deletion)


def _refused(record: Any, action: str, node: Node) -> errors.InvalidStateRequested:
    """Return the error with Ironic's name of the action."""
    noun = "volume target" if isinstance(record, VolumeTarget) else "volume connector"
    return errors.InvalidStateRequested(
        action=f"{noun} {action}", node=errors.name_of(node), state=node.power_state,
        advice=" Power it off first.",
    )  # fmt: skip
