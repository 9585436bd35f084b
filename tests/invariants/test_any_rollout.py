"""Any roll-out: groups, policies, failures, signals and deaths of engines, drawn by a seed."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from bloomery.conductor.states import State
from bloomery.model.stacks import OrderKind
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.resources import drains
from bloomery.orchestration.resources.base import Answer
from bloomery.orchestration.resources.batches import Batch
from bloomery.orchestration.resources.machine_group import InstanceGroup
from bloomery.orchestration.resources.rollouts import OnFailure, RolloutOrder
from bloomery.orchestration.resources.windows import Window
from bloomery.orchestration.simulation.simulation import EPOCH
from tests.kit.stacks.machine_kills import DRAIN
from tests.kit.stacks.machine_sites import TAKES_S
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.memory_webhooks import MemoryWebhooks
from tests.kit.stacks.tree_world import ROOT, World

SEEDS = 200
OLD, NEW, NEXT = (f"http://images/{name}" for name in "abc")


class Watched(MemoryMachines):
    """Notes each rebuild or service, and how many machines could do their work while it began."""

    verb = "rebuild"

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.served: set[str] = set()
        self.taken_down: Counter[str] = Counter()
        self.rebuilds: Counter[tuple[str, str]] = Counter()  # of a node, to an image or a setting
        self.broken: set[str] = set()  # that had failed when their last rebuild began
        self.least = 10**6  # so many machines worked, not counting those that have failed
        self.times: list[float] = []  # of each of them
        self.webhooks: MemoryWebhooks | None = None  # of drains; None: there are none

    def is_drained(self, uuid: str, state: str) -> bool:
        """Whether the webhook was called for each loss of the system that was in use.

        A service that follows a deployment at once is none.
        """
        is_new = self.verb == "service" and uuid not in self.served
        self.served.add(uuid)
        if self.webhooks is None or state not in drains.DRAINED or is_new:
            return True
        ids = {call for call, body in self.webhooks.calls if body["data"]["node_uuid"] == uuid}
        self.taken_down[uuid] += 1
        return len(ids) >= self.taken_down[uuid]

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        was = self.get_node(uuid)["provision_state"]
        super().set_provision_state(uuid, verb, **arguments)
        if verb == self.verb:
            assert self.is_drained(uuid, was), "it was not drained"
            self.times.append(EPOCH.timestamp() + self._utc())
            self.rebuilds[uuid, self.definition_of(uuid)] += 1
            self.broken = self.broken - {uuid} if was == State.ACTIVE else self.broken | {uuid}
            self.least = min(self.least, sum(self._counts(node) for node in self._used()))

    def _counts(self, uuid: str) -> bool:
        """Whether a machine works, or is one that failed before and so is taken down by nobody."""
        state = self.get_node(uuid)["provision_state"]
        at_rest = (State.ACTIVE, State.DEPLOYFAIL, State.SERVICEFAIL)
        return state in at_rest or uuid in self.broken

    def _used(self) -> list[str]:
        return [uuid for uuid, node in self.nodes.items() if node["instance_uuid"]]

    def definition_of(self, uuid: str) -> str:
        if self.verb == "service":
            return str(self.bios[uuid]["Version"])
        return str(self.nodes[uuid]["instance_info"]["image_source"])

    def images(self) -> list[str]:
        return [self.definition_of(uuid) for uuid in self._used()]

    def mend(self) -> None:
        self._failures.clear()


@dataclass
class Rollout:
    """One drawn roll-out; ``signals``: those sent to it, each at a pause, or in the middle.

    ``verb``: rebuild for another image, service for another setting of the BIOS.
    """

    seed: int
    verb: str = "rebuild"
    signals: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        draw = self.draw = random.Random(self.seed)
        self.webhooks = MemoryWebhooks()
        self.world = World(machines=lambda _stack: self.machines, webhooks=self.webhooks)
        takes_s = TAKES_S | {"service": 30}
        self.machines = Watched(utc=self.world.clock.now, takes_s=takes_s, invents=True)
        self.machines.verb = self.verb
        self.world.deadline_s = 1e7
        self.before = draw.randint(1, 9)
        self.count = self.before + draw.choice([0, 0, 0, 2, -self.before // 2])
        surge = draw.choice([0, 0, 1, 2])
        self.most_down = draw.randint(0 if surge else 1, 3)
        self.policy = {
            "batch_create": {
                "max_batch_size": draw.randint(1, 9), "pause_time": draw.choice([0, 7]),
            },
            "rolling_update": {
                "max_unavailable": self.most_down, "max_surge": surge,
                "batch_size": draw.randint(1, 4), "pause_time": draw.choice([0, 30]),
                "order": draw.choice([str(order) for order in RolloutOrder]),
                "failure_policy": draw.choice([str(policy) for policy in OnFailure]),
                "max_failures": draw.choice([0, 0, 1]),
                "health_gate": {"settle_seconds": draw.choice([0, 5])},
            },
            "canary": {"size": draw.randint(0, 2), "require_signal": draw.random() < 0.3},
        }  # fmt: skip
        self.failures = draw.choice([0, 0, 1, 2])
        self.words = draw.choices(["continue", "abort", "rollback"], [4, 1, 1], k=9)
        self.interrupts = draw.choice(["", "", "pause", "abort", "rollback"])
        self.paused: set[str] = set()
        self.window = draw.choice([None, None, {"begin": "02:00", "end": "02:30"}])
        if self.window is not None:
            self.policy["rolling_update"]["window"] = self.window
        self.drain = draw.choice([{}, {}, {"drain": DRAIN}])
        answers = [Answer(fault="busy"), Answer(), Answer(is_drained=True), None]
        self.webhooks.answers = draw.choices(answers, k=30)

    # ------------------------------------------------------------------------- what clients do

    def template(self, image: str, count: int) -> str:
        selector = {"resource_class": "pool"}
        member = {"name": "m-%index%", "selector": selector} | self.definition(image)
        group = {
            "type": "OS::Ironic::InstanceGroup",
            "properties": {"count": count, "member": member} | self.drain,
            "update_policy": self.policy,
        }
        return f"resources: {json.dumps({'workers': group})}"

    def definition(self, image: str) -> dict[str, Any]:
        if self.verb == "rebuild":
            return {"image": {"source": image}}
        settings = {"settings": {"Version": image}}
        return {"image": {"source": OLD}, "hardware": {"bios": settings}}

    def create(self) -> None:
        self.world.create(self.template(OLD, self.before))
        self.world.run()
        assert self.world.state == "CREATE_COMPLETE", self.world.root.reason
        pace = self.policy["batch_create"]
        pauses = math.ceil(self.before / pace["max_batch_size"]) - 1
        assert self.world.clock.now() >= pauses * (pace["pause_time"] + TAKES_S["active"])

    def update(self, image: str) -> None:
        self.machines.webhooks, self.machines.times = self.webhooks if self.drain else None, []
        self.world.update(self.template(image, self.count))
        self.world.run(until=self._answer)
        window = Window.of(self.window)
        if window is not None and self.data()["state"] == "complete":
            for at_s in self.machines.times:  # a batch goes on after its window, as drains do
                assert 0 in (window.wait_s(at_s), window.wait_s(at_s - DRAIN["timeout"]))

    def _answer(self) -> bool:
        """Signal the group where it is paused, or once in the middle; never end the run."""
        data = self.data()
        paused = f"{data['batch']} {data['reason']}" if data.get("state") == "paused" else ""
        if paused and paused not in self.paused:
            self.paused.add(paused)
            self._signal(self.words.pop() if self.words else "abort")
        elif self.interrupts and data.get("batch") == 2:
            self._signal(self.interrupts)
            self.interrupts = ""
        return False

    def _signal(self, word: str) -> None:
        self.signals.append(word)
        self.world.ask(OrderKind.SIGNAL, "workers", details={"rollout": word})

    def die_sometimes(self) -> None:
        writes = self.world.writes
        deaths = {writes + self.draw.randint(1, 30) for _ in range(self.draw.choice([0, 1, 2]))}
        self.world.kill = lambda when, number: when == "after" and number in deaths

    # --------------------------------------------------------------------------- what is there

    def data(self) -> dict[str, Any]:
        rollout: dict[str, Any] = self.world.row("workers").data.get("rollout") or {}
        return rollout

    def foreseen(self, image: str) -> list[Batch]:
        """The batches of an update, told by the group as it is before."""
        tree = StackTree.load(self.world.store.load(ROOT), self.world.runtime)
        group = tree.stacks[ROOT].rows["workers"].resource()
        assert isinstance(group, InstanceGroup)
        present = group.current_members()
        member = group.properties["member"] | self.definition(image)
        group.properties = dict(group.properties) | {"member": member, "count": self.count}
        return group.foresee_batches({}, present)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("verb", "seed"),
    [*(("rebuild", seed) for seed in range(SEEDS)),
     *(("service", seed) for seed in range(SEEDS // 4))],
)  # fmt: skip
def test_any_roll_out_ends_and_leaves_what_the_next_update_finishes(verb: str, seed: int) -> None:
    rollout = Rollout(seed, verb=verb)
    rollout.create()
    steps, machines = rollout.foreseen(NEW), rollout.machines
    machines.least = 10**6  # the creation services each member, too
    for _ in range(rollout.failures):
        machines.fail_next(verb, "no disk")
    rollout.die_sometimes()
    rollout.update(NEW)
    data = rollout.data()
    assert data["state"] in ("complete", "failed"), data
    assert machines.least >= min(rollout.count, rollout.before) - rollout.most_down
    again = rollout.signals.count("continue")
    assert all(
        times <= 1 + again for (_, image), times in machines.rebuilds.items() if image == NEW
    )
    if not (rollout.failures or set(rollout.signals) - {"continue", "pause"}):
        batches = [name for step in steps for name in step.changed]
        assert (data["state"], data["changed"]) == ("complete", batches)
        assert machines.images() == [NEW] * rollout.count
    machines.mend()
    rollout.words, rollout.interrupts = ["continue"] * 20, ""
    rollout.paused.clear()
    rollout.update(NEXT)
    assert rollout.world.state == "UPDATE_COMPLETE", (rollout.world.row("workers").reason, data)
    assert machines.images() == [NEXT] * rollout.count


@pytest.mark.sampled
@pytest.mark.parametrize("verb", ["rebuild", "service"])
@pytest.mark.parametrize("seed", range(SEEDS // 8))
def test_an_update_in_the_middle_of_a_roll_out_is_the_one_that_counts(verb: str, seed: int) -> None:
    """Nobody signals first, no member is written twice, and as many do their work as are to."""
    rollout = Rollout(seed, verb=verb)
    rollout.policy["canary"]["require_signal"] = False
    rollout.create()
    machines, world = rollout.machines, rollout.world
    machines.least = 10**6
    rollout.die_sometimes()
    begun, until = world.writes, rollout.draw.randint(1, 25)
    world.update(rollout.template(NEW, rollout.count))
    world.run(until=lambda: world.writes - begun >= until)
    rollout.words, rollout.interrupts = ["continue"] * 20, ""
    rollout.update(NEXT)
    assert world.state == "UPDATE_COMPLETE", (world.row("workers").reason, rollout.data())
    assert machines.images() == [NEXT] * rollout.count
    assert machines.least >= min(rollout.count, rollout.before) - rollout.most_down
    assert all(times == 1 for (_, image), times in machines.rebuilds.items() if image == NEXT)
