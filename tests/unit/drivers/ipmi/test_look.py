"""Looks at BMCs that speak RMCP+ on loopback; the loop's time passes when nothing else happens."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import tracemalloc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor.states import Power
from bloomery.conf import Conf
from bloomery.conf.drivers import Ipmi
from bloomery.drivers.bmc.gateway import Gateway
from bloomery.drivers.ipmi import look, rmcp
from bloomery.drivers.ipmi.bmc import RateLimit
from bloomery.drivers.ipmi.hardware import IpmitoolInterface
from bloomery.drivers.looks import NeedsTask, Reading
from tests.kit.machines.driver_task import FakeTask
from tests.kit.machines.rmcp_bmc import RmcpBmc
from tests.unit.drivers.ipmi.conftest import LEAST

LOGIN = ["open", "rakp1", "rakp3", "level"]
LIMIT_S = 10.0
OFF, ON = Reading(Power.OFF, None), Reading(Power.ON, None)


class PatientLoop(asyncio.SelectorEventLoop):
    """Waits in no time: what the sockets have comes first, then the clock jumps to a timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        select = self._selector.select

        def jump(timeout: float | None) -> Any:
            events = select(0)
            if not events:
                assert timeout is not None, "nothing will ever happen"
                self.now += timeout
            return events

        self._selector.select = jump

    def time(self) -> float:
        return self.now

    async def getaddrinfo(self, host: str, port: int, **_: Any) -> Any:
        raise OSError(0, "no such name")


class Scene:
    """BMCs, the looks at them, and the seconds that have passed."""

    def __init__(self, **ipmi: Any) -> None:
        self.loop = asyncio.get_running_loop()
        conf = dataclasses.replace(Conf(), ipmi=Ipmi(**{"min_command_interval": 0} | ipmi))
        self.interface = IpmitoolInterface(conf)  # keeps the gateway
        self.gateway: Gateway = self.interface.gateway
        self.endpoint = look.Endpoint()
        self.rate_limit = RateLimit(self.loop.time)
        self.began_at = self.loop.time()
        self._bmcs: list[RmcpBmc] = []
        self._looks: list[look.IpmiLook] = []

    async def bmc(self, **of_it: Any) -> RmcpBmc:
        bmc = RmcpBmc(**of_it)
        await bmc.start()
        self._bmcs.append(bmc)
        return bmc

    def look(self, bmc: RmcpBmc, **keys: Any) -> look.IpmiLook | None:
        task = FakeTask(bmc.driver_info | keys)
        own = look.look(self.gateway, self.endpoint, task, None, self.rate_limit)
        self._looks += [] if own is None else [own]
        return own

    def end(self) -> None:
        for each in self._looks:
            each.close()
        for bmc in self._bmcs:
            bmc.transport.close()

    async def let_sessions_end(self) -> None:
        """Let so much time pass that each look has to log in again; it does not count."""
        await asyncio.sleep(600)
        self.began_at = self.loop.time()

    @property
    def passed_s(self) -> float:
        return round(self.loop.time() - self.began_at, 3)


def run(story: Callable[[Scene], Coroutine[Any, Any, None]], **ipmi: Any) -> None:
    async def in_loop() -> None:
        scene = Scene(**ipmi)
        try:
            await story(scene)
        finally:
            scene.end()

    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        runner.run(in_loop())


@pytest.mark.parametrize("kg", [b"", b"two-way"])
@pytest.mark.parametrize("suites", [(1,), (3,)], ids=["sha1", "sha256"])
@pytest.mark.parametrize("username", ["admin", ""])
def test_one_login_serves_all_looks(kg, suites, username):
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc(kg=kg, suites=suites, username=username, is_on=True)
        own = scene.look(bmc)
        assert await own.read(LIMIT_S) == ON
        assert bmc.received[-5:] == [*LOGIN, "status"]
        bmc.received.clear()
        bmc.is_on = False
        assert [await own.read(LIMIT_S) for _ in range(3)] == [OFF] * 3
        assert bmc.received == ["status"] * 3
        assert scene.passed_s == 0
        state = scene.gateway.bmc(f"127.0.0.1:{bmc.port}")
        assert (state.latency.summary().count, state.state, state.sessions) == (
            4, "answering", 1,
        )  # fmt: skip

    run(story)


