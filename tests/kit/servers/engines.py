"""Processes of ``bloomery engine``, the stacks that they make, and whether all was made once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from bloomery.secrets import Sealer

CHAIN = 8
RESOURCES_OF_EACH = CHAIN + 1 + 2  # with the group and its members
_PROGRAM = "from bloomery.cli.main import main; main()"
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


def order_stacks(db: Database, sealer: Sealer, count: int) -> None:
    """Order stacks as an API does that has no engine beside it."""
    services = Services(
        db=db, rpc=Client(Ring(db), InProcess({})), conf=Conf(), policies=Policies(Conf()),
        sealer=sealer,
    )  # fmt: skip
    engine = StackOperations(services, EngineRuntime())
    for number in range(count):
        arguments = StackArguments(template=TEMPLATE)
        engine.create_stack(Request.new(user="u", project="p"), f"stack-{number}", arguments)


class EngineProcess:
    """``bloomery engine`` on a state dir; ``options`` are groups of its configuration file."""

    def __init__(self, state: Path, **options: Mapping[str, Any]) -> None:
        config = state.with_name(f"{state.name}.conf")
        lines = (
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
            for group, values in options.items()
        )
        config.write_text("".join(lines))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, "engine", "--state-dir", str(state),
             "--config-file", str(config)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        assert self.line.startswith("engine ")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def have_ended(db: Database) -> bool:
    """Does nobody work on any stack, and is nothing ordered?"""
    with db.read() as conn:
        orders = conn.execute(sa.select(sa.func.count()).select_from(STACK_ORDERS)).scalar()
        locked = sa.select(sa.func.count()).where(STACK_LOCKS.c.engine_id.is_not(None))
        return not orders and not conn.execute(locked).scalar()


def count_events(db: Database) -> int:
    with db.read() as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(STACK_EVENTS)).scalar_one())


def check_all_made_once(db: Database, count: int) -> None:
    """Everything was made, once, and told of once."""
    with db.read() as conn:
        stacks = conn.execute(sa.select(STACKS)).all()
        resources = conn.execute(sa.select(RESOURCES)).all()
        events = conn.execute(sa.select(STACK_EVENTS)).all()
    complete = "CREATE_COMPLETE"
    assert _by_state(stacks) == {complete: 2 * count}
    assert _by_state(resources) == {complete: RESOURCES_OF_EACH * count}
    assert set(Counter((row.stack_uuid, row.name) for row in resources).values()) == {1}
    told = Counter((row.stack_uuid, row.name, row.action, row.status) for row in events)
    assert set(told.values()) == {1}
    assert len(told) == 2 * (len(stacks) + len(resources))


def _by_state(rows: Any) -> Counter[str]:
    return Counter(f"{row.action}_{row.status}" for row in rows)
