"""``bloomery api --workers N``: processes that share ports and memory, and the parent of them.

The parent imports the program, holds the lock of the state dir and serves nothing.  It forks the
workers, which share the memory of what it imported.  A fork copies no other thread, and a lock that
one held would never be released: so the parent has a single thread, and opens no database.

Each worker listens at the same addresses (SO_REUSEPORT), and the kernel spreads connections among
them.  A worker that dies is replaced.  A pair of sockets links each worker to its parent: the
worker reports over it that it serves, and stops when the parent is gone.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

import click

from bloomery import errors, metrics, tracing
from bloomery.cmd import api_servers, process
from bloomery.cmd.process import Shutdown
from bloomery.conf import Conf
from bloomery.state_dir import StateDir

LOG = logging.getLogger(__name__)

_LATE_MODULES: Final = (  # an API imports them when it is built, or asked for stacks
    "bloomery.api.orchestration.app",
    "bloomery.orchestration.engine_host.runtimes",
    "bloomery.orchestration.operations",
    "bloomery.orchestration.orders.machines",
    "bloomery.orchestration.orders.software",
    "bloomery.rpc.json_rpc_client",
)
_READY: Final = b"+"
_LEAST_REST_S, _MOST_REST_S = 1.0, 30.0  # before a dead worker is replaced: doubled each time


class Link:
    """The worker's end of the link to its parent."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def tell_ready(self, shutdown: Shutdown) -> None:
        """Report that the worker serves; request the shutdown when the parent is gone."""
        self._socket.send(_READY)
        threading.Thread(target=self._follow, args=(shutdown,), name="parent", daemon=True).start()

    def _follow(self, shutdown: Shutdown) -> None:
        self._socket.recv(1)  # returns when the parent closes its end, or has died
        if not shutdown.requested.is_set():
            shutdown.heard(signal.SIGTERM)


def greeting(url: str, orchestration_url: str, home: StateDir) -> str:
    return f"Bloomery answers at {url} (state in {home.path}); stacks are at {orchestration_url}"


@dataclass(slots=True)
class _Worker:
    """One place among the workers, and the process that has it, if any."""

    number: int
    pid: int | None = None
    link: socket.socket | None = None  # None also once it has been read to its end
    is_ready: bool = False
    has_served: bool = False  # a process of this place has
    reloads: bool = False  # SIGHUP came before the process was ready
    rest_s: float = _LEAST_REST_S
    due_at: float = 0.0  # when the next process begins, by the monotonic clock


