"""What one machine costs as the fleet grows: from enrolment to a deployment and back.

    make bench-scale                        # 100 to 10,000 machines, on each of SITES
    make bench-scale ARGS=postgresql        # one of SITES; the tables of the others stay
    make bench-scale ARGS="sqlite 100 300"  # a quick look, which writes no page
    make bench-scale ARGS=bar               # what a site may cost: see bar.py

Each size has a fresh service, and a process with one simulated Redfish BMC a machine.  All machines
are ordered of a verb at once.  CPU is that of the service's processes, without the database's.
The last phases roll out a stack, and deploy an image of no length by the agents of the lab, of
``_MOST_AT_LAST`` machines at most, so that all of it takes an hour.  Whoever waits looks at the
rows.  Tables and plot are
written into ``doc/reference``.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import sqlalchemy as sa

from bench import event_relay, harness, many_conductors
from bench.harness import Client
from bloomery.cli import client as cli_client
from bloomery.cli.client import follow_events
from bloomery.cli.fleet import batches
from bloomery.db.tables import NODES
from tools import servers

SITES: Final = {  # by name: what it is, and the sizes that are measured
    "sqlite": ("`bloomery serve` with SQLite", (100, 1000, 10_000)),
    "postgresql": ("`bloomery serve` with PostgreSQL", (100, 1000)),
    "conductors": ("an API, three conductors, PostgreSQL, JSON-RPC", (100, 1000)),
}
CONDUCTORS: Final = 3
PAGE: Final = harness.ROOT / "doc/reference/benchmarks.md"
PLOT: Final = harness.ROOT / "doc/pictures/scale.svg"
MARK: Final = "<!-- what follows is written by make bench-scale ARGS={site} -->\n"
END: Final = "<!-- end of what is written by make bench-scale -->\n"
_WAY: Final = (("manage", "manageable"), ("inspect", "manageable"), ("provide", "available"),
               ("active", "active"), ("deleted", "available"))  # fmt: skip
_ROLL_OUT, _TAKE_DOWN = "roll out by a stack", "delete the stack"
_BY_AGENTS: Final = "deploy by agents"
_PHASES: Final = ("enrol", *(verb for verb, _ in _WAY), _ROLL_OUT, _TAKE_DOWN, _BY_AGENTS)
_IMAGE: Final = {"boot_iso": "http://127.0.0.1/system.iso"}
_WRITTEN: Final = {  # an image of no length: the lab's agents download none
    "image_source": "http://127.0.0.1/system.raw", "image_disk_format": "raw",
    "image_os_hash_algo": "sha256", "image_os_hash_value": "0" * 64,
}  # fmt: skip
_CLASS: Final = "bm.scale"
_SHOWN: Final = {"active": "deploy", "deleted": "undeploy"}  # verbs in words of an operator
_IDLE_S: Final = 5.0  # after which a BMC closes a connection
_MOST_AT_LAST: Final = 1000
_BOOT_S: Final = 2.0  # from power on to the lookup of an agent
_LOOK_S: Final = 0.2
_MOST_S: Final = 3600.0
_READY_S: Final = 120.0
_REST_S: Final = 60.0  # one pass of power sync
_PAUSE_S: Final = 0.05  # between two samples of GET
_PERCENT: Final = 100
_T: Final = NODES.c
_AT_REST: Final = sa.select(sa.func.count()).where(
    _T.provision_state == sa.bindparam("state"), _T.reservation.is_(None),
    _T.target_provision_state.is_(None),
)  # fmt: skip
_FAILED: Final = sa.select(_T.name, _T.last_error).where(_T.last_error.is_not(None)).limit(1)

Json = dict[str, Any]


class Cost(NamedTuple):
    """What a phase cost one machine, and what callers met meanwhile."""

    seconds: float
    cpu_ms: float
    bmc_requests: float
    p50_ms: float
    p99_ms: float
    lag_p99_ms: float
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
    """The BMCs, in a process of their own.

    ``group``: of a scenario.  ``first``: the BMCs speak TLS at one port, at addresses from it on.
    """

    def __init__(self, folder: Path, machines: int, group: Json, *, first: str = "") -> None:
        self._file = folder / "machines.json"
        super().__init__(
            sys.executable, "-m", "bench.scale", "lab", str(self._file),
            json.dumps(group | {"count": machines}), first, stdin=-1,
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


def _serve_lab(file: Path, group: Json, first: str) -> None:
    from bloomery.lab import scenario, tls
    from bloomery.lab.simulation import Simulation

    site = scenario.of({"groups": {"sim": group}}, "")
    files = tls.certificate(file.parent) if first else None
    with Simulation(site, folder=file.parent, first=first or None, tls=files) as lab:
        file.write_text(json.dumps(lab.nodes()))
        print("ready", flush=True)
        for _ in sys.stdin:
            print(lab.overview()["requests"], flush=True)


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


class Listener:
    """Follows the stream of events, as a page does; ``lags_ms``: from each event until it came."""

    def __init__(self, port: int) -> None:
        self._client = cli_client.Client(f"http://127.0.0.1:{port}")
        self.lags_ms: list[float] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(cli_client.ApiError):  # its port may be a BMC's of the next fleet
            for event in follow_events(self._client, {}):
                lag = datetime.now(UTC) - datetime.fromisoformat(event["at"])
                self.lags_ms.append(lag.total_seconds() * 1000)


class Fleet(NamedTuple):
    """The machines of one size, and the service that has them."""

    processes: Sequence[harness.Process]
    port: int
    orchestration_port: int
    lab: Lab
    client: Client
    listener: Listener
    database: sa.Engine
    nodes: Sequence[Json]

    def cpu_s(self) -> float:
        return sum(process.cpu_s() for process in self.processes)

    def rss_mib(self) -> float:
        return sum(process.rss_mib() for process in self.processes)

    def database_mib(self) -> float:
        with self.database.connect() as conn:
            if conn.dialect.name == "sqlite":
                sizes = [conn.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                         for name in ("page_count", "page_size")]  # fmt: skip
                return sizes[0] * sizes[1] / 2**20
            size = conn.exec_driver_sql("SELECT pg_database_size(current_database())")
            return int(size.scalar_one()) / 2**20

    def measure(self, work: Callable[[], int]) -> Cost:
        """Return the cost of ``work``, which returns how many orders were refused at first."""
        count, asked = len(self.nodes), self.lab.requests()
        self.listener.lags_ms.clear()
        cpu_s, began = self.cpu_s(), time.monotonic()
        with Sampler(self.port) as sampler:
            refusals = work()
            seconds = time.monotonic() - began
            cpu_ms = (self.cpu_s() - cpu_s) * 1000 / count
        return Cost(
            seconds=seconds, cpu_ms=cpu_ms, refusals=refusals,
            bmc_requests=(self.lab.requests() - asked) / count,
            p50_ms=statistics.median(sampler.took_ms), p99_ms=_p99(sampler.took_ms),
            lag_p99_ms=_p99(self.listener.lags_ms),
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

    def roll_out(self) -> int:
        """Deploy all machines as the members of one stack."""
        member = {"name": "server-%index%", "selector": {"resource_class": _CLASS}, "image": _IMAGE}
        pool = {
            "type": "OS::Ironic::InstanceGroup",
            "properties": {"count": len(self.nodes), "member": member},
        }
        template = {"heat_template_version": "2021-04-16", "resources": {"pool": pool}}
        self._ask_stacks("POST", "", {"stack_name": "fleet", "template": template})
        self._wait("active")  # by the rows: to ask for the stack would cost the service
        harness.until(lambda: self._stack_has("CREATE_COMPLETE"), "the stack", timeout_s=_MOST_S)
        return 0

    def take_down(self) -> int:
        self._ask_stacks("DELETE", f"/fleet/{self._stack()['id']}")
        self._wait("available")
        return 0

    def deploy_by_agents(self) -> int:
        """Deploy an image that no agent writes."""
        patch = [
            {"op": "add", "path": "/deploy_interface", "value": "direct"},
            {"op": "add", "path": "/instance_info", "value": _WRITTEN},
        ]
        for node in self.nodes:
            self.client.ask("PATCH", f"/v1/nodes/{node['name']}", patch)
        return self.take("active", "active")

    def _stack(self) -> Json:
        (stack,) = json.loads(self._ask_stacks("GET", ""))["stacks"]
        return dict(stack)

    def _stack_has(self, status: str) -> bool:
        return bool(self._stack()["stack_status"] == status)

    def _ask_stacks(self, verb: str, path: str, body: Json | None = None) -> bytes:
        with closing(Client(self.orchestration_port)) as client:
            return client.ask(verb, f"/v1/admin/stacks{path}", body)

    def cpu_at_rest_percent(self) -> float:
        before = self.cpu_s()
        time.sleep(_REST_S)
        return (self.cpu_s() - before) / _REST_S * 100

    def _wait(self, state: str) -> None:
        give_up_at = time.monotonic() + _MOST_S
        while self._count(state) < len(self.nodes):
            with self.database.connect() as conn:
                failed = conn.execute(_FAILED).one_or_none()
            if failed or time.monotonic() > give_up_at:
                raise RuntimeError(f"not every machine came to {state}: {failed}")
            time.sleep(_LOOK_S)

    def _count(self, state: str) -> int:
        with self.database.connect() as conn:
            return int(conn.execute(_AT_REST, {"state": state}).scalar_one())

    def _post(self, path: str, body: Json) -> Json:
        answer: Json = json.loads(self.client.ask("POST", path, body))
        return answer


def _p99(values: Sequence[float]) -> float:
    return float(statistics.quantiles([*values, *values], n=_PERCENT)[-1])


@contextmanager
def _fleet(site: str, machines: int, folder: Path) -> Iterator[Fleet]:
    options: dict[str, Any] = {
        "conductor/sync_power_state_interval": 60,
        "conductor/preflight_timeout": 0,  # no server has the images
        "conductor/max_concurrent_deploy": machines,
        "conductor/max_concurrent_clean": machines,
        "engine/max_machines_per_group": machines,
    }
    with ExitStack() as stack:
        url = sa.make_url(f"sqlite:///file:{folder}/home/bloomery.sqlite?mode=ro&uri=true")
        if site != "sqlite":
            server = stack.enter_context(servers.postgresql())
            at = sa.make_url(server.env["BLOOMERY_TEST_POSTGRESQL"])
            db = stack.enter_context(event_relay.database(at))
            url = db.url
            options["database/connection"] = url.render_as_string(hide_password=False)
        if site == "conductors":
            options["DEFAULT/enabled_hardware_types"] = "redfish"
            processes: Sequence[Any] = stack.enter_context(
                many_conductors.started(db, CONDUCTORS, options, "engine")
            )
        else:
            processes = [stack.enter_context(harness.Server(folder / "home", options))]
        api = processes[-1]
        group = {
            "idle_s": _IDLE_S,
            "agent": {
                "api": f"http://127.0.0.1:{api.port}", "image": "agent.iso", "boot_s": _BOOT_S,
            },
            "node": {"instance_info": _IMAGE, "resource_class": _CLASS,
                     "driver_info": {"deploy_iso": "http://127.0.0.1/agent.iso"}},
        }  # fmt: skip
        lab = stack.enter_context(Lab(folder, machines, group))
        client = stack.enter_context(closing(Client(api.port)))
        database = sa.create_engine(url, poolclass=sa.pool.NullPool)
        yield Fleet(
            processes, api.port, api.orchestration_port, lab, client, Listener(api.port), database,
            lab.nodes(),
        )  # fmt: skip


def _measured(site: str, machines: int) -> Size:
    with harness.folder() as folder, _fleet(site, machines, folder) as fleet:
        size = Size(machines, fleet.rss_mib())
        size.phases["enrol"] = fleet.measure(fleet.enrol)
        _tell(size, "enrol")
        for verb, state in _WAY:
            size.phases[verb] = fleet.measure(lambda v=verb, s=state: fleet.take(v, s))
            _tell(size, verb)
        works = {
            _ROLL_OUT: fleet.roll_out, _TAKE_DOWN: fleet.take_down,
            _BY_AGENTS: fleet.deploy_by_agents,
        }  # fmt: skip
        for phase, work in works.items() if machines <= _MOST_AT_LAST else ():
            size.phases[phase] = fleet.measure(work)
            _tell(size, phase)
        size.rest_percent = fleet.cpu_at_rest_percent()
        size.full_mib = fleet.rss_mib()
        size.database_mib = fleet.database_mib()
    return size


def _tell(size: Size, phase: str) -> None:
    print(_row(size, phase), flush=True)


# -------------------------------------------------------------------------------------- writing


def _heading() -> str:
    return (
        "| Machines | Phase | machines / minute | CPU ms / machine | BMC requests / machine | GET "
        "p50, ms | GET p99, ms | event lag p99, ms |\n|---|---|---|---|---|---|---|---|"
    )


def _row(size: Size, phase: str) -> str:
    cost = size.phases[phase]
    return (
        f"| {size.machines:,} | {_SHOWN.get(phase, phase)} "
        f"| {size.machines / cost.seconds * 60:,.0f} | {cost.cpu_ms:.1f} "
        f"| {cost.bmc_requests:.1f} | {cost.p50_ms:.1f} | {cost.p99_ms:.1f} "
        f"| {cost.lag_p99_ms:.0f} |"
    )


def _text(site: str, sizes: Sequence[Size]) -> str:
    rows = [_row(size, phase) for size in sizes for phase in size.phases]
    first, last = sizes[0], sizes[-1]
    growth = {
        phase: cost.cpu_ms / first.phases[phase].cpu_ms - 1 for phase, cost in last.phases.items()
    }
    slopes = ", ".join(
        f"{_SHOWN.get(phase, phase)} {share * 100:+.0f} %" for phase, share in growth.items()
    )
    refusals = sum(cost.refusals for size in sizes for cost in size.phases.values())
    memory = "\n".join(
        f"| {size.machines:,} | {size.rest_percent:.1f} | {size.idle_mib:.0f} "
        f"| {size.full_mib:.0f} | {size.database_mib:.1f} |"
        for size in sizes
    )
    span = f"CPU of one machine among {last.machines:,}, against one among {first.machines:,}"
    return "\n".join([
        "", f"### {SITES[site][0]}", "", _heading(), *rows, "",
        f"{span}:", textwrap.fill(f"{slopes}.", 119),
        f"Orders that were refused at first, and given again: {refusals:,}.", "",
        "| Machines | CPU at rest, % | MiB at the start | MiB at the end | database, MiB |",
        "|---|---|---|---|---|", memory, "", f"One run; {machine()}.", "",
    ])  # fmt: skip


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _FOOT = 640, 360, 60, 20, 110, 50
_COLOURS: Final = (
    "#4477aa", "#ee6677", "#66aadd", "#228833", "#aa7711", "#aa3377", "#333333", "#888888",
    "#bb4411",
)  # fmt: skip


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
        ways = [up(size.phases[phase].cpu_ms) for size in sizes if phase in size.phases]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, ways, strict=False))
        line = f'fill="none" stroke="{colour}" stroke-width="2"'
        parts.append(f'<polyline points="{points}" {line}/>')
        name = _SHOWN.get(phase, phase)
        parts.append(_label(across[len(ways) - 1] + 8, ways[-1] + 4, name, "start", colour))
    return "\n".join([*parts, "</svg>", ""])


def _label(x: float, y: float, text: str, anchor: str, colour: str = "#333333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def main(words: Sequence[str]) -> None:
    """``words``: names of SITES and sizes, all of them where none is given; or those of ``bar``."""
    from bench import bar  # which imports this module

    if "bar" in words or words == [str(bar.ROWS)]:
        bar.run(words)
        return
    sizes = [int(word) for word in words if word.isdigit()]
    for site in [word for word in words if word in SITES] or SITES:
        print(f"\n{SITES[site][0]}\n{_heading()}", flush=True)
        measured = [_measured(site, machines) for machines in sizes or SITES[site][1]]
        text = _text(site, measured)
        print(text, flush=True)
        if not sizes:
            write(site, text)
        if not sizes and site == "sqlite":
            PLOT.write_text(plot(measured))


def write(site: str, text: str) -> None:
    """Replace the tables of one site on the page."""
    before, mark, rest = PAGE.read_text().partition(MARK.format(site=site))
    PAGE.write_text(before + mark + text + END + rest.partition(END)[2])


if __name__ == "__main__":
    if sys.argv[1:2] == ["lab"]:
        _serve_lab(Path(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4])
    else:
        main(sys.argv[1:])
