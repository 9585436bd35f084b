"""Looks at a Redfish BMC in the pulse's thread: its documents, with the login that tasks keep."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import math
import os
import re
import resource
import ssl
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from bloomery import errors, parsing
from bloomery.drivers.bmc.connection import Answer, BrokenOff, Connection, NotUnderstood
from bloomery.drivers.bmc.gateway import BmcCall, Gateway
from bloomery.drivers.looks import NeedsTask, Reading
from bloomery.drivers.redfish import reading, sensors, shapes
from bloomery.drivers.redfish.no_answer import Limit, Limits, NoAnswer
from bloomery.drivers.redfish.wire import KEEP_ALIVE, Wire

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

_UNSAFE: Final = re.compile(r"[^!-~]")
_KEPT_S: Final = 10.0  # a BMC that closes connections sooner gets a new one for each look
_EARLY: Final = 0.8  # share of a BMC's idle time after which a kept connection is used again
_TOUCHED: Final = "/redfish"  # the versions of Redfish: a small document that needs no login
_TOUCH_S: Final = 10.0
_DESCRIPTORS: Final = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
_MOST_KEPT: Final = 32_768 if _DESCRIPTORS == resource.RLIM_INFINITY else _DESCRIPTORS * 3 // 4
_SHORTAGE: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)


class RedfishLook:
    """Reads documents behind one login, with the credential of its ``wire``.

    It opens no session, follows no redirect, and sends nothing but GET.  ``release`` is called once
    at the end.
    """

    __slots__ = (
        "_bmc", "_connection", "_gateway", "_idle_s", "_name", "_path", "_release", "_touching",
        "_turn", "_used_at", "_usual", "_wire",
    )  # fmt: skip

    def __init__(
        self, gateway: Gateway, wire: Wire, path: str, name: str, release: Callable[[], None]
    ) -> None:
        self._gateway, self._wire, self._path, self._name = gateway, wire, path, name
        self._bmc = gateway.bmc(wire.account.address)
        self._release: Callable[[], None] | None = release
        self._connection: Connection | None = None
        self._usual: tuple[str, dict[str, str], bool, bytes] | None = None  # the last request
        self._used_at = 0.0  # by the loop's clock
        self._idle_s = math.inf  # after which the BMC closes a connection
        self._turn = asyncio.Lock()
        self._touching: asyncio.TimerHandle | asyncio.Task[None] | None = None

    def asks(self, wire: Wire, path: str) -> bool:
        """Whether it asks for this path by this login."""
        return self._release is not None and self._wire is wire and self._path == path

    async def read(self, limit_s: float) -> Reading:
        return await self._call(_power(self._path), limit_s)

    async def read_sensors(self, limit_s: float) -> sensors.Sensors:
        return await self._call(_sensors(self._path), limit_s)

    def close(self) -> None:
        self._hang_up()
        release, self._release = self._release, None
        if release is not None:
            release()

    # ------------------------------------------------------------------------------ one call

    async def _call(self, read: reading.Read[T], limit_s: float) -> T:
        """Return what ``read`` makes of the documents, as one call to the BMC."""
        bmc, clock = self._bmc, self._gateway.clock
        if not bmc.slots.enter(write=False, timeout_s=0):
            raise self._left("other calls of this conductor are under way")
        limit_s = min(limit_s, self._gateway.conf.bmc.call_timeout)
        call = BmcCall(bmc, "redfish", clock() + limit_s, clock)
        try:
            async with self._turn:
                path = next(read)
                while True:
                    path = read.send(await self._document(path, call))
        except StopIteration as end:
            bmc.answered()
            result: T = end.value
            return result
        except errors.BmcUnreachable as silent:
            bmc.failed(silent)
            raise
        except shapes.ODD as odd:
            raise NeedsTask from odd
        finally:
            bmc.slots.leave(write=False)

    async def _document(self, path: str, call: BmcCall) -> Json | None:
        """Return a document; None for one that the BMC does not offer."""
        began_at = call.clock()
        answer = await self._exchange(
            self._head(path), Limits(conf=self._wire.conf, all_s=call.left_s())
        )
        call.took(call.clock() - began_at)
        if answer.status in reading.NOT_OFFERED and answer.status != 500:
            return None
        if answer.status != http.client.OK:
            raise NeedsTask
        document = parsing.load_json(answer.content)
        if not isinstance(document, dict):
            raise NeedsTask
        return document

    def _head(self, link: str) -> bytes:
        """Return the request of a document.  Raises NeedsTask for a link to elsewhere."""
        wire = self._wire
        credential, keeps = wire.credential, self._keeps
        if self._usual is not None and self._usual[:3] == (link, credential, keeps):
            return self._usual[3]
        path, is_logged_in = wire.path_of(link), credential or wire.account.username is None
        if path is None or _UNSAFE.search(path) or not is_logged_in:
            raise NeedsTask
        host = wire.account.address.partition("://")[2]
        headers = {"Host": host, "Accept": "*/*", "User-Agent": "bloomery"} | credential
        if not keeps:
            headers["Connection"] = "close"
        lines = (f"GET {path} HTTP/1.1", *map(": ".join, headers.items()), "", "")
        head = "\r\n".join(lines).encode("latin-1")
        if link == self._path:
            self._usual = link, credential, keeps, head
        return head

    async def _exchange(self, head: bytes, limits: Limits) -> Answer:
        """Send a request, again on a new connection if the BMC closed the kept one meanwhile.

        Raises BmcUnreachable, BmcQueueTimeout, NeedsTask.
        """
        kept, self._connection = self._connection, None
        try:
            if kept is not None and kept.is_open:
                with contextlib.suppress(BrokenOff, ConnectionError):
                    return await self._ask(kept, head, limits)
            elif kept is not None and kept.ended_at is not None:
                self._idle_s = min(self._idle_s, kept.ended_at - self._used_at)
            try:
                async with asyncio.timeout(limits.connect.seconds):
                    opened = await Connection.open(*self._wire.place)
            except TimeoutError:
                limit = limits.connect
                raise self._silent(f"no connection within {limit}", limit) from None
            return await self._ask(opened, head, limits)
        except TimeoutError:
            limit = limits.silence
            why = f"it accepted the connection and gave no whole answer within {limit}"
            raise self._silent(why, limit) from None
        except (NoAnswer, NotUnderstood, BrokenOff, ssl.SSLError) as odd:
            raise NeedsTask from odd  # a task explains it
        except OSError as exc:
            if exc.errno in _SHORTAGE:
                raise self._left(f"this host has no more of what it takes: {exc}") from None
            raise self._silent(os.strerror(exc.errno) if exc.errno else str(exc)) from None

    def _left(self, why: str) -> errors.BmcQueueTimeout:
        return errors.BmcQueueTimeout(
            node=self._name, address=self._bmc.address, retry_after_s=1.0, cause=why, reason=why
        )

    def _silent(self, why: str, limit: Limit | None = None) -> errors.BmcUnreachable:
        return errors.BmcUnreachable(
            node=self._name, address=self._bmc.address, reason=why,
            was_cut_short=limit is not None and limit.is_cut_short,
        )  # fmt: skip

    # ------------------------------------------------------------------------- its connection

    @property
    def _keeps(self) -> bool:
        """Whether a connection outlasts its request."""
        keep_s = min(self._idle_s, self._wire.conf.connection_idle_time)
        return keep_s >= _KEPT_S and Connection.count < _MOST_KEPT

    async def _ask(self, connection: Connection, head: bytes, limits: Limits) -> Answer:
        """Send a request; keep its connection as long as the BMC does."""
        if isinstance(self._touching, asyncio.TimerHandle):
            self._touching.cancel()
        loop = asyncio.get_running_loop()
        until = loop.time() + limits.all_s
        answer = await connection.request(head, limits.silence.seconds, until)
        if self._release is None:  # closed meanwhile
            connection.close()
            return answer
        self._connection = connection
        self._used_at = loop.time()
        limit = KEEP_ALIVE.search(answer.headers.get(b"keep-alive", b"").decode("latin-1"))
        if limit is not None:
            self._idle_s = min(self._idle_s, float(limit[1]))
        if connection.is_open and connection.is_tls and self._idle_s < math.inf:
            self._touching = loop.call_later(self._idle_s * _EARLY, self._begin_touch)
        elif connection.is_open:
            self._touching = loop.call_later(self._wire.conf.connection_idle_time, connection.close)
        return answer

    def _begin_touch(self) -> None:
        self._touching = asyncio.get_running_loop().create_task(self._touch())

    async def _touch(self) -> None:
        """Use the connection before the BMC closes it: a handshake costs as much as 20 looks."""
        with contextlib.suppress(errors.Failure, NeedsTask):
            await self._call(_ignored(_TOUCHED), _TOUCH_S)

    def _hang_up(self) -> None:
        if self._touching is not None:
            self._touching.cancel()
        if self._connection is not None:
            self._connection.close()
        self._touching = self._connection = None


def _power(path: str) -> reading.Read[Reading]:
    document = yield path
    if document is None or "Id" not in document:
        raise NeedsTask
    return Reading(reading.power_state(document), reading.health(document))


def _sensors(path: str) -> reading.Read[sensors.Sensors]:
    document = yield path
    if document is None or "Id" not in document:
        raise NeedsTask
    return (yield from sensors.read(document))


def _ignored(path: str) -> reading.Read[None]:
    yield path
