"""``kill -9`` of ``bloomery engine`` at seeded random moments, until everything is done."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from bloomery.conf import Conf
from bloomery.db import schema
from bloomery.db.engine import Database
from bloomery.state_dir import StateDir
from tests.kit.servers import engines
from tests.kit.servers.engines import EngineProcess
from tests.kit.waiting import wait_for

STACKS = 6
MOST_KILLS = 20


def test_stacks_survive_the_death_of_their_engine(tmp_path: Path, lots: random.Random) -> None:
    state = tmp_path / "state"
    with StateDir(state) as home:
        db = home.open_database(Conf().database)
        schema.prepare(db)
        engines.order_stacks(db, home.sealer(db), STACKS)
        db.close()
    db, kills = Database(f"sqlite:///{state}/bloomery.sqlite"), 0
    while kills < MOST_KILLS and not engines.have_ended(db):
        process = EngineProcess(state)
        events = engines.count_events(db) + lots.randrange(1, 12)
        wait_for(
            lambda n=events: engines.count_events(db) >= n or engines.have_ended(db),
            "the engine", timeout_s=60,
        )  # fmt: skip
        assert process.kill() == -signal.SIGKILL
        kills += 1
    last = EngineProcess(state)
    wait_for(lambda: engines.have_ended(db), "all stacks to rest", timeout_s=60)
    assert last.kill(signal.SIGTERM) == 0
    engines.check_all_made_once(db, STACKS)
    db.close()
    assert kills > 3