@pytest.mark.parametrize(("level", "kinds"), [("USER", 0), ("OPERATOR", 1), ("ADMINISTRATOR", 1)])
def test_a_session_has_the_level_of_its_node(level, kinds):
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        await scene.look(bmc, ipmi_priv_level=level).read(LIMIT_S)
        assert bmc.received.count("level") == kinds
        assert [each.role[0] for each in bmc.sessions.values()] == [0x10 | rmcp.LEVELS[level]]

    run(story)


def once(kind: str, reply: Callable[[bytes], list[Any]]) -> Callable[[str, bytes], list[Any]]:
    """Answer the first message of ``kind`` so, and all others as usual."""
    left = [kind]

    def answer(each: str, packet: bytes) -> list[Any]:
        if each in left:
            left.remove(each)
            return reply(packet)
        return [packet]

    return answer


@pytest.mark.parametrize("kind", [*LOGIN, "status"])
@pytest.mark.parametrize("early", [0, 1], ids=["first look", "later look"])
@pytest.mark.parametrize(
    "reply",
    [
        lambda packet: [],
        lambda packet: [packet[:-1]],
        lambda packet: [packet[:5] + b"\x06" + packet[6:]],
        lambda packet: [packet[:-1] + bytes([packet[-1] ^ 1]) if packet[5] == 0xC0 else b"\x06"],
        lambda packet: [(1.5, packet)],
    ],
    ids=["lost", "short", "odd type", "forged", "late"],
)
def test_a_message_without_an_answer_is_sent_again(kind, early, reply):
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc(is_on=True)
        own = scene.look(bmc)
        for _ in range(early):
            await own.read(LIMIT_S)
            await scene.let_sessions_end()
        bmc.reply = once(kind, reply)
        bmc.received.clear()
        assert await own.read(LIMIT_S) == ON
        assert scene.passed_s == 1
        assert bmc.received.count("status") == (2 if kind == "status" else 1)
        await asyncio.sleep(2)  # what is late has come
        assert await own.read(LIMIT_S) == ON

    run(story)


@pytest.mark.parametrize("kind", [*LOGIN, "status"])
def test_packets_that_are_no_answers_pass_by(kind):
    def around(packet: bytes) -> list[bytes]:
        odd = [b"", os.urandom(8), os.urandom(64), bytes(1000), packet[:20], os.urandom(1400)]
        cut = [packet[:size] for size in range(0, len(packet), 7)]
        return [*odd, *cut, packet[:6] + os.urandom(4) + packet[10:], packet, packet, *odd]

    async def story(scene: Scene) -> None:
        bmc = await scene.bmc(is_on=True)
        bmc.reply = once(kind, around)
        own = scene.look(bmc)
        assert [await own.read(LIMIT_S) for _ in range(3)] == [ON] * 3
        assert scene.passed_s == 0

    run(story)


def test_an_old_answer_is_no_news():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        own, earlier = scene.look(bmc), []

        def answer(kind: str, packet: bytes) -> list[bytes]:
            if kind != "status":
                return [packet]
            earlier.append(packet)
            return earlier

        bmc.reply = answer
        for bmc.is_on in (False, True) * 70:  # the numbers of requests come again after 64
            assert await own.read(LIMIT_S) == (ON if bmc.is_on else OFF)
        assert scene.passed_s == 0

    run(story)


def test_an_answer_to_another_request_is_none():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        own = scene.look(bmc)
        await own.read(LIMIT_S)
        (session,) = bmc.sessions.values()
        other = bytes.fromhex("81047b20fc01006100") + b"\0"
        other = bmc.seal(session, other + bytes([-sum(other[3:]) % 256]))
        bmc.reply = once("status", lambda _: [other])
        assert await own.read(LIMIT_S) == OFF
        assert scene.passed_s == 1

    run(story)


def test_another_address_is_not_heard():
    async def story(scene: Scene) -> None:
        bmc, stranger = await scene.bmc(), await scene.bmc()
        own = scene.look(bmc)
        await own.read(LIMIT_S)
        (opened,) = scene.endpoint._sockets.values()
        ours = ("127.0.0.1", opened[0].getsockname()[1])
        bmc.reply = lambda _, packet: stranger.transport.sendto(packet, ours) or []
        with pytest.raises(errors.BmcUnreachable):
            await own.read(LIMIT_S)

    run(story)


