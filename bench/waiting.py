"""How long a GET of another node takes while many callers wait: for a node, or for BMCs.

64 want one node that is held, as its fake power takes its time; 50 ask for the boot devices of
machines whose BMCs are mute.  Callers live in a process of their own; whoever is told that the
node, or the API, is busy asks again after a second.  And how long it takes to set the boot devices
of 50 machines at once, whose BMCs take half a second for an answer.
"""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench import harness
from bench.harness import Client, Line, Server
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Rack

CALLERS = 64
ASKERS = 50
BMCS = 10
GETS = 600
HELD_S = 60
_AGAIN_S = 1.0
_LATE_S = 0.5
_PATIENT = {"Prefer": "wait=30"}
_DRIVERS = {"DEFAULT/enabled_hardware_types": "fake-hardware,redfish"}


def measure() -> Sequence[Line]:
    waiting = Line(what=f"p99 of GET while {CALLERS} wait for one node", unit="ms", at_most=15,
                   ratio=True, connections=CALLERS + 1)  # fmt: skip
    asking = Line(what=f"p99 of GET while {ASKERS} ask mute BMCs", unit="ms", at_most=15,
                  ratio=True, connections=ASKERS + 1)  # fmt: skip
    with harness.folder() as folder, Server(folder / "home", _DRIVERS) as server:
        task, other = _enrol(server, _fake(HELD_S)), _enrol(server, _fake(0))
        quiet = [_p99_ms(server, other) for _ in harness.rounds()]
        server.client().ask("PUT", f"/v1/nodes/{task}/states/power", {"target": "power on"})
        _beside(waiting, server, other, quiet, [task])
        with _mute() as addresses:
            mute = [_enrol(server, _redfish(address)) for address in addresses]
            _beside(asking, server, other, quiet, mute)
        setting = _set_at_once(server)
    return waiting, asking, setting


def _set_at_once(server: Server) -> Line:
    """Note how long it takes to set the boot devices of a rack, all at once."""
    line = Line(what=f"{ASKERS} boot devices set at once", unit="s", at_most=15, connections=ASKERS)
    with Rack(ASKERS, apart=True, rules=Rules(late_s=_LATE_S)) as rack:
        nodes = [
            _enrol(server, {"driver": "redfish", "driver_info": machine.driver_info})
            for machine in rack.machines
        ]
        for _ in harness.rounds():
            began = time.perf_counter()
            with ThreadPoolExecutor(ASKERS) as pool:
                list(pool.map(lambda node: _set_boot_device(server, node), nodes))
            line.add(time.perf_counter() - began)
    return line


def _set_boot_device(server: Server, node: str) -> None:
    client = server.client()
    order = {"boot_device": "pxe", "persistent": False}
    client.ask("PUT", f"/v1/nodes/{node}/management/boot_device", order, allowed=(204,))
    client.close()


def _beside(
    line: Line, server: Server, other: str, quiet: Sequence[float], nodes: Sequence[str]
) -> None:
    """Note what a GET takes while callers wait for ``nodes``: for one held, or many mute."""
    command = (sys.executable, "-m", "bench.waiting", str(server.port), *nodes)
    with harness.Process(*command) as callers:
        callers.line()
        time.sleep(_AGAIN_S)
        for floor in quiet:
            line.add(_p99_ms(server, other), floor)


@contextlib.contextmanager
def _mute() -> Iterator[list[str]]:
    """BMCs that take connections and say nothing."""
    with contextlib.ExitStack() as opened:
        holes = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(BMCS)]
        yield [f"http://127.0.0.1:{hole.getsockname()[1]}" for hole in holes]


def _fake(delay_s: float) -> dict[str, Any]:
    info = {"fake": {"delay": {"power.set_power_state": delay_s}}}
    return {"driver": "fake-hardware", "driver_info": info}


def _redfish(address: str) -> dict[str, Any]:
    return {"driver": "redfish", "driver_info": {"redfish_address": address}}


def _enrol(server: Server, node: dict[str, Any]) -> str:
    return str(json.loads(server.client().ask("POST", "/v1/nodes", node))["uuid"])


def _p99_ms(server: Server, node: str) -> float:
    client, took_ms = server.client(), []
    for _ in range(GETS):
        began = time.perf_counter()
        client.ask("GET", f"/v1/nodes/{node}")
        took_ms.append((time.perf_counter() - began) * 1000)
    client.close()
    return statistics.quantiles(took_ms, n=100)[-1]


def _want_for_ever(port: int, node: str) -> None:
    """Want to change a node that is held; a refusal is met with another try."""
    client = Client(port)
    patch = [{"op": "add", "path": "/extra/a", "value": 1}]
    while True:
        client.ask("PATCH", f"/v1/nodes/{node}", patch, _PATIENT, allowed=(200, 409))
        time.sleep(_AGAIN_S)


def _ask_for_ever(port: int, node: str) -> None:
    """Ask for the boot device of a machine whose BMC is mute."""
    client = Client(port)
    while True:
        path = f"/v1/nodes/{node}/management/boot_device"
        client.ask("GET", path, allowed=(409, 500, 503))
        time.sleep(_AGAIN_S)


def _call(port: int, nodes: Sequence[str]) -> None:
    work, count = (_ask_for_ever, ASKERS) if len(nodes) > 1 else (_want_for_ever, CALLERS)
    for number in range(count):
        node = nodes[number % len(nodes)]
        threading.Thread(target=work, args=(port, node), daemon=True).start()
    print("calling", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        _call(int(sys.argv[1]), sys.argv[2:])
    else:
        harness.main(measure)
