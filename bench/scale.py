"""What one machine costs as the fleet grows: from enrolment to a deployment and back.

    make bench-scale                      # 100, 300, 1,000, 3,000, 10,000 machines
    make bench-scale ARGS="100 300"       # a quick look, which writes no page

Each size has a fresh service with SQLite, and a process with one simulated Redfish BMC a machine.
All machines are ordered of a verb at once.  CPU is that of the service alone.  Whoever waits looks
at the database file.  The table and the plot are written into ``doc/reference``.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from bench import harness
from bench.harness import Client
from bloomery.cli.fleet import batches

SIZES: Final = (100, 300, 1000, 3000, 10_000)
PAGE: Final = harness.ROOT / "doc/reference/benchmarks.md"
PLOT: Final = harness.ROOT / "doc/pictures/scale.svg"
MARK: Final = "<!-- what follows is written by make bench-scale -->\n"
END: Final = "<!-- end of what is written by make bench-scale -->\n"
_WAY: Final = (("manage", "manageable"), ("provide", "available"), ("active", "active"),
               ("deleted", "available"))  # fmt: skip
_PHASES: Final = ("enrol", *(verb for verb, _ in _WAY))
_SHOWN: Final = {"active": "deploy", "deleted": "undeploy"}  # verbs in words of an operator
_IDLE_S: Final = 5.0  # after which a BMC closes a connection; each has a thread of the lab
_LOOK_S: Final = 0.2
_MOST_S: Final = 3600.0
_READY_S: Final = 120.0
_REST_S: Final = 60.0  # one pass of power sync
_PAUSE_S: Final = 0.05  # between two samples of GET
_PERCENT: Final = 100
_AT_REST: Final = (
    "SELECT count(*) FROM nodes WHERE provision_state = ? AND reservation IS NULL"
    " AND target_provision_state IS NULL"
)
_FAILED: Final = "SELECT name, last_error FROM nodes WHERE last_error IS NOT NULL LIMIT 1"

Json = dict[str, Any]


class Cost(NamedTuple):
    """What a phase cost one machine, and what callers met meanwhile."""

    seconds: float
    cpu_ms: float
    bmc_requests: float
    p50_ms: float
    p99_ms: float
    refusals: int


@dataclass(slots=True)
class Size:
    """All that was measured of one size."""

    machines: int
    idle_mib: float
    phases: dict[str, Cost] = field(default_factory=dict)
    rest_percent: float = 0.0  # CPU of a core, of a fleet to which nothing happens
    full_mib: float = 0.0
    database_mib: float = 0.0


# ------------------------------------------------------------------------------------- the rack


class Lab(harness.Process):
    """The BMCs, in a process of their own."""

    def __init__(self, machines: int, folder: Path) -> None:
        self._file = folder / "machines.json"
        super().__init__(
            sys.executable, "-m", "bench.scale", "lab", str(machines), str(self._file),
            stdin=-1,
        )  # fmt: skip

    def nodes(self) -> list[Json]:
        self.line(_READY_S)
        nodes: list[Json] = json.loads(self._file.read_text())
        return nodes

    def requests(self) -> int:
        """Return how many requests the BMCs have had."""
        assert self._child.stdin is not None
        self._child.stdin.write(b"\n")
        self._child.stdin.flush()
        return int(self.line(_READY_S))


def _serve_lab(machines: int, file: Path) -> None:
    from bloomery.lab.bmc import Rules
    from bloomery.lab.rack import Rack

    rules = Rules(idle_s=_IDLE_S)
    with Rack(machines, apart=True, rules=rules, power_s=0.0) as rack:
        boots = {"instance_info": {"boot_iso": "http://127.0.0.1/system.iso"}}
        file.write_text(json.dumps([each.node | boots for each in rack.machines]))
        print("ready", flush=True)
        for _ in sys.stdin:
            print(sum(bmc.requests for bmc in rack.bmcs), flush=True)


# ------------------------------------------------------------------------------------ measuring


class Sampler:
    """GETs of nodes, one after another, while others keep the service busy."""

    def __init__(self, port: int) -> None:
        self._client = Client(port)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.took_ms: list[float] = []

    def _run(self) -> None:
        while not self._ending.wait(_PAUSE_S):
            began = time.perf_counter()
            self._client.ask("GET", "/v1/nodes/sim-0000", allowed=(200, 404))
            self.took_ms.append((time.perf_counter() - began) * 1000)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ending.set()
        self._thread.join()
        self._client.close()


class Fleet(NamedTuple):
    """The machines of one size, and the service that has them."""

    server: harness.Server
    lab: Lab
    client: Client
    database: sqlite3.Connection
    nodes: Sequence[Json]

    def measure(self, work: Callable[[], int]) -> Cost:
        """Return the cost of ``work``, which returns how many orders were refused at first."""
        count, asked = len(self.nodes), self.lab.requests()
        cpu_s, began = self.server.cpu_s(), time.monotonic()
        with Sampler(self.server.port) as sampler:
            refusals = work()
            seconds = time.monotonic() - began
            cpu_ms = (self.server.cpu_s() - cpu_s) * 1000 / count
        took = sampler.took_ms or [0.0]
        percentiles = statistics.quantiles([*took, *took], n=_PERCENT)
        return Cost(
            seconds=seconds, cpu_ms=cpu_ms, refusals=refusals,
            bmc_requests=(self.lab.requests() - asked) / count,
            p50_ms=statistics.median(took), p99_ms=percentiles[-1],
        )  # fmt: skip

    def enrol(self) -> int:
        for batch in batches(self.nodes):
            self._post("/ext/v1/nodes:batch", {"nodes": batch})
        return 0

    def take(self, verb: str, state: str) -> int:
        """Order a verb of every machine, again of those that were refused; wait for the state."""
        left, refusals = [node["name"] for node in self.nodes], 0
        while left:
            refused: list[str] = []
            for batch in batches(left):
                body = {"nodes": batch, "provision": {"target": verb}}
                results = self._post("/ext/v1/nodes:act", body)["results"]
                refused += [each["node"] for each in results if each["error"]]
            refusals += len(refused)
            if refused:
                time.sleep(_LOOK_S)
            left = refused
        self._wait(state)
        return refusals

    def cpu_at_rest_percent(self) -> float:
        before = self.server.cpu_s()
        time.sleep(_REST_S)
        return (self.server.cpu_s() - before) / _REST_S * 100

    def _wait(self, state: str) -> None:
        give_up_at = time.monotonic() + _MOST_S
        while self.database.execute(_AT_REST, (state,)).fetchone()[0] < len(self.nodes):
            failed = self.database.execute(_FAILED).fetchone()
            if failed or time.monotonic() > give_up_at:
                raise RuntimeError(f"not every machine came to {state}: {failed}")
            time.sleep(_LOOK_S)

    def _post(self, path: str, body: Json) -> Json:
        answer: Json = json.loads(self.client.ask("POST", path, body))
        return answer


@contextmanager
def _fleet(machines: int, folder: Path) -> Iterator[Fleet]:
    home = folder / "home"
    options = {
        "conductor/sync_power_state_interval": 60,
        "conductor/max_concurrent_deploy": machines,
        "conductor/max_concurrent_clean": machines,
        "redfish/connection_cache_size": machines,
    }
    with Lab(machines, folder) as lab, harness.Server(home, options) as server:
        uri = f"file:{home / 'bloomery.sqlite'}?mode=ro"
        with (
            closing(server.client()) as client,
            closing(sqlite3.connect(uri, uri=True)) as database,
        ):
            yield Fleet(server, lab, client, database, lab.nodes())


def _measured(machines: int) -> Size:
    with harness.folder() as folder, _fleet(machines, folder) as fleet:
        size = Size(machines, fleet.server.rss_mib())
        size.phases["enrol"] = fleet.measure(fleet.enrol)
        _tell(size, "enrol")
        for verb, state in _WAY:
            size.phases[verb] = fleet.measure(lambda v=verb, s=state: fleet.take(v, s))  # type: ignore[misc]
            _tell(size, verb)
        size.rest_percent = fleet.cpu_at_rest_percent()
        size.full_mib = fleet.server.rss_mib()
        files = (folder / "home").glob("bloomery.sqlite*")
        size.database_mib = sum(file.stat().st_size for file in files) / 2**20
    return size


def _tell(size: Size, phase: str) -> None:
    print(_row(size, phase), flush=True)


# -------------------------------------------------------------------------------------- writing


def _heading() -> str:
    return (
        "| Machines | Phase | machines / minute | CPU ms / machine | BMC requests / machine | GET "
        "p50, ms | GET p99, ms |\n|---|---|---|---|---|---|---|"
    )


def _row(size: Size, phase: str) -> str:
    cost = size.phases[phase]
    return (
        f"| {size.machines:,} | {_SHOWN.get(phase, phase)} "
        f"| {size.machines / cost.seconds * 60:,.0f} | {cost.cpu_ms:.1f} "
        f"| {cost.bmc_requests:.1f} | {cost.p50_ms:.1f} | {cost.p99_ms:.1f} |"
    )


def _text(sizes: Sequence[Size]) -> str:
    rows = [_row(size, phase) for size in sizes for phase in _PHASES]
    first, last = sizes[0], sizes[-1]
    slopes = ", ".join(
        f"{_SHOWN.get(phase, phase)} "
        f"{(last.phases[phase].cpu_ms / first.phases[phase].cpu_ms - 1) * 100:+.0f} %"
        for phase in _PHASES
    )
    refusals = sum(cost.refusals for size in sizes for cost in size.phases.values())
    memory = "\n".join(
        f"| {size.machines:,} | {size.rest_percent:.1f} | {size.idle_mib:.0f} "
        f"| {size.full_mib:.0f} | {size.database_mib:.1f} |"
        for size in sizes
    )
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    span = f"CPU of one machine among {last.machines:,}, against one among {first.machines:,}"
    return "\n".join([
        "", _heading(), *rows, "",
        f"{span}:",
        f"{slopes}.",
        f"Orders that were refused at first, and given again: {refusals:,}.", "",
        "![CPU of one machine by size of the fleet](../pictures/scale.svg)", "",
        "| Machines | CPU at rest, % | MiB at the start | MiB at the end | database, MiB |",
        "|---|---|---|---|---|", memory, "",
        f"One run; {machine}.", "",
    ])  # fmt: skip


_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _FOOT = 640, 360, 60, 20, 110, 50
_COLOURS: Final = ("#4477aa", "#ee6677", "#228833", "#aa7711", "#aa3377")


def plot(sizes: Sequence[Size]) -> str:
    """Return the CPU of one machine against the size of the fleet, a line for each phase."""
    most = max(cost.cpu_ms for size in sizes for cost in size.phases.values())
    inner = _WIDTH - _LEFT - _RIGHT
    across = [_LEFT + inner * n / max(len(sizes) - 1, 1) for n in range(len(sizes))]
    base = _HEIGHT - _FOOT

    def up(cpu_ms: float) -> float:
        return base - (base - _TOP) * cpu_ms / most

    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
    ]
    for part in range(5):
        y = up(most * part / 4)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#dddddd"/>')
        parts.append(_label(_LEFT - 8, y + 4, f"{most * part / 4:.1f}", "end"))
    parts += [
        _label(x, base + 20, f"{size.machines:,}", "middle")
        for x, size in zip(across, sizes, strict=True)
    ]
    parts.append(_label(_LEFT + inner / 2, _HEIGHT - 10, "machines", "middle"))
    parts.append(_label(_LEFT, _TOP - 6, "CPU of one machine, ms", "start"))
    for phase, colour in zip(_PHASES, _COLOURS, strict=True):
        ways = [up(size.phases[phase].cpu_ms) for size in sizes]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, ways, strict=True))
        line = f'fill="none" stroke="{colour}" stroke-width="2"'
        parts.append(f'<polyline points="{points}" {line}/>')
        name = _SHOWN.get(phase, phase)
        parts.append(_label(across[-1] + 8, ways[-1] + 4, name, "start", colour))
    return "\n".join([*parts, "</svg>", ""])


def _label(x: float, y: float, text: str, anchor: str, colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def main(names: Sequence[str]) -> None:
    print(_heading(), flush=True)
    sizes = [_measured(machines) for machines in map(int, names or SIZES)]
    print(_text(sizes))
    if not names:
        PLOT.write_text(plot(sizes))
        before, _, rest = PAGE.read_text().partition(MARK)
        PAGE.write_text(before + MARK + _text(sizes) + END + rest.partition(END)[2])


if __name__ == "__main__":
    if sys.argv[1:2] == ["lab"]:
        _serve_lab(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main(sys.argv[1:])
