"""What the programs share: a server to measure, CPU and memory of a process, lines of a table.

    with harness.Server(home) as server:
        before = server.cpu_s()
        ...                                   # ask it something
        took_s = server.cpu_s() - before

A program hands ``main`` a function that returns its lines.  A line holds one value per round,
and the floor measured in the same round: what the same machine needs for the same thing with
nothing of ours in between.  Programs take turns between what they compare, so that a noisy
neighbour meets all of them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

ROOT: Final = Path(__file__).resolve().parent.parent
ROUNDS: Final = 5
ROUNDS_KEY: Final = "BENCH_ROUNDS"
SYNCHRONOUS: Final = "FULL"
VERSION: Final = {"X-OpenStack-Ironic-API-Version": "1.115"}
_SERVE: Final = "from bloomery.cli.main import main; {} main()"
_START_S: Final = 30.0
_STOP_S: Final = 20.0
_POLL_S: Final = 0.01
_COLUMNS: Final = "{:<52} {:>9} {:>9} {:>9} {:>9} {:>17}  {:>5}  {:<11} {}"


@dataclass(slots=True, kw_only=True)
class Line:
    """A row of the table.  ``ratio``: the value is told in floors, round by round.

    ``at_most`` is the target; None where there is none, and the line only informs.
    """

    what: str
    unit: str
    at_most: float | None = None
    ratio: bool = False
    connections: int | None = None
    synchronous: str | None = SYNCHRONOUS
    note: str = ""
    values: list[float] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)

    def add(self, value: float, floor: float | None = None) -> None:
        """Note one round."""
        self.values.append(value)
        if floor is not None:
            self.floors.append(floor)

    def figures(self) -> list[float]:
        """What the target speaks of: the values, or how many floors each is."""
        if not self.ratio:
            return self.values
        return [value / floor for value, floor in zip(self.values, self.floors, strict=True)]

    @property
    def median(self) -> float:
        return statistics.median(self.figures())

    @property
    def verdict(self) -> str:
        if self.at_most is None:
            return ""
        return "ok" if self.median <= self.at_most else "MISSED"

    def document(self) -> dict[str, Any]:
        """What goes into the results: all that was measured, and what comes of it."""
        found = self.figures()
        more = {"median": self.median, "least": min(found), "most": max(found)}
        return asdict(self) | more | {"verdict": self.verdict}

    def __str__(self) -> str:
        found, unit = self.figures(), "x" if self.ratio else self.unit
        floor = f"{statistics.median(self.floors):.4g} {self.unit}" if self.floors else "-"
        said: str = _COLUMNS.format(
            self.what,
            "-" if self.at_most is None else f"{self.at_most:g} {unit}",
            f"{self.median:.4g} {unit}",
            floor,
            self.verdict,
            f"{min(found):.4g}-{max(found):.4g}",
            self.connections or "-",
            self.synchronous or "-",
            self.note,
        )
        return said.rstrip()


def heading() -> str:
    return _COLUMNS.format(
        "what", "target", "median", "floor", "verdict", "spread", "conn.", "synchronous", "note",
    )  # fmt: skip


def main(measure: Callable[[], Sequence[Line]]) -> None:
    """Run one program: print its lines, and write them to the file that is named, if any."""
    lines = measure()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps([line.document() for line in lines]))
    else:
        print(heading())
    for line in lines:
        print(line, flush=True)


def rounds() -> Iterator[int]:
    """Count the rounds; BENCH_ROUNDS changes how many there are, for a quick look."""
    yield from range(int(os.environ.get(ROUNDS_KEY, ROUNDS)))


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A directory that goes when it is left."""
    with tempfile.TemporaryDirectory(prefix="bloomery-bench-") as path:
        yield Path(path)


@contextlib.contextmanager
def copy_of(home: Path) -> Iterator[Path]:
    """A copy of a state dir, for a server that is to find it untouched."""
    with folder() as path:
        shutil.copytree(home, path / "home")
        yield path / "home"


# ---------------------------------------------------------------------------------- processes


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, all threads, user and system, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)  # the kernel's id of another process's CPU clock


