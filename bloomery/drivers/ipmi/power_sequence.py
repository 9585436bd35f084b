"""The commands of a power request, and a node's position in them.

They follow from the request and the node, so driver_internal_info stores only the position.  A
repeated step, also after a crash, continues there.  A command may run twice; all are idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from bloomery import clock
from bloomery.conductor.states import Power
from bloomery.drivers.ipmi import management
from bloomery.model.node import Node

KEY: Final = "ipmi_power"
_LEFT_BEHIND_S: Final = 60.0  # a position older than its deadline by this belongs to a dead flow


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCommand:
    """Arguments of ipmitool, and the power state that confirms the command, if any does."""

    arguments: tuple[str, ...]
    until: str | None
    soft: bool = False
    settle_s: float = 0.5


_ON: Final = PowerCommand(arguments=("power", "on"), until=Power.ON)
_OFF: Final = PowerCommand(arguments=("power", "off"), until=Power.OFF)
_SOFT: Final = PowerCommand(arguments=("power", "soft"), until=Power.OFF, soft=True)
_RESET: Final = PowerCommand(arguments=("power", "reset"), until=Power.ON, settle_s=15.0)
_COMMANDS: Final[dict[str, tuple[PowerCommand, ...]]] = {
    Power.ON: (_ON,),
    Power.OFF: (_OFF,),
    Power.SOFT_OFF: (_SOFT,),
    Power.REBOOT: (_OFF, _ON),
    Power.SOFT_REBOOT: (_SOFT, _ON),
}


@dataclass(slots=True, kw_only=True)
class Position:
    """The position in a request.

    ``sent``: the command was sent; ``refused``: the BMC's refusal, which counts only if the power
    state does not match.
    """

    target: str
    at: int = 0
    sent: bool = False
    refused: str | None = None
    until: str = ""  # deadline of the command, ISO 8601
    silent_since: str | None = None


def commands(node: Node, target: str, boot_first: Sequence[tuple[str, ...]]) -> list[PowerCommand]:
    """Return the commands of a request, with ``boot_first`` before each power on."""
    if target == Power.REBOOT and node.disable_power_off:
        return [_RESET]
    sequence = []
    for command in _COMMANDS[target]:
        if command is _ON:
            sequence += [PowerCommand(arguments=arguments, until=None) for arguments in boot_first]
        sequence.append(command)
    return sequence


def boot_commands(
    node: Node, *, forced: bool, keep_for_longer: bool, uefi: bool
) -> list[tuple[str, ...]]:
    """Return the commands that set the persistent boot device again, if it is forced."""
    memory = node.driver_internal_info
    device = memory.get("persistent_boot_device")
    if not forced or device is None or memory.get("is_next_boot_persistent") is False:
        return []
    command = management.boot_device_command(
        device, persistent=False, uefi=uefi, vendor=node.properties.get("vendor"),
    )  # fmt: skip
    return [management.KEEP_BOOT_DEVICE, command] if keep_for_longer else [command]


def recall(node: Node, target: str, *, is_first_attempt: bool) -> Position | None:
    """Return the position of this request, or None where it has not begun."""
    stored = node.driver_internal_info.get(KEY)
    if stored is None or is_first_attempt or stored["target"] != target:
        return None
    position = Position(**stored)
    late_s = (clock.now() - datetime.fromisoformat(position.until)).total_seconds()
    return None if late_s > _LEFT_BEHIND_S else position


def forget(node: Node) -> None:
    node.driver_internal_info.pop(KEY, None)


def deadline(after_s: float) -> str:
    return (clock.now() + timedelta(seconds=after_s)).isoformat()
