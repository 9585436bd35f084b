"""``bloomery api --workers N``: processes that share the ports, and the parent that keeps them.

The parent holds the lock of the state dir and serves nothing.  Each worker listens at the same
addresses (SO_REUSEPORT), and the kernel spreads connections among them.  A worker that dies is
replaced.  A pair of sockets links each worker to its parent: the worker reports over it that it
serves, and stops when the parent is gone.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Final

import click

from bloomery import errors, metrics
from bloomery.cmd import api_servers
from bloomery.cmd.process import Shutdown
from bloomery.conf import Conf
from bloomery.state_dir import StateDir

LOG = logging.getLogger(__name__)

_PROGRAM: Final = ("-c", "from bloomery.cli.main import main; main()")
_READY: Final = b"+"
_LEAST_REST_S, _MOST_REST_S = 1.0, 30.0  # before a dead worker is replaced: doubled each time


class Link:
    """The worker's end of the link to its parent."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    def tell_ready(self, shutdown: Shutdown) -> None:
        """Report that the worker serves; request the shutdown when the parent is gone."""
        self._socket.send(_READY)
        threading.Thread(target=self._follow, args=(shutdown,), name="parent", daemon=True).start()

    def _follow(self, shutdown: Shutdown) -> None:
        self._socket.recv(1)  # returns when the parent closes its end, or has died
        if not shutdown.requested.is_set():
            shutdown.heard(signal.SIGTERM)


def keep(count: int, settings: Conf, home: StateDir, shutdown: Shutdown) -> None:
    """Run ``count`` workers until the shutdown is requested.  Raises CannotStart."""
    ports = settings.api.port, settings.orchestration.port
    if 0 in ports:
        raise errors.CannotStart(
            reason="cannot share any free port among workers: name --port and --orchestration-port"
        )
    api_servers.require_free_ports(settings)
    workers = [_Worker(number, _environment(home)) for number in range(1, count + 1)]

    def reload() -> None:
        for worker in workers:
            worker.signal(signal.SIGHUP)

    try:
        on_hangup = reload if settings.api.enable_ssl_api else None
        shutdown.allow_grace_of(settings, on_hangup)  # the first worker may be ready at once
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.wait_until_ready()
        click.echo(greeting(*api_servers.configured_urls(settings), home))
        shutdown.requested.wait()
        click.echo("stopping: waiting for the requests that go on")
    finally:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()


def greeting(url: str, orchestration_url: str, home: StateDir) -> str:
    return f"Bloomery answers at {url} (state in {home.path}); stacks are at {orchestration_url}"


def _environment(home: StateDir) -> Mapping[str, str]:
    """Return the workers' environment, with an empty folder of shared metrics."""
    folder = home.path / "metrics"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return os.environ | {metrics.SHARED_FOLDER: str(folder)}


class _Worker:
    """One process, replaced when it dies, and the thread that waits for it."""

    def __init__(self, number: int, environment: Mapping[str, str]) -> None:
        self._number, self._environment = number, environment
        self._stops = threading.Event()
        self._mutex = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._answered = threading.Event()
        self._was_ready = False
        self._thread = threading.Thread(target=self._keep, name=f"worker-{number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_until_ready(self) -> None:
        """Wait for the first process to serve.  Raises CannotStart if it ended instead."""
        self._answered.wait()
        if not self._was_ready:
            raise errors.CannotStart(reason="cannot start: a worker ended; its error is above")

    def signal(self, number: int) -> None:
        with self._mutex:
            if self._process is not None:
                self._process.send_signal(number)

    def stop(self) -> None:
        """Ask the process to end; none follows it."""
        self._stops.set()
        self.signal(signal.SIGTERM)

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def _keep(self) -> None:
        """Run a process after the other until the stop."""
        rest_s = _LEAST_REST_S
        while not self._stops.is_set():
            code, was_ready = self._run()
            if not self._was_ready or self._stops.is_set():
                break
            rest_s = _LEAST_REST_S if was_ready else min(2 * rest_s, _MOST_REST_S)
            LOG.warning(
                "worker %d ended with code %d: another one begins in %g s",
                self._number, code, rest_s,
            )  # fmt: skip
            self._stops.wait(rest_s)
        self._answered.set()

    def _run(self) -> tuple[int, bool]:
        """Run one process; return its exit code, and whether it has served."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._mutex:
                link = f"--worker-link={theirs.fileno()}"
                self._process = subprocess.Popen(  # the parent's command line, and the link
                    (sys.executable, *_PROGRAM, *sys.argv[1:], link), env=self._environment,
                    pass_fds=[theirs.fileno()], start_new_session=True,
                )  # fmt: skip
            was_ready = ours.recv(1) == _READY
            if was_ready:
                self._was_ready = True
                self._answered.set()
            if self._stops.is_set():  # a stop that came before the process was there
                self.signal(signal.SIGTERM)
            return self._process.wait(), was_ready
