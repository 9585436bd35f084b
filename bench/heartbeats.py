"""What the calls of agents cost while 10,000 machines wait: each calls every 30 seconds.

CPU of the server for some of the calls, told as what all of them would take of a core.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from bench import harness, population
from bench.harness import Line, Server
from bloomery import conf
from bloomery.conductor.states import State
from bloomery.db import nodes, rows, schema
from bloomery.db.tables import NODES
from bloomery.state_dir import StateDir

EVERY_S: Final = 30
CALLS: Final = 600
# Fake machines make calls of their own, which would be measured, too.
_OPTIONS: Final = {
    "DEFAULT/enabled_deploy_interfaces": "fake,noop",
    "DEFAULT/enabled_hardware_types": "fake-hardware",
}
_TOKEN: Final = "t" * 64
_URL: Final = "https://10.0.0.1:9999"


def measure() -> Sequence[Line]:
    line = Line(what=f"{population.MANY:,} waiting nodes, a heartbeat each {EVERY_S} s", unit="%",
                at_most=60, connections=1)  # fmt: skip
    with harness.folder() as folder:
        uuids = _waiting(population.make(folder / "home"))
        with Server(folder / "home", _OPTIONS) as server:
            _call(server, uuids[:20])  # what is imported and made once
            for number in harness.rounds():
                called = uuids[number * CALLS :][:CALLS]
                before = server.cpu_s()
                _call(server, called)
                each_s = (server.cpu_s() - before) / len(called)
                line.add(each_s * population.MANY / EVERY_S * 100)
    return (line,)


def _waiting(home: Path) -> list[str]:
    """Let every node of a state dir wait for an agent that has its token; return their UUIDs."""
    with StateDir(home) as state_dir:
        db = state_dir.open_database(conf.Conf().database)
        schema.prepare(db)
        sealed = state_dir.sealer(db).seal_under(nodes.AGENT_TOKEN, _TOKEN)
        info = {nodes.AGENT_TOKEN: sealed, "agent_url": _URL}
        values = {
            "deploy_interface": "noop", "provision_state": State.DEPLOYWAIT,
            "target_provision_state": State.ACTIVE,
            "driver_internal_info": rows.dump(info), "provision_updated_at": rows.now(),
        }  # fmt: skip
        db.transact(lambda conn: conn.execute(sa.update(NODES).values(values)))
        with db.read() as conn:
            uuids = list(conn.execute(sa.select(NODES.c.uuid)).scalars())
        db.close()
    return uuids


def _call(server: Server, uuids: Sequence[str]) -> None:
    client = server.client()
    for node in uuids:
        body = {
            "callback_url": _URL, "agent_version": "9.8.0", "agent_token": _TOKEN,
            "agent_status": "start", "agent_status_message": str(uuid.UUID(node)),
        }  # fmt: skip
        client.ask("POST", f"/v1/heartbeat/{node}", body)
    client.close()


if __name__ == "__main__":
    harness.main(measure)