STATUSES = [0x01, 0x02, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x0E, 0x0F, 0x12, 0x77]


@pytest.mark.parametrize(
    ("refusal", "keys"),
    [
        *[({kind: status}, {}) for kind in ("open", "rakp1", "rakp3") for status in STATUSES],
        *[({"level": code}, {}) for code in (0x80, 0x81, 0xC0, 0xD4)],
        *[({"status": code}, {}) for code in (0xC0, 0xC1, 0xC3, 0xD2, 0xD4)],
        ({}, {"ipmi_password": "another"}),
        ({}, {"ipmi_username": "nobody"}),
        ({}, {"ipmi_hex_kg_key": "abcd"}),
        ({"open": 0x11}, {}),
    ],
)
def test_a_refusal_is_for_a_task(refusal, keys):
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc(refusal=refusal)
        own = scene.look(bmc, **keys)
        with pytest.raises(NeedsTask) as caught:
            await own.read(LIMIT_S)
        assert "another" not in f"{caught.value!r}{caught.value.__cause__!r}"
        assert bmc.received.count("open") == (2 if refusal == {"open": 0x11} else 1)
        assert scene.passed_s == 0
        own.close()
        assert not scene.endpoint._sockets

    run(story)


@pytest.mark.parametrize(
    ("suites", "options", "keys", "opens"),
    [
        ((1, 3), {}, {}, [3]),
        ((1,), {}, {}, [3, 1]),
        ((3,), {}, {}, [3]),
        ((1, 3), {}, {"ipmi_cipher_suite": 3}, [1]),
        ((1, 3), {"cipher_suite_versions": ("17", "3")}, {}, [1]),
        ((3,), {"cipher_suite_versions": ("17", "3")}, {}, [1, 3]),
        ((3,), {"cipher_suite_versions": ("17", "3")}, {"ipmi_cipher_suite": 17}, [3]),
    ],
)
@pytest.mark.parametrize("says_no", [True, False])
def test_the_first_suite_that_the_bmc_takes_stays(suites, options, keys, opens, says_no):
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc(suites=suites)
        opened: list[int] = []

        def answer(kind: str, packet: bytes) -> list[bytes]:
            if kind != "open" or not packet[17]:
                opened.extend([packet[32]] if kind == "open" else [])
                return [packet]
            opened.append(4 - suites[0])
            return [packet] if says_no else []

        bmc.reply = answer
        own = scene.look(bmc, **keys)
        await own.read(LIMIT_S)
        assert opened == opens
        assert scene.passed_s == (0 if says_no else len(opens) - 1)
        await scene.let_sessions_end()
        await own.read(LIMIT_S)
        assert opened == [*opens, opens[-1]]
        assert scene.passed_s == 0

    run(story, **options)


def test_a_session_that_the_bmc_ended_is_opened_again():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc(is_on=True)
        own = scene.look(bmc)
        await own.read(LIMIT_S)
        bmc.forget()
        bmc.received.clear()
        assert await own.read(LIMIT_S) == ON
        assert scene.passed_s == 3  # the open session was tried for one second, then for two
        assert bmc.received == [*LOGIN, "status"]
        assert len(scene.endpoint._looks) == 1

    run(story)


@pytest.mark.parametrize(
    ("pause_s", "received"),
    [
        (30, ["status"]),
        (60, ["status", "status"]),  # one between the looks, which keeps the session
        (101, ["status", "status"]),
        (103, ["status", "close", *LOGIN, "status"]),
    ],
)
def test_looks_of_a_minute_keep_their_session(pause_s, received):
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        own = scene.look(bmc)
        await own.read(LIMIT_S)
        bmc.received.clear()
        for _ in range(2):
            await asyncio.sleep(pause_s)
            await own.read(LIMIT_S)
        assert bmc.received == received * 2
        assert scene.passed_s == 2 * pause_s

    run(story)


def test_a_look_that_is_not_used_leaves_its_session():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        await scene.look(bmc).read(LIMIT_S)
        await asyncio.sleep(600)
        assert bmc.received[len(LOGIN) :] == ["status", "status"]

    run(story)


