"""Each order to a machine was named by the last plan, whatever failed before.

A life is drawn by a seed: a stack of Instances, groups and a nested template on a few machines in
memory.  Updates fail, are cancelled, follow each other too early, and engines die.  Before each
request its plan is made of the rows as they are.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from bloomery.model.stacks import OrderKind, StoredResource
from bloomery.orchestration import foresight
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.plan.builder import ExistingStack
from bloomery.orchestration.plan.plans import Plan, Verb
from bloomery.orchestration.resources import machines as machine_calls
from bloomery.orchestration.resources.base import Answer
from bloomery.orchestration.resources.machine_orders import REBUILD, REPLACE, ResourceOrder, mark
from bloomery.orchestration.stack import Stack
from tests.kit.stacks import tree_world
from tests.kit.stacks.machine_kills import DRAIN
from tests.kit.stacks.machine_sites import TAKES_S
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.memory_webhooks import MemoryWebhooks
from tests.kit.stacks.tree_world import ROOT, World

LIVES, LONG_LIVES, UPDATES = 8, 200, 6
IMAGES = ("http://a", "http://b", "http://c")
COSTLY = frozenset({"active", "rebuild", "deleted", "service"})
SETTINGS = (None, None, {"Turbo": "on"}, {"Turbo": "off"})  # of the BIOS
NESTED = "nested.yaml"


class MachineOrder(NamedTuple):
    """``row``: the UUID of the resource that the machine belonged to."""

    verb: str
    row: str
    node: str


class Watched(MemoryMachines):
    """Notes for which resource each costly order is."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.costly: list[MachineOrder] = []

    def mend(self) -> None:
        self._failures.clear()

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        mark = self.nodes[uuid]["instance_info"].get(machine_calls.MARK) or {}
        super().set_provision_state(uuid, verb, **arguments)
        if verb in COSTLY:
            self.costly.append(MachineOrder(verb, str(mark.get("id")), uuid))


class Named(NamedTuple):
    """The machine steps of a plan: ``rows`` by verb and UUID, ``paths`` by verb and path."""

    rows: set[tuple[str, str]]
    paths: set[tuple[str, str]]

    @classmethod
    def by(cls, plan: Plan) -> Named:
        rows, paths = set[tuple[str, str]](), set[tuple[str, str]]()
        for key, action in plan:
            verbs = action.effect.verbs
            if action.verb in (Verb.UNCHANGED, Verb.TAKE_BACK):
                continue
            for verb in verbs:
                if action.record is None or verb == "active":
                    paths.add((verb, key.name))
                if action.record is not None and action.verb is not Verb.REPLACE:
                    rows.add((verb, action.record.uuid))
        return cls(rows, paths)


