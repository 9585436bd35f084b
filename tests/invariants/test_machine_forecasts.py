"""What a plan says of machines is what the walk does, where it is certain; and it orders nothing.

Stacks of machines in memory are updated at random.  Before each update its plan is made, while the
machines refuse every order.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from bloomery.orchestration import foresight
from bloomery.orchestration.foresight.schedule import Step, schedule_of
from bloomery.orchestration.plan.builder import ExistingStack
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Action, Key, Plan, Verb
from bloomery.orchestration.simulation import Lifecycle, Simulation
from bloomery.orchestration.simulation.lifecycle import with_id
from bloomery.orchestration.stack import Stack
from tests.kit.stacks import simulations
from tests.kit.stacks.memory_machines import MemoryMachines

SEEDS, UPDATES = 60, 5
ROLLOUTS = 40
IMAGES = ("http://a", "http://b", "http://c")
POLICIES = ("rebuild", "rebuild", "replace", "ignore")
DONE = {
    Verb.CREATE: {"CREATE"},
    Verb.UPDATE: {"UPDATE"},
    Verb.REPLACE: {"UPDATE", "CREATE", "DELETE"},  # the update is said to have failed, as in Heat
    Verb.UNCHANGED: set(),
    Verb.DELETE: {"DELETE"},
}


class Watched(MemoryMachines):
    """Notes what power was asked for as well, and may refuse every order."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.refuses = False

    def set_power_state(self, uuid: str, target: str) -> None:
        self.orders.append((uuid, target))
        super().set_power_state(uuid, target)


def _refusing(name: str) -> Any:
    def order(self: Watched, *words: Any, **more: Any) -> Any:
        assert not self.refuses, f"a plan ordered {name}"
        return getattr(super(Watched, self), name)(*words, **more)

    return order


ORDERS = (
    "create_node", "update_node", "delete_node", "set_traits", "set_maintenance",
    "set_provision_state", "set_boot", "attach_vif", "detach_vif", "create", "update", "delete",
)  # fmt: skip
for _name in ORDERS:
    setattr(Watched, _name, _refusing(_name))


