"""The gateway: one record per BMC, and the guard that each call passes."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import clock as steady
from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.base import DriverTask
from bloomery.drivers.bmc.breaker import Breaker
from bloomery.drivers.bmc.latency import Latency
from bloomery.drivers.bmc.slots import Slots
from bloomery.drivers.shared import Shared
from bloomery.metrics import METRICS

Clock = Callable[[], float]
_SALT: Final = secrets.token_bytes(16)
_LOGIN_BUSY_S: Final = 1.0  # after which one may look whether it is done
_MOST_ACCOUNTS: Final = 32  # of one BMC whose refused logins are remembered


class Bmc:
    """What is known of one BMC."""

    def __init__(self, address: str, conf: Conf, clock: Clock) -> None:
        ours = conf.bmc
        self.address = address
        self.slots = Slots(ours.requests_at_once, ours.writes_at_once)
        self.breaker = Breaker(ours.breaker_failures, ours.breaker_pause, clock)
        self._login_pauses = ours.login_pause, ours.login_longest_pause
        self._clock = clock
        self._logins: OrderedDict[str, Breaker] = OrderedDict()
        self._mutex = threading.Lock()
        self.latency = Latency()
        self.last_contact_at: datetime | None = None
        self._heard_at: datetime | None = None  # as deadlines are measured
        self.last_error: str | None = None
        self.last_error_at: datetime | None = None

    @property
    def is_suspect(self) -> bool:
        """Did the last call fail?  A suspect is asked once, and waits behind those that live."""
        return self.breaker.failures > 0

    def login(self, account: str) -> Breaker:
        """Return what is known of an account; one that was never refused is closed.

        ``account``: a key that differs with the password and does not contain it.
        """
        with self._mutex:
            shortest_s, longest_s = self._login_pauses
            found = self._logins.pop(account, None) or Breaker(
                1, shortest_s, self._clock, longest_s
            )
            self._logins[account] = found
            while len(self._logins) > _MOST_ACCOUNTS:
                self._logins.popitem(last=False)
            return found

    def has_answered(self, since: datetime) -> bool:
        """Tell whether it answered anybody after ``since``, a time of ``bloomery.clock``."""
        return self._heard_at is not None and self._heard_at > since

    def answered(self) -> None:
        self.last_contact_at, self._heard_at = datetime.now(UTC), steady.now()
        self.breaker.succeeded()

    def failed(self, exc: errors.Failure) -> None:
        """Remember what went wrong; silence counts for the breaker, a no is an answer."""
        self.last_error, self.last_error_at = str(exc), datetime.now(UTC)
        if isinstance(exc, errors.BmcUnreachable):
            self.breaker.failed(exc)
        else:
            self.answered()

    def shown(self, account: str | None = None) -> dict[str, Any]:
        """Return what the node's ``why`` says of its BMC, as JSON has it."""
        latency = self.latency.summary()
        breaker = self.breaker
        return {
            "address": self.address,
            "last_contact_at": _text(self.last_contact_at),
            "last_error": self.last_error,
            "last_error_at": _text(self.last_error_at),
            "left_alone": breaker.is_open,
            "next_try_at": _text(breaker.next_try_at),
            "login_refused": None if account is None else _refusal(self.login(account)),
            "latency": None if latency is None else dataclasses.asdict(latency),
        }


