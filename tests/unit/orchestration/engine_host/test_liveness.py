"""Whose counter stands still is dead, by our own clock; who was taken for dead begins anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf.engine import Engine as Options
from bloomery.db import engines
from bloomery.db.engine import Database
from bloomery.orchestration.engine_host.liveness import Liveness, check
from tests.kit.clock import HandClock
from tests.kit.stacks import trees

TIMES = Options(engine_heartbeat_interval=2, engine_life_check_timeout=10)
Make = Callable[..., Liveness]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = trees.database(tmp_path)
    yield database
    database.close()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def make(db: Database, clock: HandClock) -> Make:
    def made(**more: Any) -> Liveness:
        said: dict[str, Any] = {"host": "h", "alone": False, "clock": clock} | more
        engine = Liveness(db, TIMES, **said)
        engine.register()
        return engine

    return made


def test_an_engine_whose_counter_moves_lives_and_one_that_stands_still_is_dead(
    make: Make, clock: HandClock
) -> None:
    deaths: list[str] = []
    ours, beating, silent = make(on_death=lambda: deaths.append("one")), make(), make()
    ours.observe()
    for _ in range(5):
        clock.now += 2
        for engine in (ours, beating):
            engine.beat()
        ours.observe()
    assert ours.is_live(ours.engine_id)
    assert ours.is_live(beating.engine_id)
    assert not ours.is_live(silent.engine_id)
    assert deaths == ["one"]


def test_an_engine_that_was_never_seen_has_its_time(make: Make, clock: HandClock) -> None:
    ours = make()
    other = make()
    assert ours.is_live(other.engine_id)
    assert not ours.is_live("an engine without a row")
    clock.now += 10
    ours.beat()
    ours.observe()
    assert not ours.is_live(other.engine_id)


def test_an_engine_that_retires_is_dead_at_once(make: Make) -> None:
    deaths: list[str] = []
    ours, other = make(on_death=lambda: deaths.append("one")), make()
    ours.observe()
    other.stop()
    ours.observe()
    assert not ours.is_live(other.engine_id)
    assert deaths == ["one"]


def test_an_engine_that_cannot_write_does_not_act_when_it_may_be_taken_for_dead(
    make: Make, clock: HandClock
) -> None:
    ours = make()
    clock.now += 7.9
    assert ours.may_act()
    clock.now += 0.1
    assert not ours.may_act()
    ours.beat()
    assert ours.may_act()


def test_an_engine_that_was_taken_for_dead_begins_anew_under_another_id(
    db: Database, make: Make
) -> None:
    dropped: list[str] = []
    ours = make(on_retired=lambda: dropped.append("all"))
    first = ours.engine_id
    db.transact(lambda conn: engines.unregister(conn, first))
    ours.beat()
    assert ours.engine_id != first
    assert dropped == ["all"]
    with db.read() as conn:
        assert [engine.engine_id for engine in engines.list_live(conn)] == [ours.engine_id]


def test_who_is_alone_knows_that_all_others_are_dead(db: Database, make: Make) -> None:
    former = make()
    ours = make(alone=True)
    assert not ours.is_live(former.engine_id)
    assert ours.live_ids() == [ours.engine_id]
    with db.read() as conn:
        assert [engine.engine_id for engine in engines.list_live(conn)] == [ours.engine_id]


def test_times_by_which_a_living_engine_is_taken_for_dead_are_refused() -> None:
    with pytest.raises(errors.CannotStart, match="set it to at least 20"):
        check(Options(engine_heartbeat_interval=5, engine_life_check_timeout=19))


def test_an_engine_that_gives_a_sign_of_life_while_it_is_declared_dead_lives_on(
    db: Database, make: Make, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, late = make(), make()
    ours.observe()
    clock.now += TIMES.engine_life_check_timeout
    list_live = engines.list_live

    def beat_after(conn: Any) -> Any:
        live = list_live(conn)
        monkeypatch.undo()
        late.beat()
        return live

    monkeypatch.setattr(engines, "list_live", beat_after)
    before = late.engine_id
    ours.observe()
    late.beat()
    assert late.engine_id == before
    assert ours.is_live(before)
