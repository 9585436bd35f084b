"""Two engines on one database server, killed in turn while a hundred stacks are made: all end."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.db.tables import RESOURCES, STACK_EVENTS, STACK_LOCKS, STACK_ORDERS, STACKS
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.operations import StackOperations
from bloomery.rpc.client import Client, InProcess
from bloomery.rpc.ring import Ring
from bloomery.state_dir import StateDir
from tests.kit.waiting import wait_for

COUNT = 100
KILLS = 6
BETWEEN_KILLS = 90  # events, of the thousand that there will be
PROGRAM = "from bloomery.cli.main import main; main()"
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "resources": {
        "first": {"type": "OS::Heat::TestResource"},
        "second": {
            "type": "OS::Heat::TestResource", "depends_on": ["first"],
            "properties": {"wait_secs": 1},
        },
        "third": {"type": "OS::Heat::TestResource", "depends_on": ["second"]},
    },
}  # fmt: skip
CONF = """
[DEFAULT]
host = {host}
[database]
connection = {url}
[engine]
engine_heartbeat_interval = 1
engine_life_check_timeout = 4
periodic_interval = 1
"""


class Process:
    """``bloomery engine`` on a state dir of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable, "-c", PROGRAM, "engine",
                "--state-dir", str(self._folder), "--config-file", str(self._folder / "conf"),
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("engine ")

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def accept(db: Database, home: StateDir) -> None:
    """Order stacks as an API does that has no engine beside it."""
    services = Services(
        db=db, rpc=Client(Ring(db), InProcess({})), conf=Conf(), policies=Policies(Conf()),
        sealer=home.sealer(db),
    )  # fmt: skip
    engine = StackOperations(services, EngineRuntime())
    for number in range(COUNT):
        arguments = StackArguments(template=TEMPLATE)
        engine.create_stack(Request.new(user="u", project="p"), f"stack-{number}", arguments)


@pytest.fixture
def engines(db: Database, tmp_path: Path) -> Iterator[list[Process]]:
    """Two engines, on what was ordered before they began."""
    with StateDir(tmp_path / "api") as home:
        accept(db, home)
        key = home.key
    processes = []
    for number in range(2):
        folder = tmp_path / f"engine-{number}"
        folder.mkdir(mode=0o700)
        shutil.copytree(key.parent, folder / key.parent.name)
        url = db.url.render_as_string(hide_password=False)
        (folder / "conf").write_text(CONF.format(host=f"engine-{number}", url=url))
        processes.append(Process(folder))
    yield processes
    for each in processes:
        if each.process.poll() is None:
            each.end()


def count(db: Database, query: sa.Select[tuple[int]]) -> int:
    with db.read() as conn:
        return conn.execute(query).scalar_one()


def events(db: Database) -> int:
    return count(db, sa.select(sa.func.count()).select_from(STACK_EVENTS))


def ended(db: Database) -> bool:
    orders = sa.select(sa.func.count()).select_from(STACK_ORDERS)
    locked = sa.select(sa.func.count()).where(STACK_LOCKS.c.engine_id.is_not(None))
    return not count(db, orders) and not count(db, locked)


@pytest.mark.timeout(300)
def test_a_hundred_stacks_survive_engines_that_are_killed_in_turn(
    db: Database, engines: list[Process], lots: random.Random
):
    kills = 0
    while kills < KILLS and not ended(db):
        until = events(db) + lots.randrange(1, BETWEEN_KILLS)
        wait_for(lambda n=until: events(db) >= n or ended(db), "an engine to work", timeout_s=60)
        victim = engines[kills % 2]
        assert victim.end() == -signal.SIGKILL
        kills += 1
        victim.start()
    wait_for(lambda: ended(db), "all stacks to rest", timeout_s=120)
    for each in engines:
        assert each.end(signal.SIGTERM) == 0
    assert kills > 1  # a quick engine leaves no work for the last of them
    check(db)


def check(db: Database) -> None:
    """Everything was made once, and told of once."""
    with db.read() as conn:
        stacks = conn.execute(sa.select(STACKS)).all()
        resources = conn.execute(sa.select(RESOURCES)).all()
        told = conn.execute(sa.select(STACK_EVENTS)).all()
    assert Counter(f"{row.action}_{row.status}" for row in stacks) == {"CREATE_COMPLETE": COUNT}
    assert Counter(f"{row.action}_{row.status}" for row in resources) == {
        "CREATE_COMPLETE": 3 * COUNT
    }
    often = Counter((row.stack_uuid, row.name, row.action, row.status) for row in told)
    assert set(often.values()) == {1}
    assert len(often) == 2 * (len(stacks) + len(resources))