def _refusal(login: Breaker) -> dict[str, Any] | None:
    """Say since when a login is refused, how often it was tried, and when it will be again."""
    if not login.is_open:
        return None
    return {
        "since": _text(login.since),
        "tries": login.failures,
        "next_try_at": _text(login.next_try_at),
    }


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a BMC and the time that it has.

    ``lease``: what raises when the node is not, or no longer, ours; None for a call that is
    about no node.
    """

    bmc: Bmc
    driver: str
    deadline: float
    clock: Clock
    lease: Callable[[], None] | None = None

    def left_s(self) -> float:
        return self.deadline - self.clock()

    def assert_lease(self) -> None:
        """Whoever writes asks just before each write: a call may outlast the lease.

        Raises ExclusiveLockRequired, LockLost.
        """
        if self.lease is not None:
            self.lease()

    def took(self, seconds: float) -> None:
        """Record how long one request of the call took."""
        self.bmc.latency.add(seconds)
        METRICS.send_timer(f"bmc_call:{self.driver}", seconds * 1000)


class Gateway:
    """The BMCs by address.  Its lock guards that table alone and is never held during I/O."""

    def __init__(self, conf: Conf, clock: Clock = time.monotonic) -> None:
        self.conf = conf
        self.clock = clock
        self._mutex = threading.Lock()
        self._bmcs: dict[str, Bmc] = {}

    def bmc(self, address: str) -> Bmc:
        """Return the record of a BMC; one that was never asked has an empty one."""
        with self._mutex:
            found = self._bmcs.get(address)
            if found is None:
                found = self._bmcs[address] = Bmc(address, self.conf, self.clock)
            return found

    def bmcs(self) -> list[Bmc]:
        """Return every BMC that was asked since the start."""
        with self._mutex:
            return list(self._bmcs.values())

    @contextmanager
    def guard(
        self, address: str, task: DriverTask, *, write: bool, budget_s: float | None = None
    ) -> Iterator[Call]:
        """Let one call through, in its turn and within its time.

        ``budget_s``: of a call that may take less time than others; None: what the node's task
        may spend, else call_timeout.  A task that insists is let through although the BMC is
        left alone, one at a time.
        Raises BmcLeftAlone while the BMC is left alone, BmcUnreachable when it stays busy;
        for a write ExclusiveLockRequired or LockLost, if the node is not, or no longer, ours.
        """
        bmc = self.bmc(address)
        own_s = task.budget_s if budget_s is None else budget_s
        limit_s = min(self.conf.bmc.call_timeout, own_s or self.conf.bmc.call_timeout)
        deadline = self.clock() + limit_s
        call = Call(bmc, task.node.driver, deadline, self.clock, task.assert_lease)
        if not bmc.slots.enter(write=write, timeout_s=call.left_s()):
            busy = f"other calls kept it busy for {limit_s:g} s"
            raise errors.BmcUnreachable(node=task.node.uuid, address=address, reason=busy)
        try:
            if write:
                task.assert_lease()
            require(bmc, bmc.breaker, task, insists=task.insists)
            with _reporting(bmc):
                yield call
        finally:
            bmc.slots.leave(write=write)

    @contextmanager
    def login(self, bmc: Bmc, account: str, task: DriverTask) -> Iterator[None]:
        """Let work through that shows an account's password, or what it was exchanged for.

        Raises BmcLeftAlone while the account is left alone because its login was refused.
        """
        login = bmc.login(account)
        require(bmc, login, task)
        try:
            yield
        except errors.BmcLoginRefused as exc:
            login.failed(exc)
            raise
        except BaseException:
            login.abandoned()
            raise
        login.succeeded()


def require(bmc: Bmc, breaker: Breaker, task: DriverTask, *, insists: bool = False) -> None:
    """Raise BmcLeftAlone unless the breaker lets one through."""
    left_s = breaker.admit(insists=insists)
    if not left_s:
        return
    last = breaker.last
    why = last.facts.get("reason", "") if isinstance(last, errors.Failure) else ""
    why = f"it refused {why}" if isinstance(last, errors.BmcRefused) else why
    raise errors.BmcLeftAlone(
        node=task.node.uuid, address=bmc.address, retry_after_s=left_s, cause=why,
        reason=f"{why} ({breaker.told(left_s)})",
    )  # fmt: skip


def login_busy(node: str, address: str) -> errors.BmcLeftAlone:
    """The error of a call whose time ended while another one showed the account's password."""
    return errors.BmcLeftAlone(
        node=node, address=address, retry_after_s=_LOGIN_BUSY_S, cause="",
        reason="another call is logging in",
    )  # fmt: skip


@contextmanager
def _reporting(bmc: Bmc) -> Iterator[None]:
    """Tell the BMC's record how the call went."""
    try:
        yield
    except errors.BmcLeftAlone:  # nobody was asked
        bmc.breaker.abandoned()
        raise
    except (errors.BmcUnreachable, errors.BmcRefused) as exc:
        bmc.failed(exc)
        raise
    except BaseException:
        bmc.breaker.abandoned()
        raise
    bmc.answered()


def account_key(*facts: str | None) -> str:
    """Return a key that tells an account from others, password included, and holds none of it."""
    return hmac.new(_SALT, repr(facts).encode(), hashlib.sha256).hexdigest()


_GATEWAYS: Final = Shared(Gateway)


def of(conf: Conf) -> Gateway:
    """Return the gateway that all interfaces built from ``conf`` share; it lives as they do."""
    return _GATEWAYS.of(conf)