def machine_cpu_s() -> float:
    """Return the CPU time of all processes since the machine was started."""
    all_cores = Path("/proc/stat").read_text().splitlines()[0]
    user, nice, system, _idle, _waits, irq, softirq, *_ = map(int, all_cores.split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def pss_mib(pid: int) -> float:
    """Return the memory of a process and its children; a page that n share counts 1/n in each."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own_kib = next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for each in threads for child in each.read_text().split()]
    return own_kib / 1024 + sum(map(pss_mib, children))


def until(true: Callable[[], bool], what: str, *, timeout_s: float = 60) -> None:
    """Wait for a condition."""
    give_up_at = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"waited {timeout_s:g} s for {what}")
        time.sleep(_POLL_S)


class Process:
    """A child in its own process group; whatever happens, it does not outlive the block."""

    def __init__(self, *command: str, **more: Any) -> None:
        self._command, self._more = command, more
        self._start()

    def _start(self) -> None:
        self._child = subprocess.Popen(
            self._command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True, **self._more,
        )  # fmt: skip
        self.pid = self._child.pid

    def restart(self) -> None:
        """Kill it in the middle of its work, and start it again."""
        self._child.kill()
        self._child.communicate()
        self._start()

    def line(self, timeout_s: float = _START_S) -> str:
        """Return the next line that it prints."""
        assert self._child.stdout is not None
        if not select.select([self._child.stdout], [], [], timeout_s)[0]:
            raise TimeoutError(f"process {self.pid} said nothing for {timeout_s:g} s")
        said: str = self._child.stdout.readline().decode()
        if not said:
            raise RuntimeError(f"process {self.pid} ended with status {self._child.wait()}")
        return said.strip()

    def cpu_s(self) -> float:
        return cpu_s(self.pid)

    def rss_mib(self) -> float:
        return rss_mib(self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


class Server(Process):
    """``bloomery serve`` on a state dir.  ``options``: "group/name" -> value."""

    def __init__(
        self,
        home: Path,
        options: dict[str, Any] | None = None,
        port: int = 0,
        env: dict[str, str] | None = None,
        prelude: str = "",
    ) -> None:
        """``prelude``: what its program does before it serves."""
        told = {"conductor/sync_power_state_interval": 0, "database/synchronous": SYNCHRONOUS}
        file = home.parent / f"{home.name}.conf"
        file.write_text(config(told | (options or {})))
        super().__init__(
            sys.executable, "-c", _SERVE.format(prelude), "serve",
            "--state-dir", str(home), "--config-file", str(file), "--port", str(port),
            env=os.environ | (env or {}),
        )  # fmt: skip
        self.home = home
        self.port = port
        self.orchestration_port = 0

    def __enter__(self) -> Self:
        """Wait until it answers."""
        try:
            url = self.line().split(" answers at ")[1].split()[0]
            self.port = urlsplit(url).port or 0
            self.orchestration_port = orchestration_port(self.home)
        except BaseException:
            self.__exit__()
            raise
        return self

    def client(self) -> Client:
        return Client(self.port)

    def orchestration_client(self) -> Client:
        return Client(self.orchestration_port)


def orchestration_port(home: Path) -> int:
    """Return the port that a service on this state dir has told clients of."""
    clouds = (home / "clouds.yaml").read_text()
    stacks = clouds.split("orchestration_endpoint_override: ")[1].split()[0]
    return urlsplit(stacks.strip("'\"")).port or 0


def config(options: dict[str, Any]) -> str:
    said = []
    for name, value in options.items():
        group, option = name.split("/")
        said.append(f"[{group}]\n{option} = {value}\n")
    return "".join(said)


# ------------------------------------------------------------------------------------- client


class Client:
    """One connection that stays open; what it costs is its own process's."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        allowed: tuple[int, ...] = (200, 201, 202, 204),
    ) -> bytes:
        """Return the body of the answer.  Raises RuntimeError for a status that is not allowed."""
        data = None if body is None else json.dumps(body).encode()
        sent = VERSION | ({"Content-Type": "application/json"} if data else {}) | (headers or {})
        self._drop_ended_connection()
        self._connection.request(method, path, data, sent)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status not in allowed:
            raise RuntimeError(f"{method} {path}: {answer.status} {said[:500]!r}")
        return said

    def _drop_ended_connection(self) -> None:
        """Let the next request connect anew if the server has ended an idle connection."""
        sock = self._connection.sock
        if sock is not None and select.select([sock], [], [], 0)[0]:
            self._connection.close()

    def close(self) -> None:
        self._connection.close()
