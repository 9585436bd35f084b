"""Stacks in a process: the engine that works on them, and what answers questions about them.

What reads templates is imported when somebody first asks for a stack, or one is to be worked on: a
process that has none starts as fast, and is as small, as one that knows of none.
"""

from __future__ import annotations

import dataclasses
import importlib
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from bloomery import errors
from bloomery.api import auth
from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.http_server.wsgi import Wsgi
from bloomery.operations.context import Services
from bloomery.orchestration.service.engine_service import EngineService
from bloomery.secrets import Sealer

if TYPE_CHECKING:
    from bloomery.orchestration.engine.runtime import EngineRuntime
    from bloomery.orchestration.service.operations import StackOperations


class _Once:
    """What is made when it is first asked for, by whichever thread, and then kept."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._mutex = threading.Lock()
        self._made: Any = None

    def __call__(self) -> Any:
        if self._made is None:
            with self._mutex:
                if self._made is None:
                    self._made = self._make()
        return self._made


class Stacks:
    """``engine`` works on stacks; ``operations()`` is what callers of the API may ask.

    ``endpoint`` returns the URL of the orchestration API, for addresses of signals.
    """

    def __init__(
        self,
        services: Services,
        conf: Conf,
        db: Database,
        sealer: Sealer,
        *,
        endpoint: Callable[[], str],
        on_events_written: Callable[[], None],
    ) -> None:
        """Raises CannotStart for options that do not fit."""
        if db.is_sqlite and not conf.engine.num_engine_workers:
            raise errors.CannotStart(
                reason="cannot use [engine]num_engine_workers = 0: no other process can work on "
                "stacks in an SQLite database; set it to at least 1"
            )
        _check_networks(conf)
        self._conf, self._services, self._endpoint = conf, services, endpoint
        self._db, self._sealer = db, sealer
        self._on_events_written = on_events_written
        self._runtime = _Once(self._make_runtime)
        self.engine = EngineService(
            conf, db, sealer, self._runtime, on_events_written=on_events_written,
            make_drift_watch=_Once(self._make_drift_watch),
        )  # fmt: skip
        self.operations = _Once(self._make_operations)

    def start(self) -> None:
        """Start the engine, where there is to be one here.

        Raises CannotStart, also for plug-ins that cannot be used.
        """
        if self._conf.engine.plugin_dirs:
            self._runtime()
        if self._conf.engine.num_engine_workers:
            self.engine.start()

    def begin_stop(self) -> None:
        """Begin no further turn; returns at once."""
        self.engine.begin_stop()

    def stop(self, grace_s: float = 0.0) -> None:
        """Let turns that run end, for ``grace_s`` at most, and leave the rest to a successor."""
        if self.engine.has_started:
            self.engine.stop(grace_s)

    def _make_runtime(self) -> EngineRuntime:
        runtimes = importlib.import_module("bloomery.orchestration.service.runtimes")
        access = importlib.import_module("bloomery.orchestration.service.access")
        software = importlib.import_module("bloomery.orchestration.service.software")
        machines = importlib.import_module("bloomery.orchestration.service.machines")
        runtime: EngineRuntime = runtimes.make_runtime(
            self._conf,
            engines=lambda: len(self.engine.liveness.live_ids()),
            endpoint=self._endpoint(),
            software=lambda project: software.RowSoftware(
                self._db, self._sealer, project, self._on_events_written
            ),
            machines=machines.machines_of(self._services),
            authorize=access.stored_type_check(self._services),
        )
        return runtime

    def _make_drift_watch(self) -> Any:
        drift_watch = importlib.import_module("bloomery.orchestration.service.drift_watch")
        return drift_watch.DriftWatch(
            self._services, self._runtime(), on_events_written=self._on_events_written,
            on_accepted=self._accepted,
        )  # fmt: skip

    def _make_operations(self) -> StackOperations:
        operations = importlib.import_module("bloomery.orchestration.service.operations")
        made: StackOperations = operations.StackOperations(
            self._services, self._runtime(), on_accepted=self._accepted
        )
        return made

    def _accepted(self, root_uuid: str) -> None:
        """An order was committed, and events with it."""
        self.engine.wake(root_uuid)
        self._on_events_written()


def _check_networks(conf: Conf) -> None:
    """Refuse to start with networks that are none, before a template is fetched.

    Raises CannotStart.
    """
    if networks := conf.orchestration.template_fetch_networks:
        fetching = importlib.import_module("bloomery.orchestration.service.fetching")
        fetching.Fetcher.of(timeout_s=1, networks=networks)


def late_app(
    services: Services, operations: Callable[[], StackOperations], logins: auth.Auth
) -> Wsgi:
    """Return the application of the orchestration API, imported with its first request."""

    def make() -> Wsgi:
        app = importlib.import_module("bloomery.api.orchestration.app")
        made: Wsgi = app.make_app(services, operations(), logins)
        return made

    once = _Once(make)

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answered: Iterable[bytes] = once()(environ, start_response)
        return answered

    return answer


def orchestration_conf(conf: Conf) -> Conf:
    """Return the settings of the HTTP server of the orchestration API.

    Where any port will do for the one API, any will do for the other, too.
    """
    ours = conf.orchestration
    return dataclasses.replace(
        conf,
        api=dataclasses.replace(
            conf.api,
            host_ip=ours.host_ip or conf.api.host_ip,
            port=ours.port if conf.api.port else 0,
            threads=ours.threads,
        ),
    )
