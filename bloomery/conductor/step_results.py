"""What steps find out, and where it is stored: in the transaction that ends the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery.conductor import ports
from bloomery.conductor.task_manager import TaskManager, Write
from bloomery.db import hardware

_STORED: Final[dict[str, Callable[..., None]]] = {
    "inventory": hardware.replace_inventory,
    "bios_settings": hardware.replace_bios_settings,
    "firmware": hardware.replace_firmware,
    "ports": ports.add_missing,
}


def writes(task: TaskManager, result: Mapping[str, Any]) -> list[Write]:
    """Return the writes for the findings in a step's result.

    ``inventory``: {"inventory": ..., "plugin_data": ...}; ``bios_settings`` and ``firmware``:
    lists of rows; ``ports``: MAC addresses; ``node``: fields of the node itself, set at once.
    """
    for name, value in result.get("node", {}).items():
        setattr(task.node, name, value)
    uuid = task.node.uuid
    return [
        lambda conn, store=store, found=result[name]: store(conn, uuid, found)  # type: ignore[misc]
        for name, store in _STORED.items()
        if name in result
    ]
