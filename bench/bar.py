"""The bar: what a site of 13,500 BMCs, and one of 100,000 nodes, may cost on two cores.

    make bench-scale ARGS=bar        # 13,500 BMCs, from discovery to ready; 2,000 as conductors die
    make bench-scale ARGS="bar 300"  # a quick look with 300 of them, which writes no page
    make bench-scale ARGS=100000     # rows of 100,000 nodes on PostgreSQL

Each third BMC is a host's, and the next two are those of its DPUs, which are its child nodes.  All
speak TLS at one port, at addresses of 127.0.0.0/8, answer after 100 ms, and fail 1 % of the
requests.  An operator brings the machines: ``bloomery discover``, ``bloomery enrol``, then manage,
inspect and provide, again for the nodes that failed.  A loop of known work tells one machine from
another.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, summarize_address_range
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import sqlalchemy as sa

from bench import event_relay, harness, many_conductors, population, scale
from bench.harness import Client
from bloomery.cli.fleet import batches
from bloomery.db.tables import NODES
from bloomery.state_dir import StateDir
from tools import servers

BMCS: Final = 13_500
CHILDREN: Final = 2  # of a host
ROWS: Final = 100_000
GOAL_MIN: Final = 15
AT_REST_PERCENT: Final = 3
CONDUCTORS: Final = 2
BMCS_WITH_DEATHS: Final = 2000  # on PostgreSQL, where a machine costs twice as much
KILL_EVERY_S: Final = 60.0
_FIRST: Final = "127.1.0.1"
_MOST_SEARCHED: Final = 4096  # addresses of one ``bloomery discover``
_LATE_S: Final = 0.1
_FAULTS: Final = (  # 1 % of the requests
    {"kind": "status", "status": 503, "probability": 0.005},
    {"kind": "reset", "probability": 0.003},
    {"kind": "delay", "seconds": 3, "probability": 0.002},
)
_IDLE_S: Final = 300.0  # before a BMC closes a connection
_LOOP: Final = 10_000_000
_LOOK_S: Final = 2.0
_SETTLES_S: Final = 30.0
_REST_S: Final = 60.0  # a pass of power sync
_MOST_S: Final = 7200.0
_MOST_TRIES: Final = 20
_T: Final = NODES.c
_AT_REST: Final = sa.select(_T.name, _T.provision_state, _T.maintenance).where(
    _T.reservation.is_(None),
    # a failed clean keeps the state that it was to end in
    sa.or_(_T.target_provision_state.is_(None), _T.provision_state == "clean failed"),
)
_HELD: Final = sa.select(sa.func.count()).where(_T.reservation.is_not(None))
# The verb that an operator gives a node at rest; a node that was inspected is provided instead.
_VERBS: Final = {
    "enroll": "manage", "manageable": "inspect", "inspect failed": "inspect",
    "clean failed": "manage",
}  # fmt: skip
_OPTIONS: Final[dict[str, Any]] = {
    "DEFAULT/enabled_hardware_types": "redfish",
    "conductor/sync_power_state_interval": 60,
}
Json = dict[str, Any]


class Row(NamedTuple):
    """A line of the table; ``goal`` "" where the figure only informs."""

    what: str
    goal: str
    measured: str


def loop_s() -> float:
    """Return the seconds of 10 million multiplications: how fast this machine is now."""
    began, product = time.perf_counter(), 1
    for number in range(_LOOP):
        product = number * 3
    assert product
    return time.perf_counter() - began


def table(rows: Sequence[Row]) -> str:
    lines = [f"| {row.what} | {row.goal} | {row.measured} |" for row in rows]
    return "\n".join(["| What | Goal | Measured |", "|---|---|---|", *lines])


# ---------------------------------------------------------------------- from discovery to ready


@dataclass(slots=True)
class Site:
    """A service, its BMCs, and what an operator does with them."""

    processes: Sequence[harness.Process]
    port: int
    env: dict[str, str]
    lab: scale.Lab
    database: sa.Engine
    folder: Path
    nodes: Sequence[Json]
    operator_s: float = 0.0  # CPU of the commands
    repeats: int = 0  # orders that were given again, after a fault
    minutes: dict[str, float] = field(default_factory=dict)

    def bring(self) -> None:
        """Take all machines from discovery to ready; note the minutes of each step."""
        self._note("discover", self._discover)
        self._note("enrol", self._enrol)
        self._note("manage, inspect, provide", self._provide)

    def _note(self, name: str, step: Callable[[], None]) -> None:
        began = time.monotonic()
        step()
        self.minutes[name] = (time.monotonic() - began) / 60
        print(f"{name}: {self.minutes[name]:.1f} min", flush=True)

    def _discover(self) -> None:
        """Search the networks, again for the addresses that have not answered."""
        address = IPv4Address(_FIRST)
        missing = [str(address + number) for number in range(len(self.nodes))]
        port = self.nodes[0]["driver_info"]["redfish_address"].rpartition(":")[2]
        rows: dict[str, Json] = {}
        while missing:
            for start in range(0, len(missing), _MOST_SEARCHED):
                part = [IPv4Address(each) for each in missing[start : start + _MOST_SEARCHED]]
                networks = (
                    list(summarize_address_range(part[0], part[-1]))
                    if int(part[-1]) - int(part[0]) == len(part) - 1
                    else part
                )
                text = self._bloomery(
                    "discover", *map(str, networks), "--redfish-port", port, "--rate", "1000"
                ).stdout
                rows |= {row["bmc"]: row for row in csv.DictReader(text.splitlines())}
            addresses = {url.rpartition("/")[2].partition(":")[0] for url in rows}
            missing = [each for each in missing if each not in addresses]
            self.repeats += len(missing)
        self._write(rows)

    def _write(self, rows: dict[str, Json]) -> None:
        """Add what the operator knows: names, logins, MACs, and the host of each DPU."""
        more = ("macs", "parent_node", "driver_info.redfish_verify_ca")
        with self._machines.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*next(iter(rows.values())), *more])
            writer.writeheader()
            for number, node in enumerate(self.nodes):
                host = number - number % (1 + CHILDREN)
                info = node["driver_info"]
                row = rows[info["redfish_address"]] | {
                    "name": node["name"], "username": info["redfish_username"],
                    "password": info["redfish_password"], "macs": node["ports"][0]["address"],
                    "parent_node": "" if host == number else self.nodes[host]["name"],
                    "driver_info.redfish_verify_ca": "false",
                }  # fmt: skip
                writer.writerow(row)

    @property
    def _machines(self) -> Path:
        return self.folder / "machines.csv"

    def _enrol(self) -> None:
        """Enrol the file; again, where a conductor died meanwhile."""
        for _ in range(_MOST_TRIES):
            done = self._bloomery("enrol", str(self._machines))
            if not done.returncode:
                return
            self.repeats += 1
        raise RuntimeError(f"cannot enrol: {done.stderr[-2000:]}")

    def _bloomery(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command as an operator does."""
        before_s = _children_s()
        program = "from bloomery.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True,
            check=False, env=os.environ | self.env,
        )  # fmt: skip
        self.operator_s += _children_s() - before_s
        return done

    def _provide(self) -> None:
        """Order the next verb of each node at rest until all are available."""
        give_up_at = time.monotonic() + _MOST_S
        inspected: set[str] = set()
        ordered: set[tuple[str, str]] = set()
        with closing(Client(self.port)) as client:
            while True:
                with self.database.connect() as conn:
                    nodes = [tuple(row) for row in conn.execute(_AT_REST)]
                by_verb: dict[str, list[str]] = {}
                for name, state, in_maintenance in nodes:
                    if in_maintenance:  # a failed clean leaves it so
                        client.ask("DELETE", f"/v1/nodes/{name}/maintenance")
                    elif state != "available":
                        is_next = state == "manageable" and name in inspected
                        by_verb.setdefault("provide" if is_next else _VERBS[state], []).append(name)
                done = sum(state == "available" for _, state, _ in nodes)
                if done == len(self.nodes):
                    return
                if time.monotonic() > give_up_at:
                    raise RuntimeError(f"{done} of {len(self.nodes)} are available: {by_verb}")
                for verb, names in by_verb.items():
                    for name in self._order(client, verb, names):
                        self.repeats += (verb, name) in ordered
                        ordered.add((verb, name))
                        if verb == "inspect":
                            inspected.add(name)
                time.sleep(_LOOK_S)

    def _order(self, client: Client, verb: str, names: Sequence[str]) -> Iterator[str]:
        """Yield the nodes for which the verb was accepted."""
        for batch in batches(names):
            body = {"nodes": batch, "provision": {"target": verb}}
            results = json.loads(client.ask("POST", "/ext/v1/nodes:act", body))["results"]
            yield from (each["node"] for each in results if not each["error"])

    def cpu_s(self) -> float:
        return sum(process.cpu_s() for process in self.processes)

    def held(self) -> int:
        with self.database.connect() as conn:
            return int(conn.execute(_HELD).scalar_one())


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Reaper:
    """Kills a conductor each minute, in turn, and starts it again as a supervisor does."""

    def __init__(self, roles: Sequence[many_conductors.Role]) -> None:
        self._roles, self._ending = roles, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.deaths, self.spent_s = 0, 0.0  # ``spent_s``: CPU of the dead

    def _run(self) -> None:
        while not self._ending.wait(KILL_EVERY_S):
            role = self._roles[self.deaths % len(self._roles)]
            self.spent_s += role.cpu_s()
            role.restart()
            self.deaths += 1

    def __enter__(self) -> Self:
        if self._roles:
            self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ending.set()
        if self._roles:
            self._thread.join()


