"""Both APIs in a process of their own, beside conductors and engines."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from time import monotonic

from bloomery.cmd import api_servers, foundation, gauges, stacks
from bloomery.conf import Conf
from bloomery.state_dir import StateDir


class ApiBackend:
    """The applications of both APIs, and the parts behind them: database, relay, ring."""

    def __init__(
        self,
        settings: Conf,
        home: StateDir,
        config_files: Sequence[str] = (),
        *,
        orchestration_url: Callable[[], str] | None = None,
    ) -> None:
        """Build everything; nothing runs yet.  Raises CannotStart.

        ``orchestration_url``: the URL of the orchestration API, by default as configured.
        """
        foundation.require_several(home, settings, "bloomery api")
        engine = dataclasses.replace(settings.engine, num_engine_workers=0)
        settings = dataclasses.replace(settings, engine=engine)
        with foundation.build(settings, home, config_files) as base:
            self.base = base
            self.services = base.services()
            url = orchestration_url or (lambda: api_servers.configured_urls(base.conf)[1])
            self._stacks = stacks.Stacks(
                self.services, base.conf, base.db, base.sealer,
                endpoint=lambda: api_servers.signals_url(base, url()),
                on_events_written=base.relay.wake,
            )  # fmt: skip
            self.apps = api_servers.make_apps(
                base, self.services, self._stacks.operations,
                (
                    *gauges.of_process(base.db),
                    *gauges.of_site(base.db, base.ring),
                    *gauges.of_broker(self.services.rpc),
                ),
            )  # fmt: skip

    def start(self) -> None:
        """Start the relay and the ring.  Raises CannotStart."""
        with contextlib.ExitStack() as started, foundation.start_errors():
            started.callback(self.base.db.close)
            self.base.relay.start()
            started.callback(self.base.relay.stop)
            started.callback(self.base.ring.stop)
            self.base.warn_of_another_ring()
            self.base.ring.start()
            started.pop_all()

    def stop(self) -> None:
        with contextlib.ExitStack() as started:  # an error of one stop skips no other
            started.callback(self.base.db.close)
            started.callback(self.base.relay.stop)
            started.callback(self.base.ring.stop)
            started.callback(self.services.rpc.close)


class ApiProcess:
    """Both APIs behind their own servers."""

    def __init__(
        self,
        settings: Conf,
        home: StateDir,
        config_files: Sequence[str] = (),
        *,
        shares_ports: bool = False,
    ) -> None:
        """Build everything and bind the addresses; nothing runs yet.  Raises CannotStart."""
        self._backend = ApiBackend(
            settings, home, config_files, orchestration_url=lambda: self.orchestration_url
        )
        try:
            self._api_servers = api_servers.ApiServers(
                self._backend.base, self._backend.apps, shares_ports=shares_ports
            )
        except BaseException:
            self._backend.base.db.close()
            raise

    @property
    def url(self) -> str:
        return self._api_servers.api.url

    @property
    def orchestration_url(self) -> str:
        return self._api_servers.orchestration_api.url

    def start(self, before_ready: Callable[[], object] = lambda: None) -> None:
        """Serve, and return.  Raises CannotStart.  ``before_ready``: as in ``Service.start``."""
        with contextlib.ExitStack() as started:
            started.callback(self._api_servers.api.stop)
            started.callback(self._api_servers.orchestration_api.stop)
            self._backend.start()
            started.callback(self._backend.stop)
            before_ready()
            self._api_servers.start()
            started.pop_all()
        self._api_servers.write_clouds()

    def reload(self) -> None:
        """Read certificates again, for new connections."""
        self._api_servers.reload()

    def stop(self, grace_s: float = 0.0) -> None:
        """Refuse new requests; running ones may end within ``grace_s``."""
        give_up_at = monotonic() + grace_s

        def left_s() -> float:
            return max(give_up_at - monotonic(), 0.0)

        with contextlib.ExitStack() as started:
            started.callback(self._backend.stop)
            started.callback(lambda: self._api_servers.orchestration_api.stop(left_s()))
            started.callback(lambda: self._api_servers.api.stop(left_s()))
            started.callback(self._backend.services.consoles.stop)
            started.callback(self._api_servers.begin_stop)
