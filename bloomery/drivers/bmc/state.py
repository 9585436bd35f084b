"""The state of one BMC: circuit breaker, concurrent calls, latency, and the report of a check.

The breaker stops calls for a while after failures in a row, then admits one try:

    closed --(failures in a row)--> open --(pause)--> half open: one try --> closed, or open again
"""

from __future__ import annotations

import dataclasses
import statistics
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bloomery import clock as steady
from bloomery import errors, secrets
from bloomery.conf import Conf

Clock = Callable[[], float]
_KEPT: Final = 64  # requests in the latency statistics
MOST_REQUESTS: Final = 60  # of a check
NEEDED: Final = ("power", "boot device")  # without them no machine is deployed
_MOST_ACCOUNTS: Final = 32  # per BMC, whose refused logins are remembered


class BmcState:
    """The state of one BMC: about 1.5 KiB, as a conductor keeps one for each of its machines."""

    __slots__ = (
        "_clock", "_heard_at", "_login_pauses", "_logins", "_mutex", "absent_since", "address",
        "breaker", "clock_difference_s", "last_contact_at", "last_error", "last_error_at",
        "latency", "sessions", "silent_since", "slots",
    )  # fmt: skip

    def __init__(self, address: str, conf: Conf, clock: Clock) -> None:
        limits = conf.bmc
        self.address = address
        self.slots = Slots(limits.requests_at_once, limits.writes_at_once)
        self.breaker = Breaker(limits.breaker_failures, limits.breaker_pause, clock)
        self._login_pauses = limits.login_pause, limits.login_longest_pause
        self._clock = clock
        self._logins: dict[str, Breaker] = {}  # the least recently used one first
        self._mutex = threading.Lock()
        self.latency = Latency()
        self.sessions = 0  # that we have open
        self.silent_since: datetime | None = None  # the first failure after its last answer
        self.last_contact_at: datetime | None = None
        self._heard_at: datetime | None = None  # by ``bloomery.clock``
        self.last_error: str | None = None
        self.last_error_at: datetime | None = None
        self.clock_difference_s: float | None = None  # the BMC's clock less this host's
        self.absent_since: dict[str, datetime] | None = None  # systems that it does not show

    @property
    def is_suspect(self) -> bool:
        """Whether the last call failed; a suspect is tried once, behind healthy BMCs."""
        return self.silent_since is not None

    @property
    def state(self) -> str:
        if self.breaker.is_open:
            return "left_alone"
        return "silent" if self.is_suspect else "answering"

    def login(self, account: str) -> Breaker:
        """Return the breaker of an account.

        ``account``: a key that depends on the password and does not reveal it.
        """
        with self._mutex:
            shortest_s, longest_s = self._login_pauses
            breaker = self._logins.pop(account, None) or Breaker(
                1, shortest_s, self._clock, longest_s
            )
            self._logins[account] = breaker
            while len(self._logins) > _MOST_ACCOUNTS:
                del self._logins[next(iter(self._logins))]
            return breaker

    def count_sessions(self, change: int) -> None:
        """Add to the number of open sessions."""
        with self._mutex:
            self.sessions += change

    def note_clock(self, difference_s: float | None) -> None:
        """Remember how far its clock is ahead; None: it was not shown."""
        if difference_s is not None:
            self.clock_difference_s = difference_s

    def has_answered(self, since: datetime) -> bool:
        """Return whether the BMC answered a call after ``since``, a time of ``bloomery.clock``."""
        return self._heard_at is not None and self._heard_at > since

    def showed(self, system: str | None) -> None:
        """Record that the BMC showed a system."""
        if self.absent_since and system is not None:
            with self._mutex:
                self.absent_since.pop(system, None)

    def answered(self) -> None:
        self.last_contact_at, self._heard_at = datetime.now(UTC), steady.now()
        self.silent_since = None
        self.breaker.succeeded()

    def failed(self, exc: errors.Failure) -> None:
        """Record a failure; silence counts for the breaker, a refusal or "busy" is an answer.

        A call that had too little time (``was_cut_short``) only makes the BMC a suspect, unless it
        was the one try of an open breaker.
        """
        self.last_error, self.last_error_at = str(exc), datetime.now(UTC)
        if isinstance(exc, errors.BmcSystemAbsent):
            with self._mutex:
                self.absent_since = self.absent_since or {}
                self.absent_since.setdefault(exc.facts["system"], self.last_error_at)
        if not isinstance(exc, errors.BmcUnreachable) or isinstance(exc, errors.BmcBusy):
            self.answered()
            return
        self.silent_since = self.silent_since or self.last_error_at
        if exc.facts.get("was_cut_short") and not self.breaker.is_open:
            self.breaker.abandoned()
        else:
            self.breaker.failed(exc)

    def describe_all(self) -> dict[str, Any]:
        """Return the BMC as JSON, with the number of its accounts and open sessions."""
        with self._mutex:
            logins = list(self._logins.values())
        facts = self.describe()
        del facts["login_refused"]
        return facts | {
            "accounts": len(logins),
            "refused_logins": sum(login.is_open for login in logins),
            "sessions": self.sessions,
        }

    def describe(self, account: str | None = None) -> dict[str, Any]:
        """Return the BMC's part of a node's ``why``, as JSON."""
        latency, breaker = self.latency.summary(), self.breaker
        login = None if account is None else self.login(account)
        refusal = None
        if login is not None and login.is_open:
            refusal = {
                "since": _text(login.since),
                "tries": login.failures,
                "next_try_at": _text(login.next_try_at),
            }
        return {
            "address": self.address,
            "last_contact_at": _text(self.last_contact_at),
            "last_error": self.last_error,
            "last_error_at": _text(self.last_error_at),
            "silent_since": _text(self.silent_since),
            "left_alone": breaker.is_open,
            "next_try_at": _text(breaker.next_try_at),
            "login_refused": refusal,
            "latency": None if latency is None else dataclasses.asdict(latency),
            "clock_difference_s": self.clock_difference_s,
        }


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


