"""The engine of a process: it works on stacks from ``start`` to ``stop``.

    engine = EngineService(conf, db, sealer, runtime)
    engine.start()
    engine.wake(root_uuid)       # something was ordered; called after the commit
    engine.stop(grace_s=60)

It owns the parts and joins them: ``threads`` steps trees, ``sweeper`` finds those that nobody works
on, ``liveness`` says which engines live, ``wakes`` what happened elsewhere, ``purge`` what may go,
``drift`` which machines are not as their stacks say.
What works on templates is imported with the first stack: a process that has none does not pay.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.model.stacks import Tree
from bloomery.orchestration.service import drift_timer
from bloomery.orchestration.service.liveness import Liveness
from bloomery.orchestration.service.locks import Lease, StackLock
from bloomery.orchestration.service.purge import EVERY_S, Purge
from bloomery.orchestration.service.store import RowStore
from bloomery.orchestration.service.sweeper import Sweeper
from bloomery.orchestration.service.threads import Step, ThreadGroupManager
from bloomery.orchestration.service.tree_work import TreeRuntime, TreeWork, WorkingTree
from bloomery.orchestration.service.wakes import EventTail
from bloomery.secrets import Sealer

if TYPE_CHECKING:
    from bloomery.orchestration.engine.runtime import EngineRuntime

LOG = logging.getLogger(__name__)


class EngineService:
    """``on_events_written`` is called after each commit that wrote event rows.

    ``runtime`` is called when the first tree is loaded; ``make_tree`` is what tests replace.
    ``make_drift_watch`` makes what looks for machines that differ from their stacks; None: nothing.
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
        """``conf`` names the host.  Raises CannotStart for times that do not fit."""
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
            db, on_news=self.groups.wake, on_stacks=self.sweeper.sweep, alone=alone
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
        """Let turns that run end, for ``grace_s`` at most, and retire."""
        self._stopping = True
        if not self.groups.stop(grace_s=grace_s):
            LOG.warning("stopping: the time is over, and %d turns are cut off", self.groups.busy)
        self.wakes.stop()
        self.liveness.stop()

    # ------------------------------------------------------------------------------ news

    def wake(self, root_uuid: str) -> None:
        """Look at a tree soon: an order may wait for it; from any thread, returns at once."""
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
    """Makes the engine's tree of stored values; imports what that takes with the first one."""

    def __init__(self, runtime: Callable[[], EngineRuntime]) -> None:
        self._runtime = runtime

    def __call__(self, tree: Tree) -> WorkingTree:
        from bloomery.orchestration.engine import trees

        return trees.StackTree.load(tree, self._runtime())