def test_bmcs_share_a_socket_and_do_not_wait_for_each_other():
    async def story(scene: Scene) -> None:
        bmcs = [await scene.bmc(is_on=bool(number % 2)) for number in range(20)]
        looks = [scene.look(bmc) for bmc in bmcs]
        await asyncio.gather(*(each.read(LIMIT_S) for each in looks))
        bmcs[0].reply = lambda kind, packet: []
        silent = asyncio.ensure_future(looks[0].read(LIMIT_S))
        others = await asyncio.gather(*(each.read(LIMIT_S) for each in looks[1:]))
        assert [each.power_state for each in others] == [Power.ON, Power.OFF] * 9 + [Power.ON]
        assert (scene.passed_s, len(scene.endpoint._sockets)) == (0, 1)
        with pytest.raises(errors.BmcUnreachable):
            await silent
        assert scene.passed_s == LIMIT_S

    run(story)


def test_silence_is_told_with_the_place_of_the_bmc():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        own = scene.look(bmc)
        await own.read(LIMIT_S)
        bmc.reply = lambda kind, packet: [(LIMIT_S * 2, packet)]
        with pytest.raises(errors.BmcUnreachable, match="no answer within 10 s") as caught:
            await own.read(LIMIT_S)
        state = scene.gateway.bmc(f"127.0.0.1:{bmc.port}")
        assert caught.value.facts["address"] == state.address
        assert bmc.password not in str(caught.value) + repr(caught.value)
        assert state.is_suspect
        assert not state.breaker.is_open
        bmc.reply, bmc.is_on = (lambda kind, packet: [packet]), True
        await asyncio.sleep(LIMIT_S * 2)  # the answers of before come now, and mean nothing
        assert await own.read(LIMIT_S) == ON
        assert not state.is_suspect

    run(story)


@pytest.mark.parametrize("keys", [{}, {"ipmi_address": "no.such.name"}])
def test_a_bmc_that_never_answered_a_look_is_left_to_ipmitool(keys):
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc(reply=lambda kind, packet: [])
        own = scene.look(bmc, **keys)
        with pytest.raises(NeedsTask):
            await own.read(LIMIT_S)
        assert scene.look(bmc, **keys) is None
        assert scene.look(await scene.bmc()) is not None
        assert not scene.gateway.bmc(f"127.0.0.1:{bmc.port}").is_suspect

    run(story)


def test_an_address_without_a_route_is_silent_at_once(monkeypatch):
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        own = scene.look(bmc)
        await own.read(LIMIT_S)

        def no_route(*_: Any) -> None:
            raise OSError(101, "Network is unreachable")

        monkeypatch.setattr(scene.endpoint, "send", no_route)
        with pytest.raises(errors.BmcUnreachable, match="Network is unreachable"):
            await own.read(LIMIT_S)
        assert scene.passed_s == 0

    run(story)


def test_a_login_that_a_task_was_refused_is_not_tried():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        own = scene.look(bmc)
        state = scene.gateway.bmc(f"127.0.0.1:{bmc.port}")
        state.login(own._account).failed(errors.BmcLoginRefused(node="", address="", reason=""))
        with pytest.raises(NeedsTask):
            await own.read(LIMIT_S)
        assert bmc.received == []

    run(story)


def test_a_bmc_in_use_is_asked_later():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        own = scene.look(bmc)
        slots = scene.gateway.bmc(f"127.0.0.1:{bmc.port}").slots
        while slots.enter(write=False, timeout_s=0):
            """Until all are taken."""
        with pytest.raises(errors.BmcQueueTimeout):
            await own.read(LIMIT_S)
        slots.leave(write=False)
        await own.read(LIMIT_S)
        assert slots.enter(write=False, timeout_s=0)  # the look has left
        assert scene.passed_s == 0

    run(story)


def test_a_look_keeps_the_pace_of_the_bmc():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc()
        own, key = scene.look(bmc), f"127.0.0.1:{bmc.port}"
        await own.read(LIMIT_S)
        await own.read(LIMIT_S)
        assert scene.passed_s == 0.5
        scene.rate_limit.claim(key, 100.0, 100.0)
        with pytest.raises(errors.BmcQueueTimeout):
            await own.read(LIMIT_S)
        assert scene.gateway.bmc(key).slots.enter(write=True, timeout_s=0)

    run(story, min_command_interval=5)


