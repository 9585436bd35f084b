#!/usr/bin/env python3
"""Run the suites of tests and checks, each within its budget of time, and say what ran on what.

SUITES is the table, and its column WHEN says which of them run: the suites of ``make test`` at each
change, all others in ``make test-long``.  CI runs those of each change and one of those in turn, by
the seed.  Two suites run at a time, in the order of the table.  Output comes line by line.  A suite
that overruns its budget is ended with all its children; after a failure the others still run. A
server is started once, for all suites that need it.  What needs a server that is not here is
skipped, except where CI=true is set: there it has failed. Nothing to test is a failure too. Up to
three tests that fail are run once more, alone: a machine may be busy beyond what a test allows for;
the table names those that pass only then. Before the table stand why tests were skipped, and the
end of what pytest tells of tests that failed again. The last line counts suites: "N passed, N
failed", and "N skipped" if any.

    tools/suites.py                       the suites of each change
    tools/suites.py unit -- -k lock -x    one suite, with arguments for the command behind it
    tools/suites.py --nightly             those of make test-long
    tools/suites.py --in-turn --seed day  the suites of each change, and one in turn: what CI runs
    tools/suites.py --seed random fuzz    tests that draw lots take the seed from BLOOMERY_SEED
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import os
import re
import resource
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import ChainMap, Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Final, NamedTuple

from servers import SERVERS, Server, ServerMissing, provide, signal_group

ROOT: Final = Path(__file__).resolve().parent.parent
GRACE_S: Final = 10  # from asking a suite to stop until it is killed; pytest shows where it hangs
FIXED_SEED: Final = 1
SEED_HELP: Final = 'a number, "day" or "random"'
CLOSING: Final = re.compile(  # pytest's last line
    r"(?:=+ )?(?P<counted>\d+ (?:passed|failed|skipped|error|deselected|xfailed).*) in \d"
)
FAILED_TEST: Final = re.compile(r"(?:FAILED|ERROR) (?P<test>tests/\S.*?)(?: - .*)?\n")
SKIPPED_TESTS: Final = re.compile(r"SKIPPED \[(?P<count>\d+)\] \S+: (?P<reason>.*)\n")
FAILURES: Final = re.compile(r"=+ (FAILURES|ERRORS) =+\n")  # pytest tells of each from here
SUMMARY: Final = re.compile(r"=+ short test summary info =+\n")
LAST_LINES: Final = 60  # of them, for each suite that failed: who reads it may see the end only
MOST_RETRIED: Final = 3  # tests that fail in a suite; more are no accident of a busy machine
TEMPORARY: Final = "PYTEST_DEBUG_TEMPROOT"  # of pytest: where it keeps the folders of tests
NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"  # each process would compile each module anew
PYTEST: Final = "pytest --hypothesis-seed=$BLOOMERY_SEED"
TWO, THREE = (f"{PYTEST} -n {count} --dist worksteal" for count in (2, 3))  # processes
IN_PROCESS: Final = "SQLite, no broker"
ONE_FILE: Final = "one file alone: .venv/bin/python -m pytest tests/unit/db/test_nodes.py"
PEERS: Final = "Heat 27.0.1, Ironic 39.0.0"


class When(StrEnum):
    """When a suite runs that nobody has named."""

    CHANGE = "at each change"  # make test
    IN_TURN = "nightly, and one of them in each run of CI"  # 12 minutes at most, on two cores
    NIGHTLY = "nightly"  # make test-long


class Suite(NamedTuple):
    name: str
    when: When
    command: str  # a shell line, run at the root of the repository
    budget_s: int  # wall time, several times what it takes on two idle cores
    on: str = "-"  # the database and broker below it
    needs: tuple[str, ...] = ()  # keys of SERVERS, which then name what is below it
    uses: tuple[str, ...] = ()  # likewise; without them some of its tests skip
    tools: tuple[str, ...] = ()  # keys of TOOLS; without them some of its tests skip
    env: tuple[tuple[str, str], ...] = ()

    @property
    def runs_pytest(self) -> bool:
        return PYTEST in self.command


STYLE: Final = "ruff check . && ruff format --check . && tools/check_words.py && reno -q lint"
MEASURED: Final = ",".join(  # rooms whose every branch a test should take
    f"bloomery.orchestration.{room}" for room in ("graph", "plan", "foresight", "template")
)
COVERAGE: Final = (
    f"coverage run --branch --source={MEASURED} --data-file=build/coverage"
    f" -m {PYTEST} tests/unit/orchestration"
    " && coverage report --data-file=build/coverage --fail-under=95 --skip-covered"
)
MANY_CONDUCTORS: Final = "tests/chaos/test_many_conductors.py"
CHAOS: Final = f"{PYTEST} -s -m long {MANY_CONDUCTORS}"
LONG: Final = f"{PYTEST} -m long --ignore={MANY_CONDUCTORS} tests"
DATABASES: Final = ("postgresql", "quick mariadb")
EVERY_SERVER: Final = ("postgresql", "mariadb", "rabbitmq")
FUNCTIONAL: Final = f"{THREE} tests/functional"
STORIES: Final = f"{TWO} tests/functional/stories tests/functional/api/test_story.py"
ROOMS: Final = "functional unit invariants conformance counts pages/test_newcomer.py"
SAMPLED: Final = " ".join((THREE, *(f"tests/{room}" for room in ROOMS.split())))


def on_database(kind: str) -> tuple[str, str]:
    return "BLOOMERY_TEST_DATABASE", kind


def over(transport: str) -> tuple[str, str]:
    return "BLOOMERY_TEST_TRANSPORT", transport


SUITES: Final = (
    Suite(
        "tests", When.CHANGE, SAMPLED, 2400, "SQLite", uses=(*DATABASES, "rabbitmq", "chromium"),
        tools=("ipmi", "curl", "qemu-img", "fat", "ssh", "tpm"), env=(("BLOOMERY_SAMPLE", "8"),),
    ),
    Suite("lint", When.CHANGE, STYLE, 120),
    Suite("types", When.CHANGE, "mypy", 600),
    Suite("floors", When.CHANGE, "lint-imports --no-logo --cache-dir build/imports", 120),
    Suite(
        "unit", When.IN_TURN, f"{TWO} tests/unit", 2400, "no database",
        tools=("qemu-img", "fat", "tpm"),
    ),
    Suite("invariants", When.IN_TURN, f"{TWO} tests/invariants", 2400, IN_PROCESS),
    Suite(
        "stories-on-postgresql", When.IN_TURN, STORIES, 1200, needs=("postgresql",),
        env=(on_database("postgresql"), over("json-rpc")),
    ),
    Suite(
        "stories-on-mariadb", When.IN_TURN, STORIES, 1800, needs=("quick mariadb", "rabbitmq"),
        env=(on_database("mariadb"), over("oslo")),
    ),
    Suite(
        "postgresql", When.IN_TURN, f"{PYTEST} tests/servers", 1200, needs=("postgresql",),
        uses=("rabbitmq",),
    ),
    Suite("mariadb", When.IN_TURN, f"{PYTEST} tests/servers", 900, needs=("mariadb",)),
    Suite(
        "chaos", When.IN_TURN, f"{PYTEST} tests/chaos", 1200, "SQLite",
        uses=(*EVERY_SERVER, "redis"),
    ),
    Suite(
        "mutants", When.IN_TURN, f"{PYTEST} tests/mutants", 900, IN_PROCESS,
        uses=("postgresql", "mariadb"),
    ),
    Suite("cluster", When.IN_TURN, f"{PYTEST} tests/cluster", 1200, IN_PROCESS),
    Suite("pages", When.IN_TURN, f"{PYTEST} tests/pages", 1200, IN_PROCESS, needs=("chromium",)),
    Suite("conformance", When.NIGHTLY, f"{PYTEST} tests/conformance", 1200, PEERS),
    Suite("counts", When.NIGHTLY, f"{PYTEST} tests/counts", 400, IN_PROCESS),
    Suite(
        "functional", When.NIGHTLY, FUNCTIONAL, 3600, "SQLite", uses=("rabbitmq",),
        tools=("ipmi", "curl", "qemu-img"),
    ),
    Suite("coverage", When.NIGHTLY, COVERAGE, 1200, "no database"),
    Suite("fuzz", When.NIGHTLY, f"{PYTEST} -s tests/fuzz", 3600, IN_PROCESS),
    Suite("long", When.NIGHTLY, LONG, 5400, "SQLite", uses=(*EVERY_SERVER, "redis")),
    Suite("virtual-machines", When.NIGHTLY, "make vm", 5400, "SQLite", needs=("qemu",)),
    Suite("benchmarks", When.NIGHTLY, "BENCH_ROUNDS=1 python bench/run.py", 3600, "SQLite"),
    Suite("newcomer", When.NIGHTLY, "make newcomer", 900, "SQLite", needs=("debootstrap",)),
    Suite("chaos-long", When.NIGHTLY, CHAOS, 3600, needs=("postgresql", "rabbitmq", "redis")),
    *(
        Suite(
            f"all-on-{database}", When.NIGHTLY, FUNCTIONAL, 3600, needs=(server, "rabbitmq"),
            env=(on_database(database),), tools=("ipmi",),
        )
        for database, server in zip(("postgresql", "mariadb"), DATABASES, strict=True)
    ),
    *(
        Suite(
            f"all-over-{transport}", When.NIGHTLY, FUNCTIONAL, 3600, "SQLite", needs=("rabbitmq",),
            env=(over(transport),), tools=("ipmi",),
        )
        for transport in ("json-rpc", "oslo")
    ),
)  # fmt: skip


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    suite: Suite
    result: Result
    detail: str
    on: str
    took_s: float = 0.0
    skips: Counter[str] = field(default_factory=Counter)
    failure: tuple[str, ...] = ()

    def row(self) -> tuple[str, ...]:
        spent = f"{self.took_s:.0f}/{self.suite.budget_s}"
        return self.suite.name, self.result, spent, self.on, self.detail


@dataclass(slots=True)
class Output:
    """A suite's output: copied to ours line by line, its last words kept."""

    prefix: str
    counted: str = ""  # what pytest counted at its end, such as "3 passed, 1 skipped"
    last_line: str = ""
    failed: list[str] = field(default_factory=list)  # pytest's names of the tests that failed
    skips: Counter[str] = field(default_factory=Counter)  # tests by the reason, told at the end
    failure: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    tells_failures: bool = False

    def copy(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                if skipped := SKIPPED_TESTS.match(line):
                    self.skips[skipped["reason"]] += int(skipped["count"])
                    continue
                sys.stdout.write(self.prefix + line)
                sys.stdout.flush()
                self.last_line = line.strip() or self.last_line
                self.tells_failures = not SUMMARY.match(line) and (
                    self.tells_failures or FAILURES.match(line) is not None
                )
                if self.tells_failures:
                    self.failure.append(line)
                if closing := CLOSING.match(line):
                    self.counted = closing["counted"]
                if failure := FAILED_TEST.match(line):
                    self.failed.append(failure["test"])


class Runner:
    """Runs commands in process groups of their own, so that each can be ended with its children."""

    def __init__(self) -> None:
        self.groups: set[int] = set()

    def run(self, command: str, env: dict[str, str], budget_s: float, output: Output) -> int | None:
        """The command's exit status, or None if it overran its budget and was killed."""
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self.groups.add(process.pid)
        reader = threading.Thread(target=output.copy, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            return process.wait(timeout=budget_s)
        except subprocess.TimeoutExpired:
            self.interrupt(process)
            return None
        finally:
            signal_group(process.pid, signal.SIGKILL)
            self.groups.discard(process.pid)
            reader.join(timeout=GRACE_S)

    def interrupt(self, process: subprocess.Popen[str]) -> None:
        signal_group(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_S)

    def stop(self) -> None:
        for group in list(self.groups):
            signal_group(group, signal.SIGKILL)


class Servers(contextlib.ExitStack):
    """Servers that run until this is closed, each of them started when it is first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, Server] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Server:
        with self._lock:
            if name not in self._running:
                self._running[name] = self.enter_context(SERVERS[name]())
            return self._running[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What all suites of one call share."""

    runner: Runner
    env: dict[str, str]
    width: int  # of the names before each line; 0 when there is only one suite to tell apart
    servers: Servers

    def run(self, suite: Suite) -> Report:
        try:
            for tool in suite.tools:
                provide(tool)
            servers = [self.servers.get(name) for name in suite.needs]
            return self.run_on(suite, [*servers, *self.servers_used(suite)])
        except ServerMissing as exc:
            result = Result.FAILED if self.env.get("CI") == "true" else Result.SKIPPED
            return Report(
                suite=suite, result=result, detail=str(exc), on=f"no {' and '.join(suite.needs)}"
            )

    def servers_used(self, suite: Suite) -> Iterator[Server]:
        """Those that a suite can do without, except where CI=true is set."""
        for name in suite.uses:
            try:
                yield self.servers.get(name)
            except ServerMissing:
                if self.env.get("CI") == "true":
                    raise

    def run_on(self, suite: Suite, servers: Sequence[Server]) -> Report:
        env = dict(ChainMap(dict(suite.env), *(dict(server.env) for server in servers), self.env))
        env[TEMPORARY] = temporary_folder(suite)
        output = last = Output(f"{suite.name:{self.width}} | " if self.width else "")
        began = time.monotonic()
        status = self.runner.run(suite.command, env, suite.budget_s, output)
        result, detail = judge(suite, status, output)
        if status == 1 and suite.runs_pytest and 0 < len(output.failed) <= MOST_RETRIED:
            last = Output(output.prefix)
            result, detail = self.run_again(suite, env, output, last)
        took_s = time.monotonic() - began
        names = [suite.on, *(server.name for server in servers), *dict(suite.env).values()]
        on = ", ".join(name for name in names if name != "-") or "-"
        return Report(
            suite=suite, result=result, detail=detail, on=on, took_s=took_s,
            skips=output.skips, failure=tuple(last.failure),
        )  # fmt: skip

    def run_again(
        self, suite: Suite, env: dict[str, str], first: Output, again: Output
    ) -> tuple[Result, str]:
        """Run the tests that failed alone, and name them even where they pass now."""
        command = f"{PYTEST} {shlex.join(first.failed)}"
        status = self.runner.run(command, env, suite.budget_s, again)
        result, detail = judge(suite, status, again)
        if result is Result.FAILED:
            failed = " ".join(again.failed or first.failed)
            return result, f"{first.counted}; once more, alone: {detail}: {failed}"
        return result, f"{first.counted}; passed when run once more: {' '.join(first.failed)}"


def judge(suite: Suite, status: int | None, output: Output) -> tuple[Result, str]:
    """Whether a suite passed, and its own count of tests or what it said last."""
    if status is None:
        return Result.FAILED, f"{suite.name} overran its budget of {suite.budget_s} s: killed"
    if status:
        return Result.FAILED, f"exit status {status}: {output.counted or output.last_line[:100]}"
    if suite.runs_pytest and " passed" not in output.counted:
        return Result.FAILED, f"no test passed: {output.counted or 'nothing was collected'}"
    return Result.PASSED, output.counted


def run_all(suites: Sequence[Suite], session: Session, jobs: int) -> list[Report]:
    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(session.run, suites))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            session.runner.stop()
            raise


def print_table(reports: Sequence[Report]) -> None:
    rows = [("suite", "result", "seconds", "ran on", ""), *(report.row() for report in reports)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, [*widths, 0], strict=True))
        print("  ".join(cells).rstrip())