class Life:
    def __init__(self, seed: int, *requests: str) -> None:
        """``requests``: further kinds of requests, that each life may have."""
        self.requests = ("update", "update", "update", "cancel", "mark", *requests)
        self.draw = random.Random(seed)
        answers = [Answer(fault="busy"), Answer(), Answer(is_drained=True), None]
        self.webhooks = MemoryWebhooks(self.draw.choices(answers, k=40))
        self.world = World(machines=lambda _stack: self.machines, webhooks=self.webhooks)
        self.world.deadline_s = 1e7
        self.machines = Watched(utc=self.world.clock.now, takes_s=TAKES_S)
        for number in range(self.draw.randint(5, 9)):
            self.machines.add_node(name=f"p{number}", resource_class="pool")
        self.resources: dict[str, dict[str, Any]] = {}
        self.templates: list[str] = []
        self.nested: dict[str, Any] = {}
        self.former = self.named = Named(set(), set())  # by the last two plans
        self.story: list[str] = []  # what a failure of the test shows

    # ------------------------------------------------------------------------------ templates

    def instance(self) -> dict[str, Any]:
        properties = (
            {
                "selector": {"resource_class": "pool"},
                "image": {"source": self.draw.choice(IMAGES)},
                "image_update_policy": self.draw.choice(("replace", "replace", "rebuild")),
                "replace_order": self.draw.choice(("create_first", "create_first", "delete_first")),
                "retry": {"attempts": self.draw.choice((1, 2))},
            }
            | self.hardware()
            | self.drain()
        )
        more = {"deletion_policy": "Retain"} if self.draw.random() < 0.1 else {}
        return {"type": "OS::Ironic::Instance", "properties": properties} | more

    def hardware(self) -> dict[str, Any]:
        settings = self.draw.choice(SETTINGS)
        return {"hardware": {"bios": {"settings": settings}}} if settings else {}

    def drain(self) -> dict[str, Any]:
        return self.draw.choice(({}, {}, {"drain": DRAIN}))

    def group(self) -> dict[str, Any]:
        member = {
            "name": "m-%index%", "image": {"source": self.draw.choice(IMAGES)},
            "selector": {"resource_class": "pool"},
        } | self.hardware()  # fmt: skip
        rolling = {"batch_size": self.draw.randint(1, 2), "health_gate": {"settle_seconds": 0},
                   "max_surge": self.draw.choice((0, 0, 1)),
                   "window": self.draw.choice(({}, {}, {"begin": "02:00"}))}  # fmt: skip
        return {
            "type": "OS::Ironic::InstanceGroup",
            "properties": {"count": self.draw.randint(1, 2), "member": member} | self.drain(),
            "update_policy": {"rolling_update": rolling},
        }

    def thing(self) -> dict[str, Any]:
        machines = sorted(name for name in self.resources if name != "t0")
        needs = self.draw.sample(machines, k=min(1, len(machines)))
        properties = {"fail": self.draw.random() < 0.3, "wait_s": self.draw.choice((0, 150))}
        return {"type": "Test::Thing", "depends_on": needs, "properties": properties}

    def redraw(self) -> None:
        """Draw some resources anew; some come, and some go."""
        kinds = {"w": self.instance, "g": self.group, "n": self._of_file, "t": self.thing}
        for name in ("w0", "w1", "w2", "g0", "n0", "t0"):
            chance = self.draw.random()
            if chance < 0.15:
                self.resources.pop(name, None)
            elif chance < 0.6 or not self.resources:
                self.resources[name] = kinds[name[0]]()
        for each in self.resources.values():
            needs = [name for name in each.get("depends_on", ()) if name in self.resources]
            each["depends_on"] = needs

    def _of_file(self) -> dict[str, Any]:
        return {"type": NESTED, "properties": {"image": self.draw.choice(IMAGES)}}

    def text(self) -> str:
        """Return the next template: another one, the same again, or an older one."""
        if len(self.templates) > 1 and self.draw.random() < 0.4:
            return self.draw.choice(self.templates[-2:])
        self.redraw()
        self.templates.append(json.dumps({"resources": self.resources})[1:-1])
        return self.templates[-1]

    def files(self) -> dict[str, str]:
        web = self.instance()
        web["properties"] |= {"image": {"source": {"get_param": "image"}}, "retry": {}}
        web["properties"] |= {"image_update_policy": "replace", "replace_order": "create_first"}
        nested = {
            "heat_template_version": "2021-04-16",
            "parameters": {"image": {"type": "string"}}, "resources": {"inner": web},
        }  # fmt: skip
        self.nested = self.nested or nested
        return {NESTED: json.dumps(self.nested)}

    # ---------------------------------------------------------------------------------- plans

    def tree(self) -> StackTree:
        return StackTree.load(self.world.store.load(ROOT), self.world.runtime)

    def existing(self, stack: EngineStack) -> ExistingStack:
        def child(row: EngineResource) -> ExistingStack | None:
            below = stack.stacks.get(row.physical_id or "")
            return None if below is None else self.existing(below)

        find_node = functools.partial(machine_calls.find_node, self.machines)
        return ExistingStack.of_rows(
            stack.definition, stack.rows, stack.leftovers, child=child, template=stack.definition,
            find_node=find_node,
        )  # fmt: skip

    def planned(self, request: str, text: str = "", orders: Sequence[ResourceOrder] = ()) -> Plan:
        """Return the plan of a request, of the rows as they are."""
        tree, by_row = self.tree(), {each.resource: each for each in orders}
        for each in tree.stacks.values():
            for row in each.list_rows():
                if row.uuid in by_row:
                    mark(row, by_row[row.uuid])
        stack = tree.stacks[ROOT]
        existing = self.existing(stack)
        if request == "delete":
            return foresight.delete(stack.definition, existing)
        if request == "roll back":
            previous = stack.row.previous_template_uuid
            target = None if previous is None else tree.actions.definition(stack, previous)
            return foresight.rollback(stack.definition, target, existing)
        template = tree_world.template_of(text, files=self.files())
        tree.actions.library.add(template)
        new = tree.actions.definition(stack, template.uuid)
        assert isinstance(new, Stack)
        return foresight.plan(stack.definition, new, existing)

    def rows(self) -> dict[str, StoredResource]:
        return {uuid: row.copy() for uuid, row in self.world.store.resources.items()}

    def paths(self) -> dict[str, str]:
        """Return the path of each row that there ever was, by UUID."""
        stacks, paths = self.world.store.stacks, dict[str, str]()
        for turn in self.world.turns:
            for row in turn.resources:
                parts, stack = [row.name], stacks[row.stack_uuid]
                while stack.owner_uuid is not None:
                    parts.append(str(stack.owner_resource))
                    stack = stacks[stack.owner_uuid]
                paths[row.uuid] = "/".join(reversed(parts))
        return paths

    # ---------------------------------------------------------------------------------- course

    def run(self) -> None:
        self.world.create(self._first(), files=self.files())
        self.go_on()
        for _ in range(UPDATES):
            self.disturb()
            request = self.draw.choice(self.requests)
            {
                "update": self.update, "order": self.order, "cancel": self.cancel,
                "mark": self.mark,
            }[request]()  # fmt: skip
        self.ask("delete", self.world.delete, self.planned("delete"))

    def _first(self) -> str:
        self.redraw()
        self.templates.append(json.dumps({"resources": self.resources})[1:-1])
        return self.templates[0]

    def disturb(self) -> None:
        """Let orders fail, engines die, and free machines come and go."""
        self.machines.mend()
        for verb in sorted(COSTLY):
            if self.draw.random() < 0.25:
                self.machines.fail_next(verb, "no disk")
        for node in self.machines.nodes.values():
            if node["instance_uuid"] is None:
                node["maintenance"] = self.draw.random() < 0.3
        writes = self.world.writes
        deaths = {writes + self.draw.randint(1, 30) for _ in range(self.draw.choice((0, 1, 2)))}
        self.world.kill = lambda when, number: when == "after" and number in deaths

    def go_on(self) -> None:
        """Run to the end, or stop somewhere in the middle."""
        begun, most = self.world.writes, self.draw.choice((10**6, 10**6, self.draw.randint(1, 25)))
        self.world.run(until=lambda: self.world.writes - begun >= most)

    def update(self, orders: Sequence[ResourceOrder] = ()) -> None:
        is_reached = self.world.root.status == "COMPLETE"  # else a rollback leads elsewhere
        text, rolls_back = self.text(), is_reached and self.draw.random() < 0.2
        documents = [each.document() for each in orders]
        order = functools.partial(
            self.world.update, text, rollback=rolls_back, files=self.files(), resources=documents
        )
        request = " ".join(["update", *(f"{each.action} {each.reason}" for each in orders)])
        self.ask(request, order, self.planned("update", text, orders), rolls_back=rolls_back)

    def order(self) -> None:
        """Update with orders for some machines, members of groups and of nested stacks included."""
        rows = [
            row for row in self.world.store.resources.values()
            if row.type.endswith("Instance") and row.is_current and row.status == "COMPLETE"
            and row.action != "DELETE" and row.physical_id and row.pending_action is None
        ]  # fmt: skip
        chosen = self.draw.sample(rows, k=min(len(rows), self.draw.choice((1, 2))))
        self.update([
            ResourceOrder(
                resource=row.uuid, action=self.draw.choice((REPLACE, REBUILD)), reason=row.name,
                quarantine=self.draw.random() < 0.5,
            )
            for row in chosen
        ])  # fmt: skip

    def cancel(self) -> None:
        if self.world.root.status != "IN_PROGRESS":
            return
        is_update = self.world.root.previous_template_uuid is not None
        rollback = is_update and self.draw.random() < 0.5
        plan = self.planned("roll back") if rollback else None
        self.ask("cancel", functools.partial(self.world.cancel, rollback=rollback), plan)

    def mark(self) -> None:
        rows = [row for row in self.world.store.resources.values() if row.type.endswith("Instance")]
        idle = [row.name for row in rows if row.is_current and row.stack_uuid == ROOT
                and row.status == "COMPLETE" and row.action != "DELETE"]  # fmt: skip
        if idle and self.world.root.status != "IN_PROGRESS":
            name, more = self.draw.choice(idle), {"unhealthy": True, "reason": "smoke"}
            mark = functools.partial(self.world.ask, OrderKind.MARK_UNHEALTHY, name, **more)
            self.ask(
                f"mark {name}", functools.partial(mark, by_hand=self.draw.random() < 0.5), None
            )

    def ask(self, request: str, order: Any, plan: Plan | None, *, rolls_back: bool = False) -> None:
        before, begun = self.rows(), len(self.machines.costly)
        order()
        self.go_on()
        paths = self.paths()
        under_way = self.under_way(before, paths)
        below = tuple(f"{path}/" for path in under_way)
        pending = [row for row in before.values() if row.uuid in under_way]
        ending = tuple(f"{paths[row.uuid]}/" for row in pending if row.action == "DELETE")
        at_work = tuple(f"{paths[row.uuid]}/" for row in pending if row.action != "DELETE")
        if plan is not None:
            self.former, self.named = self.named, Named.by(plan)
        self.story.append(f"{request}: {self.world.state} {self.world.root.reason[:90]}")
        for each in self.machines.costly[begun:]:
            path, node = paths[each.row], self.machines.nodes[each.node]["name"]
            self.story.append(f"  {each.verb} {path} {node}")
            if each.row in under_way or path in under_way or path.startswith(below):
                continue
            if each.row not in before and path.startswith(ending):
                continue  # the group's deletion failed: the plan says that it is updated then
            named = [self.named, *([self.former] if path.startswith(at_work) else [])]
            is_named = functools.partial(self.is_named, each, path, before, rolls_back)
            assert any(map(is_named, named)), (
                each, path, plan and foresight_lines(plan), "\n".join(self.story)
            )  # fmt: skip

    @staticmethod
    def under_way(before: Mapping[str, StoredResource], paths: Mapping[str, str]) -> set[str]:
        """Return rows at work for a former plan, paths of creations, and what goes with a group."""
        pending = [row for row in before.values() if row.pending_action is not None]
        made = {paths[row.uuid] for row in pending if row.state_before == "INIT_COMPLETE"}
        ended = [f"{paths[row.uuid]}/" for row in pending if row.action == "DELETE"]
        below = {uuid for uuid in before if paths[uuid].startswith(tuple(ended))}
        return made | below | {row.uuid for row in pending}

    @staticmethod
    def is_named(
        order: MachineOrder,
        path: str,
        before: Mapping[str, StoredResource],
        rolls_back: bool,
        named: Named,
    ) -> bool:
        row = before.get(order.row)
        if row is not None and row.physical_id == order.node:
            by_row = {verb for verb, uuid in named.rows if uuid == order.row}
            by_row |= {verb for verb, each in named.paths if each == path}
            return bool(by_row) if rolls_back else order.verb in by_row
        return rolls_back or ("active", path) in named.paths


def foresight_lines(plan: Plan) -> list[str]:
    return [f"{key}: {each.verb} {each.effect.verbs} {each.reason}" for key, each in plan]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(LIVES))
def test_each_order_to_a_machine_was_named(seed: int) -> None:
    Life(seed).run()


# 41: a group's deletion fails while an update waits.  73: a member that stands in was not made.
# 307, 747: a group and a nested stack go on with an earlier update.  359: a drain ends unfinished.
@pytest.mark.sampled
@pytest.mark.parametrize("seed", [*range(LIVES), 41, 73, 307, 359, 747])
def test_each_order_to_a_machine_was_named_where_single_machines_are_ordered(seed: int) -> None:
    Life(seed, "order", "order").run()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(LIVES, LIVES + LONG_LIVES))
def test_each_order_of_many_lives_was_named(seed: int) -> None:
    Life(seed).run()