class Parent:
    """Forks ``count`` workers, each of which calls ``serve``, and replaces those that die.

    The process must have a single thread.
    """

    def __init__(
        self, count: int, settings: Conf, home: StateDir, serve: Callable[[Shutdown, Link], None]
    ) -> None:
        """Install the handlers of signals.  Raises CannotStart for ports that cannot be shared."""
        if 0 in (settings.api.port, settings.orchestration.port):
            raise errors.CannotStart(
                reason="cannot share any free port among workers: name --port and "
                "--orchestration-port"
            )
        api_servers.require_free_ports(settings)
        self._settings, self._home, self._serve = settings, home, serve
        self._workers = [_Worker(number) for number in range(1, count + 1)]
        self._metrics = home.path / "metrics"
        shutil.rmtree(self._metrics, ignore_errors=True)
        self._metrics.mkdir(mode=0o700)
        self._is_serving = False
        self._failure: errors.CannotStart | None = None
        self._shutdown = Shutdown()
        self._signals = self._shutdown.install()
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # wakes the loop
        on_hangup = self._reload if settings.api.enable_ssl_api else None
        self._shutdown.allow_grace_of(settings, on_hangup)

    def run(self) -> None:
        """Keep the workers until a signal asks for the end.  Raises CannotStart."""
        for name in _LATE_MODULES:
            importlib.import_module(name)
        self._home.open_database(self._settings.database).close()  # imports the driver
        gc.freeze()  # else each worker's collector would write to, and so copy, all pages
        while True:
            for worker in self._workers:
                is_due = worker.pid is None and worker.due_at <= time.monotonic()
                if is_due and not self._stops:
                    self._start(worker)
            if self._stops and not any(worker.pid for worker in self._workers):
                break
            self._wait()
            for worker in self._workers:
                self._reap(worker)
        if self._failure is not None:
            raise self._failure

    @property
    def _stops(self) -> bool:
        return self._failure is not None or self._shutdown.requested.is_set()

    def _wait(self) -> None:
        """Wait for a signal, for a worker, or until one is due; act on what came."""
        due = [worker.due_at for worker in self._workers if worker.pid is None]
        rest_s = max(min(due) - time.monotonic(), 0) if due and not self._stops else None
        links = {worker.link: worker for worker in self._workers if worker.link is not None}
        sources: list[int | socket.socket] = [self._signals, *links]
        readable, _, _ = select.select(sources, [], [], rest_s)
        for link, worker in links.items():
            if link in readable:
                self._listen_to(worker, link)
        if self._signals not in readable:
            return
        had_asked = self._stops
        for number in os.read(self._signals, 1024):
            if number != signal.SIGCHLD:
                self._shutdown.heard(number)
        if self._shutdown.requested.is_set() and not had_asked:
            click.echo("stopping: waiting for the requests that go on")
            self._stop()

    def _listen_to(self, worker: _Worker, link: socket.socket) -> None:
        """Take a worker's report that it serves, or the end of its link."""
        try:
            is_ready = link.recv(1) == _READY
        except ConnectionError:
            is_ready = False
        if not is_ready:
            link.close()
            worker.link = None
            return
        worker.is_ready = worker.has_served = True
        worker.rest_s = _LEAST_REST_S
        if worker.reloads:
            worker.reloads = False
            _send(worker, signal.SIGHUP)
        if not self._is_serving and all(each.has_served for each in self._workers):
            self._is_serving = True
            click.echo(greeting(*api_servers.configured_urls(self._settings), self._home))

    def _reap(self, worker: _Worker) -> None:
        """Note the end of a worker's process, if it ended: another follows, after a rest."""
        if worker.pid is None:
            return
        pid, status = os.waitpid(worker.pid, os.WNOHANG)
        if not pid:
            return
        worker.pid = None  # no signal may reach a process that gets this number next
        while worker.link is not None:
            self._listen_to(worker, worker.link)  # what it reported at last
        self._replace_later(
            worker, f"ended with code {os.waitstatus_to_exitcode(status)}",
            "cannot start: a worker ended; its error is above",
        )  # fmt: skip

    def _replace_later(self, worker: _Worker, problem: str, refusal: str) -> None:
        """Let another process follow after a rest; end all if no process of this place served."""
        if self._stops:
            return
        if not worker.has_served:
            self._failure = errors.CannotStart(reason=refusal)
            self._stop()
            return
        if not worker.is_ready:
            worker.rest_s = min(2 * worker.rest_s, _MOST_REST_S)
        worker.is_ready, worker.due_at = False, time.monotonic() + worker.rest_s
        LOG.warning(
            "worker %d %s: another one begins in %g s", worker.number, problem, worker.rest_s
        )

    def _stop(self) -> None:
        """Ask all workers to end; none follows them."""
        for worker in self._workers:
            _send(worker, signal.SIGTERM)

    def _reload(self) -> None:
        """Let each worker read certificates again; one that is not ready may have read old ones."""
        for worker in self._workers:
            if worker.is_ready:
                _send(worker, signal.SIGHUP)
            else:
                worker.reloads = True

    def _start(self, worker: _Worker) -> None:
        """Fork a process for the worker; signals to it wait until it has handlers of its own."""
        worker.link, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                self._work(theirs, mask)
        except OSError as exc:
            worker.link.close()
            worker.link = None
            problem = f"cannot be started ({exc.strerror})"
            advice = f"cannot start a worker: {exc.strerror}; raise the limit of processes"
            self._replace_later(worker, problem, advice)
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()
        worker.pid, worker.reloads = pid, False

    def _work(self, link: socket.socket, mask: set[int | signal.Signals]) -> NoReturn:
        """Be the worker: give up what is the parent's alone, and serve until the end."""
        with process.ends_here():
            os.setsid()  # Ctrl-C is for the parent
            for number in (signal.SIGCHLD, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.close(signal.set_wakeup_fd(-1))
            os.close(self._signals)
            self._home.disown()
            for worker in self._workers:
                if worker.link is not None:  # a copy would hide the parent's death from a worker
                    worker.link.close()
            shutdown = Shutdown().listen()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            metrics.METRICS.share(self._metrics)
            tracing.begin(self._settings.tracing)
            self._serve(shutdown, Link(link))
        raise AssertionError("the block has ended the process")


def _send(worker: _Worker, number: signal.Signals) -> None:
    if worker.pid is not None:
        os.kill(worker.pid, number)
