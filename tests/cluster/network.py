"""Calls between the processes of a cluster: delayed, dropped, doubled, and lost with who dies.

A transport like any other: arguments, results and errors pass as JSON.  A message to a process
that is not there waits for its next life, as in a broker's queue, until its caller has given up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from bloomery import errors
from bloomery.model.request import Request
from bloomery.rpc.contract import METHODS
from tests.cluster.virtual import Process, Scheduler, Strand

RESPONSE_TIMEOUT_S: Final = 60.0
_LOST, _DOUBLED, _LATE = 0.02, 0.03, 0.03
_USUAL_S, _LATE_S = 0.05, 40.0
_REDELIVERED_S: Final = 2.0

Packed = dict[str, Any]


@dataclass(slots=True)
class Reply:
    """What a caller waits for."""

    strand: Strand
    packed: Packed | None = None


class Network:
    """``endpoints`` returns the process and the conductor that answer for a host now, if any."""

    def __init__(
        self, scheduler: Scheduler, endpoints: Callable[[str], tuple[Process, Any] | None]
    ) -> None:
        self._scheduler, self._endpoints = scheduler, endpoints
        self.is_faulty = True
        self.doubled: set[str] = set()  # request ids of calls that came twice

    def proxy(self, host: str) -> Proxy:
        return Proxy(self, host)

    def call(self, host: str, method: str, request: Request, args: Any, more: Any) -> Any:
        """Send a call and wait for its reply.  Raises what it raises, TemporaryFailure."""
        scheduler = self._scheduler
        message = _carried({
            "method": method, "request": dataclasses.asdict(request), "args": args, "more": more,
        })  # fmt: skip
        reply = Reply(scheduler.current)
        give_up_at = scheduler.now + RESPONSE_TIMEOUT_S
        scheduler.switch(f"call {method}")
        copies = self._copies()
        if copies > 1:
            self.doubled.add(request.request_id)
        for _ in range(copies):
            self._deliver(host, message, reply, give_up_at, self._delay_s())
        while reply.packed is None:
            if not scheduler.wait(give_up_at - scheduler.now, f"reply to {method}"):
                break
        if reply.packed is None:
            raise errors.TemporaryFailure(reason=f"conductor {host} did not answer {method}")
        return _unpacked(reply.packed)

    # ------------------------------------------------------------------------------- faults

    def _copies(self) -> int:
        drawn = self._scheduler.lots.random()
        if not self.is_faulty or drawn > _LOST + _DOUBLED:
            return 1
        return 0 if drawn < _LOST else 2

    def _delay_s(self) -> float:
        lots = self._scheduler.lots
        is_late = self.is_faulty and lots.random() < _LATE
        return lots.uniform(0, _LATE_S if is_late else _USUAL_S)

    # ----------------------------------------------------------------------------- delivery

    def _deliver(
        self, host: str, message: Packed, reply: Reply, give_up_at: float, delay_s: float
    ) -> None:
        """Hand a message over as soon as there is somebody to take it."""
        endpoint = self._endpoints(host)
        name = f"{message['method']} to {host}"
        if endpoint is None:
            if self._scheduler.now + _REDELIVERED_S < give_up_at:
                again = (host, message, reply, give_up_at, 0.0)
                self._scheduler.spawn(NETWORK, lambda: self._deliver(*again), name, _REDELIVERED_S)
            return
        process, conductor = endpoint
        self._scheduler.spawn(
            process, lambda: self._answer(conductor, message, reply), name, delay_s
        )

    def _answer(self, conductor: Any, message: Packed, reply: Reply) -> None:
        """Run in the process that was called; the reply goes its own way back."""
        packed = _carried(_outcome(conductor, message))
        self._scheduler.switch(f"reply to {message['method']}")
        for _ in range(self._copies()):
            self._scheduler.spawn(
                NETWORK, lambda: self._take(reply, packed), "reply", self._delay_s()
            )

    def _take(self, reply: Reply, packed: Packed) -> None:
        if reply.packed is None:
            reply.packed = packed
            self._scheduler.wake(reply.strand)


NETWORK: Final = Process("network")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A conductor somewhere: each method of the contract is a call."""

    network: Network
    host: str

    def __getattr__(self, method: str) -> Callable[..., Any]:
        assert method in METHODS, f"{method} is not in the contract"

        def call(request: Request, *args: Any, **more: Any) -> Any:
            return self.network.call(self.host, method, request, args, more)

        return call


def _outcome(conductor: Any, message: Packed) -> Packed:
    request = Request(**message["request"])
    try:
        method = getattr(conductor, message["method"])
        return {"result": method(request, *message["args"], **message["more"])}
    except errors.Failure as exc:
        return {"failure": exc.packed()}


def _unpacked(packed: Mapping[str, Any]) -> Any:
    if "failure" in packed:
        raise errors.revive(*packed["failure"])
    return packed["result"]


def _carried(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))
