"""Proxies of remote conductors: from a method of the contract to a message, and back.

A dead or paused conductor answers no call before the time-out; without limits the threads of the
API would all wait for it.  At most half of them wait for conductors at a time, and three quarters
of those for one host.  Further calls queue while other calls return, and are refused if none
returned lately.
"""

from __future__ import annotations

import contextvars
import functools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from bloomery import errors
from bloomery.metrics import METRICS
from bloomery.model.request import Request
from bloomery.rpc import wire
from bloomery.rpc.contract import Conductor
from bloomery.rpc.methods import Method, understands

QUEUE_S: Final = 10.0  # the longest time in the queue
LATELY_S: Final = 1.0  # without an answer, queued calls are refused
LOOK_EVERY_S: Final = 1.0  # check whether the called conductor lives


class CallLimits:
    """``threads``: those of the process that call; safe to use from any of them."""

    def __init__(self, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = max(1, threads // 2)
        self.most_per_host = max(1, self.most * 3 // 4)
        self._clock = clock
        self._room = threading.Condition()
        self._calls: Counter[str] = Counter()
        self._heard_at: dict[str, float] = {}  # the last answer, or the beginning of the wait

    @property
    def calls(self) -> int:
        """Return the number of waiting calls."""
        return self._calls.total()

    @contextmanager
    def call(self, host: str) -> Iterator[None]:
        """Count a call to ``host`` while it runs; wait for room while earlier calls get answers.

        Raises ConductorCallsBusy.
        """
        with self._room:
            give_up_at = self._clock() + QUEUE_S
            while not self._has_room(host):
                is_full = self._calls[host] >= self.most_per_host
                hosts = (host,) if is_full else tuple(+self._calls)  # whose answers make room
                heard_at = max(self._heard_at[each] for each in hosts)
                left_s = min(give_up_at, heard_at + LATELY_S) - self._clock()
                if left_s <= 0:
                    raise errors.ConductorCallsBusy(
                        host=host, count=self._calls[host] if is_full else self.calls,
                        whom="it" if is_full else "conductors",
                    )  # fmt: skip
                self._room.wait(left_s)
            if not self._calls[host]:
                self._heard_at[host] = self._clock()
            self._calls[host] += 1
        try:
            yield
        finally:
            with self._room:
                self._calls[host] -= 1
                if not self._calls[host]:
                    del self._calls[host]
                self._room.notify_all()

    def came_back(self, host: str) -> None:
        """Store the time of an answer of ``host``."""
        self._heard_at[host] = self._clock()

    def _has_room(self, host: str) -> bool:
        return self._calls[host] < self.most_per_host and self.calls < self.most


class Channel(Protocol):
    """Carries messages, which are JSON in both directions."""

    def call(self, host: str, message: dict[str, Any], timeout_s: float) -> Mapping[str, Any]:
        """Return the reply of ``host``.

        Raises ConductorUnreached where the message surely did not arrive, ConductorSilent where it
        may have.
        """

    @property
    def is_connected(self) -> bool | None:
        """Does the message broker answer?  None: there is none."""

    def missing(self) -> list[str]:
        """Return the channel's faults, after a few seconds at most."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The newest version of the contract that may be sent, and its release."""

    version: str
    release: str = ""

    def fit(self, method: Method, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that may be sent.  Raises MethodPinned."""
        if understands(self.version, method.version_of(arguments)):
            return arguments
        if method.drops_new_fields and understands(self.version, method.since):
            return {
                name: value
                for name, value in arguments.items()
                if understands(self.version, method.field_since.get(name, method.since))
            }
        raise errors.MethodPinned(
            method=method.name, version=method.version_of(arguments),
            release=self.release, cap=self.version,
        )  # fmt: skip


class Remote:
    """Remote conductors, and those of this process (``local``), which are called directly.

    ``response_timeout_s``: the limit of a reply, beside the caller's wait for a locked node.
    ``is_silent``: is a host's heartbeat missing?  Its replies are then no longer awaited.
    """

    def __init__(
        self,
        channel: Channel,
        methods: Mapping[str, Method],
        *,
        cap: Cap,
        limits: CallLimits,
        response_timeout_s: float,
        local: Mapping[str, Conductor] | None = None,
        is_silent: Callable[[str], bool] = lambda _host: False,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self.limits = limits
        self._is_silent, self._look_every_s = is_silent, look_every_s
        self._channel, self._methods, self._cap = channel, methods, cap
        self._response_timeout_s = response_timeout_s
        self._local = local or {}

    def proxy(self, host: str) -> Conductor:
        return self._local.get(host) or cast(Conductor, _Proxy(self, host))

    @property
    def is_connected(self) -> bool | None:
        return self._channel.is_connected

    def missing(self) -> list[str]:
        return self._channel.missing()

    def close(self) -> None:
        self._channel.close()

    def method(self, host: str, name: str) -> Callable[..., Any]:
        """Return a function that calls the method on ``host``.  Raises AttributeError."""
        if name not in self._methods:
            raise AttributeError(f"{name} is not in the contract")
        return functools.partial(self._call, host, self._methods[name])

    def _call(self, host: str, method: Method, request: Request, *args: Any, **named: Any) -> Any:
        arguments = self._cap.fit(method, method.arguments(args, named))
        call = wire.Call(
            method=method.name, version=method.version_of(arguments), call_id=uuid.uuid4().hex,
            host=host, request=request, arguments=arguments,
        )  # fmt: skip
        timeout_s = self._response_timeout_s + (request.wait_s or 0.0)
        if method.longest_s is not None:
            timeout_s = min(timeout_s, method.longest_s)
        began = time.perf_counter()
        try:
            reply = self._reply(call, timeout_s)
        except errors.Failure as exc:
            METRICS.send_counter(f"conductor_call_faults:{exc.code}", 1)
            raise
        took_ms = (time.perf_counter() - began) * 1000
        METRICS.send_timer(f"conductor_call:{method.name}", took_ms)
        return wire.unpacked(reply)

    def _reply(self, call: wire.Call, timeout_s: float) -> wire.Reply:
        """Wait for the reply in a thread; raise ConductorSilent once the host is silent.

        Each call has a thread of its own.  An abandoned call keeps its thread and its place in
        ``CallLimits`` until ``timeout_s`` is over: at most ``most_per_host`` for one host and
        ``most`` for all.  Calls beyond these end in their queue, within ``QUEUE_S``.
        """
        reply: Future[wire.Reply] = Future()
        run = contextvars.copy_context().run
        waiting = threading.Thread(
            target=run, args=(self._carry, call, timeout_s, reply), name="call", daemon=True
        )
        waiting.start()
        while not futures.wait([reply], self._look_every_s).done:
            if self._is_silent(call.host):
                raise errors.ConductorSilent(
                    host=call.host, method=call.method, reason="it sends no heartbeat"
                )
        return reply.result()

    def _carry(self, call: wire.Call, timeout_s: float, reply: Future[wire.Reply]) -> None:
        try:
            with self.limits.call(call.host):
                answer = self._channel.call(call.host, call.packed(), timeout_s)
                self.limits.came_back(call.host)
        except Exception as exc:  # noqa: BLE001  the caller raises it
            reply.set_exception(exc)
        else:
            reply.set_result(dict(answer))


class _Proxy:
    """The proxy of the conductor on ``host``."""

    __slots__ = ("_host", "_remote")

    def __init__(self, remote: Remote, host: str) -> None:
        self._remote, self._host = remote, host

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._remote.method(self._host, name)
