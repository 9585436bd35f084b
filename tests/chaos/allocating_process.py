"""A conductor in a process of its own, to be killed: gives out the nodes of a small site.

    python allocating_process.py STATE_DIR SEED

Prints a line of JSON for each thing that is true from then on: {"node": ...} created,
{"ack": allocation} an allocation that was acknowledged.  On a state dir that was used before it
asks for nothing, waits until every allocation has settled, and prints {"settled": ...}.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any

sys.modules["eventlet"] = None  # type: ignore[assignment]

import sqlalchemy as sa  # noqa: E402

from bloomery.conductor import lifecycle  # noqa: E402
from bloomery.conf import Conf  # noqa: E402
from bloomery.conf.default import Default  # noqa: E402
from bloomery.db import schema  # noqa: E402
from bloomery.db.engine import Database  # noqa: E402
from bloomery.db.tables import ALLOCATIONS, NODES  # noqa: E402
from bloomery.model.request import Request  # noqa: E402
from bloomery.state_dir import StateDir  # noqa: E402

NODES_FREE = 100
ALLOCATIONS_ASKED = 120
GIVES_UP_S = 60.0


def say(**facts: Any) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")
    sys.stdout.flush()


def count(db: Database, table: sa.Table, *conditions: Any) -> int:
    with db.read() as conn:
        query = sa.select(sa.func.count()).select_from(table).where(*conditions)
        return int(conn.execute(query).scalar_one())


def create_nodes(service: lifecycle.ConductorService) -> None:
    for _ in range(NODES_FREE):
        values = {
            "uuid": str(uuid.uuid4()), "driver": "fake-hardware", "provision_state": "available",
            "resource_class": "large",
        }  # fmt: skip
        service.manager.create_node(Request.new(), values)
    powered = sa.update(NODES).values(power_state="power off")
    service.runtime.db.transact(lambda conn: conn.execute(powered))
    say(nodes=NODES_FREE)


def main(home: StateDir) -> None:
    conf = Conf(default=Default(host="host-to-be-killed"))
    db = home.open_database(conf.database)
    schema.prepare(db)
    service = lifecycle.ConductorService(lifecycle.build(conf, db, home.sealer(db)))
    is_new = count(db, NODES) == 0
    began = time.monotonic()
    service.start()
    if is_new:
        create_nodes(service)
        for _ in range(ALLOCATIONS_ASKED):
            allocation = str(uuid.uuid4())
            values = {"uuid": allocation, "resource_class": "large"}
            service.manager.create_allocation(Request.new(), values, None)
            say(ack=allocation)
    waiting = ALLOCATIONS.c.state == "allocating"
    while count(db, ALLOCATIONS, waiting) and time.monotonic() - began < GIVES_UP_S:
        time.sleep(0.02)
    say(settled=time.monotonic() - began)
    service.stop()


if __name__ == "__main__":
    with StateDir(Path(sys.argv[1])) as home:
        main(home)