class Breaker:
    """Counts failures in a row.  Each admitted call reports back exactly once.

    ``longest_s``: the pause doubles with each further failure up to this; None: it stays.
    """

    __slots__ = (
        "_clock", "_failures", "_longest_s", "_most", "_mutex", "_next_try_at", "_pause_s",
        "_trying", "last", "since", "successes",
    )  # fmt: skip

    def __init__(
        self,
        most: int,
        pause_s: float,
        clock: Callable[[], float] = time.monotonic,
        longest_s: float | None = None,
    ) -> None:
        self._most, self._pause_s, self._clock = most, pause_s, clock
        self._longest_s = pause_s if longest_s is None else longest_s
        self._mutex = threading.Lock()
        self._failures = 0
        self._next_try_at = 0.0
        self._trying = False
        self.successes = 0
        self.since: datetime | None = None
        self.last: Exception | None = None

    @property
    def is_open(self) -> bool:
        return self._failures >= self._most

    @property
    def failures(self) -> int:
        """The number of failures in a row."""
        return self._failures

    @property
    def next_try_at(self) -> datetime | None:
        """The time of the next try; None while closed."""
        if not self.is_open:
            return None
        left_s = max(self._next_try_at - self._clock(), 0.0)
        return datetime.now(UTC) + timedelta(seconds=left_s)

    def admit(self, *, insists: bool = False) -> float:
        """Return 0 to admit the call, or the seconds until the next try.

        ``insists`` skips the pause for a user's request, one try at a time.
        """
        with self._mutex:
            if not self.is_open:
                return 0.0
            left_s = self._next_try_at - self._clock()
            if (left_s <= 0 or insists) and not self._trying:
                self._trying = True
                return 0.0
            return max(left_s, 1.0)

    def succeeded(self) -> None:
        with self._mutex:
            self._failures, self._trying = 0, False
            self.successes += 1
            self.since = self.last = None

    def failed(self, why: Exception) -> None:
        with self._mutex:
            if not self._failures:
                self.since = datetime.now(UTC)
            self._failures, self._trying, self.last = self._failures + 1, False, why
            doublings = min(max(self._failures - self._most, 0), 32)
            pause_s = min(self._pause_s * 2**doublings, self._longest_s)
            self._next_try_at = self._clock() + pause_s

    def abandoned(self) -> None:
        """End an admitted call without a result from the BMC."""
        with self._mutex:
            self._trying = False

    def sentence(self, left_s: float) -> str:
        """Return why no call is admitted."""
        since = f"{self.since:%H:%M:%S} UTC" if self.since else "a moment ago"
        times = "1 failure" if self._failures == 1 else f"{self._failures} failures in a row"
        return f"left alone after {times} since {since}; next try in {left_s:.0f} s"


