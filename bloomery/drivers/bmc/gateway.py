"""The gateway: one record per BMC, and the guard that each call passes."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.base import HeldNode
from bloomery.drivers.bmc.breaker import Breaker
from bloomery.drivers.bmc.latency import Latency
from bloomery.drivers.bmc.slots import Slots
from bloomery.drivers.shared import Shared
from bloomery.metrics import METRICS

Clock = Callable[[], float]


class Bmc:
    """What is known of one BMC."""

    def __init__(self, address: str, conf: Conf, clock: Clock) -> None:
        ours = conf.bmc
        self.address = address
        self.slots = Slots(ours.requests_at_once, ours.writes_at_once)
        self.breaker = Breaker(ours.breaker_failures, ours.breaker_pause, clock)
        self.latency = Latency()
        self.last_contact_at: datetime | None = None
        self.last_error: str | None = None
        self.last_error_at: datetime | None = None

    def answered(self) -> None:
        self.last_contact_at = datetime.now(UTC)
        self.breaker.succeeded()

    def failed(self, exc: errors.Failure) -> None:
        """Remember what went wrong; silence counts for the breaker, a no is an answer."""
        self.last_error, self.last_error_at = str(exc), datetime.now(UTC)
        if isinstance(exc, errors.BmcUnreachable):
            self.breaker.failed(exc)
        else:
            self.answered()

    def shown(self) -> dict[str, Any]:
        """Return what the node's ``why`` says of its BMC, as JSON has it."""
        latency = self.latency.summary()
        return {
            "address": self.address,
            "last_contact_at": _text(self.last_contact_at),
            "last_error": self.last_error,
            "last_error_at": _text(self.last_error_at),
            "left_alone": self.breaker.is_open,
            "latency": None if latency is None else dataclasses.asdict(latency),
        }


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a BMC and the time that it has."""

    bmc: Bmc
    driver: str
    deadline: float
    clock: Clock

    def left_s(self) -> float:
        return self.deadline - self.clock()

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
    def guard(self, address: str, held: HeldNode, *, write: bool) -> Iterator[Call]:
        """Let one call through, in its turn and within its time.

        Raises BmcLeftAlone while the BMC is left alone, BmcUnreachable when it stays busy;
        for a write ExclusiveLockRequired or LockLost, if the node is not, or no longer, ours.
        """
        bmc = self.bmc(address)
        deadline = self.clock() + self.conf.bmc.call_timeout
        call = Call(bmc, held.node.driver, deadline, self.clock)
        if not bmc.slots.enter(write=write, timeout_s=call.left_s()):
            busy = f"other calls kept it busy for {self.conf.bmc.call_timeout} s"
            raise errors.BmcUnreachable(node=held.node.uuid, address=address, reason=busy)
        try:
            if write:
                held.assert_lease()
            self._admit(bmc, held)
            with _reporting(bmc):
                yield call
        finally:
            bmc.slots.leave(write=write)

    def _admit(self, bmc: Bmc, held: HeldNode) -> None:
        left_s = bmc.breaker.admit()
        if not left_s:
            return
        last = bmc.breaker.last
        why = last.facts.get("reason", "") if isinstance(last, errors.Failure) else ""
        raise errors.BmcLeftAlone(
            node=held.node.uuid, address=bmc.address, retry_after_s=left_s,
            reason=f"{why} ({bmc.breaker.told(left_s)})",
        )  # fmt: skip


@contextmanager
def _reporting(bmc: Bmc) -> Iterator[None]:
    """Tell the BMC's record how the call went."""
    try:
        yield
    except (errors.BmcUnreachable, errors.BmcRefused) as exc:
        bmc.failed(exc)
        raise
    except BaseException:
        bmc.breaker.abandoned()
        raise
    bmc.answered()


_GATEWAYS: Final = Shared(Gateway)


def of(conf: Conf) -> Gateway:
    """Return the gateway that all interfaces built from ``conf`` share; it lives as they do."""
    return _GATEWAYS.of(conf)
