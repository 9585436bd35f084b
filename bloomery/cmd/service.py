"""The whole service in one process.

    with StateDir(path) as home, Service(conf, home) as service:
        service.url                       # http://127.0.0.1:6385
        service.orchestration_url         # http://127.0.0.1:8004

Parts stop in the reverse order of their start.  The single roles (``cmd.api``, ``cmd.conductor``,
``cmd.engine``) consist of the same parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Self

from bloomery.cmd import api_servers, foundation, gauges, stacks
from bloomery.cmd.conductor import make_runtime
from bloomery.conductor import lease, lifecycle
from bloomery.conf import Conf
from bloomery.state_dir import StateDir


class Service:
    """APIs, conductor and engine on the database of a locked state dir."""

    def __init__(
        self,
        conf: Conf,
        home: StateDir,
        config_files: Sequence[str] = (),
        *,
        on_superseded: Callable[[], object] = lambda: None,
        on_drain: Callable[[], object] = lambda: None,
    ) -> None:
        """Build everything and bind the address; nothing runs yet.  Raises CannotStart.

        ``config_files``: the sources of ``conf``, for oslo.messaging's own options.
        ``on_superseded``, ``on_drain``: see ``ConductorService``.
        """
        lease.check(conf)
        with foundation.build(conf, home, config_files, is_conductor=True) as base:
            self._base = base
            self.conf, self.db, self.relay = base.conf, base.db, base.relay
            self.conductor = lifecycle.ConductorService(
                make_runtime(base), on_superseded=on_superseded, on_drain=on_drain
            )
            host, manager = self.conductor.runtime.host, self.conductor.manager
            self._rpc_server = base.rpc_server(host, manager)
            pulse = self.conductor.runtime.pulse
            self.services = base.services({host: manager}, pulse_missing=pulse.missing)
            self.stacks = stacks.Stacks(
                self.services, base.conf, base.db, base.sealer,
                endpoint=lambda: api_servers.signals_url(base, self.orchestration_url),
                on_events_written=base.relay.wake,
            )  # fmt: skip
            base.relay.add_reader(self.stacks.engine.wakes.wake)
            read_at_scrapes = (
                *gauges.of_process(base.db),
                *gauges.of_site(base.db, base.ring),
                *gauges.of_broker(self.services.rpc),
                *gauges.of_engine(self.stacks.engine),
                *gauges.of_conductor(self.conductor),
            )
            apps = api_servers.make_apps(
                base, self.services, self.stacks.operations, read_at_scrapes
            )
            self._api_servers = api_servers.ApiServers(base, apps)
            self.api = self._api_servers.api
            self.orchestration_api = self._api_servers.orchestration_api

    @property
    def url(self) -> str:
        return self.api.url

    @property
    def orchestration_url(self) -> str:
        return self.orchestration_api.url

    def start(self, before_ready: Callable[[], object] = lambda: None) -> None:
        """Recover flows, then serve.

        An error stops the started parts in reverse order, without grace.  Raises CannotStart.
        ``before_ready`` is called just before probes may find the process ready, so that a signal
        to a ready process is heard.
        """
        with contextlib.ExitStack() as started, foundation.start_errors(self._base.home):
            started.callback(self.db.close)
            started.callback(self.api.stop)  # its port is bound already
            started.callback(self.orchestration_api.stop)
            self.relay.start()
            started.callback(self.relay.stop)
            started.callback(self.conductor.stop, grace_s=0)
            self.conductor.start(alone=self.db.is_sqlite)
            started.callback(self.stacks.stop)
            started.callback(self._rpc_server.stop, 0)
            self._rpc_server.start()
            self.stacks.start()
            before_ready()
            self._api_servers.start()
            started.pop_all()
        self._api_servers.write_clouds()

    def reload(self) -> None:
        """Read certificates again, for new connections."""
        self._api_servers.reload()
        self._rpc_server.reload()

    def stop(
        self, grace_s: float | None = None, *, stays_online: bool = False, drains: bool = False
    ) -> None:
        """Refuse new requests, wait for running work, and close the database.

        ``drains``: the APIs serve until the conductor's work has ended.

        Requests and flows share ``grace_s``, by default ``graceful_shutdown_timeout``.  Work left
        then is cut off, and the next start or peers recover its flows.  ``stays_online``: see
        ``ConductorService.stop``.
        """
        if grace_s is None:
            grace_s = self.conf.conductor.graceful_shutdown_timeout
        give_up_at = monotonic() + grace_s

        def left_s() -> float:
            return max(give_up_at - monotonic(), 0.0)

        if drains:
            self.conductor.finish_work(left_s())
        with contextlib.ExitStack() as started:  # an error of one stop skips no other
            started.callback(self.db.close)
            started.callback(self.relay.stop)
            started.callback(self.services.rpc.close)
            started.callback(lambda: self.conductor.stop(left_s(), stays_online=stays_online))
            started.callback(lambda: self._rpc_server.stop(left_s(), returns=stays_online))
            if not stays_online:
                started.callback(lambda: self._base.wait_for_callers(left_s()))
                started.callback(self.conductor.begin_stop)  # callers change to peers
            started.callback(lambda: self.stacks.stop(left_s()))
            started.callback(lambda: self.orchestration_api.stop(left_s()))
            started.callback(lambda: self.api.stop(left_s()))
            started.callback(self.conductor.periodics.stop)
            started.callback(self.stacks.begin_stop)
            started.callback(self.services.consoles.stop)
            started.callback(self._api_servers.begin_stop)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()
