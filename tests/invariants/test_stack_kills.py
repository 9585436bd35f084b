"""An engine is killed before and after each commit of each flow; another one ends what it began.

The successor has the rows and nothing else.  Each flow ends as it does undisturbed; nothing is done
twice, and nothing is left.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from bloomery.db import tables
from bloomery.db.engine import Database
from bloomery.model.stacks import REVISION_COUNTS, OrderKind, Template
from tests.kit.sampling import some
from tests.kit.stacks import trees
from tests.kit.stacks.row_engines import Clients, Cloud, Engine, Kill, Killed

NESTED = """
heat_template_version: 2021-04-16
parameters: {value: {type: string}}
resources:
  inner: {type: Test::Thing, properties: {value: {get_param: value}}}
  outer: {type: Test::Thing, depends_on: inner, properties: {wait: 2}}
outputs: {id: {value: {get_resource: outer}}}
"""
TEXT = """
heat_template_version: 2021-04-16
resources:
  a: {type: Test::Thing, properties: {value: VALUE}}
  b: {type: Test::Thing, properties: {value: {get_attr: [a, value]}, salt: SALT, wait: 1}}
  c: {type: Test::Thing, depends_on: b}
  d: {type: Test::Thing, properties: {wait: 3}}
  e: {type: Test::Thing, depends_on: [c, group, nested], properties: {fail: FAIL, value: VALUE}}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: COUNT
      resource_def: {type: Test::Thing, properties: {value: VALUE, wait: 1}}
  nested: {type: nested.yaml, depends_on: a, properties: {value: VALUE}}
