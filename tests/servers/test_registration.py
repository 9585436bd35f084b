"""Conductors that start at once on one database, and two processes of one name."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bloomery import errors
from bloomery.conductor import lifecycle
from bloomery.conductor.registration import Registration
from bloomery.db import conductors, engine
from bloomery.secrets import Sealer
from bloomery.state_dir import StateDir
from tests.kit.servers import peers
from tests.kit.servers import site as kit


def begins(db: engine.Database, name: str) -> Callable[[], bool]:
    """Return what registers a conductor; False: another process lives under its name."""
    runtime = lifecycle.build(kit.conf(name), db, Sealer(kit.KEY))
    registration = Registration(runtime, process=peers.ELSEWHERE.encoded())

    def begin() -> bool:
        try:
            registration.begin(alone=False)
        except errors.ConductorLives:
            return False
        finally:
            registration.close()
        return True

    return begin


def test_four_that_start_at_once_are_all_there(db: engine.Database) -> None:
    starts = [begins(db, f"host-{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda start: start(), starts))
    with db.read() as conn:
        rows = conductors.list_all(conn)
    assert sorted(row.hostname for row in rows) == [f"host-{number}" for number in range(4)]
    assert len({row.incarnation for row in rows}) == 4


def test_of_four_of_one_name_one_is_admitted(db: engine.Database, monkeypatch) -> None:
    """Nobody was there before: each finds the name free, and one row decides."""
    starts = [begins(db, "host-a") for _ in range(4)]
    monkeypatch.setattr(Registration, "_former", lambda self: None)
    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(lambda start: start(), starts)) == [False, False, False, True]


def test_the_first_key_is_the_site_s(db: engine.Database, tmp_path: Path) -> None:
    """Two make a key each for a database that knows none; who is second keeps none."""
    with StateDir(tmp_path / "one") as one, StateDir(tmp_path / "two") as two:
        homes = [one, two]

        def seal(home: StateDir) -> str | None:
            try:
                return home.sealer(db).key_id
            except errors.KeyMissing:
                return None

        with ThreadPoolExecutor(2) as pool:
            keys = list(pool.map(seal, homes))
        assert len([key for key in keys if key]) == 1
        assert [home.key.exists() for home in homes] == [bool(key) for key in keys]
        shared = next(home.key for home, key in zip(homes, keys, strict=True) if key)
        assert two.sealer(db, str(shared)).key_id == one.sealer(db, str(shared)).key_id
