"""A round of the drift watch over many Instances: CPU of the process, from rows, nothing differs.

The stack is made by an engine on machines in memory, which are then written as nodes, as the
conductor would have left them.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from bench import harness, population
from bench.harness import Line
from bloomery import conf
from bloomery.db import rows, schema
from bloomery.db.engine import Database
from bloomery.db.tables import STACK_EVENTS
from bloomery.model.node import Node
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.engine_host.drift_timer import DriftTimer
from bloomery.orchestration.engine_host.drift_watch import DRIFT, DriftWatch
from bloomery.orchestration.engine_host.engine_service import EngineService
from bloomery.orchestration.operations import StackOperations
from bloomery.rpc.client import Client, InProcess
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer
from bloomery.state_dir import StateDir
from tests.kit.stacks.memory_machines import MemoryMachines

LARGE: Final = 1000
IMAGE: Final = {
    "source": "http://images/a.img",
    "os_hash_algo": "sha256",
    "os_hash_value": "0" * 64,
}
OPERATOR: Final = Request(
    request_id="r", user="operator", project="p1", roles=("admin", "member", "reader")
)


@contextmanager
def site(path: Path) -> Iterator[tuple[Database, Services]]:
    settings = conf.Conf()
    with StateDir(path) as home:
        db = home.open_database(settings.database)
        schema.prepare(db)
        yield db, Services(
            db=db, rpc=Client(Ring(db), InProcess({})), conf=settings, sealer=home.sealer(db),
            policies=Policies(settings, enforced=True),
        )  # fmt: skip
        db.close()


def deploy(services: Services, sealer: Sealer, count: int) -> EngineRuntime:
    """Make a stack of ``count`` Instances, and the nodes that they are on."""
    machines = MemoryMachines()
    names = [
        machines.add_node(name=f"n{number}", driver="fake-hardware") for number in range(count)
    ]
    runtime = EngineRuntime(machines=machines.of_stack)
    engine = EngineService(services.conf, services.db, sealer, lambda: runtime)
    engine.start()
    endpoint = StackOperations(services, runtime, engine.wake)
    kind = "OS::Ironic::Instance"
    members = {
        f"i{number}": {"type": kind, "properties": {"node": name, "image": IMAGE}}
        for number, name in enumerate(names)
    }
    template = {"heat_template_version": "2021-04-16", "resources": members}
    endpoint.create_stack(OPERATOR, "machines", StackArguments(template=template))
    harness.until(lambda: not engine.groups.roots(), "the stack to rest", timeout_s=600)
    engine.stop()
    nodes = [_node(each) for each in machines.nodes.values()]
    services.db.transact(lambda conn: population.insert(conn, nodes))
    return runtime


def _node(values: dict[str, Any]) -> Node:
    names = {each.name for each in dataclasses.fields(Node)}
    known = {name: value for name, value in values.items() if name in names}
    known |= {
        "traits": (),
        "provision_updated_at": None,
        "owner": "p1",
        "raid_config": {},
        "created_at": rows.now(),
    }
    properties = {"cpu_arch": "x86_64", "cpus": 64, "memory_mb": 524288, "local_gb": 1920}
    return Node(**known | {"properties": properties, "extra": {"serial": str(uuid.uuid4())}})


def measure() -> Sequence[Line]:
    line = Line(what=f"drift watch, {LARGE} Instances, a round", unit="s CPU", at_most=0.3)
    with harness.folder() as folder, site(folder / "home") as (db, services):
        assert services.sealer is not None
        runtime = deploy(services, services.sealer, LARGE)
        watch = DriftWatch(
            services, runtime, on_events_written=lambda: None, on_accepted=lambda root: None
        )
        for _ in harness.rounds():
            timer = DriftTimer(
                db, 600, make_watch=lambda: watch, live_ids=lambda: ["e"], random=lambda: 0.0
            )
            began = time.process_time()
            while timer.look() and not timer.is_between_rounds:
                pass
            line.add(time.process_time() - began)
        _check_silence(db)
    return [line]


def _check_silence(db: Database) -> None:
    """Nothing may have been told: what is compared is alike."""
    with db.read() as conn:
        told = conn.execute(
            sa.select(STACK_EVENTS.c.name, STACK_EVENTS.c.reason)
            .where(STACK_EVENTS.c.action == DRIFT)
            .limit(1)
        ).first()
    if told is not None:
        raise RuntimeError(f"{told.name} differs: {told.reason}")


if __name__ == "__main__":
    harness.main(measure)
