"""The end of a service's process: by a signal, at once, or by an error.

    shutdown = process.Shutdown().listen()        # from here on signals end the process at once
    with process.ends_here():                     # the process ends with the block
        service.start()
        shutdown.allow_grace(60)                  # ... from here on the first signal only asks
        shutdown.requested.wait()
        service.stop()

A Python interpreter waits for its threads at exit, and a thread may wait for a BMC for long.  So
the process ends by ``os._exit``: the kernel ends all threads at once and then releases the lock of
the state dir.  A successor never meets a worker of ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NoReturn, Self

import click

from bloomery import conf, errors, secrets, tracing
from bloomery.cmd import log
from bloomery.conf import Conf

LOG = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LAST_CALLS: Final[list[Callable[[], None]]] = []
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # mallopt(3)
_LARGE_BLOCK: Final = 256 * 1024  # bytes
_AFTER_GRACE_S: Final = 20.0  # for requests, sessions of BMCs, the relay and the database
_COLLECTED_EVERY: Final = (10_000, 20, 20)  # new objects; young collections; middle ones
_NO_LIMIT_S: Final = threading.TIMEOUT_MAX / 2
_BY_SIGNAL: Final = 128  # plus the signal's number: the exit code by shells' convention


def give_large_blocks_back() -> None:
    """Return the memory of large list pages to the system as soon as they are sent.

    glibc raises its threshold with each large freed block, and keeps such blocks in each thread's
    heap: a third more memory after lists of 10,000 nodes, measured.  Other C libraries ignore this.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK)
        mallopt(_TRIM_THRESHOLD, _LARGE_BLOCK)


def collect_garbage_seldom() -> None:
    """Let Python search for circles once in 10,000 new objects, and not among those of the start.

    By default it searches once in 700: a third of the CPU of a stack of 500 values, measured.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECTED_EVERY)


def begin(config_files: Sequence[str], *, verbose: bool, has_traces: bool = True) -> conf.Conf:
    """Prepare log, traces and memory of a service's process; return its configuration.

    ``has_traces``: not in a process that forks, since traces have a thread.
    """
    settings = conf.load(config_files)
    level = logging.INFO if verbose else logging.WARNING
    log.to_stderr(level, use_json=settings.default.use_json)
    if options := conf.unknown(config_files):  # they may be misspelt
        LOG.warning(
            "no effect: %s; `bloomery config sample` prints every option that has one",
            ", ".join(options),
        )
    if has_traces:
        tracing.begin(settings.tracing)
    give_large_blocks_back()
    collect_garbage_seldom()
    return settings


class Shutdown:
    """Handler of SIGTERM and SIGINT: the first one asks, once allowed; any other ends at once.

    A process with a conductor handles two more.  SIGUSR2 asks with more time (``drains``); SIGUSR1
    announces a restart (``restarts``).  A thread of its own reads them through the wake-up
    descriptor, because a main thread that waits for a lock or for SQLite gets no signal.
    """

    def __init__(self, exit_now: Callable[[int], None] | None = None) -> None:
        self.requested = threading.Event()
        self.drains = self.restarts = False
        self._exit_now = exit_now or end
        self._limit_s: float | None = None
        self._drain_limit_s: float | None = None
        self._on_hangup: Callable[[], None] | None = None

    def listen(self) -> Self:
        """Install the handlers, and act on signals in a thread; called by the main thread."""
        reader = self.install()
        threading.Thread(target=self._watch, args=(reader,), name="signals", daemon=True).start()
        return self

    def install(self) -> int:
        """Install the handlers, and return a descriptor; called by the main thread.

        The caller reads the number of each signal from it, and hands it to ``heard``.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda _number, _frame: None)
        return reader

    def on_hangup(self, call: Callable[[], None]) -> None:
        """Call this at SIGHUP; called by the main thread."""
        self._on_hangup = call
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)

    def hear_conductor_signals(self) -> Self:
        """Handle SIGUSR1 and SIGUSR2; called by the main thread."""
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda _number, _frame: None)
        return self

    def allow_grace(self, limit_s: float, drain_limit_s: float | None = None) -> None:
        """From now on the first signal sets ``requested``, and the process may run for ``limit_s``.

        ``drain_limit_s``: the same for a drain; None: no limit.
        """
        self._limit_s, self._drain_limit_s = limit_s, drain_limit_s

    def allow_grace_of(self, conf: Conf, on_hangup: Callable[[], None] | None = None) -> None:
        """Allow the grace of a process with a conductor, and some more for the rest.

        ``on_hangup``: called at SIGHUP, if given; then the main thread calls this.
        """
        if on_hangup is not None:
            self.on_hangup(on_hangup)
        drain_s = conf.default.drain_shutdown_timeout
        self.allow_grace(
            conf.conductor.graceful_shutdown_timeout + _AFTER_GRACE_S,
            drain_s + _AFTER_GRACE_S if drain_s else None,
        )

    def grace_s(self, conf: Conf) -> float:
        """Return how long running work may take after the request."""
        if not self.drains:
            return conf.conductor.graceful_shutdown_timeout
        return conf.default.drain_shutdown_timeout or _NO_LIMIT_S

    def drain(self) -> None:
        """Drain as SIGUSR2 does, unless the process is ending; from any thread."""
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
    """End the process with the block: exit code 0, or 1 with the error on standard error."""
    code = 1
    try:
        yield
        code = 0
    except errors.Failure as exc:
        click.echo(f"Error: {exc}", err=True)
    except BaseException as exc:  # noqa: BLE001  a supervisor: nothing may get past the end
        click.echo(secrets.trace(exc), err=True)
    with contextlib.suppress(Exception):  # the reader of our output may be gone
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    end(code)


def before_end(call: Callable[[], None]) -> None:
    """Call this at any end of the process, first; it must not wait."""
    _LAST_CALLS.append(call)


def end_superseded() -> NoReturn:
    """End a process whose conductor's name another process has taken."""
    click.echo("Error: another process lives under the name of this conductor", err=True)
    end(1)


def end(code: int) -> NoReturn:
    """End the process, its threads and its child programs.

    The calls of ``before_end`` forbid further BMC writes; then the children are listed and killed.
    A program started after the list, for a read or a write already allowed, ends by itself.
    """
    for call in _LAST_CALLS:
        with contextlib.suppress(Exception):  # nothing may get past the end
            call()
    for child in _children():
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
    os._exit(code)


def _children() -> list[int]:
    """Return the PIDs of our child programs, such as ipmitool.

    [] where the kernel does not list them.
    """
    pids: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids += map(int, path.read_text().split())
    return pids
