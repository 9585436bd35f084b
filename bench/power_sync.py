"""What a power sync of 1,000 Redfish systems costs, and how long it takes beside mute ones.

Each system takes 100 ms for an answer.  They live in a process of their own, each behind a BMC of
its own.  The floor of the CPU is what one GET of each costs over a connection that is kept, with
nothing of ours around it.  The last line has TLS: passes whose connections the BMCs closed since
the pass before, as OpenBMC's server does after a minute, against passes that keep theirs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import itertools
import json
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench import harness, inside, population
from bench.harness import Line
from bloomery import conf
from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import Power, State
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.db import rows
from bloomery.drivers import registry
from bloomery.lab.tls import certificate
from bloomery.model.node import Node

SYSTEMS = 1000
MUTE = 100
ANSWER_S = 0.1
_ROUNDS = 3
_READY_S = 60.0
_HANG_S = 3600.0
_KEPT_S, _CLOSED_S = 300.0, 1.0  # until a BMC closes a connection; a pass takes 10 s
_NEVER_S = 86400  # the conductor's own sync stays away

Info = dict[str, Any]


def measure() -> Sequence[Line]:
    named = _Sync(f"power sync of {SYSTEMS:,} systems")
    unnamed = _Sync("the same without redfish_system_id")
    beside = Line(what=f"the others beside {MUTE} mute ones", unit="s", at_most=20)
    closed = Line(
        what="CPU of one over TLS: closed connections, to kept", unit="ms", at_most=3, ratio=True
    )
    with _rack(_KEPT_S) as infos:
        named.measure(infos)
        unnamed.measure([_without_id(info) for info in infos])
        with _fleet(infos) as runtime:
            _run(PowerSync(runtime))
            for _ in _rounds():
                beside.add(_beside_mute_s(runtime, infos[:MUTE]))
    _compare_closed(closed)
    return *named.lines, *unnamed.lines, beside, closed


def _compare_closed(line: Line) -> None:
    with harness.folder() as folder, contextlib.ExitStack() as stack:
        files = certificate(folder)
        racks = [stack.enter_context(_rack(idle_s, *files)) for idle_s in (_CLOSED_S, _KEPT_S)]
        syncs = []
        for infos in racks:
            trusting = [info | {"redfish_verify_ca": files[0]} for info in infos]
            syncs.append(_logged_in(stack.enter_context(_fleet(trusting))))
        for _ in _rounds():
            line.add(*(_cpu_s(sync) * 1000 / SYSTEMS for sync in syncs))


def _beside_mute_s(runtime: ConductorRuntime, infos: Sequence[Info]) -> float:
    """Return how long a pass takes whose first look at so many systems meets silence."""
    for info in infos:
        _tell(info, "POST", {"kind": "hang", "seconds": _HANG_S, "times": -1})
    sync = PowerSync(runtime)
    began = time.perf_counter()
    sync.run()
    harness.until(lambda: sync.polls <= len(infos), "the others to be looked at")
    took_s = time.perf_counter() - began
    sync.stop()
    for info in infos:
        _tell(info, "DELETE")
    harness.until(lambda: sync.is_idle, "the slow looks to end")
    _run(PowerSync(runtime))
    return took_s


def _tell(info: Info, method: str, fault: Any = None) -> None:
    connection = _open(info)
    connection.request(method, "/lab/faults", None if fault is None else json.dumps(fault))
    connection.getresponse().read()
    connection.close()


class _Sync:
    """Passes over one fleet, after a first one that logs in."""

    def __init__(self, what: str) -> None:
        self.took = Line(what=what, unit="s", at_most=15)
        self.cpu = Line(what=f"{what}: CPU of one", unit="ms", at_most=8, ratio=True)

    @property
    def lines(self) -> tuple[Line, Line]:
        return self.took, self.cpu

    def measure(self, infos: Sequence[Info]) -> None:
        with _fleet(infos) as runtime:
            sync = _logged_in(runtime)
            for _ in _rounds():
                began = time.perf_counter()
                cpu_s = _cpu_s(sync)
                self.took.add(time.perf_counter() - began)
                floor_s = _bare_cpu_s(infos)
                self.cpu.add(cpu_s * 1000 / len(infos), floor_s * 1000 / len(infos))


def _logged_in(runtime: ConductorRuntime) -> PowerSync:
    sync = PowerSync(runtime)
    for _ in range(3):  # by tasks, which record the health; by looks, which connect; and at rest
        _run(sync)
    return sync


def _run(sync: PowerSync) -> None:
    sync.run()
    harness.until(lambda: sync.is_idle, "the looks to end")


def _cpu_s(sync: PowerSync) -> float:
    before = time.process_time()
    _run(sync)
    return time.process_time() - before


def _rounds() -> Iterator[int]:
    """Fewer than elsewhere: each takes as long as the systems take to answer."""
    return itertools.islice(harness.rounds(), _ROUNDS)


def _without_id(info: Info) -> Info:
    return {name: value for name, value in info.items() if name != "redfish_system_id"}


@contextlib.contextmanager
def _fleet(infos: Sequence[Info]) -> Iterator[ConductorRuntime]:
    """A conductor of its own, with a node for each system."""
    settings = dataclasses.replace(
        conf.Conf(),
        default=Default(enabled_hardware_types=("redfish",)),
        conductor=Conductor(sync_power_state_interval=_NEVER_S),
    )
    with harness.folder() as folder, inside.conductor(folder / "home", settings) as runtime:
        known = registry.load(settings)
        nodes = [_node(info, runtime) for info in infos]
        for node in nodes:
            known.fill_and_check(node)
        runtime.db.transact(lambda conn: population.insert(conn, nodes))
        yield runtime
        assert _agree(runtime, nodes), "a row was changed: the sync found another power state"


def _node(info: Info, runtime: ConductorRuntime) -> Node:
    return Node(
        uuid=str(uuid.uuid4()), driver="redfish", driver_info=runtime.sealer.seal(info),
        power_state=Power.OFF, provision_state=State.MANAGEABLE, created_at=rows.now(),
    )  # fmt: skip


def _agree(runtime: ConductorRuntime, nodes: Sequence[Node]) -> bool:
    with runtime.db.read() as conn:
        found = population.power_states(conn)
    return found == {Power.OFF: len(nodes)}


# --------------------------------------------------------------------------------- the floor


def _bare_cpu_s(infos: Sequence[Info]) -> float:
    """Return the CPU of one GET of each system over a connection that is open, 8 at a time."""
    opened = [_open(info) for info in infos]
    before = time.process_time()
    rest = iter(opened)
    lock = threading.Lock()
    threads = [threading.Thread(target=_get_all, args=(rest, lock)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.process_time() - before
    for connection in opened:
        connection.close()
    return took_s


def _open(info: Info) -> http.client.HTTPConnection:
    parts = urlsplit(info["redfish_address"])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.connect()
    return connection


def _get_all(rest: Iterator[http.client.HTTPConnection], lock: threading.Lock) -> None:
    while True:
        with lock:
            connection = next(rest, None)
        if connection is None:
            return
        connection.request("GET", "/redfish/v1/")
        json.loads(connection.getresponse().read())


# ------------------------------------------------------------------------------- the systems


@contextlib.contextmanager
def _rack(idle_s: float, *tls: str) -> Iterator[list[Info]]:
    """Run the systems in a process of their own; yield what nodes need to know of them.

    ``idle_s``: after which their BMCs close a connection; ``tls``: a certificate and its key.
    """
    with harness.folder() as folder:
        file = folder / "systems.json"
        words = (str(file), "serve", str(idle_s), *tls)
        with harness.Process(sys.executable, "-m", "bench.power_sync", *words) as rack:
            rack.line(_READY_S)
            yield json.loads(file.read_text())


def _serve(file: Path, idle_s: str, *tls: str) -> None:
    from bloomery.lab.bmc import Rules
    from bloomery.lab.rack import Rack

    rules = Rules(late_s=ANSWER_S, idle_s=float(idle_s))
    with Rack(SYSTEMS, apart=True, rules=rules, tls=(tls[0], tls[1]) if tls else None) as rack:
        file.write_text(json.dumps([machine.driver_info for machine in rack.machines]))
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    if sys.argv[2:3] == ["serve"]:
        _serve(Path(sys.argv[1]), *sys.argv[3:])
    else:
        harness.main(measure)
