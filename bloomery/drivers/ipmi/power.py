"""Power through ipmitool: send the command, then poll until the state matches.

Each attempt sends at most one command, and waits for the gap by Again.  After a refused command the
power state decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from bloomery import clock, errors
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.ipmi import examination, info, look, power_sequence, tool
from bloomery.drivers.ipmi.hardware import IpmitoolInterface
from bloomery.drivers.ipmi.management import is_uefi
from bloomery.drivers.ipmi.power_sequence import Position, PowerCommand
from bloomery.drivers.looks import Look
from bloomery.outcome import DONE, Again, Outcome

_STATUS: Final = ("power", "status")
_READINGS: Final = {
    "Chassis Power is on": PowerState.ON,
    "Chassis Power is off": PowerState.OFF,
}
_POLL_S: Final = 2.0


class IpmitoolPower(IpmitoolInterface, base.Power):
    """driver_internal_info holds the state between attempts: see ``power_sequence``."""

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self._endpoint = look.Endpoint()

    def describe_bmc(self, task: base.DriverTask) -> dict[str, Any]:
        return self.bmc(task).describe()

    def examine_bmc(self, task: base.DriverTask) -> dict[str, Any]:
        return examination.examine(self.bmc(task), task.driver_info)

    def look(self, task: base.DriverTask, former: Look | None) -> Look | None:
        return look.look(self.gateway, self._endpoint, task, former)

    def has_answered(self, task: base.DriverTask, since: datetime) -> bool:
        return self.gateway.bmc(info.parse(task.driver_info).key).has_answered(since)

    def get_power_state(self, task: base.DriverTask) -> str | None:
        return _reading(self.bmc(task).ask(*_STATUS))

    def set_power_state(
        self,
        task: base.DriverTask,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        if state == PowerState.SOFT_REBOOT and task.node.disable_power_off:
            raise errors.InvalidParameterValue(
                reason=f"cannot soft reboot node {errors.name_of(task.node)}: IPMI would switch "
                "it off, and disable_power_off is set; ask for rebooting instead",
            )
        return self._attempt(task, state, timeout_s)

    def reboot(self, task: base.DriverTask, timeout_s: float | None = None) -> Outcome:
        return self._attempt(task, PowerState.REBOOT, timeout_s)

    def get_supported_power_states(self, task: base.DriverTask) -> Sequence[str]:
        return (
            PowerState.ON, PowerState.OFF, PowerState.REBOOT,
            PowerState.SOFT_REBOOT, PowerState.SOFT_OFF,
        )  # fmt: skip

    def _attempt(self, task: base.DriverTask, target: str, timeout_s: float | None) -> Outcome:
        request = _Request(self, task, target, timeout_s)
        try:
            return request.run()
        except errors.Failure:
            power_sequence.forget(task.node)
            raise


class _Request:
    """One attempt of a power request."""

    def __init__(
        self,
        power: IpmitoolPower,
        task: base.DriverTask,
        target: str,
        timeout_s: float | None,
    ) -> None:
        self.task, self.conf, self.target, self.timeout_s = task, power.conf, target, timeout_s
        self.bmc = power.bmc(task)
        boot_first = power_sequence.boot_commands(
            task.node,
            forced=self.bmc.info.force_boot_device,
            keep_for_longer=self.bmc.keeps_boot_device,
            uefi=is_uefi(task.node),
        )
        self.commands = power_sequence.commands(task.node, target, boot_first)
        self.position = power_sequence.recall(
            task.node, target, is_first_attempt=task.turn == 0
        ) or self._begin(0)

    @property
    def command(self) -> PowerCommand:
        return self.commands[self.position.at]

    def run(self) -> Outcome:
        """Send the command or read the state, whichever is due; then begin the next one, or end.

        Silence is tolerated for as long as one command may take.  Raises PowerStateFailure,
        BmcUnreachable, BmcRefused, LockLost.
        """
        rest_s, began_at = self.bmc.rest_s(), clock.now()
        if rest_s > 0:
            return self._again(rest_s)
        try:
            after_s = self._poll() if self.position.sent else self._send()
        except errors.BmcUnreachable:
            since = self.position.silent_since or began_at.isoformat()
            self.position.silent_since = since
            lasted_s = (clock.now() - datetime.fromisoformat(since)).total_seconds()
            if lasted_s >= self.conf.ipmi.command_retry_timeout:
                raise
            return self._again(_POLL_S)
        self.position.silent_since = None
        if after_s is not None:
            return self._again(after_s)
        if self.position.at + 1 < len(self.commands):
            self.position = self._begin(self.position.at + 1)
            return self._again(self.bmc.rest_s())
        node = self.task.node
        power_sequence.forget(node)
        if self.command.until == PowerState.ON:
            node.driver_internal_info.pop("is_next_boot_persistent", None)
        node.power_state = self.command.until
        return DONE

    def _begin(self, at: int) -> Position:
        """Return the position at the start of a command, whose time limit counts from now."""
        command = self.commands[at]
        limits = self.conf.conductor
        own_s = limits.soft_power_off_timeout if command.soft else limits.power_state_change_timeout
        timeout_s = self.timeout_s if command.soft or self.target not in _SOFT_TARGETS else None
        until = power_sequence.deadline(timeout_s or own_s)
        return Position(target=self.target, at=at, until=until)

    def _send(self) -> float | None:
        """Send the command; return the seconds until the poll, or None where there is none."""
        try:
            self.bmc.tell(*self.command.arguments, write=True)
        except errors.BmcRefused as no:
            if self.command.until is None:
                raise
            self.position.refused = no.facts["reason"]
        self.position.sent = True
        return None if self.command.until is None else self.command.settle_s

    def _poll(self) -> float | None:
        """Return None if the state matches, else the seconds until the next poll."""
        reads = _reading(self.bmc.tell(*_STATUS))
        if reads == self.command.until:
            return None
        if self.position.refused is not None:
            raise errors.PowerStateFailure(state=self.target, reason=self.position.refused)
        if clock.now() >= datetime.fromisoformat(self.position.until):
            line = f"{tool.PROGRAM} {' '.join(self.command.arguments)}"
            raise errors.PowerStateFailure(
                state=self.target,
                reason=f"the BMC took `{line}` and still reads {reads} when the time is up; "
                "look at its console, or raise [conductor]power_state_change_timeout",
            )
        return _POLL_S

    def _again(self, after_s: float) -> Again:
        self.task.node.driver_internal_info[power_sequence.KEY] = asdict(self.position)
        what = self.command.until or "its boot device to be set"
        return Again(after_s=max(after_s, self.bmc.rest_s()), reason=f"waiting for {what}")


_SOFT_TARGETS: Final = (PowerState.SOFT_OFF, PowerState.SOFT_REBOOT)


def _reading(output: str) -> str:
    return _READINGS.get(output.strip(), PowerState.ERROR)
