"""How long a GET of another node takes while 64 callers want one node that is held.

The node's fake power takes its time, so that its lock is held.  Callers live in a process of
their own; whoever is told that the node is busy asks again after a second.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Sequence

from bench import harness
from bench.harness import Client, Line, Server

CALLERS = 64
GETS = 600
HELD_S = 60
_AGAIN_S = 1.0
_PATIENT = {"Prefer": "wait=30"}


def measure() -> Sequence[Line]:
    waiting = Line(what=f"p99 of GET while {CALLERS} wait for one node", unit="ms", at_most=20,
                   connections=CALLERS + 1)  # fmt: skip
    with harness.folder() as folder, Server(folder / "home") as server:
        held, other = _enrol(server, HELD_S), _enrol(server, 0)
        quiet = [_p99_ms(server, other) for _ in harness.rounds()]
        server.client().ask("PUT", f"/v1/nodes/{held}/states/power", {"target": "power on"})
        with harness.Process(
            sys.executable, "-m", "bench.waiting", str(server.port), held
        ) as callers:
            callers.line()
            time.sleep(_AGAIN_S)
            for floor in quiet:
                waiting.add(_p99_ms(server, other), floor)
    return [waiting]


def _enrol(server: Server, delay_s: float) -> str:
    info = {"fake": {"delay": {"power.set_power_state": delay_s}}}
    node = {"driver": "fake-hardware", "driver_info": info}
    return str(json.loads(server.client().ask("POST", "/v1/nodes", node))["uuid"])


def _p99_ms(server: Server, node: str) -> float:
    client, took_ms = server.client(), []
    for _ in range(GETS):
        began = time.perf_counter()
        client.ask("GET", f"/v1/nodes/{node}")
        took_ms.append((time.perf_counter() - began) * 1000)
    client.close()
    return statistics.quantiles(took_ms, n=100)[-1]


def _call_for_ever(port: int, node: str) -> None:
    """Want to change a node that is held; a refusal is met with another try."""
    client = Client(port)
    patch = [{"op": "add", "path": "/extra/a", "value": 1}]
    while True:
        client.ask("PATCH", f"/v1/nodes/{node}", patch, _PATIENT, allowed=(200, 409))
        time.sleep(_AGAIN_S)


def _call(port: int, node: str) -> None:
    for _ in range(CALLERS):
        threading.Thread(target=_call_for_ever, args=(port, node), daemon=True).start()
    print("calling", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _call(int(sys.argv[1]), sys.argv[2])
    else:
        harness.main(measure)
