"""A conductor in a process of its own, to be killed: deploys a hundred fake nodes.

    python conductor_process.py STATE_DIR SEED

Prints a line of JSON for each thing that is true from then on: {"node": ...} created,
{"ack": request id, "node": ...} a deployment that was acknowledged, {"all": ...} all were.
On a state dir that was used before it orders what is left to be ordered, waits until every node
has settled, and prints {"settled": ...}.
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from pathlib import Path
from typing import Any

sys.modules["eventlet"] = None  # type: ignore[assignment]

from bloomery.conductor import lifecycle  # noqa: E402
from bloomery.conf import Conf  # noqa: E402
from bloomery.conf.default import Default  # noqa: E402
from bloomery.db import nodes, schema  # noqa: E402
from bloomery.model.request import Request  # noqa: E402
from bloomery.state_dir import StateDir  # noqa: E402

NODES = 100
LONGEST_STEP_S = 1.0
GIVES_UP_S = 60.0
STILL_TO_COME = ("available", "deploying")


def say(**facts: Any) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")
    sys.stdout.flush()


class Process:
    def __init__(self, home: StateDir, seed: int) -> None:
        conf = Conf(default=Default(host="host-to-be-killed"))
        self.db = home.open_database(conf.database)
        schema.prepare(self.db)
        runtime = lifecycle.build(conf, self.db, home.sealer(self.db))
        self.service = lifecycle.ConductorService(runtime)
        self.lots = random.Random(seed)

    def run(self) -> None:
        began = time.monotonic()
        self.service.start()
        known = self.states()
        self.create(NODES - len(known))
        self.deploy_what_is_available()
        say(all=True)
        self.settle(began)

    def create(self, count: int) -> None:
        for _ in range(count):
            node = str(uuid.uuid4())
            told = {"delay": {"deploy.prepare": self.delay(), "deploy.deploy": self.delay()}}
            values = {
                "uuid": node, "driver": "fake-hardware", "provision_state": "available",
                "driver_info": {"fake": told},
            }  # fmt: skip
            self.service.manager.create_node(Request.new(), values)
            say(node=node)

    def delay(self) -> float:
        return round(self.lots.uniform(0.01, LONGEST_STEP_S), 3)

    def deploy_what_is_available(self) -> None:
        for node, state in self.states().items():
            if state == "available":
                request = Request.new()
                self.service.manager.do_provisioning_action(request, node, "active", {})
                say(ack=request.request_id, node=node)

    def states(self) -> dict[str, str]:
        query = nodes.Query(columns=("uuid", "provision_state"))
        with self.db.read() as conn:
            return dict(tuple(row) for row in nodes.list_rows(conn, query))

    def settle(self, began: float) -> None:
        while any(state in STILL_TO_COME for state in self.states().values()):
            if time.monotonic() - began > GIVES_UP_S:
                break
            time.sleep(0.02)
        say(settled=round(time.monotonic() - began, 2))


def main() -> None:
    with StateDir(Path(sys.argv[1])) as home:
        Process(home, int(sys.argv[2])).run()


if __name__ == "__main__":
    main()
