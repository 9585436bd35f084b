"""What tests of trees need: real things that are counted, orders as an API accepts them, kills."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from bloomery import errors, plugins
from bloomery.model import stacks as model
from bloomery.model.stacks import Order, OrderKind
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base, states
from bloomery.orchestration.simulation import SimulatedClock
from bloomery.orchestration.template import kinds, parse
from tests.kit.stacks.memory_store import MemoryStore

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = "00000000-0000-4000-8000-000000000001"


@dataclass
class Reality:
    """What is really there: things by id, each with the name it was made for."""

    things: dict[str, str] = field(default_factory=dict)
    ever: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)  # handler and name
    values: dict[str, Any] = field(default_factory=dict)  # by name, where it is not as it was made
    faults: dict[str, list[Exception]] = field(default_factory=dict)  # by handler, the next first

    def called(self, handler: str, name: str) -> int:
        return self.calls.count((handler, name))


class Thing(base.Resource):
    """A real thing: made under an id that follows from its row, so that it is made once."""

    reality: ClassVar[Reality]
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "value": Schema(Type.ANY, update_allowed=True),
        "salt": Schema(Type.STRING, default=""),
        "fail": Schema(Type.BOOLEAN, default=False, update_allowed=True),
        "wait_s": Schema(Type.NUMBER, default=0, update_allowed=True),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {"value": Attribute("As it was made.")}

    def _call(self, handler: str) -> dict[str, Any]:
        self.reality.calls.append((handler, self.record.name))
        if self.reality.faults.get(handler):
            raise self.reality.faults[handler].pop(0)
        return {"until": self.context.utc() + self.properties["wait_s"]}

    def handle_create(self) -> Any:
        token = self._call("create")
        self.resource_id_set(self.derived_id())
        self.reality.things[self.derived_id()] = self.record.name
        self.reality.ever[self.derived_id()] = self.record.name
        return token

    def check_create_complete(self, token: Any) -> bool:
        return self._over(token)

    def handle_update(self, definition: Any, tmpl_diff: Any, prop_diff: Any) -> Any:
        return self._call("update")

    def check_update_complete(self, token: Any) -> bool:
        return self._over(token)

    def handle_delete(self) -> Any:
        self._call("delete")
        self.reality.things.pop(str(self.record.physical_id or self.derived_id()), None)

    def handle_suspend(self) -> Any:
        self._call("suspend")

    def handle_resume(self) -> Any:
        self._call("resume")

    def handle_check(self) -> Any:
        self._call("check")
        if self.properties["value"] == "sick":
            raise ValueError("it is sick")

    def handle_snapshot(self) -> Any:
        self._call("snapshot")
        self.record.data["snapshot"] = "kept"

    def get_live_resource_data(self) -> Any:
        if str(self.record.physical_id) not in self.reality.things:
            raise errors.EntityNotFound(entity="Resource", name=self.record.name)
        return self.reality.values.get(self.record.name)

    def parse_live_resource_data(self, properties: Any, data: Any) -> Mapping[str, Any]:
        return {"value": data}

    def handle_signal(self, details: Any) -> str:
        self._call("signal")
        if details == "break":
            raise ValueError("no")
        if details == "nothing":
            raise base.NoActionRequired
        self.record.data["signal"] = details
        return str(details)

    def handle_create_cancel(self, token: Any) -> None:
        self._call("create_cancel")

    def handle_update_cancel(self, token: Any) -> None:
        self._call("update_cancel")

    def resolve_attribute(self, name: str, path: Any = ()) -> Any:
        return self.properties["value"]

    def _over(self, token: Any) -> bool:
        if self.context.utc() < token["until"]:
            return False
        if self.properties["fail"]:
            raise ValueError(f"{self.record.name} was told to fail")
        return True


class Strict(MemoryStore):
    """A store through which everything goes as the text that rows would have."""

    def write(self, root_uuid: str, turn: model.Turn) -> None:
        as_text = dataclasses.replace(
            turn,
            stacks=[_texts(each, "graph") for each in turn.stacks],
            resources=[_resource(each) for each in turn.resources],
            properties=[_texts(each, "data") for each in turn.properties],
            templates=[_texts(each, "template", "environment") for each in turn.templates],
        )
        super().write(root_uuid, as_text)


def _texts(value: Any, *columns: str) -> Any:
    changed = {name: json.loads(json.dumps(getattr(value, name))) for name in columns}
    return dataclasses.replace(value, **changed)


def _resource(resource: model.StoredResource) -> model.StoredResource:
    stored: model.StoredResource = _texts(resource.copy(), "data", "metadata", "policy")
    if stored.pending_action is not None:
        document = json.loads(json.dumps(stored.pending_action.document()))
        stored.pending_action = model.ResourceAction.of(document)
    return stored


class World:
    """One root stack in a store, orders as an API accepts them, and an engine that may be killed.

    ``kill``: called before and after each write with its number; who returns True kills the engine.
    """

    def __init__(self, store: Any | None = None, **runtime: Any) -> None:
        self.clock = SimulatedClock()
        self.store = store or Strict()
        self.reality = Reality()

        class Own(Thing):
            reality = self.reality

        offered = {**plugins.loaders("bloomery.resources"), "Test::Thing": lambda: Own}
        self.runtime = EngineRuntime(
            clock=self.clock.now,
            utc=self.utc,
            random=lambda: 0.5,
            kinds=kinds.Kinds(offered),
            **runtime,
        )
        self.tree: StackTree | None = None
        self.writes = 0
        self.kill: Callable[[str, int], bool] = lambda _when, _number: False
        self.turns: list[model.Turn] = []
        self.deadline_s = 3600.0

    def utc(self) -> datetime:
        return EPOCH + timedelta(seconds=self.clock.now())

    # ------------------------------------------------------------------------------ what clients do

    def create(self, text: str, *, rollback: bool = False, **more: Any) -> None:
        template = template_of(text, **more)
        row = model.Stack(
            uuid=ROOT,
            name="S",
            project="p",
            root_uuid=ROOT,
            template_uuid=template.uuid,
            action="CREATE",
            status="IN_PROGRESS",
            reason=states.started("CREATE"),
            disable_rollback=not rollback,
            created_at=self.utc(),
            deadline_at=self.utc() + timedelta(seconds=self.deadline_s),
            open=True,
        )
        self._accept(OrderKind.CREATE, row, [template])

    def update(
        self, text: str, *, rollback: bool = False, converge: bool = False,
        resources: Sequence[Any] = (), **more: Any,
    ) -> None:  # fmt: skip
        """``resources``: documents of orders for single resources."""
        template = template_of(text, **more)
        changed = self.accepted(
            "UPDATE",
            template_uuid=template.uuid,
            previous_template_uuid=self.root.template_uuid,
            disable_rollback=not rollback,
        )
        self._accept(OrderKind.UPDATE, changed, [template],
                     {"converge": converge, "resources": list(resources)})  # fmt: skip

    def restore(self, text: str) -> None:
        template = template_of(text)
        changed = self.accepted(
            "RESTORE",
            template_uuid=template.uuid,
            previous_template_uuid=self.root.template_uuid,
        )
        self._accept(OrderKind.RESTORE, changed, [template], {"snapshot": "one"})

    def order(self, kind: OrderKind, **payload: Any) -> None:
        self._accept(kind, self.accepted(kind.name), payload=payload)

    def delete(self, **payload: Any) -> None:
        if self.root.status == "IN_PROGRESS":
            self._tell(dataclasses.replace(self.root, status="FAILED"), "Stack {} cancelled")
        self.order(OrderKind.DELETE, **payload)

    def cancel(self, *, rollback: bool) -> None:
        row = self.root
        if rollback:
            row = self.accepted(
                "ROLLBACK",
                template_uuid=row.previous_template_uuid,
                previous_template_uuid=row.template_uuid,
            )
        else:
            reason = states.cancelled(row.action)
            row = dataclasses.replace(
                row, status="FAILED", reason=reason, traversal=row.traversal + 1
            )
        self._accept(OrderKind.CANCEL, row, payload={"rollback": rollback})

    def ask(self, kind: OrderKind, name: str, **payload: Any) -> None:
        """An order for one resource, which changes no stack."""
        uuid = self.row(name).uuid
        order = Order(
            root_uuid=ROOT, stack_uuid=ROOT, kind=kind, payload={"resource": uuid, **payload}
        )
        self.store.accept(order)

    def accepted(self, action: str, **columns: Any) -> model.Stack:
        row = self.root
        return dataclasses.replace(
            row,
            action=action,
            status="IN_PROGRESS",
            reason=f"Stack {action} started",
            traversal=row.traversal + 1,
            deadline_at=self.utc() + timedelta(seconds=self.deadline_s),
            open=True,
            **columns,
        )

    def _accept(
        self, kind: OrderKind, row: model.Stack, templates: Any = (), payload: Any = None
    ) -> None:
        order = Order(root_uuid=ROOT, stack_uuid=ROOT, kind=kind, payload=payload or {})
        self.store.accept(order, stacks=[row], templates=templates)
        self._tell(row, row.reason)

    def _tell(self, row: model.Stack, reason: str) -> None:
        event = model.Event(
            uuid="accepted",
            stack_uuid=row.uuid,
            root_uuid=ROOT,
            created_at=self.utc(),
            action=row.action,
            status=row.status,
            name=row.name,
            type=states.STACK_TYPE,
            physical_id=row.uuid,
            reason=reason.format(row.action),
        )
        self.store.write(ROOT, model.Turn(events=[event]))

    # ------------------------------------------------------------------------ what the engine does

    def run(self, until: Callable[[], bool] = lambda: False, *, before_s: float = 1e9) -> None:
        """Make turns until the tree rests, it is ``before_s``, or ``until`` holds."""
        while not until():
            if self.tree is None:
                self.tree = StackTree.load(self.store.load(ROOT), self.runtime)
            else:
                self.tree.take(self.store.list_orders(ROOT, 0))
            turn = self.tree.turn()
            self.writes += 1
            if self.kill("before", self.writes):
                self.tree = None
                continue
            self.turns.append(turn)
            self.store.write(ROOT, turn)
            due_s = self.tree.due_at()
            if self.kill("after", self.writes) or turn.is_idle:
                self.tree = None
            if turn.is_idle:
                return
            if due_s is not None and due_s >= before_s:
                return
            if due_s is None or due_s > self.clock.now():
                self.clock.wait(due_s)

    # ------------------------------------------------------------------------------ what is there

    @property
    def root(self) -> model.Stack:
        return self.store.stacks[ROOT]

    @property
    def state(self) -> str:
        return f"{self.root.action}_{self.root.status}"

    def row(self, name: str, stack: str = ROOT) -> model.StoredResource:
        (row,) = (
            each
            for each in self.store.resources.values()
            if (each.name, each.stack_uuid, each.is_current) == (name, stack, True)
        )
        return row

    def lines(self, depth: int = 0) -> list[str]:
        """``who STATE`` of each event of the stacks at a depth."""
        return [
            f"{'S' if each.type == states.STACK_TYPE else each.name} {each.action}_{each.status}"
            for each in self.store.events
            if self.store.stacks[each.stack_uuid].depth == depth
        ]

    def reasons(self, name: str) -> list[str]:
        return [each.reason for each in self.store.events if each.name == name]

    def outputs(self) -> dict[str, Any]:
        tree = StackTree.load(self.store.load(ROOT), self.runtime)
        stack = tree.stacks[ROOT]
        return {name: stack.output(name) for name in stack.template.outputs}

    def picture(self) -> dict[str, Any]:
        """How it all ended, without ids: to be compared with how it ends undisturbed."""
        live = {each.uuid: each for each in self.store.stacks.values() if each.deleted_at is None}

        def path(uuid: str) -> str:
            stack = live.get(uuid) or self.store.stacks[uuid]
            above = "" if stack.owner_uuid is None else path(stack.owner_uuid)
            return f"{above}/{stack.owner_resource or 'S'}"

        rows = [each for each in self.store.resources.values() if each.stack_uuid in live]
        real = [each.physical_id for each in rows if each.type == "Test::Thing"]
        return {
            "stacks": sorted((path(u), s.action, s.status, s.reason) for u, s in live.items()),
            "rows": sorted((path(r.stack_uuid), r.name, r.action, r.status) for r in rows),
            "open": [r.name for r in rows if r.pending_action is not None],
            "ever": Counter(self.reality.ever.values()),
            "orphans": sorted(
                name for thing, name in self.reality.things.items() if thing not in real
            ),
            "missing": sorted(
                r.name
                for r in rows
                if r.type == "Test::Thing" and r.physical_id not in self.reality.things
            ),
            "events": self.sequences(path),
        }

    def sequences(self, path: Callable[[str], str]) -> dict[tuple[str, str], list[str]]:
        """What is told of each resource and each stack, in its order."""
        told: dict[tuple[str, str], list[str]] = {}
        for each in self.store.events:
            who = "S" if each.type == states.STACK_TYPE else each.name
            key = (path(each.stack_uuid), who)
            told.setdefault(key, []).append(f"{each.action}_{each.status}")
        return told


_NUMBERS: dict[str, int] = {}


def template_of(text: str, **more: Any) -> model.Template:
    number = _NUMBERS["n"] = _NUMBERS.get("n", 0) + 1
    document = parse.document(f"heat_template_version: 2021-04-16\n{text}")
    environment = {**more.get("environment", {})}
    if "given" in more:
        environment["parameters"] = more["given"]
    return model.Template(
        uuid=f"template-{number}",
        template=document,
        environment=environment,
        files=more.get("files", {}),
    )
