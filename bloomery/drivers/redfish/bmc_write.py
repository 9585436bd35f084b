"""Writes to a BMC: send, follow the task of a 202 to its end, and read back until it is so.

    outcome = BmcWrite(
        access=access, task=task, what="insert virtual media", limit_s=60,
        change=insert, is_so=shows_it,
    ).apply()

An answer of 2xx is not the effect: BMCs accept orders that they carry out later, or never.  A task
that fails ends the write with the BMC's own reasons.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from bloomery import clock, errors
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base, substeps
from bloomery.drivers.redfish import tasks
from bloomery.drivers.redfish.access import Access
from bloomery.outcome import Again, Outcome

REQUEST_S: Final = 10.0  # limit of a write whose client waits for the answer
MEMORY: Final = "redfish_write"  # in driver_internal_info, until the write has ended
_LONGEST_PAUSE_S: Final = 15.0
_MOST_TRIES: Final = 3  # of a write that is answered with a 5xx
_TRY_PAUSE_S: Final = 3.0
_AFTER_POST: Final = ("OSBootStarted", "OSRunning")  # values of BootProgress


class NotYet(Exception):
    """The BMC cannot be sent the write yet; the text says why, and stands in errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcWrite:
    """One idempotent write; ``what`` is its verb phrase in errors, without secrets.

    ``change`` sends it, and may return whether the BMC shows the effect already.  None: the system
    is read anew for ``is_so``.  It is called again while it raises NotYet.  ``limit_s``: time for
    the effect to show.  ``pause_s``: between two reads; None: a growing one.  ``hidden``: secrets
    that the BMC may quote.
    """

    access: Access
    task: base.DriverTask
    what: str
    change: Callable[[Any], bool | None]
    is_so: Callable[[Any], bool]
    limit_s: float
    pause_s: float | None = None
    hidden: Sequence[str] = ()

    def apply(self) -> Outcome:
        """Run an attempt of a step.  Raises StepFailure at the limit or for a failed task."""
        return substeps.run_in_order(self.task, "redfish_write", self._send, self._wait)

    def apply_now(self, pause: Callable[[float], object] = time.sleep) -> None:
        """Write and wait in this thread, for callers that are no steps.

        Raises BmcRefused, as for an order that the BMC does not accept.
        """
        self._forget()
        try:
            for part in (self._send, self._wait):
                while isinstance(outcome := part(), Again):
                    pause(outcome.after_s)
        except errors.StepFailure as no:
            raise errors.BmcRefused(
                node=errors.name_of(self.task.node),
                address=self.access.account(self.task).address,
                reason=no.facts["reason"],
            ) from no

    @property
    def _memory(self) -> dict[str, Any]:
        """Return what this write stored; a memory of another write is dropped."""
        info = self.task.node.driver_internal_info
        if info.get(MEMORY, {}).get("what") != self.what:
            info[MEMORY] = {"what": self.what}
        memory: dict[str, Any] = info[MEMORY]
        return memory

    def _forget(self) -> None:
        self.task.node.driver_internal_info.pop(MEMORY, None)

    def _send(self) -> Outcome | None:
        """Send the write, again after a 5xx; store the deadline unless the effect shows."""
        memory = self._memory
        try:
            is_so = self.access.change(
                self.task, self._change, repeatable=True, secrets=self.hidden
            )
        except NotYet as why:
            until = memory.setdefault("until", self._deadline())
            if clock.now() > datetime.fromisoformat(until):
                self._forget()
                raise errors.StepFailure(reason=f"the BMC cannot {self.what}: {why}") from None
            return Again(after_s=self.pause_s or _TRY_PAUSE_S, reason=str(why))
        except errors.Invalid:
            self._forget()
            raise
        except errors.BmcRefused as no:
            memory["tries"] = memory.get("tries", 0) + 1
            if not isinstance(no, errors.BmcFailed) or memory["tries"] >= _MOST_TRIES:
                self._forget()
                raise
            return Again(after_s=_TRY_PAUSE_S, reason=f"the BMC could not {self.what} yet")
        memory.pop("until", None)
        if not is_so:
            memory.update(until=self._deadline(), is_fresh=True)
        return None

    def _deadline(self) -> str:
        return (clock.now() + timedelta(seconds=self.limit_s)).isoformat()

    def _change(self, system: Any) -> bool:
        is_so = self.change(system)
        monitors = self._memory["tasks"] = tasks.accepted(system)
        if is_so is None and not monitors:
            system.refresh(force=True)
            is_so = self._shows_at_once(system)
        return bool(is_so) and not monitors

    def _shows_at_once(self, system: Any) -> bool:
        return self.is_so(system)

    def _wait(self) -> Outcome | None:
        try:
            outcome = self._look()
        except errors.StepFailure:
            self._forget()
            raise
        if outcome is None:
            self._forget()
        return outcome

    def _look(self) -> Outcome | None:
        """Read the effect and the tasks; a task at work is waited for, until the limit."""
        memory = self._memory
        if "until" not in memory:
            return None
        is_so = is_at_work = False
        is_fresh = memory.pop("is_fresh", False)
        if not is_fresh:
            is_so, is_at_work = self.access.read(self.task, self._read)
        until = datetime.fromisoformat(memory["until"])
        left_s = (until - clock.now()).total_seconds()
        pause_s = self.pause_s or min(_LONGEST_PAUSE_S, 1 + (self.limit_s - left_s) / 4)
        again = Again(
            after_s=min(pause_s, max(left_s, 0.1)),
            reason=f"waiting for the BMC to {self.what}, until {until:%H:%M:%S} UTC",
        )
        has_booted = memory.get("has_booted", False)
        if is_fresh or (left_s > 0 and (is_at_work or not (is_so or has_booted))):
            return again
        if not is_so:
            when = "the machine has booted" if has_booted else f"{self.limit_s:g} s"
            raise errors.StepFailure(
                reason=f"the BMC accepted the order to {self.what}, and does not show it as done "
                f"after {when}",
            )
        return None

    def _read(self, system: Any) -> tuple[bool, bool]:
        is_at_work = tasks.are_at_work(system, self._memory["tasks"], self.what, self.hidden)
        return self.is_so(system), is_at_work


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosSetting(BmcWrite):
    """A firmware setting, which may need a restart of the machine to take effect.

    A value that the BMC shows at once needs none.  Otherwise the machine is restarted, and returned
    to its previous power state when the value shows or the write has failed.  ``is_needless``:
    whether nothing must be set, if that differs from ``is_so``.  ``settles_s``: time for the effect
    to show after POST, where the BMC tells of POST; None: ``limit_s``.
    """

    is_needless: Callable[[Any], bool] | None = None
    settles_s: float | None = None

    def apply(self) -> Outcome:
        return substeps.run_in_order(
            self.task, "redfish_setting",
            self._ask, self._restart, self._await, self._restore, self._judge,
        )  # fmt: skip

    def _shows_at_once(self, system: Any) -> bool:
        return (self.is_needless or self.is_so)(system)

    def _ask(self) -> Outcome | None:
        """Set the value unless it is set; store the deadline if a restart is needed.

        The deadline and the power state are saved first: a repetition may find a machine on that
        was off.
        """
        memory, state = self._memory, self.task.node.provision_state
        until = memory.pop("until", None)
        is_recent = until is not None and clock.now() < datetime.fromisoformat(until)
        if not is_recent or memory.get("was_off") != state:
            memory.pop("was_off", None)
        if self.access.read(self.task, self._shows_at_once):
            return None
        if self.task.node.power_state == PowerState.OFF:
            memory["was_off"] = state
        memory["until"] = self._deadline()
        self.task.save()
        outcome = self._send()
        memory.pop("is_fresh", None)
        return outcome

    def _restart(self) -> Outcome | None:
        return self.task.driver.power.reboot(self.task) if "until" in self._memory else None

    def _await(self) -> Outcome | None:
        """Wait for the effect; a failure is kept until the machine is as it was."""
        try:
            return self._look()
        except errors.StepFailure as no:
            self._memory["failure"] = no.facts["reason"]
            return None

    def _read(self, system: Any) -> tuple[bool, bool]:
        """Note, too, that the machine has left POST long enough for the effect to show."""
        progress, memory = system.json.get("BootProgress") or {}, self._memory
        if self.settles_s is None or progress.get("LastState") not in _AFTER_POST:
            memory.pop("booted_at", None)
        else:
            since = datetime.fromisoformat(memory.setdefault("booted_at", clock.now().isoformat()))
            memory["has_booted"] = (clock.now() - since).total_seconds() > self.settles_s
        return BmcWrite._read(self, system)  # noqa: SLF001  slots break super()

    def _restore(self) -> Outcome | None:
        if "was_off" not in self._memory:
            return None
        return self.task.driver.power.set_power_state(self.task, PowerState.OFF)

    def _judge(self) -> None:
        failure = self._memory.get("failure")
        self._forget()
        if failure is not None:
            raise errors.StepFailure(reason=failure)