def print_skips(reports: Sequence[Report]) -> None:
    for report in reports:
        for reason, count in report.skips.most_common():
            print(f"{report.suite.name}: skipped {count}: {reason}")


def print_failures(reports: Sequence[Report]) -> None:
    for report in reports:
        if report.result is Result.FAILED and report.failure:
            print(f"\n{report.suite.name}: the last {len(report.failure)} lines of its failures")
            sys.stdout.writelines(report.failure)


def print_costs(seed: int, began: float) -> None:
    """Computing time, too: on a busy machine it says more than the clock."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    minutes = (time.monotonic() - began) / 60
    computed = (spent.ru_utime + spent.ru_stime) / 60
    print(f"\nseed {seed}, {minutes:.1f} minutes, {computed:.1f} CPU-minutes")


def print_counts(reports: Sequence[Report]) -> None:
    counts = {result: sum(report.result is result for report in reports) for result in Result}
    shown = [result for result in Result if result is not Result.SKIPPED or counts[result]]
    print(", ".join(f"{counts[result]} {result}" for result in shown))


def chosen(args: argparse.Namespace, seed: int) -> list[Suite]:
    """The suites that were named, or those whose time it is."""
    if args.suites:
        return [suite for suite in SUITES if suite.name in args.suites]
    suites = [suite for suite in SUITES if (suite.when is not When.CHANGE) is args.nightly]
    if args.in_turn:
        in_turn = [suite for suite in SUITES if suite.when is When.IN_TURN]
        suites.append(in_turn[seed % len(in_turn)])
        print(f"in turn: {suites[-1].name}, one of {len(in_turn)} by the seed {seed}", flush=True)
    return suites


def temporary_folder(suite: Suite) -> str:
    """Make and return a folder of the suite's own.

    Suites that end at the same time would clear away each other's: a warning, and so a failure.
    The path is short, as some tests put sockets there.
    """
    folder = Path(tempfile.gettempdir()) / f"bloomery-{suite.name}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return str(folder)


def environment(seed: int) -> dict[str, str]:
    """Our environment, with the programs of this virtual environment first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    ours = {
        "BLOOMERY_SEED": str(seed),
        "PATH": path,
        "PYTHONPYCACHEPREFIX": str(ROOT / "build" / "pycache"),
        "PYTHONUNBUFFERED": "1",
    }
    return {name: value for name, value in (os.environ | ours).items() if name != NO_BYTECODE}


