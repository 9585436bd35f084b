"""What the drift watch reads, whose eyes it has, and when and where it looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db import credentials
from bloomery.db.engine import Database, Meter
from bloomery.db.tables import (
    CREDENTIALS,
    NODES,
    PROPERTIES_DATA,
    RESOURCES,
    STACK_EVENTS,
    STACK_ORDERS,
    STACKS,
)
from bloomery.orchestration.engine_host.drift_timer import PAGE, DriftTimer
from bloomery.orchestration.engine_host.drift_watch import DriftWatch
from bloomery.orchestration.orders import acceptance
from tests.kit.clients.stack_calls import StackCalls
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import Site, make_site, template, write_nodes
from tests.kit.stacks.row_engines import Engine

IMAGE = {"source": "http://images/a"}


class Watched:
    """A stack of Instances that are deployed, of the project p1, and what looks at it."""

    def __init__(
        self, folder: Path, count: int = 1, *, body: Any = None, **engine_options: Any
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.site: Site = make_site(trees.database(folder), pool=count)
        kind = "OS::Ironic::Instance"
        properties = {"selector": {"resource_class": "pool"}, "image": IMAGE}
        self.site.create(
            body
            or template({f"i{n}": {"type": kind, "properties": properties} for n in range(count)})
        )
        Engine(self.site.db, self.site.runtime()).run(self.site.root)
        assert self.site.stack().status == "COMPLETE"
        self.project = self.site.stack().project
        write_nodes(self.site, owner=self.project)
        self.become("member", "reader")
        self.calls = StackCalls(folder, db=self.site.db, enforced=True, **engine_options)
        self.watch = self.make_watch()

    def make_watch(self) -> DriftWatch:
        return DriftWatch(
            self.calls.services, self.site.runtime(), on_events_written=lambda: None,
            on_accepted=lambda root: None,
        )  # fmt: skip

    def become(self, *roles: str) -> None:
        """Let the last caller of the stack have these roles."""
        ident = trees.ident("caller")

        def write(conn: sa.Connection) -> None:
            conn.execute(sa.delete(CREDENTIALS))
            credentials.insert(conn, ident, user="ann", project=self.project, roles=roles)
            conn.execute(sa.update(STACKS).values(credentials_uuid=ident))

        self.site.db.transact(write)

    def change(self, **values: Any) -> None:
        self.site.db.transact(lambda conn: conn.execute(sa.update(NODES).values(**values)))

    def look(self, owns: Callable[[str], bool] = lambda root: True) -> int | None:
        return self.watch.look(0, PAGE, owns)

    def reasons(self) -> list[str]:
        query = sa.select(STACK_EVENTS.c.reason).where(STACK_EVENTS.c.action == "DRIFT")
        with self.site.db.read() as conn:
            return list(conn.execute(query.order_by(STACK_EVENTS.c.id)).scalars())


def test_a_page_takes_as_many_queries_for_many_machines_as_for_one(tmp_path: Path) -> None:
    counts = []
    for count in (1, 12):
        watched = Watched(tmp_path / str(count), count)
        meter = Meter(watched.site.db)
        assert watched.look() is None
        counts.append(len(meter.statements))
    assert counts[0] == counts[1]
    assert meter.commits == 0


def test_what_the_owner_of_a_stack_may_not_see_is_not_found(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.look()
    assert watched.reasons() == []
    watched.change(owner="somebody-else", power_state="power off")
    watched.look()
    (reason,) = watched.reasons()
    assert "could not be found" in reason
    assert "somebody-else" not in reason
    assert "power" not in reason


def test_a_caller_whose_roles_were_revoked_is_told_nothing_of_a_machine(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.become()
    watched.change(power_state="power off")
    watched.look()
    (reason,) = watched.reasons()
    assert "could not be found" in reason


def test_two_engines_that_look_at_once_report_it_once(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.change(power_state="power off")
    other = watched.make_watch()
    emit = other._emit_of_stack

    def late(stack: Any, reports: Any) -> None:
        watched.look()
        emit(stack, reports)

    other._emit_of_stack = late  # type: ignore[method-assign]
    other.look(0, PAGE, lambda root: True)
    assert len(watched.reasons()) == 1


@pytest.mark.parametrize("moment", ["before the report", "before the mark"])
def test_a_resource_that_has_changed_is_not_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    watched = Watched(tmp_path, drift_sets_check_failed=True)
    watched.change(power_state="power off")
    emit, send = watched.watch._emit_of_stack, acceptance.send
    updated = sa.update(RESOURCES).values(traversal=RESOURCES.c.traversal + 1, action="UPDATE")

    def update() -> None:
        watched.site.db.transact(lambda conn: conn.execute(updated))

    if moment == "before the report":
        monkeypatch.setattr(watched.watch, "_emit_of_stack", lambda *args: (update(), emit(*args)))
    else:
        monkeypatch.setattr(acceptance, "send", lambda *args: (send(*args), update()))
    watched.look()
    with watched.site.db.read() as conn:
        assert conn.execute(sa.select(RESOURCES.c.action, RESOURCES.c.status)).all() == [
            ("UPDATE", "COMPLETE")
        ]
        assert conn.execute(sa.select(STACK_ORDERS.c.id)).all() == []


def test_a_resource_that_cannot_be_compared_keeps_no_other_from_its_look(tmp_path: Path) -> None:
    watched = Watched(tmp_path, 2)
    watched.change(power_state="power off")
    own = sa.update(RESOURCES).where(RESOURCES.c.name == "i0").values(properties_uuid="spoilt")
    row = {"uuid": "spoilt", "root_uuid": watched.site.root, "data": '{"image": 7}',
           "sealed": False, "created_at": watched.site.stack().created_at}  # fmt: skip
    watched.site.db.transact(lambda conn: conn.execute(sa.insert(PROPERTIES_DATA), row))
    watched.site.db.transact(lambda conn: conn.execute(own))
    watched.look()
    assert len(watched.reasons()) == 1


def test_a_group_is_compared_by_its_members(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    member = {"selector": {"resource_class": "pool"}, "image": IMAGE}
    group = {"type": "OS::Ironic::InstanceGroup", "properties": {"count": 1, "member": member}}
    watched = Watched(tmp_path, body=template({"group": group}))
    watched.change(power_state="power off")
    watched.look()
    (reason,) = watched.reasons()
    assert "power_state" in reason
    assert "cannot compare" not in caplog.text


def test_a_stack_of_another_engine_is_not_looked_at(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.change(power_state="power off")
    watched.look(owns=lambda root: False)
    assert watched.reasons() == []


class Pages:
    """Counts looks, and remembers which roots were asked about."""

    def __init__(self, pages: int) -> None:
        self.pages, self.looks = pages, 0
        self.owned: set[str] = set()

    def look(self, after_id: int, size: int, owns: Callable[[str], bool]) -> int | None:
        self.looks += 1
        self.owned |= {root for root in map(str, range(200)) if owns(root)}
        return after_id + size if self.looks % self.pages else None


def timer_of(db: Database, pages: Pages, live: list[str], clock_s: float = 0.0) -> DriftTimer:
    return DriftTimer(
        db, 600, make_watch=lambda: pages, live_ids=lambda: live, random=lambda: 0.5,
        clock=lambda: clock_s,
    )  # fmt: skip


def test_pages_are_spread_over_the_interval(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bloomery.db.stack_drift.count", lambda conn: 3 * PAGE)
    pages = Pages(3)
    timer = timer_of(db, pages, ["e"])
    assert timer.step(False) == 300  # not all engines begin in the same moment
    assert [timer.step(False) for _ in range(3)] == [200, 200, 200]
    assert (pages.looks, timer.is_between_rounds) == (3, True)


def test_nothing_is_looked_at_where_no_stack_has_machines(db: Database) -> None:
    pages = Pages(1)
    assert timer_of(db, pages, ["e"]).look() == 600
    assert pages.looks == 0


def test_each_tree_is_one_engines(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bloomery.db.stack_drift.count", lambda conn: PAGE)
    live, owned = ["a", "b", "c"], []
    for number in range(3):
        pages = Pages(1)
        timer_of(db, pages, live[number:] + live[:number]).look()
        owned.append(pages.owned)
    assert sum(map(len, owned)) == len(set().union(*owned)) == 200
    assert all(owned)
