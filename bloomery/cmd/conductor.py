"""A conductor in a process of its own, on the database of a server."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from time import monotonic

from bloomery.cmd import foundation, gauges, monitoring
from bloomery.cmd.foundation import Foundation
from bloomery.conductor import lease, lifecycle
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conf import Conf
from bloomery.http_server.server import raise_descriptor_limit
from bloomery.state_dir import StateDir


class ConductorProcess:
    """A conductor, its RPC server, the event relay, and the database."""

    def __init__(
        self,
        settings: Conf,
        home: StateDir,
        config_files: Sequence[str] = (),
        *,
        on_superseded: Callable[[], object] = lambda: None,
        on_drain: Callable[[], object] = lambda: None,
    ) -> None:
        """Build everything; nothing runs yet.  Raises CannotStart."""
        foundation.require_several(home, settings, "bloomery conductor")
        lease.check(settings)
        raise_descriptor_limit()  # looks keep a connection to each BMC
        with foundation.build(settings, home, config_files, is_conductor=True) as base:
            self._base = base
            self.service = lifecycle.ConductorService(
                make_runtime(base), on_superseded=on_superseded, on_drain=on_drain
            )
            self._rpc_server = base.rpc_server(self.host, self.service.manager)
            self._monitor = monitoring.Monitor(
                base.conf, "conductor_port",
                (
                    *gauges.of_process(base.db),
                    *gauges.of_conductor(self.service),
                    *gauges.of_broker(self._rpc_server),
                ),
                {"the database": self.service.missing, "the message broker": self._missing},
            )  # fmt: skip

    @property
    def host(self) -> str:
        return self.service.runtime.host

    def _missing(self) -> list[str]:
        if self._rpc_server.is_connected is not False:
            return []
        return ["the message broker does not answer: nobody can call this conductor"]

    def start(self, before_ready: Callable[[], object] = lambda: None) -> None:
        """Register, recover flows, and return.  Raises CannotStart.

        ``before_ready``: as in ``Service.start``.
        """
        with contextlib.ExitStack() as started, foundation.start_errors():
            started.callback(self._base.db.close)
            started.callback(self._monitor.stop)  # it listens already
            self._base.relay.start()
            started.callback(self._base.relay.stop)
            started.callback(self.service.stop, grace_s=0)
            self.service.start(alone=False)
            started.callback(self._rpc_server.stop, 0)
            before_ready()
            self._rpc_server.start()
            self._monitor.start()
            started.pop_all()

    def reload(self) -> None:
        """Read certificates again, for new connections."""
        self._rpc_server.reload()

    def stop(
        self, grace_s: float = 0.0, *, stays_online: bool = False, drains: bool = False
    ) -> None:
        """Accept no new work, wait for running work up to ``grace_s``, and sign off.

        ``drains``: also for the flows that wait for agents, unless a peer takes them over.

        Callers with the old ring are served until they have read it again.
        """
        give_up_at = monotonic() + grace_s

        def left_s() -> float:
            return max(give_up_at - monotonic(), 0.0)

        if drains:
            self.service.finish_work(left_s())
        with contextlib.ExitStack() as started:
            started.callback(self._base.db.close)
            started.callback(self._monitor.stop)
            started.callback(self._base.relay.stop)
            started.callback(lambda: self.service.stop(left_s(), stays_online=stays_online))
            started.callback(lambda: self._rpc_server.stop(left_s(), returns=stays_online))
            if not stays_online:
                self.service.begin_stop()
                self._base.wait_for_callers(left_s())


def make_runtime(base: Foundation) -> ConductorRuntime:
    """Return the parts of this process's conductor."""
    runtime = lifecycle.build(
        base.conf, base.db, base.sealer,
        on_events_written=base.relay.wake, wants_snapshots=base.relay.wants_snapshots,
        send_sensors=base.relay.send_sensors,
        checkpoint=functools.partial(base.home.site.checkpoint, base.db),
    )  # fmt: skip
    return dataclasses.replace(runtime, ring=base.ring)