@contextmanager
def _site(count: int, *, dies: bool) -> Iterator[tuple[Site, Sequence[many_conductors.Role]]]:
    """Yield a site, and its conductors if they are processes that may die.

    One process on SQLite; with ``dies`` an API and conductors on PostgreSQL, since SQLite has
    neither.
    """
    options = _OPTIONS | {
        "conductor/max_concurrent_clean": count, "conductor/max_concurrent_deploy": count,
    }  # fmt: skip
    conductors: Sequence[many_conductors.Role] = ()
    api: many_conductors.Role | harness.Server
    with ExitStack() as stack:
        folder = stack.enter_context(harness.folder())
        home = folder / "home"
        url = sa.make_url(f"sqlite:///file:{home}/bloomery.sqlite?mode=ro&uri=true")
        if dies:
            server = stack.enter_context(servers.postgresql())
            at = sa.make_url(server.env["BLOOMERY_TEST_POSTGRESQL"])
            db = stack.enter_context(event_relay.database(at))
            url = db.url
            roles = stack.enter_context(many_conductors.started(db, CONDUCTORS, options))
            *conductors, api = roles
            processes: Sequence[Any] = roles
        else:
            api = stack.enter_context(harness.Server(home, options))
            processes = [api]
        lab = stack.enter_context(scale.Lab(
            folder, count, {"idle_s": _IDLE_S, "answer_s": _LATE_S, "faults": list(_FAULTS)},
            first=_FIRST,
        ))  # fmt: skip
        env = {"OS_CLIENT_CONFIG_FILE": str(api.home / "clouds.yaml"), "OS_CLOUD": "bloomery"}
        database = sa.create_engine(url, poolclass=sa.pool.NullPool)
        yield Site(processes, api.port, env, lab, database, folder, lab.nodes()), conductors


