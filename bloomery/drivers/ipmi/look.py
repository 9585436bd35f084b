"""Looks at IPMI BMCs in the pulse's thread: power alone, in a session that the looks keep open.

All BMCs share one UDP socket.  A refusal is left to a task, in which ipmitool asks again and
explains the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from bloomery import errors
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base
from bloomery.drivers.bmc.gateway import BmcCall, Gateway, account_key
from bloomery.drivers.ipmi import info, rmcp
from bloomery.drivers.ipmi.bmc import FAIR, RATE_LIMIT, IpmiBmc, RateLimit, cipher_suites
from bloomery.drivers.looks import Look, NeedsTask, Reading

T = TypeVar("T")

_MOST_BYTES: Final = 1024  # of a packet
_MOST_PACKETS: Final = 64  # before others in the loop have their turn
_FIRST_PAUSE_S: Final = 1.0  # before a message is repeated; doubles up to min_command_interval
_TRIES: Final = 2  # of a message in an open session, before the session counts as ended
_TOUCH_S: Final = 45.0  # a BMC ends a session after 60 s without a packet, 3 more or less
_ENDED_S: Final = 57.0
_MUTE_S: Final = 3600.0
_USUAL_SUITES: Final = (17, 3)  # the best first, as ipmitool chooses
_GET_CHASSIS_STATUS, _SET_LEVEL, _CLOSE_SESSION = (0x00, 0x01), (0x06, 0x3B), (0x06, 0x3C)


class Endpoint:
    """The UDP socket of all looks, one for each address family; open while there are sessions.

    All methods run in the pulse's thread, except ``is_mute``.
    """

    def __init__(self) -> None:
        self._sockets: dict[int, tuple[socket.socket, asyncio.AbstractEventLoop]] = {}
        self._looks: dict[int, IpmiLook] = {}  # by the console's ID of their session
        self._mute_until: dict[str, float] = {}  # by address

    def mute(self, key: str) -> None:
        """Leave a BMC to ipmitool for an hour."""
        self._mute_until[key] = time.monotonic() + _MUTE_S

    def is_mute(self, key: str) -> bool:
        return time.monotonic() < self._mute_until.get(key, 0.0)

    def add(self, look: IpmiLook) -> int:
        """Return a new session ID, whose packets the look receives."""
        ident = 0  # no session
        while not ident or ident in self._looks:
            ident = secrets.randbits(32)
        self._looks[ident] = look
        return ident

    def remove(self, ident: int) -> None:
        self._looks.pop(ident, None)
        if not self._looks:
            for opened, loop in self._sockets.values():
                loop.remove_reader(opened)
                opened.close()
            self._sockets.clear()

    def send(self, packet: bytes, family: int, address: Any) -> None:
        """Send a packet.  Raises OSError, as for an address without a route."""
        if family not in self._sockets:
            loop, opened = asyncio.get_running_loop(), socket.socket(family, socket.SOCK_DGRAM)
            opened.setblocking(False)
            loop.add_reader(opened, self._receive, opened)
            self._sockets[family] = opened, loop
        with contextlib.suppress(BlockingIOError):  # as good as lost: it is sent again
            self._sockets[family][0].sendto(packet, address)

    def _receive(self, opened: socket.socket) -> None:
        with contextlib.suppress(OSError):  # no packet is left
            for _ in range(_MOST_PACKETS):
                packet, address = opened.recvfrom(_MOST_BYTES)
                look = self._looks.get(rmcp.console_id(packet) or 0)
                if look is not None:
                    look.receive(packet, address)


class IpmiLook:
    """Reads the power of one BMC.  A login is tried while no task was refused it."""

    __slots__ = (
        "_account", "_address", "_conf", "_driver", "_endpoint", "_family",
        "_gateway", "_ident", "_info", "_is_closed", "_name", "_number",
        "_rate_limit", "_session", "_state", "_suite", "_suites", "_take", "_touching",
        "_used_at", "_waiter",
    )  # fmt: skip

    def __init__(
        self,
        gateway: Gateway,
        endpoint: Endpoint,
        task: base.DriverTask,
        own: info.Info,
        suites: list[int],
        rate_limit: RateLimit,
    ) -> None:
        self._gateway, self._endpoint, self._rate_limit = gateway, endpoint, rate_limit
        self._name, self._driver = errors.name_of(task.node), task.node.driver
        self._info, self._suites, self._conf = own, suites, gateway.conf.ipmi
        self._state = gateway.bmc(own.key)
        self._account = account_key(*own.account)
        self._suite: int | None = None  # of the last login
        self._session: rmcp.Session | None = None
        self._ident = self._number = self._family = 0
        self._address: Any = None
        self._used_at = 0.0  # by the loop's clock
        self._is_closed = False
        self._touching: asyncio.TimerHandle | None = None
        self._take: Callable[[bytes], Any] | None = None
        self._waiter: asyncio.Future[Any] | None = None

    def asks(self, own: info.Info, suites: list[int]) -> bool:
        """Whether it asks this BMC with this login."""
        return not self._is_closed and (self._info, self._suites) == (own, suites)

    async def read(self, limit_s: float) -> Reading:
        """Ask for the power state.  Raises BmcUnreachable, BmcQueueTimeout, NeedsTask.

        Silence before the first login is for a task, too: the BMC may know older protocols alone.
        """
        state, rate_limit, key = self._state, self._rate_limit, self._info.key
        gap_s = rate_limit.gap_s(key, float(self._conf.min_command_interval))
        if not state.slots.enter(write=False, timeout_s=0):
            raise self._queue_timeout()
        try:
            rest_s = rate_limit.claim(key, gap_s, limit_s)
            if rest_s is None:
                raise self._queue_timeout()
            async with asyncio.timeout(limit_s):
                await asyncio.sleep(rest_s)
                began_at = self._gateway.clock()
                status = await self._chassis_status()
            BmcCall(state, self._driver, 0.0, self._gateway.clock).took(
                self._gateway.clock() - began_at
            )
        except OSError as silent:  # TimeoutError is one
            if self._suite is None:
                self._endpoint.mute(key)
                raise NeedsTask from None
            rate_limit.slow_down(key, is_busy=False)
            unreachable = errors.BmcUnreachable(
                node=self._name,
                address=key,
                reason=silent.strerror or f"no answer within {limit_s:.0f} s",
                was_cut_short=limit_s < self._conf.command_retry_timeout * FAIR,
            )
            state.failed(unreachable)
            raise unreachable from None
        finally:
            rate_limit.ended(key, gap_s)
            state.slots.leave(write=False)
        state.answered()
        rate_limit.answered(key)
        return Reading(PowerState.ON if status[0] & 1 else PowerState.OFF, None)

    async def read_sensors(self, limit_s: float) -> dict[str, Any]:
        """Raise NeedsTask: ipmitool reads the records of sensors."""
        raise NeedsTask

    def close(self) -> None:
        """End the session as far as the BMC answers, and a running read with NeedsTask."""
        self._is_closed = True
        self._end_session()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(NeedsTask())

    def receive(self, packet: bytes, address: Any) -> None:
        """Take the BMC's answer; drop a packet that is none."""
        waiter, take = self._waiter, self._take
        if waiter is None or take is None or waiter.done() or address != self._address:
            return
        try:
            answer = take(packet)
        except rmcp.LoginFailed as no:
            waiter.set_exception(no)
        else:
            if answer is not None:
                waiter.set_result(answer)

    def _queue_timeout(self) -> errors.BmcQueueTimeout:
        reason = "other calls of this conductor keep it busy"
        return errors.BmcQueueTimeout(
            node=self._name, address=self._info.key, retry_after_s=1.0, cause=reason, reason=reason
        )

    async def _chassis_status(self) -> bytes:
        """Return the data of Get Chassis Status, by a new session if the BMC has ended the last.

        A BMC answers no packet of a session that it has ended.  Tries until it is cancelled.
        """
        pause_s = _FIRST_PAUSE_S
        is_open = asyncio.get_running_loop().time() - self._used_at < _ENDED_S
        for _ in range(_TRIES if self._session is not None and is_open else 0):
            with contextlib.suppress(TimeoutError):
                return await self._command(_GET_CHASSIS_STATUS, b"", pause_s)
            pause_s *= 2
        suites = deque(sorted(self._suites, key=lambda suite: suite != self._suite))
        while True:
            self._end_session()
            try:
                await self._log_in(suites[0], pause_s)
                return await self._command(_GET_CHASSIS_STATUS, b"", pause_s)
            except TimeoutError:
                pause_s = min(pause_s * 2, max(1.0, self._conf.min_command_interval))
                if self._suite is None:
                    suites.rotate(-1)
            except rmcp.LoginFailed as no:
                if not no.is_about_suite or len(suites) == 1:
                    raise NeedsTask from no
                suites.popleft()

    async def _log_in(self, suite: int, pause_s: float) -> None:
        """Open a session.  Raises TimeoutError, LoginFailed, NeedsTask."""
        if self._is_closed or self._state.login(self._account).is_open:
            raise NeedsTask
        place = self._info.address, self._info.port or info.USUAL_PORT
        kind, numeric = socket.SOCK_DGRAM, socket.AI_NUMERICHOST
        try:
            found = socket.getaddrinfo(*place, type=kind, flags=numeric)
        except socket.gaierror:
            found = await asyncio.get_running_loop().getaddrinfo(*place, type=kind)
        self._family, self._address = found[0][0], found[0][4]
        self._ident = self._endpoint.add(self)
        login = rmcp.Login(rmcp.SUITES[suite], self._info, self._ident)
        rakp1 = await self._exchange(login.open_session(), login.rakp1, pause_s)
        rakp3 = await self._exchange(rakp1, login.rakp3, pause_s)
        self._session = await self._exchange(rakp3, login.finish, pause_s)
        self._state.count_sessions(1)
        level = rmcp.LEVELS[self._info.priv_level]
        if level > rmcp.LEVELS["USER"]:  # that of a new session
            await self._command(_SET_LEVEL, bytes([level]), pause_s)
        self._suite = suite

    async def _command(self, command: tuple[int, int], data: bytes, pause_s: float) -> bytes:
        """Return the data of the answer.  Raises TimeoutError, NeedsTask for a refusal."""
        session = self._session
        assert session is not None
        number = self._number = (self._number + 1) % 64

        def take(packet: bytes) -> bytes | None:
            return rmcp.answer(session.unseal(packet) or b"", *command, number=number)

        packet = session.seal(rmcp.request(*command, data, number=number))
        answer = await self._exchange(packet, take, pause_s)
        loop = asyncio.get_running_loop()
        self._used_at = loop.time()
        if self._touching is not None:
            self._touching.cancel()
        self._touching = loop.call_later(_TOUCH_S, self._touch)
        if answer[0]:
            raise NeedsTask
        return answer[1:]

    def _touch(self) -> None:
        """Keep the session for a pulse of a minute; the answer is dropped."""
        if self._session is not None:
            with contextlib.suppress(OSError):
                packet = self._session.seal(rmcp.request(*_GET_CHASSIS_STATUS, number=0))
                self._endpoint.send(packet, self._family, self._address)
            self._used_at = asyncio.get_running_loop().time()

    async def _exchange(
        self, packet: bytes, take: Callable[[bytes], T | None], pause_s: float
    ) -> T:
        """Send a packet; return the first answer that ``take`` does.  Raises TimeoutError."""
        self._take, self._waiter = take, asyncio.get_running_loop().create_future()
        try:
            self._endpoint.send(packet, self._family, self._address)
            async with asyncio.timeout(pause_s):
                answer: T = await self._waiter
                return answer
        finally:
            self._take = self._waiter = None

    def _end_session(self) -> None:
        """End the session without waiting for the BMC's answer."""
        session, self._session = self._session, None
        if self._touching is not None:
            self._touching.cancel()
            self._touching = None
        if session is not None:
            self._state.count_sessions(-1)
            with contextlib.suppress(OSError):
                packet = session.seal(rmcp.request(*_CLOSE_SESSION, session.bmc_id, number=0))
                self._endpoint.send(packet, self._family, self._address)
        self._endpoint.remove(self._ident)
        self._ident = 0


def look(
    gateway: Gateway,
    endpoint: Endpoint,
    task: base.DriverTask,
    former: Look | None = None,
    rate_limit: RateLimit = RATE_LIMIT,
) -> Look | None:
    """Return a look, the former one if it is as good, or None where ipmitool alone can ask.

    The last is for IPMI 1.5, bridged targets, other cipher suites, and BMCs that answer no look.
    """
    own = IpmiBmc(gateway.conf, task, rate_limit).login
    suites = [
        suite
        for each in cipher_suites(own, gateway.conf.ipmi, rate_limit.suite(own.key))
        for suite in (_USUAL_SUITES if each is None else (each,))
    ]
    is_bridged = own.target_channel is not None or own.local_address is not None
    if own.interface != "lanplus" or is_bridged or endpoint.is_mute(own.key):
        return None
    if not rmcp.SUITES.keys() >= set(suites):
        return None
    if isinstance(former, IpmiLook) and former.asks(own, suites):
        return former
    return IpmiLook(gateway, endpoint, task, own, suites, rate_limit)
