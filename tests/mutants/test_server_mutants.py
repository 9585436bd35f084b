"""Each bound of the HTTP server is taken away in turn, and the probe that should notice goes red.

The suites use the probes, too (tests/kit/clients/slow_clients.py); there they are seen to pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import pytest

from bloomery.api.server import Server
from bloomery.http_server import messages, server
from bloomery.http_server.connections import Connections
from tests.kit.clients import slow_clients
from tests.kit.clients.slow_clients import LONG, POST

Patch = pytest.MonkeyPatch
MOST = 16


def threads_wait_for_bodies(patch: Patch, over: threading.Event) -> None:
    def read(_self: object, _size: int) -> bytes:
        over.wait()
        raise ValueError("the body never came")

    patch.setattr(messages._Incomplete, "read", read)


def threads_wait_for_readers(patch: Patch, over: threading.Event) -> None:
    def answer(self: Connections, connection: object, data: bytes, **more: object) -> None:
        if len(data) > slow_clients.MUCH:  # more than the kernel keeps
            over.wait()
        send(self, connection, data, **more)

    send = Connections.answer
    patch.setattr(Connections, "answer", answer)


def bodies_come_before_logins(patch: Patch, _over: threading.Event) -> None:
    patch.setattr(messages, "UNASKED", 2**30)


def nobody_makes_room(patch: Patch, _over: threading.Event) -> None:
    patch.setattr(Connections, "_make_room", lambda self: False)


def unasked_bodies_stay(patch: Patch, _over: threading.Event) -> None:
    patch.setattr(messages.Reader, "is_asked_for", messages.Reader.is_in_body)


def the_health_check_waits_for_a_thread(patch: Patch, _over: threading.Event) -> None:
    patch.setattr(server, "ALIVE", b"/none")


def readiness_waits_for_a_thread(patch: Patch, _over: threading.Event) -> None:
    patch.setattr(server, "READY", b"/none")


def _hold_up(serving: Server) -> None:
    slow_clients.hold_nobody_up(serving, POST + b"Authorization: x\r\n" + LONG)


def _refuse(serving: Server) -> None:
    assert slow_clients.are_refused_by_their_head(serving, POST + LONG) == [401]


def _find_room(serving: Server) -> None:
    slow_clients.find_room(serving, MOST)


def _find_room_among_bodies(serving: Server) -> None:
    slow_clients.find_room(serving, MOST, POST + b"Content-Length: 10\r\n\r\n1")


class Mutant(NamedTuple):
    off: Callable[[Patch, threading.Event], None]
    probe: Callable[[Server], None]


MUTANTS = (
    Mutant(the_health_check_waits_for_a_thread, slow_clients.answer_probes),
    Mutant(readiness_waits_for_a_thread, slow_clients.answer_probes),
    Mutant(threads_wait_for_bodies, _hold_up),
    Mutant(threads_wait_for_readers, slow_clients.read_nothing),
    Mutant(bodies_come_before_logins, _refuse),
    Mutant(nobody_makes_room, _find_room),
    Mutant(unasked_bodies_stay, _find_room_among_bodies),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.off.__name__)
def test_a_bound_that_is_off_is_noticed(mutant: Mutant, monkeypatch: Patch) -> None:
    over = threading.Event()
    monkeypatch.setattr(slow_clients, "PATIENCE_S", 1)
    mutant.off(monkeypatch, over)
    with slow_clients.serving(slow_clients.waiting(over), connections=MOST) as serving:
        try:
            with pytest.raises((AssertionError, TimeoutError)):
                mutant.probe(serving)
        finally:
            over.set()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.probe.__name__)
def test_a_probe_is_green_while_all_bounds_are_there(mutant: Mutant) -> None:
    over = threading.Event()
    with slow_clients.serving(slow_clients.waiting(over), connections=MOST) as serving:
        mutant.probe(serving)
        over.set()
