"""``kill -9`` of ``bloomery engine`` at seeded random moments, until everything is done."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import sqlalchemy as sa

from bloomery.conf import Conf
from bloomery.db import schema
from bloomery.db.engine import Database
from bloomery.db.tables import RESOURCES, STACK_EVENTS, STACK_LOCKS, STACK_ORDERS, STACKS
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.service.endpoint import EngineEndpoint
from bloomery.rpc.client import Client
from bloomery.rpc.ring import Ring
from bloomery.rpc.transports import InProcess
from bloomery.state_dir import StateDir
from tests.kit.waiting import wait_for

STACKS_MADE = 6
CHAIN = 8
MOST_KILLS = 20
_PROGRAM = "from bloomery.cmd import main; main()"
_CHAIN = {
    f"r{number}": {
        "type": "OS::Heat::TestResource",
        "properties": {"value": "v", "wait_secs": 0},
        "depends_on": [f"r{number - 1}"] if number else [],
    }
    for number in range(CHAIN)
}
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "resources": _CHAIN
    | {
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "depends_on": ["r1"],
            "properties": {
                "count": 2,
                "resource_def": {"type": "OS::Heat::Value", "properties": {"value": "%index%"}},
            },
        },
    },
}


def accept(state: Path) -> None:
    """Order stacks as an API does that has no engine beside it."""
    with StateDir(state) as home:
        db = home.open_database(Conf().database)
        schema.prepare(db)
        services = Services(
            db=db, rpc=Client(Ring(db), InProcess({})), conf=Conf(), policies=Policies(Conf()),
            sealer=home.sealer(db),
        )  # fmt: skip
        engine = EngineEndpoint(services, EngineRuntime())
        for number in range(STACKS_MADE):
            arguments = StackArguments(template=TEMPLATE)
            engine.create_stack(Request.new(user="u", project="p"), f"stack-{number}", arguments)
        db.close()


class Process:
    """``bloomery engine`` on a state dir."""

    def __init__(self, state: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, "engine", "--state-dir", str(state)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def ended(db: Database) -> bool:
    with db.read() as conn:
        open_orders = conn.execute(sa.select(sa.func.count()).select_from(STACK_ORDERS)).scalar()
        locked = sa.select(sa.func.count()).where(STACK_LOCKS.c.engine_id.is_not(None))
        return not open_orders and not conn.execute(locked).scalar()


def test_stacks_survive_the_death_of_their_engine(tmp_path: Path, lots: random.Random) -> None:
    state = tmp_path / "state"
    accept(state)
    db = Database(f"sqlite:///{state}/bloomery.sqlite")
    kills = 0
    while kills < MOST_KILLS and not ended(db):
        process = Process(state)
        assert process.line.startswith("engine ")
        events = count_events(db) + lots.randrange(1, 12)
        wait_for(lambda n=events: count_events(db) >= n or ended(db), "the engine", timeout_s=60)
        assert process.kill() == -signal.SIGKILL
        kills += 1
    last = Process(state)
    wait_for(lambda: ended(db), "all stacks to rest", timeout_s=60)
    assert last.kill(signal.SIGTERM) == 0
    check(db)
    db.close()
    assert kills > 3


def count_events(db: Database) -> int:
    with db.read() as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(STACK_EVENTS)).scalar_one())


def check(db: Database) -> None:
    """Everything was made, once, and told of once."""
    with db.read() as conn:
        stacks = conn.execute(sa.select(STACKS)).all()
        resources = conn.execute(sa.select(RESOURCES)).all()
        events = conn.execute(sa.select(STACK_EVENTS)).all()
    assert Counter(f"{row.action}_{row.status}" for row in stacks) == {
        "CREATE_COMPLETE": 2 * STACKS_MADE
    }
    assert Counter(f"{row.action}_{row.status}" for row in resources) == {
        "CREATE_COMPLETE": (CHAIN + 1 + 2) * STACKS_MADE
    }
    names = Counter((row.stack_uuid, row.name) for row in resources)
    assert set(names.values()) == {1}
    told = Counter((row.stack_uuid, row.name, row.action, row.status) for row in events)
    assert set(told.values()) == {1}
    assert len(told) == 2 * (len(stacks) + len(resources))