class Slots:
    """At most ``most`` concurrent calls, ``writes`` of them writes.

    The condition, 1.3 KiB, lives only while somebody waits.
    """

    __slots__ = ("_busy", "_freed", "_most", "_mutex", "_waiting", "_writes_most", "_writing")

    def __init__(self, most: int, writes: int) -> None:
        self._most, self._writes_most = most, writes
        self._busy = self._writing = self._waiting = 0
        self._mutex = threading.Lock()
        self._freed: threading.Condition | None = None

    def enter(self, *, write: bool, timeout_s: float) -> bool:
        """Take a slot; False when none came free in time."""

        def is_free() -> bool:
            has_write = not write or self._writing < self._writes_most
            return self._busy < self._most and has_write

        with self._mutex:
            if not is_free():
                freed = self._freed = self._freed or threading.Condition(self._mutex)
                self._waiting += 1
                try:
                    if not freed.wait_for(is_free, timeout_s):
                        return False
                finally:
                    self._waiting -= 1
                    if not self._waiting:
                        self._freed = None
            self._busy += 1
            self._writing += write
            return True

    def leave(self, *, write: bool) -> None:
        with self._mutex:
            self._busy -= 1
            self._writing -= write
            if self._freed is not None:
                self._freed.notify_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    count: int
    least_s: float
    median_s: float
    most_s: float


class Latency:
    """The durations of the last requests: 256 bytes per BMC."""

    __slots__ = ("_count", "_last", "_mutex")

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._last = array("f")
        self._count = 0

    def add(self, seconds: float) -> None:
        with self._mutex:
            if len(self._last) < _KEPT:
                self._last.append(seconds)
            else:
                self._last[self._count % _KEPT] = seconds
            self._count += 1

    def summary(self) -> Summary | None:
        """Return the total count and the spread of the last requests; None before the first."""
        with self._mutex:
            last, count = list(self._last), self._count
        if not last:
            return None
        return Summary(
            count=count, least_s=min(last), median_s=statistics.median(last), most_s=max(last),
        )  # fmt: skip


# --------------------------------------------------------------------------- the report of a check
# Each protocol fills a report with reads alone, for the API and the command ``bloomery bmc check``.


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One feature of a BMC.  ``allowed``: the values that the BMC takes, as it names them."""

    name: str
    works: bool
    detail: str = ""
    allowed: Sequence[str] = ()


@dataclass(slots=True, kw_only=True)
class Report:
    """Facts of a BMC by one protocol; unknown facts are None.

    ``error``: why it cannot be checked.  ``clock_difference_s``: its clock less this host's.
    """

    protocol: str
    address: str
    driver_info: Mapping[str, Any]
    error: str | None = None
    identity: dict[str, str | None] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    sessions_in_use: int | None = None
    tls: dict[str, Any] | None = None
    clock_difference_s: float | None = None
    quirks: list[str] = field(default_factory=list)

    @property
    def is_usable(self) -> bool:
        """Whether machines behind this BMC can be deployed."""
        working = {check.name for check in self.checks if check.works}
        return self.error is None and working.issuperset(NEEDED)

    def read_clock(self, time: datetime | None) -> None:
        if time is not None:
            self.clock_difference_s = round((time - datetime.now(UTC)).total_seconds(), 1)

    def document(self, bmc: BmcState) -> dict[str, Any]:
        """Return the report as JSON, with the latency of ``bmc`` and masked secrets."""
        latency = bmc.latency.summary()
        document = dataclasses.asdict(self) | {
            "usable": self.is_usable,
            "latency": None if latency is None else dataclasses.asdict(latency),
        }
        masked: dict[str, Any] = secrets.mask(document)
        return masked
