"""What the calls of agents cost while 10,000 machines wait: each calls every 30 seconds.

CPU of the server for some of the calls, as what all of them would take of a core: of calls that
say that an agent is still at work, and of the first ones after a look-up.  The floor is a request
to a bare server that reads one row.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from bench import bare, harness, population
from bench.harness import Client, Line, Server
from bloomery import conf
from bloomery.conductor.states import State
from bloomery.db import nodes, rows, schema, steps
from bloomery.db.tables import NODES
from bloomery.model.step import Run, Step, StepRun, internal_step
from bloomery.state_dir import StateDir

EVERY_S: Final = 30
CALLS: Final = 600
# Fake machines make calls of their own, which would be measured, too.
_OPTIONS: Final = {
    "DEFAULT/enabled_deploy_interfaces": "fake,noop",
    "DEFAULT/enabled_hardware_types": "fake-hardware",
}
_AT_WORK: Final = (  # as drivers say whose agents write images
    "from bloomery.drivers.noop import NoopDeploy; NoopDeploy.on_heartbeat = lambda *_: None;"
)
_TOKEN: Final = "t" * 64
_URL: Final = "https://10.0.0.1:9999"
_CERTIFICATE: Final = f"-----BEGIN CERTIFICATE-----\n{'MIIB' * 400}\n-----END CERTIFICATE-----\n"


def measure() -> Sequence[Line]:
    often = Line(what=f"{population.MANY:,} waiting nodes, a heartbeat each {EVERY_S} s", unit="%",
                 at_most=60, connections=1)  # fmt: skip
    first = Line(what=f"{population.MANY:,} first heartbeats in {EVERY_S} s", unit="%",
                 connections=1)  # fmt: skip
    with harness.folder() as folder:
        uuids = _waiting(population.make(folder / "home"))
        with (
            Server(folder / "home", _OPTIONS, prelude=_AT_WORK) as server,
            bare.Bare(folder) as floor,
        ):
            _cpu_s(server, lambda client: _call(client, uuids[:20]))  # made once
            for number in harness.rounds():
                called = uuids[(number + 1) * CALLS :][:CALLS]
                floor_s = _cpu_s(floor, _read)
                for line in (first, often):
                    took_s = _cpu_s(server, lambda client, called=called: _call(client, called))
                    line.add(_percent(took_s), _percent(floor_s))
    return often, first


def _percent(took_s: float) -> float:
    """Return of a core what all calls take, where some take ``took_s``."""
    return took_s / CALLS * population.MANY / EVERY_S * 100


def _cpu_s(peer: Server | bare.Bare, ask: Callable[[Client], None]) -> float:
    client = peer.client()
    before = peer.cpu_s()
    ask(client)
    took_s = peer.cpu_s() - before
    client.close()
    return took_s


def _read(client: Client) -> None:
    for _ in range(CALLS):
        client.ask("GET", "/")


def _waiting(home: Path) -> list[str]:
    """Let every node of a state dir wait for an agent that has its token; return their UUIDs."""
    with StateDir(home) as state_dir:
        db = state_dir.open_database(conf.Conf().database)
        schema.prepare(db)
        sealed = state_dir.sealer(db).seal_under(nodes.AGENT_TOKEN, _TOKEN)
        values = {
            "deploy_interface": "noop", "provision_state": State.DEPLOYWAIT,
            "target_provision_state": State.ACTIVE,
            "driver_internal_info": rows.dump({nodes.AGENT_TOKEN: sealed}),
            "provision_updated_at": rows.now(),
        }  # fmt: skip
        db.transact(lambda conn: conn.execute(sa.update(NODES).values(values)))
        with db.read() as conn:
            uuids = list(conn.execute(sa.select(NODES.c.uuid)).scalars())
        journal = steps.encode([run for node in uuids for run in _flow(node)])
        db.transact(lambda conn: steps.insert(conn, journal))
        db.close()
    return uuids


def _flow(node: str) -> Iterator[StepRun]:
    """Yield the steps of a deployment that waits in its second one."""
    flow, deploy = str(uuid.uuid4()), Step(interface="deploy", step="deploy", priority=100)
    said = ((internal_step("deploy", "prepare"), Run.DONE), (deploy, Run.WAITING))
    for position, (step, state) in enumerate(said):
        yield StepRun(
            flow=flow, node_uuid=node, phase="deploy", position=position, step=step, state=state
        )


def _call(client: Client, uuids: Sequence[str]) -> None:
    """Call for each node.  A first call is written before its answer, later ones stay in memory."""
    for node in uuids:
        body = {
            "callback_url": _URL, "agent_version": "9.8.0", "agent_token": _TOKEN,
            "agent_verify_ca": _CERTIFICATE,
        }  # fmt: skip
        client.ask("POST", f"/v1/heartbeat/{node}", body)


if __name__ == "__main__":
    harness.main(measure)
