"""Engines over rows, one turn after the other in one thread, that can be killed at any commit.

clients = Clients(db)
clients.accept(OrderKind.CREATE, template)
Engine(db, clients.runtime(), kill=After(3)).run(clients.root)   # raises Killed
Engine(db, clients.runtime()).run(clients.root)                  # goes on from rows alone
"""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Final

from bloomery import plugins
from bloomery.db.engine import Database
from bloomery.model import stacks as model
from bloomery.model.stacks import OrderKind
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.engine_host.locks import StackLock
from bloomery.orchestration.engine_host.store import RowStore
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.simulation import Stuck
from bloomery.orchestration.simulation.simulation import EPOCH
from bloomery.orchestration.template import kinds
from tests.kit.stacks import trees

MOST_TURNS: Final = 1000


class Killed(BaseException):
    """The engine is no more; nothing of it may go on."""


# ------------------------------------------------------------------------------- the real things


@dataclass
class Cloud:
    """What resources are made of, outside of all rows: it survives engines.

    ``calls``: each handler that was called, with the resource and the thing.
    """

    things: dict[str, str] = field(default_factory=dict)  # id: value
    gone: set[str] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def make(self, ident: str, value: str) -> None:
        assert ident not in self.gone, f"{ident} was deleted, and is made again"
        self.things[ident] = value

    def delete(self, ident: str) -> None:
        self.things.pop(ident, None)
        self.gone.add(ident)

    def copy(self) -> Cloud:
        return Cloud(dict(self.things), set(self.gone), list(self.calls))


class Thing(base.Resource):
    """Takes ``wait`` seconds for whatever it does; made in ``cloud`` under an id of its own."""

    cloud: ClassVar[Cloud]

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "value": Schema(Type.STRING, "Changed in place.", default="v", update_allowed=True),
        "salt": Schema(Type.STRING, "A change of it makes another thing."),
        "fail": Schema(Type.BOOLEAN, "Fails at the end.", default=False, update_allowed=True),
        "wait": Schema(Type.NUMBER, "Seconds.", default=0, update_allowed=True),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "value": Attribute("What it was made with.", Type.STRING),
    }

    @property
    def ident(self) -> str:
        return self.derived_id("thing")

    def _begin(self, verb: str) -> Any:
        self.cloud.calls.append((verb, self.ident))
        return {"until": self.context.utc() + float(self.properties.get("wait") or 0)}

    def _is_over(self, token: Any) -> base.Progress:
        if self.context.utc() < token["until"]:
            return base.look_again(token["until"] - self.context.utc(), "it takes time")
        if self.properties.get("fail"):
            raise ValueError(f"{self.record.name} fails")
        return True

    def handle_create(self) -> Any:
        self.cloud.make(self.ident, self.properties["value"])
        self.resource_id_set(self.ident)
        return self._begin("create")

    def check_create_complete(self, token: Any) -> base.Progress:
        return self._is_over(token)

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        if "salt" in prop_diff:
            raise base.UpdateReplace
        self.properties = {**self.properties, **prop_diff}
        self.cloud.things[self.ident] = self.properties["value"]
        return self._begin("update")

    def check_update_complete(self, token: Any) -> base.Progress:
        return self._is_over(token)

    def handle_delete(self) -> Any:
        self.cloud.delete(self.ident)
        return self._begin("delete")

    def check_delete_complete(self, token: Any) -> bool:
        return bool(self.context.utc() >= token["until"])

    def resolve_attribute(self, name: str, path: Any = ()) -> Any:
        return self.cloud.things.get(self.ident)


def kinds_with(cloud: Cloud) -> kinds.Kinds:
    """The installed kinds, and ``Test::Thing``."""
    thing = type("Thing", (Thing,), {"cloud": cloud})
    return kinds.Kinds({**plugins.loaders(kinds.GROUP), "Test::Thing": lambda: thing})


# --------------------------------------------------------------------------------------- clients


