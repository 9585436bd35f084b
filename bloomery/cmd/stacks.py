"""Stacks in a process: the engine, and the operations of the API.

The orchestration modules are imported at the first request or the first work on a stack, so that a
process without stacks starts fast and stays small.
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
from bloomery.orchestration.engine_host.engine_service import EngineService
from bloomery.secrets import Sealer

if TYPE_CHECKING:
    from bloomery.orchestration.engine.runtime import EngineRuntime
    from bloomery.orchestration.operations import StackOperations


# Packages that need each other are imported by one thread at a time: of two that begin at different
# ends, Python shows one half a module.
_IMPORTING = threading.RLock()


class _Once:
    """A value that is created, and its modules imported, at its first use; thread-safe."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def __call__(self) -> Any:
        if self._made is None:
            with _IMPORTING:
                if self._made is None:
                    self._made = self._make()
        return self._made


class Stacks:
    """``engine`` works on stacks; ``operations()`` returns the API's operations.

    ``endpoint`` returns the URL of the orchestration API, for signals.
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
        """Raises CannotStart for invalid options."""
        if db.is_sqlite and not conf.engine.num_engine_workers:
            raise errors.CannotStart(
                reason="cannot use [engine]num_engine_workers = 0: no other process can work on "
                "stacks in an SQLite database; set it to at least 1"
            )
        if networks := conf.orchestration.template_fetch_networks:  # refuse invalid ones
            fetching = importlib.import_module("bloomery.orchestration.orders.fetching")
            fetching.Fetcher.of(timeout_s=1, networks=networks)
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
        """Start the engine, where it has workers.

        Raises CannotStart, also for unusable plug-ins.
        """
        if self._conf.engine.plugin_dirs:
            self._runtime()
        if self._conf.engine.num_engine_workers:
            self.engine.start()

    def begin_stop(self) -> None:
        """Begin no further transaction; returns at once."""
        self.engine.begin_stop()

    def stop(self, grace_s: float = 0.0) -> None:
        """Let running transactions end within ``grace_s``; a successor continues."""
        if self.engine.has_started:
            self.engine.stop(grace_s)

    def _make_runtime(self) -> EngineRuntime:
        runtimes = importlib.import_module("bloomery.orchestration.engine_host.runtimes")
        importlib.import_module("bloomery.orchestration.engine.trees")  # of its first turn
        access = importlib.import_module("bloomery.orchestration.queries.access")
        software = importlib.import_module("bloomery.orchestration.orders.software")
        machines = importlib.import_module("bloomery.orchestration.orders.machines")
        outputs = importlib.import_module("bloomery.orchestration.queries.outputs")
        calls = importlib.import_module("bloomery.orchestration.engine_host.webhook_calls")
        runtime: EngineRuntime = runtimes.make_runtime(
            self._conf,
            engines=lambda: len(self.engine.liveness.live_ids()),
            endpoint=self._endpoint(),
            software=lambda project: software.RowSoftware(
                self._db, self._sealer, project, self._on_events_written
            ),
            machines=machines.machines_of(self._services),
            stacks=outputs.stacks_of(self._services),
            authorize=access.stored_type_check(self._services),
            webhooks=calls.WebhookCalls(self._conf.events),
        )
        return runtime

    def _make_drift_watch(self) -> Any:
        drift_watch = importlib.import_module("bloomery.orchestration.engine_host.drift_watch")
        return drift_watch.DriftWatch(
            self._services, self._runtime(), on_events_written=self._on_events_written,
            on_accepted=self._accepted,
        )  # fmt: skip

    def _make_operations(self) -> StackOperations:
        operations = importlib.import_module("bloomery.orchestration.operations")
        stack_operations: StackOperations = operations.StackOperations(
            self._services, self._runtime(), on_accepted=self._accepted
        )
        return stack_operations

    def _accepted(self, root_uuid: str) -> None:
        """Wake engine and relay after a committed order."""
        self.engine.wake(root_uuid)
        self._on_events_written()


def late_app(
    services: Services, operations: Callable[[], StackOperations], logins: auth.Auth
) -> Wsgi:
    """Return the WSGI application of the orchestration API, imported at its first request."""

    def make() -> Wsgi:
        app = importlib.import_module("bloomery.api.orchestration.app")
        wsgi: Wsgi = app.make_app(services, operations(), logins)
        return wsgi

    once = _Once(make)

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answered: Iterable[bytes] = once()(environ, start_response)
        return answered

    return answer


def orchestration_conf(conf: Conf) -> Conf:
    """Return the settings of the orchestration API's HTTP server.

    If the first API takes any free port, this one does too.
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
