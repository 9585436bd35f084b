"""How the process of a service ends: asked politely, at once, or by an error; always whole.

    shutdown = process.Shutdown().listen()        # from here on signals end the process at once
    with process.ends_here():                     # whatever comes of the block ends it, too
        service.start()
        shutdown.allow_grace(60)                  # ... from here on the first one only asks
        shutdown.requested.wait()
        service.stop()

An interpreter that exits waits for its threads, as long as a BMC lets them wait.  So nothing here
returns to it: the kernel ends all threads at one moment, and only then lets go of the lock of the
state dir.  Nobody who takes it afterwards meets a worker of ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NoReturn, Self

import click

from bloomery import errors, secrets
from bloomery.conf import Conf

LOG = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LAST_CALLS: Final[list[Callable[[], None]]] = []
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # mallopt(3)
_LARGE_BLOCK: Final = 256 * 1024  # bytes
_AFTER_GRACE_S: Final = 20.0  # for requests, sessions of BMCs, the relay and the database
_NO_LIMIT_S: Final = threading.TIMEOUT_MAX / 2
_BY_SIGNAL: Final = 128  # plus the number of the signal: what shells make of it


def give_large_blocks_back() -> None:
    """Let memory of pages of lists go back to the system as soon as they are sent.

    glibc raises its threshold with each large block that is freed, and then keeps such blocks in
    the heap of each thread: a third more memory after lists of 10,000 nodes, measured.  Other
    libraries of C have no such threshold, and nothing happens.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK)
        mallopt(_TRIM_THRESHOLD, _LARGE_BLOCK)


class Shutdown:
    """SIGTERM and SIGINT.  The first one asks, once that is allowed; any other ends us at once.

    A process with a conductor hears two more: SIGUSR2 asks as they do, with more time
    (``drains``), and SIGUSR1 says that whatever ends it next will be followed by a start
    (``restarts``).  They are read by a thread of their own, through the wake-up descriptor: a main
    thread that waits for a lock or for SQLite hears no signal.
    """

    def __init__(self, exit_now: Callable[[int], None] | None = None) -> None:
        self.requested = threading.Event()
        self.drains = self.restarts = False
        self._exit_now = exit_now or end
        self._limit_s: float | None = None
        self._drain_limit_s: float | None = None
        self._on_hangup: Callable[[], None] | None = None

    def listen(self) -> Self:
        """Take the signals over; called by the main thread."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda _number, _frame: None)
        threading.Thread(target=self._watch, args=(reader,), name="signals", daemon=True).start()
        return self

    def on_hangup(self, call: Callable[[], None]) -> None:
        """Have SIGHUP call this instead of ending the process; called by the main thread."""
        self._on_hangup = call
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)

    def hear_conductor_signals(self) -> Self:
        """Give SIGUSR1 and SIGUSR2 a conductor's meanings; called by the main thread."""
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda _number, _frame: None)
        return self

    def allow_grace(self, limit_s: float, drain_limit_s: float | None = None) -> None:
        """From now on the first signal sets ``requested``, and the process has ``limit_s`` left.

        ``drain_limit_s``: what it has left if it drains; None: as long as that takes.
        """
        self._limit_s, self._drain_limit_s = limit_s, drain_limit_s

    def allow_grace_of(self, conf: Conf) -> None:
        """Allow the grace of a process with a conductor, and some more for what ends after it."""
        drain_s = conf.default.drain_shutdown_timeout
        self.allow_grace(
            conf.conductor.graceful_shutdown_timeout + _AFTER_GRACE_S,
            drain_s + _AFTER_GRACE_S if drain_s else None,
        )

    def grace_s(self, conf: Conf) -> float:
        """Return how long the work that goes on may take, now that the process was asked."""
        if not self.drains:
            return conf.conductor.graceful_shutdown_timeout
        return conf.default.drain_shutdown_timeout or _NO_LIMIT_S

    def drain(self) -> None:
        """Ask as SIGUSR2 does, unless the process ends already; from any thread."""
        if not self.requested.is_set():
            self.heard(signal.SIGUSR2)

    def _watch(self, reader: int) -> None:
        while number := os.read(reader, 1):
            self.heard(number[0])

    def heard(self, number: int) -> None:
        """Act on one signal."""
        if number == signal.SIGHUP and self._on_hangup is not None:
            try:
                self._on_hangup()
            except Exception:
                LOG.exception("SIGHUP did not do all of its work; the process goes on")
            return
        if number == signal.SIGUSR1:
            LOG.warning("SIGUSR1: the next stop leaves the conductor on line, for its successor")
            self.restarts = True
            return
        if self._limit_s is None or self.requested.is_set():
            self._exit_now(_BY_SIGNAL + number)
            return
        self.drains = number == signal.SIGUSR2
        self.requested.set()
        limit_s = self._drain_limit_s if self.drains else self._limit_s
        if limit_s is not None:
            overdue = threading.Timer(limit_s, self._overdue, (limit_s,))
            overdue.daemon = True
            overdue.start()

    def _overdue(self, limit_s: float) -> None:
        LOG.warning("stopping took more than %g s: ended at once; the next start goes on", limit_s)
        self._exit_now(0)


@contextlib.contextmanager
def ends_here() -> Iterator[None]:
    """End the process with the block: exit code 0, or 1 with what went wrong on standard error."""
    code = 1
    try:
        yield
        code = 0
    except errors.Failure as exc:
        click.echo(f"Error: {exc}", err=True)
    except BaseException as exc:  # noqa: BLE001  a supervisor: nothing may get past the end
        click.echo(secrets.trace(exc), err=True)
    with contextlib.suppress(Exception):  # whoever read our output may be gone
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    end(code)


def before_end(call: Callable[[], None]) -> None:
    """Have this called by whatever ends the process, before anything else; it must not wait."""
    _LAST_CALLS.append(call)


def end_superseded() -> NoReturn:
    """End a process whose conductor's name another process has taken; the log says so."""
    click.echo("Error: another process lives under the name of this conductor", err=True)
    end(1)


def end(code: int) -> NoReturn:
    """End the process, its threads and the programs that they run: nobody gets another turn.

    What was given to ``before_end`` forbids further orders to BMCs, before the list is made of the
    programs that are killed.  One that a worker starts after it, for a read or for an order that
    had been let in, slips through, and ends by itself.
    """
    for call in _LAST_CALLS:
        with contextlib.suppress(Exception):  # nothing may get past the end
            call()
    for child in _children():
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
    os._exit(code)


def _children() -> list[int]:
    """The programs that run for us, such as ipmitool; none where the kernel does not tell."""
    found: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, path.read_text().split())
    return found
