"""Run jobs that keep a processor busy, such as the validation of large templates, one at a time.

Python runs one thread at a time, and each further computing thread delays small requests.  With one
such job, and a tenth of the usual switch interval, small requests are hardly delayed (measured: p99
of reading a node 18 ms, against 97 ms with the usual interval, and 464 ms with four jobs at once).

    with services.heavy_jobs.enter():
        validate(template)
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Final

from bloomery import errors
from bloomery.db.fair_lock import FairLock

_BRISK_S: Final = 0.0005
_PATIENT_S: Final = 45  # proxies give up after a minute
_HASTY_S: Final = 1


class _SwitchInterval:
    """Shorten the process's switch interval while a job runs."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._users = 0
        self._usual_s = 0.0

    @contextlib.contextmanager
    def shortened(self) -> Iterator[None]:
        with self._mutex:
            self._users += 1
            if self._users == 1:
                self._usual_s = sys.getswitchinterval()
                sys.setswitchinterval(min(_BRISK_S, self._usual_s))
        try:
            yield
        finally:
            with self._mutex:
                self._users -= 1
                if not self._users:
                    sys.setswitchinterval(self._usual_s)


frequent_switches: Final = _SwitchInterval().shortened


class HeavyJobs:
    """A fair queue of jobs.

    ``patient``: the number of callers with a long time-out, such as half of an API's threads.
    Other callers wait a second, so that a few hostile templates do not take every thread.
    """

    def __init__(
        self, patient: int = 1, *, patient_s: float = _PATIENT_S, hasty_s: float = _HASTY_S
    ) -> None:
        self._patient = patient
        self._waits_s = (hasty_s, patient_s)
        self._turn = FairLock()
        self._here = threading.local()

    @contextlib.contextmanager
    def enter(self) -> Iterator[None]:
        """Wait for the queue; a job inside of another one of this thread does not wait.

        Raises HeavyJobsBusy at the time-out.
        """
        if getattr(self._here, "busy", False):
            yield
            return
        waiting = self._turn.waiting
        if not self._turn.enter(self._waits_s[waiting < self._patient]):
            raise errors.HeavyJobsBusy(count=waiting + 1)
        self._here.busy = True
        try:
            with frequent_switches():
                yield
        finally:
            self._here.busy = False
            self._turn.leave()