def seed_number(text: str) -> int:
    """A number, one that each day has to itself, or a new one each time."""
    if text == "day":
        return dt.datetime.now(dt.UTC).date().toordinal()
    return secrets.randbelow(2**31) if text == "random" else int(text)


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own arguments, and those after ``--`` which belong to the command behind a suite."""
    cut = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(description="Run suites of tests and checks.")
    parser.add_argument("suites", nargs="*", help="which; those of each change if none is named")
    parser.add_argument("--nightly", action="store_true", help="those of make test-long")
    parser.add_argument("--in-turn", action="store_true", help="and one of those in turn")
    parser.add_argument("--seed", default=FIXED_SEED, type=seed_number, help=SEED_HELP)
    parser.add_argument("--jobs", type=int, default=2, help="how many suites run at a time")
    args = parser.parse_args(argv[:cut])
    if unknown := set(args.suites) - {suite.name for suite in SUITES}:
        parser.error(f"unknown: {' '.join(sorted(unknown))}; one of {[s.name for s in SUITES]}")
    return args, list(argv[cut + 1 :])


def main(argv: Sequence[str]) -> int:
    began = time.monotonic()
    args, extra_args = parse(argv)
    suites = chosen(args, args.seed)
    if extra_args:
        more = shlex.join(extra_args)
        suites = [suite._replace(command=f"{suite.command} {more}") for suite in suites]
    width = max(len(suite.name) for suite in suites) if len(suites) > 1 else 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Servers() as servers:
            session = Session(
                runner=Runner(), env=environment(args.seed), width=width, servers=servers
            )
            reports = run_all(suites, session, args.jobs)
    except KeyboardInterrupt:
        return 130
    print()
    print_skips(reports)
    print_failures(reports)
    print(f"\n{ONE_FILE}\n")
    print_table(reports)
    print_costs(args.seed, began)
    print_counts(reports)
    return 1 if any(report.result is Result.FAILED for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
