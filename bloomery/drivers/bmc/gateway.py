"""The gateway: one record per BMC, and the guard that each call passes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.base import DriverTask
from bloomery.drivers.bmc.state import BmcState, Breaker, Clock
from bloomery.metrics import METRICS

T = TypeVar("T")
_SALT: Final = secrets.token_bytes(16)
_QUEUE_PAUSE_S: Final = 1.0  # before a call that got no slot queues again
_LOGIN_BUSY_S: Final = 1.0  # before a call that met another login is repeated


@dataclass(frozen=True, slots=True)
class BmcCall:
    """One call to a BMC with its deadline.

    ``lease``: raises when the node was taken over; None for a call without a node.
    """

    bmc: BmcState
    driver: str
    deadline: float
    clock: Clock
    lease: Callable[[], None] | None = None

    def left_s(self) -> float:
        return self.deadline - self.clock()

    def assert_lease(self) -> None:
        """Check the lease; call it just before each write, as a call may outlast the lease.

        Raises ExclusiveLockRequired, LockLost.
        """
        if self.lease is not None:
            self.lease()

    def took(self, seconds: float) -> None:
        """Record the duration of one request."""
        self.bmc.latency.add(seconds)
        METRICS.send_timer(f"bmc_call:{self.driver}", seconds * 1000)


class Gateway:
    """The BMCs by address; its lock guards the table only, never I/O."""

    def __init__(self, conf: Conf, clock: Clock = time.monotonic) -> None:
        self.conf = conf
        self.clock = clock
        self._mutex = threading.Lock()
        self._bmcs: dict[str, BmcState] = {}

    def bmc(self, address: str) -> BmcState:
        """Return the state of a BMC, created at its first use."""
        with self._mutex:
            state = self._bmcs.get(address)
            if state is None:
                state = self._bmcs[address] = BmcState(address, self.conf, self.clock)
            return state

    def count_by_state(self) -> dict[str, int]:
        """Count the BMCs after their first call: answering, silent at the last one, left alone."""
        counts = {"answering": 0, "silent": 0, "left_alone": 0}
        for bmc in self.bmcs():
            if bmc.last_contact_at is not None or bmc.is_suspect:
                counts[bmc.state] += 1
        return counts

    def bmcs(self) -> list[BmcState]:
        """Return every BMC that was called since the start."""
        with self._mutex:
            return list(self._bmcs.values())

    @contextmanager
    def guard(
        self,
        address: str,
        task: DriverTask,
        *,
        write: bool,
        budget_s: float | None = None,
        insists: bool = False,
    ) -> Iterator[BmcCall]:
        """Let one call through after its queue, within its time; record its result.

        ``budget_s``: time limit of the call; None: that of the task, else call_timeout.  The time
        counts from the slot; the queue may take as long again.  A task or a call that insists
        passes an open breaker, one at a time.  Raises BmcLeftAlone while the breaker is open,
        BmcQueueTimeout when no slot came free; for a write ExclusiveLockRequired or LockLost.
        """
        bmc = self.bmc(address)
        own_s = task.budget_s if budget_s is None else budget_s
        limit_s = min(self.conf.bmc.call_timeout, own_s or self.conf.bmc.call_timeout)
        if not bmc.slots.enter(write=write, timeout_s=limit_s):
            options = self.conf.bmc
            reason = (
                f"other calls of this conductor came first for {limit_s:g} s; more go at a time "
                f"with [bmc]requests_at_once ({options.requests_at_once} now) and "
                f"[bmc]writes_at_once ({options.writes_at_once} now)"
            )
            raise errors.BmcQueueTimeout(
                node=errors.name_of(task.node), address=address,
                retry_after_s=_QUEUE_PAUSE_S, cause=reason, reason=reason,
            )  # fmt: skip
        deadline = self.clock() + limit_s
        call = BmcCall(bmc, task.node.driver, deadline, self.clock, task.assert_lease)
        try:
            if write:
                task.assert_lease()
            require(bmc, bmc.breaker, task, insists=insists or task.insists)
            try:
                yield call
            except errors.BmcLeftAlone:  # no request was sent
                bmc.breaker.abandoned()
                raise
            except (errors.BmcUnreachable, errors.BmcRefused) as exc:
                METRICS.send_counter(f"bmc_faults:{task.node.driver}:{exc.code}", 1)
                bmc.failed(exc)
                raise
            except BaseException:
                bmc.breaker.abandoned()
                raise
            bmc.answered()
        finally:
            bmc.slots.leave(write=write)

    @contextmanager
    def login(
        self, bmc: BmcState, account: str, task: DriverTask, *, insists: bool = False
    ) -> Iterator[None]:
        """Guard work that sends an account's password or session token.

        A refusal does not count when another call has succeeded since this one began.  Raises
        BmcLeftAlone while the account's login is paused after a refusal, unless it ``insists``.
        """
        login = bmc.login(account)
        require(bmc, login, task, insists=insists)
        successes = login.successes
        try:
            yield
        except errors.BmcLoginRefused as exc:
            if login.successes == successes:
                login.failed(exc)
            else:
                login.abandoned()
            raise
        except BaseException:
            login.abandoned()
            raise
        login.succeeded()


def require(bmc: BmcState, breaker: Breaker, task: DriverTask, *, insists: bool = False) -> None:
    """Raise BmcLeftAlone unless the breaker admits the call."""
    left_s = breaker.admit(insists=insists)
    if not left_s:
        return
    last, kind = breaker.last, errors.BmcLeftAlone
    why = last.facts.get("reason", "") if isinstance(last, errors.Failure) else ""
    why = f"it refused {why}" if isinstance(last, errors.BmcRefused) else why
    if isinstance(last, errors.BmcLoginRefused):
        kind = errors.BmcLoginLeftAlone
        why += ", which is remembered for all nodes with this login"
    raise kind(
        node=errors.name_of(task.node), address=bmc.address, retry_after_s=left_s, cause=why,
        reason=f"{why} ({breaker.sentence(left_s)})",
    )  # fmt: skip


def login_busy(node: str, address: str) -> errors.BmcLeftAlone:
    """Return the error of a call whose time ended during another call's login."""
    return errors.BmcLeftAlone(
        node=node, address=address, retry_after_s=_LOGIN_BUSY_S, cause="",
        reason="another call is logging in",
    )  # fmt: skip


def account_key(*facts: str | None) -> str:
    """Return a keyed hash of an account, password included."""
    return hmac.new(_SALT, repr(facts).encode(), hashlib.sha256).hexdigest()


class PerConf(Generic[T]):
    """One object per configuration, created at its first use.

    ``make`` must keep a reference to ``conf``, so that its identity stays unique.
    """

    def __init__(self, make: Callable[[Conf], T]) -> None:
        self._make = make
        self._by_conf: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()
        self._mutex = threading.Lock()

    def of(self, conf: Conf) -> T:
        with self._mutex:
            shared = self._by_conf.get(id(conf))
            if shared is None:
                shared = self._by_conf[id(conf)] = self._make(conf)
            return shared


_GATEWAYS: Final = PerConf(Gateway)


def of(conf: Conf) -> Gateway:
    """Return the gateway that all interfaces of ``conf`` share; it lives as long as they do."""
    return _GATEWAYS.of(conf)