def _brought(count: int, *, dies: bool) -> list[Row]:
    """Return the rows of one site."""
    with _site(count, dies=dies) as (site, conductors):
        cpu_s, lab_s, began = site.cpu_s(), site.lab.cpu_s(), time.monotonic()
        with Reaper(conductors) as reaper:
            site.bring()
        minutes = (time.monotonic() - began) / 60
        cpu_s = site.cpu_s() + reaper.spent_s - cpu_s
        lab_s, requests = site.lab.cpu_s() - lab_s, site.lab.requests()
        what = f"{count:,} BMCs from discovery to ready"
        if dies:
            what += f", one of {CONDUCTORS} conductors killed each minute, PostgreSQL"
        steps = ", ".join(f"{name} {took:.1f}" for name, took in site.minutes.items())
        rows = [
            Row(what, f"{GOAL_MIN} min", f"{minutes:.1f} min"),
            Row("of that, minutes", "", steps),
            Row("CPU a machine", "", f"{cpu_s * 1000 / count:.0f} ms"),
            Row("CPU of its BMC, and of the commands", "", f"{lab_s * 1000 / count:.0f} ms, "
                f"{site.operator_s * 1000 / count:.0f} ms"),
            Row("requests to a BMC", "", f"{requests / count:.1f}"),
            Row("orders and searches that were repeated", "", f"{site.repeats:,}"),
        ]  # fmt: skip
        if dies:
            rows.append(
                Row("deaths; nodes that are still held", "", f"{reaper.deaths}; {site.held()}")
            )
        percent = _at_rest_percent(site.cpu_s)
        memory = sum(process.rss_mib() for process in site.processes)
        return [
            *rows,
            Row("the same at rest, of a core", f"{AT_REST_PERCENT} %", f"{percent:.1f} %"),
            Row("memory", "", f"{memory:.0f} MiB"),
        ]  # fmt: skip


