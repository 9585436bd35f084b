"""The engine of a process: it works on stacks from ``start`` to ``stop``.

    engine = EngineService(conf, db, sealer, runtime)
    engine.start()
    engine.wake(root_uuid)       # an order was accepted; called after the commit
    engine.stop(grace_s=60)

It owns and connects the parts: ``threads`` steps trees, ``sweeper`` finds trees without an engine,
``liveness`` says which engines are alive, ``wakes`` wakes trees after events, ``purge`` deletes old
rows, and ``drift`` reports machines that differ from their stacks.
The first stack imports the modules for templates, so a process without stacks does not load them.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.model.stacks import Tree
from bloomery.orchestration.engine_host import drift_timer
from bloomery.orchestration.engine_host.liveness import Liveness
from bloomery.orchestration.engine_host.locks import Lease, StackLock
from bloomery.orchestration.engine_host.purge import EVERY_S, Purge
from bloomery.orchestration.engine_host.store import RowStore
from bloomery.orchestration.engine_host.sweeper import Sweeper
from bloomery.orchestration.engine_host.threads import Step, ThreadGroupManager
from bloomery.orchestration.engine_host.tree_work import TreeRuntime, TreeWork, WorkingTree
from bloomery.orchestration.engine_host.wakes import EventTail
from bloomery.secrets import Sealer

if TYPE_CHECKING:
    from bloomery.orchestration.engine.runtime import EngineRuntime

LOG = logging.getLogger(__name__)


class EngineService:
    """``on_events_written`` is called after each commit that wrote event rows.

    ``runtime`` is called for each tree that is loaded; tests replace ``make_tree``.
    ``make_drift_watch`` makes the drift watch; None: the engine has none.
    """

    def __init__(
        self,
        conf: Conf,
        db: Database,
        sealer: Sealer,
        runtime: Callable[[], EngineRuntime],
        *,
        on_events_written: Callable[[], None] = lambda: None,
        make_tree: Callable[[Tree], WorkingTree] | None = None,
        make_drift_watch: Callable[[], drift_timer.Watch] | None = None,
    ) -> None:
        """``conf`` names the host.  Raises CannotStart for heartbeat intervals that do not fit."""
        self.conf, self._db = conf, db
        host = conf.default.host or ""
        self.has_started = self._stopping = False
        alone = db.is_sqlite
        self.groups = ThreadGroupManager(
            max(conf.engine.num_engine_workers, 1), on_late_wake=self.wake
        )
        self.liveness = Liveness(
            db, conf.engine, host=host, alone=alone, on_death=self._sweep_soon,
            on_retired=self._drop_all,
        )  # fmt: skip
        self.sweeper = Sweeper(
            db, ours=self.groups, live_ids=self.liveness.live_ids, wake=self.wake
        )
        self.wakes = EventTail(
            db, on_events=self.groups.wake, on_stacks=self.sweeper.sweep, alone=alone
        )
        self._purge = Purge(db, conf.engine, stopping=lambda: self._stopping)
        self.drift = make_drift_watch and drift_timer.DriftTimer(
            db, conf.engine.drift_interval, make_watch=make_drift_watch,
            live_ids=self.liveness.live_ids, random=random.random,
        )  # fmt: skip
        self._trees = TreeRuntime(
            store=RowStore(db, sealer, publisher=f"orchestration.{host}"),
            make_tree=make_tree or Loader(runtime),
            wakes=self.wakes,
            on_events_written=on_events_written,
            may_act=self.liveness.may_act,
        )

    def start(self) -> None:
        self.has_started = True
        self.liveness.register()
        self.groups.begin()
        self.groups.add_timer("sweep", self.conf.engine.periodic_interval, self.sweeper.sweep)
        self.groups.add_timer("purge", EVERY_S, self._purge.run)
        if self.drift is not None and self.conf.engine.drift_interval:
            self.groups.start("drift", self.drift.step, is_timer=True)
        self.wakes.begin()
        self.liveness.begin()
        if orphans := self.sweeper.sweep():
            LOG.warning("continues %d stacks that no engine works on", orphans)

    def missing(self) -> list[str]:
        if self._stopping:
            return ["the engine ends its work"]
        if not self.liveness.may_act():
            return ["the engine could not write a heartbeat for too long"]
        return []

    def begin_stop(self) -> None:
        self._stopping = True
        self.groups.stop(grace_s=0)

    def stop(self, grace_s: float = 0.0) -> None:
        """Wait for running turns, for ``grace_s`` at most, and retire."""
        self._stopping = True
        if not self.groups.stop(grace_s=grace_s):
            LOG.warning("stopping: the time is over, and %d turns are cut off", self.groups.busy)
        self.wakes.stop()
        self.liveness.stop()

    # ------------------------------------------------------------------------------ wake-ups

    def wake(self, root_uuid: str) -> None:
        """Step a tree soon, because an order may wait; return at once.  Any thread may call it."""
        if self.has_started and not self.groups.wake(root_uuid):
            lock = StackLock(self._db, root_uuid, self.liveness.engine_id)
            self.groups.start_with_lock(lock, self.liveness.is_live, self._work)

    def _work(self, lease: Lease) -> Step:
        return TreeWork(self._trees, lease).step

    def _sweep_soon(self) -> None:
        self.groups.wake("sweep")

    def _drop_all(self) -> None:
        for root in self.groups.roots():
            self.groups.stop(root)
            self.wakes.forget(root)


class Loader:
    """Makes the engine's tree of stored values; making the runtime imports the modules for it."""

    def __init__(self, runtime: Callable[[], EngineRuntime]) -> None:
        self._runtime = runtime

    def __call__(self, tree: Tree) -> WorkingTree:
        runtime = self._runtime()
        from bloomery.orchestration.engine import trees  # after it, see cmd/stacks.py

        return trees.StackTree.load(tree, runtime)
