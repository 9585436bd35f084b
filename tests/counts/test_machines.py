"""What a stack costs for each machine that it deploys, in commits; what waiting costs: nothing."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.resources.machines import QUEUE, Busy, Json, Queued
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import Site, make_site, template
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.row_engines import Engine

IMAGE = {"source": "http://images/a"}


def instances(count: int) -> dict[str, Any]:
    properties = {"selector": {"resource_class": "pool"}, "image": IMAGE}
    return {
        f"i{n}": {"type": "OS::Ironic::Instance", "properties": properties} for n in range(count)
    }


def deployed(site: Site, resources: dict[str, Any]) -> Engine:
    site.create(template(resources))
    engine = Engine(site.db, site.runtime())
    engine.run(site.root)
    assert site.stack().status == "COMPLETE"
    return engine


def test_an_instance_costs_five_commits_beside_those_of_its_stack(tmp_path: Path) -> None:
    """IN_PROGRESS, node set aside, node written, deployment ordered, COMPLETE."""
    engine = deployed(make_site(trees.database(tmp_path)), instances(1))
    written = [turn for turn in engine.turns if any(row.name == "i0" for row in turn.resources)]
    assert len(written) == 5


def in_a_row(count: int) -> dict[str, Any]:
    """Each begins when the one before it has ended: no two of them share a commit."""
    resources = instances(count)
    for number in range(1, count):
        resources[f"i{number}"]["depends_on"] = f"i{number - 1}"
    return resources


def test_an_instance_that_goes_alone_costs_four_commits(tmp_path: Path) -> None:
    """Its first one is the last one of the Instance before it."""
    commits = []
    for count in (1, 11):
        (tmp_path / str(count)).mkdir()
        site = make_site(trees.database(tmp_path / str(count)), pool=count)
        commits.append(deployed(site, in_a_row(count)).commits)
    assert commits[1] - commits[0] == 4 * 10


def test_instances_that_go_together_share_their_commits(tmp_path: Path) -> None:
    for name in ("few", "many"):
        (tmp_path / name).mkdir()
    few = deployed(make_site(trees.database(tmp_path / "few"), pool=20), instances(1)).commits
    many = deployed(make_site(trees.database(tmp_path / "many"), pool=20), instances(20)).commits
    assert many == few


class QueuedMachines(MemoryMachines):
    """Of which two may deploy at a time."""

    most = 0

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        for node in self.nodes.values():
            self._settle(node)
        deploying = sum(each["provision_state"] == "deploying" for each in self.nodes.values())
        if deploying >= 2:
            raise Queued("2 nodes are being deployed", f"{QUEUE}deployed:")
        super().set_provision_state(uuid, verb, **arguments)
        self.most = max(self.most, deploying + 1)


def test_who_is_over_the_budget_waits_in_a_queue_and_says_so(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), QueuedMachines, pool=7)
    engine = deployed(site, instances(7))
    assert isinstance(site.machines, QueuedMachines)
    assert site.machines.most == 2
    assert [verb for _, verb in site.machines.orders] == ["active"] * 7
    queued = {"queued: 2 nodes are being deployed"}
    reasons = {row.reason for turn in engine.turns for row in turn.resources if row.waits_for}
    assert queued <= reasons
    assert {row.reason for row in site.tree().resources} == {"state changed"}
    assert 400 <= site.now_s <= 600  # four rounds of 100 s, and a look each 30 s


class CrowdedMachines(MemoryMachines):
    """Nobody may deploy until there is room for three; then nobody again."""

    room = 0

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.looks = 0

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        self.looks += 1
        if not self.room:
            raise Queued("it is crowded", f"{QUEUE}deployed:")
        self.room -= 1
        super().set_provision_state(uuid, verb, **arguments)


def test_a_queue_is_looked_at_once_for_each_who_is_let_in(tmp_path: Path) -> None:
    """And once more for the first who is not: nobody else of a long queue costs anything."""
    site = make_site(trees.database(tmp_path), CrowdedMachines, pool=20)
    machines = site.machines
    assert isinstance(machines, CrowdedMachines)
    site.create(template(instances(20)))
    tree = StackTree.load(site.tree(), site.runtime())
    while machines.looks < 20:
        tree.turn()
    machines.room = 3
    tree.wake(f"{QUEUE}deployed:")
    tree.turn()
    assert (machines.looks, len(machines.orders)) == (24, 3)


class BusyMachines(MemoryMachines):
    """Whose nodes somebody works at for a while."""

    refusals = 6

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            self.refused_at.append(self._utc())
            raise Busy("Node p1 is locked by host a", uuid)
        super().set_provision_state(uuid, verb, **arguments)

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.refused_at: list[float] = []
        self.reads = 0

    def get_node(self, ident: str) -> Json:
        self.reads += 1
        return super().get_node(ident)


def test_a_busy_node_is_asked_ever_later_and_the_resource_says_so(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), BusyMachines, pool=1)
    engine = deployed(site, instances(1))
    assert isinstance(site.machines, BusyMachines)
    times = site.machines.refused_at
    pauses = [round(after - before) for before, after in itertools.pairwise(times)]
    assert pauses == [5, 10, 20, 40, 60]
    reasons = [row.reason for turn in engine.turns for row in turn.resources if row.name == "i0"]
    assert "Node p1 is locked by host a" in reasons
    (row,) = site.tree().resources
    assert row.reason == "state changed"
    assert site.machines.orders == [(row.physical_id, "active")]


def test_who_waits_for_a_machine_writes_nothing(tmp_path: Path) -> None:
    """A deployment of 100 s is looked at by the net only; no look is a commit."""
    site = make_site(trees.database(tmp_path), BusyMachines, pool=1)
    assert isinstance(site.machines, BusyMachines)
    site.machines.refusals = 0
    engine = deployed(site, instances(1))
    ordered = next(
        number for number, turn in enumerate(engine.turns)
        for row in turn.resources if row.waits_for == row.physical_id and row.physical_id
    )  # fmt: skip
    assert len(engine.turns) == ordered + 2
    assert site.machines.reads == 7