class Rack:
    """A stack of machines that is drawn at random, and drawn anew in parts."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.resources: dict[str, dict[str, Any]] = {}
        self.added = 0
        for number in range(self.draw.randint(2, 4)):
            self._add(number)

    def _add(self, number: int) -> None:
        kind = self.draw.choice(("instance", "instance", "rack", "node"))
        if kind == "instance":
            web = self.resources[f"web{number}"] = _instance(
                {"selector": {"resource_class": "pool"}}
            )
            if self.draw.random() < 0.3:
                web["properties"]["runbook_before"] = "CUSTOM_BURN_IN"
            if self.draw.random() < 0.5:
                self.resources[f"run{number}"] = {
                    "type": "OS::Ironic::RunbookExecution",
                    "properties": {
                        "instance": {"get_resource": f"web{number}"}, "triggers": {"n": 0},
                        "steps": [{"interface": "bios", "step": "factory_reset"}],
                    },
                }  # fmt: skip
            return
        node: dict[str, Any] = {"name": f"n{number}", "driver": "redfish", "driver_info": {"a": 0}}
        node["resource_class"] = "rack"  # none that the selectors ask for
        self.resources[f"node{number}"] = {"type": "OS::Ironic::Node", "properties": node}
        if kind == "rack":
            place = {"node": {"get_resource": f"node{number}"}}
            self.resources[f"on{number}"] = _instance(place)
        elif self.draw.random() < 0.5:
            node["target_state"] = "manageable"
            self.resources[f"hw{number}"] = {
                "type": "OS::Ironic::HardwareConfiguration",
                "properties": {
                    "node": {"get_resource": f"node{number}"},
                    "bios": {"settings": {"A": "0"}},
                },
            }

    def change(self) -> None:
        """Draw another definition of some resources; one may come, and one may go."""
        for name, each in self.resources.items():
            if self.draw.random() < 0.6:
                change = {"w": self._instance, "o": self._instance, "r": self._run,
                          "n": self._node, "h": self._hardware}[name[0]]  # fmt: skip
                change(each["properties"], name)
        if self.draw.random() < 0.2:
            self.added += 10
            self._add(self.added)  # a number that was never there
        loose = [name for name in self.resources if name[0] in "wo"]
        if loose and self.draw.random() < 0.2:
            gone = self.draw.choice(loose)
            del self.resources[gone]
            self.resources.pop(f"run{gone.removeprefix('web')}", None)

    def _instance(self, properties: dict[str, Any], name: str) -> None:
        match self.draw.choice(("image", "image", "power", "name", "root_gb", "user", "policy")):
            case "image":
                properties["image"] = {"source": self.draw.choice(IMAGES)}
            case "power" if f"run{name.removeprefix('web')}" not in self.resources:
                properties["power"] = self.draw.choice(("on", "off"))
            case "name" | "power":  # a machine on which steps run is on
                properties["name"] = f"{name}-{self.draw.randint(0, 3)}"
            case "root_gb":
                properties["root_gb"] = self.draw.randint(8, 10)
            case "user":
                properties["user_data"] = self.draw.choice(("a", "b"))
                properties["user_data_update_policy"] = self.draw.choice(POLICIES)
            case "policy":
                properties["image_update_policy"] = self.draw.choice(POLICIES)

    def _run(self, properties: dict[str, Any], name: str) -> None:
        properties["triggers"] = {"n": self.draw.randint(0, 2)}
        if self.draw.random() < 0.3:
            properties["run_on"] = self.draw.choice((["CREATE"], ["CREATE", "UPDATE"]))

    def _node(self, properties: dict[str, Any], name: str) -> None:
        used = f"on{name[4:]}" in self.resources or f"hw{name[4:]}" in self.resources
        match self.draw.choice(
            ("info", "state", "inspect", "boot", "retired", "traits", "bios", "raid")
        ):
            case "info":
                properties["driver_info"] = {"a": self.draw.randint(0, 2)}
            case "state" if not used:
                properties["target_state"] = self.draw.choice(("available", "manageable"))
            case "boot":
                properties["boot_mode"] = self.draw.choice(("bios", "uefi"))
            case "retired" if not used:
                properties["retired"] = self.draw.choice((True, False))
            case "bios" | "raid" as section:
                configuration = properties.setdefault("hardware_configuration", {})
                number = self.draw.randint(0, 2)
                configuration[section] = {
                    "bios": {"settings": {"A": str(number)}},
                    "raid": {"logical_disks": [{"size_gb": 10 + number}]},
                }[section]
                configuration["allow_destructive"] = self.draw.random() < 0.7
            case "inspect":
                properties["inspect"] = self.draw.choice(("once", "always", "none"))
            case _:
                properties["traits"] = [f"CUSTOM_{self.draw.randint(0, 2)}"]

    def _hardware(self, properties: dict[str, Any], name: str) -> None:
        properties["bios"] = {"settings": {"A": str(self.draw.randint(0, 2))}}

    def stack(self) -> Stack:
        return simulations.stack(json.dumps({"resources": self.resources})[1:-1])


def _instance(place: dict[str, Any]) -> dict[str, Any]:
    properties = {**place, "image": {"source": IMAGES[0]}}
    return {"type": "OS::Ironic::Instance", "properties": properties}


def _verbs(step: Step) -> Iterator[str]:
    yield from step.action.effect.verbs


class Update:
    """One update: what its plan said, and what came of it."""

    def __init__(self, life: Lifecycle, machines: Watched, new: Stack) -> None:
        existing = life.stack
        assert existing is not None
        self.before = {name: row.uuid for name, row in existing.rows.items()}
        self.nodes = {name: row.physical_id for name, row in existing.rows.items()}
        new = with_id(new, existing.name, existing.id)
        machines.refuses = True
        self.plan: Plan = foresight.plan(
            existing.definition,
            new,
            ExistingStack.of_rows(existing.definition, existing.rows, existing.leftovers),
        )
        self._steps = list(schedule_of(self.plan, lambda key, action: None).steps)
        machines.refuses = False
        orders, events = len(machines.orders), len(life.simulation.events)
        raids = {uuid: node.get("raid_config") for uuid, node in machines.nodes.items()}
        self.result = life.update(new)
        self.after = {name: row.uuid for name, row in existing.rows.items()}
        self.nodes_after = {name: row.physical_id for name, row in existing.rows.items()}
        self.orders = Counter(machines.orders[orders:])
        self.raids_lost = {
            uuid for uuid, raid in raids.items()
            if uuid in machines.nodes and machines.nodes[uuid].get("raid_config") != raid
        }  # fmt: skip
        self.acts = {
            (event.resource, event.action.value)
            for event in life.simulation.events[events:]
            if event.status == "IN_PROGRESS"
        }

    @property
    def refused(self) -> set[str]:
        """Names of what the plan said would fail."""
        return {key.name for key, each in self.plan.refused.items() if each.is_certain}

    def steps(self) -> list[Step]:
        """Return what the plan said before anything was done: its rows live on."""
        return self._steps

    def acts_of(self, name: str) -> set[str]:
        return {act for who, act in self.acts if who == name}

    def machine(self, key: Key) -> str | None:
        made = self.plan.actions[key].verb in (Verb.CREATE, Verb.REPLACE)
        return (self.nodes_after if made and key.phase == MAKE else self.nodes).get(key.name)

    def check(self) -> int:
        """Compare; return how many steps were certain."""
        steps = self.steps()
        doubted = {step.key.name for step in steps if not step.is_certain}
        for name in {key.name for key in self.plan.actions} - doubted:
            action = self.plan.actions.get(Key(name, MAKE)) or self.plan.actions[Key(name, CLEAN)]
            self._check_act(name, action)
        said = Counter(
            (self.machine(step.key), verb)
            for step in steps if step.is_certain for verb in _verbs(step)
        )  # fmt: skip
        assert said <= self.orders, (said, self.orders)
        if not doubted:
            assert said == self.orders
        losers = {self.machine(step.key) for step in steps if step.action.effect.loses_data}
        assert self.raids_lost <= losers
        return sum(step.is_certain for step in steps)

    def _check_act(self, name: str, action: Action) -> None:
        assert self.acts_of(name) == DONE[action.verb], (name, action)
        is_same = self.before.get(name) == self.after.get(name)
        assert is_same is (action.verb in (Verb.UPDATE, Verb.UNCHANGED)), (name, action)


def test_what_is_certain_comes_true() -> None:
    outcomes: Counter[str] = Counter()
    certain = 0
    for seed in range(SEEDS):
        rack = Rack(seed)
        machines = Watched(invents=True)
        life = Lifecycle(Simulation(site=simulations.MemorySite(machines)))
        assert life.create(rack.stack()).error is None
        for _ in range(UPDATES):
            before = copy.deepcopy(rack.resources)
            rack.change()
            update = Update(life, machines, rack.stack())
            outcomes.update(step.verb for step in update.steps())
            if update.plan.refused:
                _check_refusal(update)
                rack.resources = before
                assert life.update(rack.stack()).error is None
                continue
            assert update.result.error is None, (seed, update.result)
            certain += update.check()
    assert certain > SEEDS * UPDATES
    words = {"create", "patch", "service", "rebuild", "replace", "delete", "refuse"}
    assert words <= outcomes.keys()


def _check_refusal(update: Update) -> None:
    """What was said to fail for certain has failed, and nothing was ordered of its machine."""
    if not update.refused:
        return
    failed = {each.name for each in update.result.resources if each.state.endswith("FAILED")}
    assert update.refused & failed, (update.refused, update.result)
    refused = {update.nodes[name] for name in update.refused & failed}
    assert not refused & {uuid for uuid, _ in update.orders}


@pytest.mark.parametrize("order", ORDERS)
def test_the_machines_of_a_plan_do_refuse(order: str) -> None:
    machines = Watched()
    machines.refuses = True
    with pytest.raises(AssertionError, match="a plan ordered"):
        getattr(machines, order)("x", "y")


class Group:
    """A group of machines that is drawn at random, and how it rolls out."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.count, self.image = self.draw.randint(1, 5), IMAGES[0]
        self.policy: dict[str, Any] = {}
        self._redraw()

    def _redraw(self) -> None:
        down, surge = self.draw.choice(((1, 0), (2, 0), ("50%", 0), (0, 1), (1, 2)))
        self.policy = {
            "rolling_update": {
                "batch_size": self.draw.randint(1, 3), "max_unavailable": down, "max_surge": surge,
                "order": self.draw.choice(("index_asc", "index_desc")),
                "health_gate": {"settle_seconds": self.draw.choice((0, 9))},
            },
            "canary": {"size": self.draw.randint(0, 2)},
            "batch_create": {"max_batch_size": self.draw.randint(1, 3)},
            "deletion": {"batch_size": self.draw.randint(1, 2)},
        }  # fmt: skip

    def change(self) -> None:
        if self.draw.random() < 0.7:
            self.image = self.draw.choice(IMAGES)
        if self.draw.random() < 0.4:
            self.count = self.draw.randint(1, 5)
        self._redraw()

    def stack(self) -> Stack:
        member = {"selector": {"resource_class": "pool"}, "image": {"source": self.image}}
        group = {
            "type": "OS::Ironic::InstanceGroup", "update_policy": self.policy,
            "properties": {"count": self.count, "member": {**member, "name": "m-%index%"}},
        }  # fmt: skip
        return simulations.stack(json.dumps({"resources": {"workers": group}})[1:-1])


