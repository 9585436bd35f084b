"""The acts of a power request, and a node's position in them.

The acts follow from the request and the node, so driver_internal_info stores only the position.  A
repeated step, also after a crash, continues there.  An act may run twice; all acts are idempotent.
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
_LEFT_BEHIND_S: Final = 60.0  # a mark older than its deadline by this belongs to a dead flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One command, and the power state that confirms it (None: no confirmation)."""

    words: tuple[str, ...]
    until: str | None
    soft: bool = False
    settle_s: float = 0.5


_ON: Final = Act(words=("power", "on"), until=Power.ON)
_OFF: Final = Act(words=("power", "off"), until=Power.OFF)
_SOFT: Final = Act(words=("power", "soft"), until=Power.OFF, soft=True)
_RESET: Final = Act(words=("power", "reset"), until=Power.ON, settle_s=15.0)
_ACTS: Final[dict[str, tuple[Act, ...]]] = {
    Power.ON: (_ON,),
    Power.OFF: (_OFF,),
    Power.SOFT_OFF: (_SOFT,),
    Power.REBOOT: (_OFF, _ON),
    Power.SOFT_REBOOT: (_SOFT, _ON),
}


@dataclass(slots=True, kw_only=True)
class Mark:
    """The position in a request.

    ``sent``: the act's command was sent; ``refused``: the BMC's refusal, which counts only if the
    power state does not match.
    """

    target: str
    at: int = 0
    sent: bool = False
    refused: str | None = None
    until: str = ""  # deadline of the act, ISO 8601
    silent_since: str | None = None


def acts(node: Node, target: str, boot_first: Sequence[tuple[str, ...]]) -> list[Act]:
    """Return the acts of a request, with ``boot_first`` before each power on."""
    if target == Power.REBOOT and node.disable_power_off:
        return [_RESET]
    sequence = []
    for act in _ACTS[target]:
        if act is _ON:
            sequence += [Act(words=words, until=None) for words in boot_first]
        sequence.append(act)
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


def recall(node: Node, target: str, *, is_first_attempt: bool) -> Mark | None:
    """Return the position of this request, or None where it has not begun."""
    stored = node.driver_internal_info.get(KEY)
    if stored is None or is_first_attempt or stored["target"] != target:
        return None
    mark = Mark(**stored)
    late_s = (clock.now() - datetime.fromisoformat(mark.until)).total_seconds()
    return None if late_s > _LEFT_BEHIND_S else mark


def forget(node: Node) -> None:
    node.driver_internal_info.pop(KEY, None)


def deadline(after_s: float) -> str:
    return (clock.now() + timedelta(seconds=after_s)).isoformat()