"""


def template(value: str = "x", salt: str = "1", fail: str = "false", count: str = "3") -> Template:
    words = {"VALUE": value, "SALT": f"'{salt}'", "FAIL": fail, "COUNT": count}
    text = TEXT
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    return trees.template(
        f"{words}", template=yaml.safe_load(text.replace("2021-04-16", "'2021-04-16'")),
        files={"nested.yaml": NESTED},
    )  # fmt: skip


@dataclass(frozen=True)
class Flow:
    """What is asked for, what before it (undisturbed), what meanwhile, and how it ends."""

    name: str
    order: Callable[[Clients], object]
    ends: str
    before: Callable[[Clients], object] | None = None
    meanwhile: Callable[[Clients], object] | None = None
    at_commit: int = 4  # when ``meanwhile`` is accepted


def create(**values: str) -> Callable[[Clients], object]:
    return lambda clients: clients.create(template(**values))


def update(*, rollback: bool = False, **values: str) -> Callable[[Clients], object]:
    return lambda clients: clients.update(template(**values), rollback=rollback)


FLOWS = [
    Flow("create", create(), "CREATE_COMPLETE"),
    Flow(
        "failing create with rollback",
        lambda clients: clients.create(template(fail="true"), rollback=True),
        "ROLLBACK_COMPLETE",
    ),
    Flow(
        "update with replacement",
        update(value="y", salt="2", count="2"),
        "UPDATE_COMPLETE",
        before=create(),
    ),
    Flow(
        "failing update with rollback",
        update(value="y", salt="2", fail="true", rollback=True),
        "ROLLBACK_COMPLETE",
        before=create(),
    ),
    Flow(
        "supersede",
        update(value="y", salt="2"),
        "UPDATE_COMPLETE",
        before=create(),
        meanwhile=update(value="z", salt="3", count="4"),
    ),
    Flow("delete", lambda clients: clients.delete(), "DELETE_COMPLETE", before=create()),
    Flow(
        "suspend",
        lambda clients: clients.perform(OrderKind.SUSPEND),
        "SUSPEND_COMPLETE",
        before=create(),
    ),
    Flow(
        "check",
        lambda clients: clients.perform(OrderKind.CHECK),
        "CHECK_COMPLETE",
        before=create(),
    ),
    Flow(
        "delete while it is created",
        create(),
        "DELETE_COMPLETE",
        meanwhile=lambda clients: clients.delete(),
    ),
]


class Run:
    """One flow on a copy of the rows, and of the cloud, as they were before it."""

    def __init__(self, flow: Flow, start: Clients, folder: Path, name: str) -> None:
        path = folder / f"{name}.sqlite"
        shutil.copy(start.db.url.database or "", path)
        self.flow = flow
        self.db = Database(f"sqlite:///{path}")
        cloud = Cloud(dict(start.cloud.things), set(start.cloud.gone))
        self.clients = Clients(self.db, cloud, start.root, start.now_s)
        self.commits = 0

    def _on_commit(self, _commits: int) -> None:
        self.commits += 1
        if self.flow.meanwhile is not None and self.commits == self.flow.at_commit:
            self.flow.meanwhile(self.clients)

    def engine(self, kill: Kill | None = None) -> Engine:
        return Engine(self.db, self.clients.runtime(), kill, self._on_commit)

    def end(self, kill: Kill | None = None) -> dict[str, Any]:
        """Let the flow end, by a successor if the first engine is killed; return how it ended."""
        self.flow.order(self.clients)
        try:
            self.engine(kill).run(self.clients.root)
        except Killed:
            self.engine().run(self.clients.root)
        else:
            assert kill is None, "the engine was not killed"
        tree = self.clients.tree()
        names = {stack.uuid: (stack.owner_resource, stack.depth) for stack in tree.stacks}
        end = {
            "stacks": sorted(
                (*map(str, names[stack.uuid]), stack.action, stack.status, stack.open)
                for stack in tree.stacks
            ),
            "resources": sorted(
                (*map(str, names[row.stack_uuid]), row.name, row.action, row.status, row.is_current)
                for row in tree.resources
            ),
            "values": sorted(self.clients.cloud.things.values()),
            "events": self._events(),
            "revisions": self._revisions(),
        }
        owned = {row.physical_id for row in tree.resources if row.type == "Test::Thing"}
        assert set(self.clients.cloud.things) == owned, "things that no row knows, or none has"
        assert not tree.orders
        assert all(row.pending_action is None for row in tree.resources)
        self.db.close()
        return end

    def _revisions(self) -> list[tuple[Any, ...]]:
        """How each order for a template ended, and what was counted of it: each thing once."""
        rows = trees.rows_of(self.db, tables.STACK_REVISIONS)
        counts = [tuple(getattr(row, name) for name in REVISION_COUNTS) for row in rows]
        assert all(row.ended_at is not None for row in rows), "a revision is open for ever"
        return [
            (row.number, row.action, row.status, count)
            for row, count in zip(rows, counts, strict=True)
        ]

    def _events(self) -> dict[tuple[str, int], list[tuple[str, str]]]:
        """What was told of each resource, and of each stack: in order, for each as often."""
        told: dict[str, list[tuple[str, str]]] = {}
        names = {}
        for event in trees.rows_of(self.db, tables.STACK_EVENTS):
            stack = "the stack" if event.physical_id == event.stack_uuid else event.name
            key = f"{event.stack_uuid} {stack}"
            told.setdefault(key, []).append((event.action, event.status))
            names[key] = stack
        ordered = sorted((names[key], events) for key, events in told.items())
        return {(name, number): events for number, (name, events) in enumerate(ordered)}


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Clients]:
    """Rows and clouds before each flow, by its name."""
    made = {}
    for number, flow in enumerate(FLOWS):
        folder = tmp_path_factory.mktemp(f"flow-{number}")
        clients = Clients(trees.database(folder))
        if flow.before is not None:
            flow.before(clients)
            Engine(clients.db, clients.runtime()).run(clients.root)
        with clients.db.read() as conn:
            conn.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        made[flow.name] = clients
    return made


def undisturbed(flow: Flow, start: Clients, folder: Path) -> tuple[Run, dict[str, Any]]:
    run = Run(flow, start, folder, "undisturbed")
    return run, run.end()


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_a_flow_ends(flow: Flow, starts: dict[str, Clients], tmp_path: Path):
    run, end = undisturbed(flow, starts[flow.name], tmp_path)
    action, status = flow.ends.split("_")
    assert all(stack[2:] == (action, status, False) for stack in end["stacks"] if stack[1] == "0")
    assert run.commits > 1
    if flow.name == "create":
        assert len(end["resources"]) == 12
        assert end["revisions"] == [(1, "CREATE", "COMPLETE", (12, 0, 0, 0, 0, 0, 0))]


@pytest.mark.sampled
@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_killed_after_any_commit_a_flow_ends_the_same_and_does_nothing_twice(
    flow: Flow, starts: dict[str, Clients], tmp_path: Path
):
    calm, end = undisturbed(flow, starts[flow.name], tmp_path)
    for commit in some(range(1, calm.commits)):
        run = Run(flow, starts[flow.name], tmp_path, f"after-{commit}")
        assert run.end(Kill(commit, before=False)) == end, f"killed after commit {commit}"
        calls = [run.clients.cloud.calls, calm.clients.cloud.calls]
        often, often_undisturbed = (sorted(Counter(each).values()) for each in calls)
        assert often == often_undisturbed, f"killed after commit {commit}"


@pytest.mark.sampled
@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_killed_before_any_commit_a_flow_ends_the_same(
    flow: Flow, starts: dict[str, Clients], tmp_path: Path
):
    """What its last turn has done is done again, and lands in the same place."""
    calm, end = undisturbed(flow, starts[flow.name], tmp_path)
    for commit in some(range(1, calm.commits + 1)):
        run = Run(flow, starts[flow.name], tmp_path, f"before-{commit}")
        assert run.end(Kill(commit, before=True)) == end, f"killed before commit {commit}"