def test_the_end_of_a_look_ends_its_session():
    async def story(scene: Scene) -> None:
        bmcs = [await scene.bmc() for _ in range(2)]
        first, second = map(scene.look, bmcs)
        for each in (first, second):
            await each.read(LIMIT_S)
        first.close()
        assert await second.read(LIMIT_S) == OFF
        second.close()
        await asyncio.sleep(0.1)
        assert [bmc.received[-1] for bmc in bmcs] == ["close", "close"]
        assert [len(bmc.sessions) for bmc in bmcs] == [0, 0]
        assert [bmc.sessions for bmc in scene.gateway.bmcs()] == [0, 0]
        assert not scene.endpoint._sockets
        await asyncio.sleep(100)
        assert bmcs[0].received[-1] == "close"

    run(story)


def test_a_closed_look_opens_no_session():
    async def story(scene: Scene) -> None:
        bmc = await scene.bmc(reply=lambda kind, packet: [])
        for read in (0, 1):
            own = scene.look(bmc)
            reads = [asyncio.ensure_future(own.read(LIMIT_S)) for _ in range(read)]
            await asyncio.sleep(0.5)
            own.close()
            for each in [*reads, own.read(LIMIT_S)]:
                with pytest.raises(NeedsTask):
                    await each
        assert bmc.received == ["open"]
        assert not scene.endpoint._sockets
        assert scene.passed_s == 1

    run(story)


def test_a_look_is_closed_after_its_loop_has_stopped():
    async def story() -> Scene:
        scene = Scene()
        await scene.look(await scene.bmc()).read(LIMIT_S)
        return scene

    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        scene = runner.run(story())
        scene.end()
        assert not scene.endpoint._sockets
        runner.run(asyncio.sleep(1))


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ({"ipmi_protocol_version": "1.5"}, {}),
        ({"ipmi_bridging": "single", "ipmi_target_channel": 0, "ipmi_target_address": 2}, {}),
        ({"ipmi_local_address": "0x20"}, {}),
        ({"ipmi_cipher_suite": 0}, {}),
        ({"ipmi_cipher_suite": 8}, {}),
        ({}, {"cipher_suite_versions": ("3", "8")}),
    ],
)
def test_other_ways_to_a_bmc_are_for_ipmitool(keys, options):
    async def story(scene: Scene) -> None:
        task = FakeTask(LEAST | {"ipmi_cipher_suite": None} | keys)
        assert look.look(scene.gateway, scene.endpoint, task) is None

    run(story, **options)


def test_sensors_are_for_ipmitool():
    async def story(scene: Scene) -> None:
        with pytest.raises(NeedsTask):
            await scene.look(await scene.bmc()).read_sensors(LIMIT_S)

    run(story)


def test_ipv6():
    async def story(scene: Scene) -> None:
        try:
            bmc = await scene.bmc(host="::1", is_on=True)
        except OSError:
            pytest.skip("this host has no IPv6")
        v4 = await scene.bmc()
        looks = [scene.look(bmc), scene.look(v4)]
        assert await asyncio.gather(*(each.read(LIMIT_S) for each in looks)) == [ON, OFF]
        assert len(scene.endpoint._sockets) == 2

    run(story)


def test_a_bmc_costs_at_most_two_kib():
    count = 100

    async def story(scene: Scene) -> None:
        bmcs = [await scene.bmc() for _ in range(count + 1)]
        for bmc in bmcs:
            scene.gateway.bmc(f"127.0.0.1:{bmc.port}")  # a record of all calls, not of looks
        await scene.look(bmcs[0]).read(LIMIT_S)
        tracemalloc.start()
        looks = [scene.look(bmc) for bmc in bmcs[1:]]
        for each in looks:
            await each.read(LIMIT_S)
        gc.collect()
        files = ("*/drivers/ipmi/*.py", "*/asyncio/*.py")
        own = [tracemalloc.Filter(True, each) for each in files]
        snapshot = tracemalloc.take_snapshot().filter_traces(own)
        tracemalloc.stop()
        octets = sum(each.size for each in snapshot.statistics("filename")) / count
        assert 512 < octets < 2048

    run(story)
