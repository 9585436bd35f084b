"""Dispatch messages to methods of the endpoint, and build replies.

    dispatcher = Dispatcher(manager, contract.METHODS, host="rack-a", version=contract.VERSION)
    reply = dispatcher.dispatch(message)            # never raises

A repeated call has no second effect.  Transports may deliver a call again, and callers repeat a
call after a lost connection; the repetition waits for the first reply, or gets it from memory.
Questions are executed again.  Memory ends with the process: no caller repeats a call to a restarted
process.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

import cachetools

from bloomery import errors
from bloomery.model.request import in_name_of
from bloomery.rpc import wire
from bloomery.rpc.methods import Method, understands

LOG = logging.getLogger(__name__)

_MOST_REPLIES: Final = 4096
_REMEMBERED_S: Final = 600.0  # longer than callers repeat a call


class Replies:
    """Replies to the latest calls, by call id; repetitions wait for running calls."""

    def __init__(
        self,
        most: int = _MOST_REPLIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mutex = threading.Lock()
        self._replies: cachetools.TTLCache[str, Future[wire.Reply]] = cachetools.TTLCache(
            most, _REMEMBERED_S, timer=clock
        )

    def once(self, call_id: str, run: Callable[[], wire.Reply]) -> wire.Reply:
        """Return the result of ``run``, which must not raise; it runs once for each call id."""
        with self._mutex:
            reply = self._replies.get(call_id)
            is_first = reply is None
            if reply is None:
                reply = self._replies[call_id] = Future()
        if is_first:
            reply.set_result(run())
        return reply.result()


class Dispatcher:
    """Run calls on ``endpoint``; safe to use from any thread.

    ``instance`` differs in each process: a caller that needs this process, and no successor, names
    it.
    """

    def __init__(
        self,
        endpoint: Any,
        methods: Mapping[str, Method],
        *,
        host: str,
        version: str,
        replies: Replies | None = None,
    ) -> None:
        self.host = host
        self.instance = uuid.uuid4().hex
        self._endpoint, self._methods, self._version = endpoint, methods, version
        self._replies = replies or Replies()

    def dispatch(self, message: Mapping[str, Any]) -> wire.Reply:
        """Return the reply to a call; an unexpected error is logged, and returned as a failure."""
        try:
            call = wire.read_call(message)
            method = self._method(call)
            self._check_instance(message, call)
        except errors.Failure as exc:
            return wire.failed(exc)
        with in_name_of(call.request):
            if method.is_question:
                return self._run(call)
            return self._replies.once(call.call_id, lambda: self._run(call))

    def _method(self, call: wire.Call) -> Method:
        if call.host != self.host:
            raise errors.ConductorUnreached(
                host=call.host, reason=f"{self.host} answers at its address"
            )
        method, is_understood = self._methods.get(call.method), False
        with contextlib.suppress(ValueError):
            is_understood = understands(self._version, call.version)
            is_understood &= method is not None and understands(call.version, method.since)
        if method is None or not is_understood:
            raise errors.MethodUnknown(
                method=call.method, version=call.version, host=self.host, known=self._version
            )
        if fault := method.fault_of(call.arguments):
            raise errors.CallMalformed(reason=f"{call.method} {fault}")
        return method

    def _check_instance(self, message: Mapping[str, Any], call: wire.Call) -> None:
        """Raises ConductorSilent where an earlier process may have run the call."""
        if message.get("instance", self.instance) != self.instance:
            raise errors.ConductorSilent(
                host=self.host, method=call.method, reason="it was started anew meanwhile"
            )

    def _run(self, call: wire.Call) -> wire.Reply:
        try:
            method = getattr(self._endpoint, call.method)
            return {"result": method(call.request, **call.arguments)}
        except errors.Failure as exc:
            return wire.failed(exc)
        except Exception:
            LOG.exception("call %s failed unexpectedly", call.method)
            return wire.failed(
                errors.Failure(
                    reason=f"cannot {call.method}: an unexpected fault of conductor {self.host}; "
                    f"its log has it under {call.request.request_id}"
                )
            )