@dataclass
class Clients:
    """Whoever asks for stacks: accepts orders as the service does, with the state to be seen."""

    db: Database
    cloud: Cloud = field(default_factory=Cloud)
    root: str = field(default_factory=lambda: str(uuid.uuid4()))
    now_s: float = 0.0  # passes while engines wait; each has a clock of its own

    def runtime(self) -> EngineRuntime:
        """A process of its own: its clock begins at a number of its own."""
        clock = _Clock(self)
        return EngineRuntime(
            clock=clock,
            utc=lambda: EPOCH + timedelta(seconds=self.now_s),
            kinds=kinds_with(self.cloud),
            random=lambda: 0.5,
        )

    def pass_time(self, until_s: float) -> None:
        """Be asked for by an engine that has nothing to do until then."""
        self.now_s = max(self.now_s, until_s)

    def create(
        self, template: model.Template, *, rollback: bool = False,
        adopt: Mapping[str, Any] | None = None, **more: Any,
    ) -> int:  # fmt: skip
        kind = OrderKind.CREATE if adopt is None else OrderKind.ADOPT
        row = model.Stack(
            uuid=self.root, root_uuid=self.root, name="S", project="p",
            template_uuid=template.uuid, action=kind.upper(), status="IN_PROGRESS",
            reason=f"Stack {kind.upper()} started", disable_rollback=not rollback,
            deadline_at=EPOCH + timedelta(seconds=self.now_s + 3600),
            created_at=EPOCH + timedelta(seconds=self.now_s), **more,
        )  # fmt: skip
        order = dataclasses.replace(self._order(kind), payload={"data": adopt} if adopt else {})
        return trees.accept(self.db, order, row, templates=(template,))

    def update(
        self, template: model.Template, *, rollback: bool = False,
        payload: Mapping[str, Any] | None = None,
    ) -> int:  # fmt: skip
        before = self.stack()
        return self._change(
            OrderKind.UPDATE, template, template_uuid=template.uuid, payload=payload,
            previous_template_uuid=before.template_uuid, disable_rollback=not rollback,
        )  # fmt: skip

    def delete(self) -> int:
        return self._change(OrderKind.DELETE)

    def cancel(self) -> int:
        """Order the present update back."""
        order = dataclasses.replace(self._order(OrderKind.CANCEL), payload={"rollback": True})
        return trees.accept(self.db, order)

    def stop(self) -> int:
        """Cancel the present update without a rollback."""
        before = self.stack()
        reason = f"Stack {before.action} cancelled"
        row = dataclasses.replace(
            before, status="FAILED", traversal=before.traversal + 1, reason=reason
        )
        order = dataclasses.replace(self._order(OrderKind.CANCEL), payload={"rollback": False})
        return trees.accept(self.db, order, row)

    def perform(self, kind: OrderKind) -> int:
        """Order what changes no template: suspend, resume, check."""
        return self._change(kind)

    def _change(
        self, kind: OrderKind, *templates: model.Template,
        payload: Mapping[str, Any] | None = None, **columns: Any,
    ) -> int:  # fmt: skip
        before = self.stack()
        row = dataclasses.replace(
            before, action=kind.value.upper(), status="IN_PROGRESS", traversal=before.traversal + 1,
            reason=f"Stack {kind.value.upper()} started",
            deadline_at=EPOCH + timedelta(seconds=self.now_s + 3600), **columns,
        )  # fmt: skip
        order = dataclasses.replace(self._order(kind), payload=payload or {})
        return trees.accept(self.db, order, row, templates=templates)

    def _order(self, kind: OrderKind) -> model.Order:
        return model.Order(root_uuid=self.root, stack_uuid=self.root, kind=kind)

    def stack(self) -> model.Stack:
        return self.tree().stacks[0]

    def tree(self) -> model.Tree:
        return RowStore(self.db, trees.SEALER).load(self.root)


class _Clock:
    """Jumps, and lets the time of the world pass with it; its zero means nothing to others."""

    _starts: ClassVar[Iterator[int]] = itertools.count(1000, 1000)

    def __init__(self, world: Clients) -> None:
        self._world = world
        self._offset_s = float(next(self._starts)) - world.now_s

    def __call__(self) -> float:
        return self._world.now_s + self._offset_s

    def wait(self, until_s: float | None) -> None:
        if until_s is None:
            raise Stuck
        self._world.pass_time(until_s - self._offset_s)


# --------------------------------------------------------------------------------------- engines


@dataclass(frozen=True)
class Kill:
    """Kill the engine at its commit number ``commit``, from 1: before it, or right after it."""

    commit: int
    before: bool


Hook = Callable[[int], object]


def _nothing(_commits: int) -> None:
    """What happens after most commits."""


@dataclass
class Engine:
    """``on_commit`` is called with the number of commits so far, by whoever else is at work."""

    db: Database
    runtime: EngineRuntime
    kill: Kill | None = None
    on_commit: Hook = _nothing
    commits: int = 0
    turns: list[model.Turn] = field(default_factory=list)  # those that were written
    engine_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def run(self, root: str) -> int:
        """Work until the lock is released; return the number of commits.  Raises Killed."""
        lease = StackLock(self.db, root, self.engine_id).acquire(trees.nobody)
        store = RowStore(self.db, trees.SEALER)
        loaded = store.load(root)
        last = max((order.id for order in loaded.orders), default=0)
        tree = StackTree.load(loaded, self.runtime)
        tree.wake(None)
        for _ in range(MOST_TURNS):
            turn = tree.turn()
            if not turn.is_empty:
                self._die(before=True)
                written = store.write(root, lease, turn)
                self.commits += 1
                self.turns.append(trees.as_written(turn))
                self.on_commit(self.commits)
                self._die(before=False)
                if written.released:
                    return self.commits
            accepted = store.list_orders(root, last)
            last = max((order.id for order in accepted.orders), default=last)
            tree.take(accepted)
            due_s = tree.due_at()
            if not tree.is_idle and (due_s is None or due_s > self.runtime.clock()):
                self.runtime.clock.wait(due_s)
        raise AssertionError(f"the tree does not end within {MOST_TURNS} turns")

    def _die(self, *, before: bool) -> None:
        if self.kill is None or self.kill.before is not before:
            return
        if self.commits + before == self.kill.commit:
            raise Killed
