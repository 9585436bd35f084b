"""Proxies of remote conductors: from a method of the contract to a message, and back."""

from __future__ import annotations

import contextvars
import functools
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from bloomery import errors
from bloomery.metrics import METRICS
from bloomery.model.request import Request
from bloomery.rpc import wire
from bloomery.rpc.call_limits import CallLimits
from bloomery.rpc.contract import Conductor
from bloomery.rpc.methods import Method, understands

LOOK_EVERY_S: Final = 1.0  # check whether the called conductor lives


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
