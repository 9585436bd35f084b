"""Signals, and the end of a process with all that it runs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from bloomery.cmd.process import Shutdown
from tests.kit.waiting import wait_for

TERM, INT, HUP = 15, 2, 1


def test_before_grace_is_allowed_a_signal_ends_at_once() -> None:
    codes: list[int] = []
    Shutdown(codes.append).heard(TERM)
    assert codes == [128 + TERM]


def test_the_first_signal_asks_and_the_second_of_either_kind_ends() -> None:
    codes: list[int] = []
    shutdown = Shutdown(codes.append)
    shutdown.allow_grace(60)
    shutdown.heard(TERM)
    assert shutdown.requested.is_set()
    assert codes == []
    shutdown.heard(INT)
    assert codes == [128 + INT]


def test_a_stop_that_takes_too_long_is_ended() -> None:
    codes: list[int] = []
    shutdown = Shutdown(codes.append)
    shutdown.allow_grace(0.01)
    shutdown.heard(INT)
    wait_for(lambda: codes == [0], "the end by force")


def test_hangup_calls_what_was_named_and_ends_nothing() -> None:
    codes: list[int] = []
    calls: list[str] = []
    shutdown = Shutdown(codes.append)
    before = signal.getsignal(HUP)
    try:
        shutdown.on_hangup(lambda: calls.append("again"))
        shutdown.heard(HUP)
    finally:
        signal.signal(HUP, before)
    assert (calls, codes, shutdown.requested.is_set()) == (["again"], [], False)


def test_hangup_that_fails_is_logged_and_signals_are_heard_on(caplog) -> None:
    codes: list[int] = []
    shutdown = Shutdown(codes.append)
    before = signal.getsignal(HUP)

    def fail() -> None:
        raise RuntimeError("no such luck")

    try:
        shutdown.on_hangup(fail)
        shutdown.heard(HUP)
    finally:
        signal.signal(HUP, before)
    assert "no such luck" in caplog.text
    shutdown.allow_grace(60)
    shutdown.heard(TERM)
    assert (codes, shutdown.requested.is_set()) == ([], True)


WITH_A_CHILD = """
import subprocess, sys, threading
from bloomery.cmd import process
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
threading.Thread(target=child.wait).start()  # an interpreter that exits would wait for it
with process.ends_here():
    print("over")
    raise KeyError("a bug")
"""


def test_the_end_takes_along_threads_and_programs_and_tells_why() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITH_A_CHILD],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    child, over = run.stdout.split()
    assert (run.returncode, over) == (1, "over")
    assert "KeyError: 'a bug'" in run.stderr
    wait_for(lambda: not is_running(child), "its program to end")


SERVE_THAT_FAILS = """
import sys
from bloomery.cmd import process, service
from bloomery.cli.service.roles import serve
from bloomery.conductor.lease import Lease

def fail(_service):
    raise KeyError("a bug")

Lease.revoke = lambda _lease: print("revoked", flush=True)
process._children = lambda: print("listed", flush=True) or []
service.Service.start = fail
serve(["--state-dir", sys.argv[1], "--port", "0"])
"""


def test_orders_are_forbidden_before_the_programs_are_listed_that_are_killed(
    tmp_path: Path,
) -> None:
    """Whatever ends the process: a program that is started after the list outlives us."""
    run = subprocess.run(
        [sys.executable, "-c", SERVE_THAT_FAILS, str(tmp_path / "state")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout.split() == ["revoked", "listed"], run.stderr
    assert run.returncode == 1


def is_running(pid: str) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
