"""Liveness of conductors by their heartbeat counters, on this process's monotonic clock.

A living conductor raises the counter in its row.  A process that polls the rows measures how long a
counter stood still between polls; a conductor is dead after ``heartbeat_timeout``.  Clocks of other
machines are not used, and time without polls does not count: a database that was down for a minute
makes no conductor dead.

    liveness = Liveness(timeout_s=60, longest_gap_s=20)
    asked_at = clock()
    rows = ...                          # read now
    liveness.judge(rows, asked_at)      # the same conductors, each with ``alive`` and ``silent_s``
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Self

from bloomery.conf import Conf
from bloomery.model.conductor import Conductor

_GAP_INTERVALS: Final = 2  # one of two polls may fail
_LEAST_LOOKS: Final = 3  # polls with an unchanged counter before a conductor is dead


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pulse:
    """The last seen counter, and how long it stood still between polls."""

    heartbeat: int
    seen_at: float
    silent_s: float = 0.0


class Liveness:
    """The counters of all conductors as this process has seen them; safe in any thread.

    ``longest_gap_s``: the most silence that counts between two polls.
    """

    def __init__(
        self,
        *,
        timeout_s: float,
        longest_gap_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout_s, self._longest_gap_s, self._clock = timeout_s, longest_gap_s, clock
        self._mutex = threading.Lock()
        self._pulses: dict[str, _Pulse] = {}

    @classmethod
    def of(cls, conf: Conf, clock: Callable[[], float]) -> Self:
        """Return an instance with the configured times."""
        ours = conf.conductor
        pause_s = max(
            _GAP_INTERVALS * ours.heartbeat_interval, conf.default.hash_ring_reset_interval
        )
        longest_gap_s = min(pause_s, ours.heartbeat_timeout / _LEAST_LOOKS)
        return cls(timeout_s=ours.heartbeat_timeout, longest_gap_s=longest_gap_s, clock=clock)

    def judge(self, conductors: Iterable[Conductor], asked_at: float) -> list[Conductor]:
        """Return the conductors with ``alive`` and ``silent_s``.

        ``asked_at``: the clock before they were read.  A changed counter counts as seen after that,
        so that a pause of this process makes no conductor dead.  A new conductor is alive if it is
        online.
        """
        judged = []
        with self._mutex:
            for each in conductors:
                pulse = self._pulses.get(each.hostname)
                if pulse is None or pulse.heartbeat != each.heartbeat:
                    pulse = _Pulse(heartbeat=each.heartbeat, seen_at=self._clock())
                elif asked_at > pulse.seen_at:  # else another thread has polled meanwhile
                    gap_s = min(asked_at - pulse.seen_at, self._longest_gap_s)
                    silent_s = pulse.silent_s + gap_s
                    pulse = dataclasses.replace(pulse, seen_at=asked_at, silent_s=silent_s)
                self._pulses[each.hostname] = pulse
                alive = each.online and pulse.silent_s < self._timeout_s
                judged.append(dataclasses.replace(each, alive=alive, silent_s=pulse.silent_s))
        return judged

    def is_dead(self, conductor: Conductor) -> bool:
        """Did the counter of a judged conductor stand still for the time-out?

        A conductor that signed off, but finishes its work, still raises its counter.
        """
        return conductor.silent_s >= self._timeout_s
