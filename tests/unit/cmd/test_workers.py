"""The parent of several API workers: what it forks, replaces, hands on and ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.waiting import wait_for
from tools.servers import free_port

HUP, KILL, TERM = signal.SIGHUP, signal.SIGKILL, signal.SIGTERM
READY = re.compile(r"worker (\d+) serves")
PROGRAM = """
import errno, os, sys, threading
from pathlib import Path
from bloomery.cmd import process, workers
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Database
from bloomery.conf.engine import Orchestration
from bloomery.state_dir import StateDir

folder, how = Path(sys.argv[1]), sys.argv[2]
forks, fork = iter(range(1, 100)), os.fork
workers._LEAST_REST_S, workers._LATE_MODULES = 0.01, ()  # imports take long

def serve(shutdown, link):
    if how == "fails":
        raise RuntimeError("no such luck")
    shutdown.on_hangup(lambda: print(f"worker {os.getpid()} reads again", flush=True))
    if how == "waits":
        print(f"worker {os.getpid()} waits", flush=True)
        while not (folder / "go").exists():
            threading.Event().wait(0.01)
    shutdown.allow_grace(60)
    print(f"worker {os.getpid()} serves", flush=True)
    link.tell_ready(shutdown)
    shutdown.requested.wait()
    if how == "hangs":
        print("asked", flush=True)
        threading.Event().wait()

def refusing():
    if how == "refused" or (how == "refused once" and next(forks) == 3):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
    return fork()

os.fork = refusing
conf = Conf(
    api=Api(port=int(sys.argv[3]), enable_ssl_api=True),
    orchestration=Orchestration(port=int(sys.argv[4])),
    database=Database(connection="postgresql://ann@nowhere/db"),
)
with process.ends_here():
    home = StateDir(folder / "state", role="api")
    home.take()
    workers.Parent(2, conf, home, serve).run()
"""
Begin = Callable[..., Any]


class Parent:
    """A process with two workers; ``printed`` is what all of them print."""

    def __init__(self, folder: Path, how: str) -> None:
        self.output = folder / "output"
        ports = (str(free_port()), str(free_port()))
        command = (sys.executable, "-c", PROGRAM, str(folder), how, *ports)
        with self.output.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)
        self.pid = self.process.pid

    @property
    def printed(self) -> str:
        return self.output.read_text()

    def wait_until_it_prints(self, pattern: str, times: int = 1) -> list[str]:
        """Return the first group of each match, or all of it."""
        wait_for(
            lambda: len(re.findall(pattern, self.printed)) >= times, f"{times} {pattern!r}",
            timeout_s=60,
        )  # fmt: skip
        return re.findall(pattern, self.printed)

    def workers(self) -> set[int]:
        listed = Path(f"/proc/{self.pid}/task").glob("*/children")
        return {int(child) for each in listed for child in each.read_text().split()}

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def code(self) -> int:
        return self.process.wait(60)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[str], Parent]]:
    parents: list[Parent] = []

    def _begin(how: str) -> Parent:
        parents.append(Parent(tmp_path, how))
        return parents[-1]

    yield _begin
    for parent in parents:
        parent.process.kill()
        parent.process.wait()


def gone(pids: set[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_workers_are_forks_that_hold_nothing_of_their_parent(begin: Begin) -> None:
    parent = begin("serves")
    parent.wait_until_it_prints("Bloomery answers at")
    assert len(list(Path(f"/proc/{parent.pid}/task").iterdir())) == 1, "a fork copies one thread"
    command = Path(f"/proc/{parent.pid}/cmdline").read_bytes()
    for pid in parent.workers():
        assert Path(f"/proc/{pid}/cmdline").read_bytes() == command, "no new interpreter"
        files = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()]
        assert not [name for name in files if name.endswith(".lock")], "the lock is the parent's"
        assert sum(name.startswith("socket:") for name in files) == 1, "its own link alone"
    parent.send(TERM)
    assert parent.code() == 0
    assert parent.printed.count("stopping: waiting for the requests that go on") == 1


@pytest.mark.parametrize("how", ["serves", "refused once"])
def test_each_worker_that_dies_is_replaced(begin: Begin, how: str) -> None:
    parent = begin(how)
    parent.wait_until_it_prints("Bloomery answers at")
    for deaths in (1, 2, 3):
        victim = min(parent.workers())
        os.kill(victim, KILL)
        parent.wait_until_it_prints(READY.pattern, 2 + deaths)
        assert victim not in parent.workers()
    assert len(parent.workers()) == 2
    assert parent.printed.count("ended with code -9: another one begins in 0.01 s") == 3
    assert ("cannot be started" in parent.printed) == (how == "refused once")
    parent.send(TERM)
    assert parent.code() == 0


def test_hangup_reaches_workers_that_are_not_ready(begin: Begin, tmp_path: Path) -> None:
    """They may have read the former certificates."""
    parent = begin("waits")
    parent.wait_until_it_prints("waits", 2)
    parent.send(HUP)
    (tmp_path / "go").touch()
    again = parent.wait_until_it_prints(r"worker (\d+) reads again", 2)
    assert {int(pid) for pid in again} == parent.workers()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("fails", "cannot start: a worker ended; its error is above"),
        ("refused", "cannot start a worker: Resource temporarily unavailable; raise the limit"),
    ],
)
def test_a_first_start_that_fails_ends_the_parent(begin: Begin, how: str, reason: str) -> None:
    parent = begin(how)
    assert parent.code() == 1
    assert parent.printed.splitlines()[-1].startswith(f"Error: {reason}")
    assert "Bloomery answers" not in parent.printed


def test_a_signal_ends_workers_that_do_not_serve_yet(begin: Begin) -> None:
    parent = begin("waits")
    parent.wait_until_it_prints("waits", 2)
    both = parent.workers()
    parent.send(TERM)
    assert parent.code() == 0
    assert gone(both)


def test_the_second_signal_ends_all_at_once(begin: Begin) -> None:
    parent = begin("hangs")
    parent.wait_until_it_prints("Bloomery answers at")
    both = parent.workers()
    parent.send(TERM)
    parent.wait_until_it_prints("asked", 2)
    parent.send(TERM)
    assert parent.code() == 128 + TERM
    wait_for(lambda: gone(both), "the end of both workers")


def test_workers_end_with_their_parent(begin: Begin) -> None:
    parent = begin("serves")
    parent.wait_until_it_prints("Bloomery answers at")
    both = parent.workers()
    parent.send(KILL)
    parent.code()
    wait_for(lambda: gone(both), "the end of both workers")