def _at_rest_percent(cpu_s: Callable[[], float]) -> float:
    """Return the CPU of a core when nothing is ordered."""
    time.sleep(_SETTLES_S)
    before_s = cpu_s()
    time.sleep(_REST_S)
    return (cpu_s() - before_s) / _REST_S * 100


# --------------------------------------------------------------------------------- many rows


def _rows_of(count: int) -> list[Row]:
    """Return what a service with so many nodes of fake hardware on PostgreSQL takes."""
    with ExitStack() as stack:
        folder = stack.enter_context(harness.folder())
        server = stack.enter_context(servers.postgresql())
        at = sa.make_url(server.env["BLOOMERY_TEST_POSTGRESQL"])
        db = stack.enter_context(event_relay.database(at))
        with StateDir(folder / "key") as home:  # where ``taken_over`` looks for it
            population.fill(db, home.sealer(db), count)
        with db.read() as conn:
            uuids = list(conn.execute(sa.select(_T.uuid).order_by(_T.id)).scalars())
        options = {
            "database/connection": db.url.render_as_string(hide_password=False),
            "conductor/sync_power_state_interval": 60,
        }
        began = time.monotonic()
        with (
            harness.Server(folder / "key", options) as service,
            closing(service.client()) as client,
        ):
            client.ask("GET", "/v1/nodes?limit=1")
            rows = [Row("start to the first answer", "", f"{time.monotonic() - began:.1f} s, "
                        f"{service.cpu_s():.1f} s of CPU")]  # fmt: skip
            for what, path, times in (
                ("list of 1,000 nodes", "/v1/nodes?limit=1000", 10),
                ("list of 1,000 nodes in detail", "/v1/nodes/detail?limit=1000", 10),
                ("last page of 1,000", f"/v1/nodes?limit=1000&marker={uuids[-1001]}", 10),
                ("GET of a node", f"/v1/nodes/{uuids[count // 2]}", 200),
                ("`/ext/v1/fleet`", "/ext/v1/fleet", 10),
            ):
                client.ask("GET", path)
                cpu_s, began = service.cpu_s(), time.monotonic()
                for _ in range(times):
                    client.ask("GET", path)
                took_s = (time.monotonic() - began) / times
                cpu_s = (service.cpu_s() - cpu_s) / times
                rows.append(Row(f"{what}, CPU", "", f"{cpu_s * 1000:.2f} ms ({took_s * 1000:.1f} "
                                "ms with the database)"))  # fmt: skip
            percent = _at_rest_percent(service.cpu_s)
            rows.append(Row("at rest with power sync of fake hardware each 60 s, of a core",
                            f"{AT_REST_PERCENT} %", f"{percent:.1f} %"))  # fmt: skip
            rows.append(Row("memory", "", f"{service.rss_mib():.0f} MiB"))
        late_s, cpu_s = many_conductors.taken_over(db, folder)
        rows.append(Row(f"{many_conductors.TAKEN_OVER:,} flows of a dead conductor taken over",
                        "5 s", f"{late_s:.1f} s, {cpu_s:.1f} s of CPU"))  # fmt: skip
        return rows


def run(words: Sequence[str]) -> None:
    """``words``: "bar" and a number of BMCs, or a number of rows; all of it goes on the page."""
    sizes = [int(word) for word in words if word.isdigit()]
    before_s = loop_s()
    if "bar" in words:
        count = sizes[0] if sizes else BMCS
        rows, title = _brought(count, dies=False), "the bar"
        print(table(rows), flush=True)  # the second half takes minutes, too
        rows += _brought(min(count, BMCS_WITH_DEATHS), dies=True)
    else:
        rows, title = _rows_of(sizes[0]), f"{sizes[0]:,} nodes on PostgreSQL"
    loops = f"{before_s:.2f} and {loop_s():.2f} s"
    rows.append(Row("this machine: 10 million multiplications, before and after", "", loops))
    text = f"\n### {title[0].upper()}{title[1:]}\n\n{table(rows)}\n\nOne run; {scale.machine()}.\n"
    print(text, flush=True)
    if sizes in ([], [ROWS]):
        scale.write("bar" if "bar" in words else str(ROWS), text)
