"""What a process lacks, told in time though a part is silent."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bloomery.http_server.readiness import WITHIN_S, Readiness
from tests.kit.clock import HandClock
from tests.kit.waiting import wait_for


@pytest.fixture
def answers() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_reasons_of_all_parts_are_told():
    readiness = Readiness({"the database": lambda: ["a"], "the broker": lambda: ["b"]})
    assert readiness.missing() == ["a", "b"]


def test_a_silent_part_is_named_and_the_others_are_heard(answers):
    clock, waited = HandClock(), []

    def wait(questions, most_s):
        waited.append(most_s)
        wait_for(lambda: any(each.done() for each in questions), "the part that answers")
        clock.turn(most_s)

    def mute() -> list[str]:
        answers.wait()
        return []

    readiness = Readiness({"the database": mute, "the broker": lambda: ["b"]}, clock, wait)
    assert readiness.missing() == ["the database has not answered for 2 s", "b"]
    clock.turn(60)
    assert readiness.missing() == ["the database has not answered for 64 s", "b"]
    assert waited == [WITHIN_S, WITHIN_S]


def test_a_silent_part_is_asked_once_and_again_when_it_has_answered(answers):
    asked: list[int] = []

    def mute() -> list[str]:
        asked.append(1)
        answers.wait()
        return []

    clock = HandClock()
    readiness = Readiness({"the database": mute}, clock, lambda *_: clock.turn(WITHIN_S))
    assert [len(readiness.missing()) for _ in range(3)] == [1, 1, 1]
    assert clock.now == 1000 + WITHIN_S, "only the first question was waited for"
    assert len(asked) == 1
    answers.set()
    readiness._wait = lambda questions, _s: wait_for(lambda: all(q.done() for q in questions), "it")
    wait_for(lambda: readiness.missing() == [], "an answer")
    assert len(asked) == 2


def test_a_part_that_fails_is_missing(caplog):
    nothing = 0
    readiness = Readiness({"the database": lambda: [str(1 // nothing)]})
    assert readiness.missing() == ["the database could not be asked: see the log of this service"]
    assert "ZeroDivisionError" in caplog.text


def test_a_part_that_no_thread_could_ask_is_asked_again(monkeypatch):
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    readiness = Readiness({"the database": list})
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        assert readiness.missing() == ["the database could not be asked: can't start new thread"]
    assert readiness.missing() == []
