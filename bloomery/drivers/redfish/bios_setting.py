"""Firmware settings that may need a restart: set one, and poll until it has taken effect.

A value that the BMC shows at once needs no restart.  Otherwise the machine is restarted, and
returned to its previous power state when the value shows or the time is up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from bloomery import clock, errors
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base, substeps
from bloomery.drivers.redfish.access import Access
from bloomery.outcome import Again, Outcome

_LONGEST_PAUSE_S: Final = 15.0
_UNTIL: Final = "redfish_setting_until"
_WAS_OFF: Final = "redfish_setting_was_off"
_LATE: Final = "redfish_setting_late"


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosSetting:
    """A setting: how to set it and how to read whether it took effect; ``what`` goes into errors.

    ``is_needless``: whether nothing must be set, if that differs from ``is_so``.
    """

    access: Access
    task: base.DriverTask
    what: str
    change: Callable[[Any], None]
    is_so: Callable[[Any], bool]
    is_needless: Callable[[Any], bool] | None = None

    def apply(self) -> Outcome:
        """Run an attempt.  Raises StepFailure after boot_mode_config_timeout."""
        return substeps.run_in_order(
            self.task, "redfish_setting",
            self._ask, self._restart, self._look, self._restore, self._judge,
        )  # fmt: skip

    @property
    def _memory(self) -> dict[str, Any]:
        return self.task.node.driver_internal_info

    @property
    def _limit_s(self) -> int:
        return self.access.conf.redfish.boot_mode_config_timeout

    def _reads_needless(self) -> bool:
        return self.access.read(self.task, self.is_needless or self.is_so)

    def _ask(self) -> None:
        """Set the value unless it is set; store the deadline if a restart is needed.

        The deadline and the power state are saved first: a repetition may find a machine on that
        was off.
        """
        was_cut_off, state = self._was_cut_off(), self.task.node.provision_state
        self._forget()
        if was_cut_off:
            self._memory[_WAS_OFF] = state
        if self._reads_needless():
            return
        if self.task.node.power_state == PowerState.OFF:
            self._memory[_WAS_OFF] = state
        until = clock.now() + timedelta(seconds=self._limit_s)
        self._memory[_UNTIL] = until.isoformat()
        self.task.save()
        self.access.change(self.task, self.change, repeatable=True)
        if self._reads_needless():
            self._forget()

    def _was_cut_off(self) -> bool:
        """Return whether an interrupted run in this state found the machine off."""
        until, state = self._memory.get(_UNTIL), self._memory.get(_WAS_OFF)
        is_recent = until is not None and clock.now() < datetime.fromisoformat(until)
        return is_recent and state == self.task.node.provision_state

    def _forget(self) -> None:
        for key in (_UNTIL, _WAS_OFF, _LATE):
            self._memory.pop(key, None)

    def _restart(self) -> Outcome | None:
        return self.task.driver.power.reboot(self.task) if _UNTIL in self._memory else None

    def _look(self) -> Outcome | None:
        if _UNTIL not in self._memory:
            return None
        if not self.access.read(self.task, self.is_so):
            left_s = (datetime.fromisoformat(self._memory[_UNTIL]) - clock.now()).total_seconds()
            if left_s > 0:
                after_s = min(_LONGEST_PAUSE_S, 1 + (self._limit_s - left_s) / 4)
                return Again(after_s=after_s, reason=f"waiting for {self.what} to take effect")
            self._memory[_LATE] = True
        return None

    def _restore(self) -> Outcome | None:
        if _WAS_OFF not in self._memory:
            return None
        return self.task.driver.power.set_power_state(self.task, PowerState.OFF)

    def _judge(self) -> None:
        is_late = self._memory.get(_LATE)
        self._forget()
        if is_late:
            raise errors.StepFailure(
                reason=f"{self.what} was set and did not take effect within {self._limit_s} s",
            )
