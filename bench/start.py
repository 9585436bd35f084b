"""From the call of the command to the first answer, on a database that exists: CPU.

The floor is the start of the interpreter alone.
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import harness, population
from bench.harness import Line
from tools.servers import free_port

NODES = 1000
_WITH_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}  # of our modules, as pip installs them


def measure() -> Sequence[Line]:
    line = Line(what="start to the first 200", unit="s", at_most=60, ratio=True,
                connections=1)  # fmt: skip
    with harness.folder() as folder:
        home = population.make(folder / "home", NODES)
        _start_s(home)
        for _ in harness.rounds():
            line.add(_start_s(home), _interpreter_s())
    return (line,)


def _start_s(home: Path) -> float:
    port = free_port()
    server = harness.Server(home, port=port, env=_WITH_BYTECODE)
    try:
        harness.until(lambda: _answers(port), "the first answer")
        return server.cpu_s()
    finally:
        server.__exit__()


def _answers(port: int) -> bool:
    try:
        harness.Client(port).ask("GET", "/v1/nodes?limit=1")
    except (OSError, http.client.HTTPException):
        return False
    return True


def _interpreter_s() -> float:
    with harness.Process(sys.executable, "-c", "print(1, flush=True); input()", stdin=-1) as one:
        one.line()
        return one.cpu_s()


if __name__ == "__main__":
    harness.main(measure)
