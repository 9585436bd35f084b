"""Three control nodes, then twenty workers: a new image goes out, and fails in the second batch.

The template is that of the examples, with a canary of two that waits for a signal.  The machines
are those of a real conductor, which may die in the middle of a batch, as the engine may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from bloomery.db import rows
from bloomery.db.tables import NODES
from bloomery.drivers.base import DriverTask
from bloomery.model.stacks import Order, OrderKind, Template
from tests.kit.clients.templates import EXAMPLES
from tests.kit.machines.scripted import Script
from tests.kit.servers import site
from tests.kit.stacks import trees
from tests.kit.stacks.conductor_deaths import Floor
from tests.kit.stacks.row_engines import Killed

CONTROLS, WORKERS = 3, 20
OLD, NEW = "http://images/a.iso", "http://images/b.iso"
CANARY = {"size": 2, "soak_seconds": 900, "require_signal": True}


def cluster(iso: str) -> Template:
    document = yaml.safe_load((EXAMPLES / "machines" / "cluster.yaml").read_text())
    document["heat_template_version"] = "2021-04-16"
    document["resources"]["pool"]["update_policy"]["canary"] = CANARY
    parameters = {"class": "pool", "iso": iso, "controls": CONTROLS, "workers": WORKERS}
    return trees.template(iso, template=document, environment={"parameters": parameters})


@dataclass
class Cluster:
    """Signals ``continue`` whenever its workers pause; what else happens, the pauses tell."""

    path: Path
    kills_engine: bool
    kills_conductor: bool
    fails: bool = False  # the first machine of the second batch, however often it is written
    broken: str = ""
    pauses: list[tuple[int, str]] = field(default_factory=list)
    most_down: int = 0

    def __post_init__(self) -> None:
        script = Script()
        script.add("deploy", "write", self._write)
        self.floor = Floor(
            site.database(self.path), path=self.path, script=script, pool=CONTROLS + WORKERS
        )
        self.floor.enrol()
        self.floor.create(cluster(OLD))
        self.floor.run()

    def _write(self, task: DriverTask) -> None:
        if self.fails:
            self.broken = self.broken or task.node.uuid
        if self.fails and self.broken == task.node.uuid:
            raise OSError("no disk")

    def roll_out(self) -> None:
        self.floor.update(cluster(NEW))
        try:
            self.floor.run(self._look)
        except Killed:
            self._signal("continue")
            self.floor.run(self._look)

    def _look(self, _commits: int) -> None:
        down = [node for node in self.nodes() if node["provision_state"] != "active"]
        self.most_down = max(self.most_down, len(down))
        rollout = self.rollout()
        pause = (rollout.get("batch", 0), rollout.get("reason", ""))
        if rollout.get("state") != "paused" or "signal" in rollout:
            return
        if pause not in self.pauses:
            self._paused(pause)
        self._signal("continue")

    def _paused(self, pause: tuple[int, str]) -> None:
        self.pauses.append(pause)
        self.fails = pause[0] == 1
        if self.fails and self.kills_conductor:
            mortal = self.floor.mortal
            mortal.lives = mortal.commits + 9  # four machines begin, and none has ended
        elif not self.fails and self.kills_engine:
            raise Killed

    def _signal(self, word: str) -> None:
        root = self.floor.root
        payload = {"resource": self._pool().uuid, "details": {"rollout": word}}
        trees.accept(
            self.floor.db,
            Order(root_uuid=root, stack_uuid=root, kind=OrderKind.SIGNAL, payload=payload),
        )

    def _pool(self) -> Any:
        return next(row for row in self.floor.tree().resources if row.name == "pool")

    def rollout(self) -> Mapping[str, Any]:
        return self._pool().data.get("rollout") or {}

    def nodes(self) -> list[Mapping[str, Any]]:
        return self.floor.table(NODES)

    def images(self) -> list[str]:
        return [rows.load(node["instance_info"])["boot_iso"] for node in self.nodes()]


@pytest.mark.sampled
@pytest.mark.parametrize("kills_conductor", [False, True])
@pytest.mark.parametrize("kills_engine", [False, True])
def test_a_failure_in_the_second_batch_pauses_the_workers_until_a_signal(
    kills_engine: bool, kills_conductor: bool, tmp_path: Path
) -> None:
    cluster = Cluster(
        tmp_path / "c.sqlite", kills_engine=kills_engine, kills_conductor=kills_conductor
    )
    floor = cluster.floor
    try:
        assert floor.stack().status == "COMPLETE", floor.stack().reason
        first = floor.conductor
        cluster.roll_out()
        stack = floor.stack()
        assert (stack.action, stack.status) == ("UPDATE", "COMPLETE"), stack.reason
        assert cluster.images() == [NEW] * (CONTROLS + WORKERS)
        assert [batch for batch, _ in cluster.pauses] == [1, 2], cluster.pauses
        assert cluster.pauses[0][1] == "the canary is up"
        assert "members that failed: " in cluster.pauses[1][1]
        assert cluster.most_down <= WORKERS // 5
        assert floor.end()["orders"] == {
            "deploy": CONTROLS + WORKERS,
            "rebuild": CONTROLS + WORKERS + 1,
        }
        assert (floor.conductor is not first) == kills_conductor
    finally:
        floor.close()
