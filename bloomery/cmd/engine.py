"""An engine of stacks in a process of its own."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence

from bloomery import errors
from bloomery.cmd import api_servers, foundation, gauges, monitoring, stacks
from bloomery.conf import Conf, default
from bloomery.state_dir import StateDir

LOG = logging.getLogger(__name__)


class EngineProcess:
    """The engine, the event relay, and the database."""

    def __init__(self, settings: Conf, home: StateDir, config_files: Sequence[str] = ()) -> None:
        """Build everything; nothing runs yet.  Raises CannotStart."""
        if not settings.engine.num_engine_workers:
            raise errors.CannotStart(
                reason="cannot run an engine without workers: set [engine]num_engine_workers"
            )
        with foundation.build(settings, home, config_files) as base:
            self._base = base
            services = self._services = base.services(threads=base.conf.engine.num_engine_workers)
            _, stacks_url = api_servers.configured_urls(base.conf)
            self._stacks = stacks.Stacks(
                services, base.conf, base.db, base.sealer,
                endpoint=lambda: api_servers.signals_url(base, stacks_url),
                on_events_written=base.relay.wake,
            )  # fmt: skip
            engine = self._stacks.engine
            self._monitor = monitoring.Monitor(
                base.conf,
                "engine_port",
                (
                    *gauges.of_process(base.db),
                    *gauges.of_engine(engine),
                    *gauges.of_broker(services.rpc),
                ),
                {"the engine": engine.missing, "the message broker": services.rpc.missing},
            )

    @property
    def engine_id(self) -> str:
        return self._stacks.engine.liveness.engine_id

    def start(self, before_ready: Callable[[], object] = lambda: None) -> None:
        """Recover unattended stacks, and return.  Raises CannotStart.

        ``before_ready``: as in ``Service.start``.
        """
        with contextlib.ExitStack() as started, foundation.start_errors():
            started.callback(self._base.db.close)
            started.callback(self._monitor.stop)  # it listens already
            self._base.relay.start()
            started.callback(self._base.relay.stop)
            started.callback(self._base.ring.stop)
            self._base.warn_of_another_ring()
            if self._base.conf.default.rpc_transport == default.NONE:
                LOG.warning(
                    "this engine reaches no conductor: [DEFAULT]rpc_transport is none, so that "
                    "what stacks order of machines fails; set it to json-rpc or oslo for all "
                    "processes"
                )
            self._base.ring.start()
            started.callback(self._stacks.stop)
            before_ready()
            self._stacks.start()
            self._monitor.start()
            started.pop_all()

    def stop(self, grace_s: float = 0.0) -> None:
        """Let running transactions end within ``grace_s``; another engine continues."""
        with contextlib.ExitStack() as started:
            started.callback(self._base.db.close)
            started.callback(self._monitor.stop)
            started.callback(self._base.relay.stop)
            started.callback(self._base.ring.stop)
            started.callback(self._services.rpc.close)
            started.callback(lambda: self._stacks.stop(grace_s))
