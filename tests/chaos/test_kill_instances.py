"""``kill -9`` of the whole service while a stack deploys a machine, at each of its commits in turn.

The conductor dies in the middle of a step, the engine between two looks; the next process goes on
from the rows.  Nobody helps: the stack is complete in the end, the machine was ordered to once for
each attempt, and nothing was made twice.
"""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db.engine import Database
from bloomery.db.tables import ALLOCATIONS, EVENTS, NODES, PORTS, STACKS
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for

OPTIONS: dict[str, dict[str, Any]] = {
    "conductor": {"graceful_shutdown_timeout": 1, "sync_power_state_interval": 1},
    "orchestration": {"port": 0},
}
POOL = 3
SLOW = {"fake": {"delay": {"deploy.deploy": 0.05, "power": 0.02}, "wait": {"deploy.deploy": 0.3}}}
NODE = {"driver": "fake-hardware", "resource_class": "bm", "driver_info": SLOW}


def node(number: int) -> dict[str, Any]:
    ports = [{"address": f"52:54:00:00:00:0{number}"}]
    properties = {**NODE, "name": f"n{number}", "ports": ports, "inspect": "none"}
    return {"type": "OS::Ironic::Node", "properties": properties}


def order(served: Served, name: str, resources: dict[str, Any]) -> None:
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    body = json.dumps({"stack_name": name, "template": template}).encode()
    request = urllib.request.Request(
        f"{served.orchestration_url}/v1/admin/stacks", data=body, method="POST",
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 201


def count(db: Database, table: sa.Table, *where: Any) -> int:
    with db.read() as conn:
        return conn.execute(
            sa.select(sa.func.count()).select_from(table).where(*where)
        ).scalar_one()


def state_of(db: Database, name: str) -> str:
    with db.read() as conn:
        row = conn.execute(sa.select(STACKS).where(STACKS.c.name == name)).one()
    return f"{row.action}_{row.status}"


def begin(state: Path) -> Served:
    served = Served(state, **OPTIONS)
    served.wait_until_it_answers()
    return served


def end(served: Served, number: signal.Signals) -> None:
    with served:
        served.send(number)
        served.code()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_instance_is_deployed_through_any_deaths_of_its_service(tmp_path: Path) -> None:
    state = tmp_path / "state"
    served = begin(state)
    db = Database(f"sqlite:///{state}/bloomery.sqlite")
    order(served, "rack", {f"n{number}": node(number) for number in range(POOL)})
    wait_for(lambda: state_of(db, "rack") == "CREATE_COMPLETE", "the rack", timeout_s=60)
    power = NODES.c.power_state == "power off"
    for number in range(POOL):
        served.api("PUT", f"/v1/nodes/n{number}/states/power", {"target": "power off"})
    wait_for(lambda: count(db, NODES, power) == POOL, "the power", timeout_s=60)
    instance = {"selector": {"resource_class": "bm"}, "image": {"source": "http://images/a"}}
    order(served, "web", {"web": {"type": "OS::Ironic::Instance", "properties": instance}})
    kills = 0
    while not state_of(db, "web").endswith(("COMPLETE", "FAILED")):
        seen = count(db, EVENTS)
        wait_for(
            lambda n=seen: count(db, EVENTS) > n or "PROGRESS" not in state_of(db, "web"),
            "the next event", timeout_s=60,
        )  # fmt: skip
        end(served, signal.SIGKILL)
        kills += 1
        served = begin(state)
    assert state_of(db, "web") == "CREATE_COMPLETE"
    deploys = [EVENTS.c.action == "provision_set", EVENTS.c.facts.contains('"event": "deploy"')]
    with db.read() as conn:
        attempts = conn.execute(sa.select(EVENTS.c.object_uuid).where(*deploys)).all()
    assert len({uuid for (uuid,) in attempts}) == len(attempts) <= 2
    assert count(db, NODES, NODES.c.provision_state == "active") == 1
    assert (count(db, NODES), count(db, PORTS)) == (POOL, POOL)
    assert count(db, ALLOCATIONS) == 1
    assert kills > 3
    end(served, signal.SIGTERM)
    db.close()