def _nodes_below(life: Lifecycle) -> dict[str, str | None]:
    """Return the nodes of the members of groups, by path."""
    assert life.stack is not None
    return {
        f"{stack.row.owner_resource}/{name}": row.physical_id
        for stack in life.stack.stacks.values() if stack.row.depth
        for name, row in stack.rows.items()
    }  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(ROLLOUTS))
def test_a_rollout_goes_in_the_stages_that_were_said(seed: int) -> None:
    group, machines = Group(seed), Watched(invents=True)
    life = Lifecycle(Simulation(site=simulations.MemorySite(machines)))
    assert life.create(group.stack()).error is None
    for _ in range(3):
        group.change()
        before, ordered = _nodes_below(life), len(machines.orders)
        update = Update(life, machines, group.stack())
        assert update.result.error is None, update.result
        names = {node: path for path, node in (_nodes_below(life) | before).items() if node}
        _check_stages(
            update.steps(), [(names.get(n), verb) for n, verb in machines.orders[ordered:]]
        )


def _check_stages(steps: list[Step], orders: list[tuple[str | None, str]]) -> None:
    """Each stage orders what it said, and ends before the next one begins."""
    assert all(step.is_certain for step in steps)
    by_stage: dict[int, list[tuple[str, str]]] = {}
    for step in steps:
        told = by_stage.setdefault(step.stage, [])
        told += [(step.key.name, verb) for verb in step.action.effect.verbs]
    for stage in sorted(by_stage):
        said = by_stage[stage]
        done, orders = orders[: len(said)], orders[len(said) :]
        assert Counter(verb for _, verb in done) == Counter(verb for _, verb in said)
        assert {name for name, _ in done} - {None} <= {name for name, _ in said}
    assert orders == []
