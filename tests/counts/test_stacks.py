"""What stacks cost the database, through HTTP and the engine: commits, and rows that are written.

A count that goes down is welcome: change it here.  One that goes up wants a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine.interfaces import CacheStats

from bloomery.db.engine import Meter
from bloomery.db.tables import RESOURCES, STACK_LOCKS, STACK_ORDERS
from bloomery.orchestration.foresight import effects
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

POLL = "nodes.provision_state IN"  # of a periodic, once a second


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state", periodic_interval=3600) as running:
        yield running


@pytest.fixture
def meter(site: Orchestration) -> Meter:
    rest(site)
    return Meter(site.service.db)


def rest(site: Orchestration) -> None:
    """Wait until nobody works on any stack."""

    def is_idle() -> bool:
        with site.service.db.read() as conn:
            orders = conn.execute(sa.select(sa.func.count()).select_from(STACK_ORDERS)).scalar()
            held = sa.select(sa.func.count()).where(STACK_LOCKS.c.engine_id.is_not(None))
            return not orders and not conn.execute(held).scalar()

    wait_for(is_idle, "all stacks to rest", timeout_s=60)
    with site.service.db._edge._turn():
        pass  # a commit is seen before it is counted; its turn ends after both


def values(count: int, first: str = "v") -> dict[str, Any]:
    return {
        f"r{number}": {
            "type": "OS::Heat::Value",
            "properties": {"value": f"v{number}" if number else first},
        }
        for number in range(count)
    }


def chain(count: int) -> dict[str, Any]:
    return {
        f"r{number}": {
            "type": "OS::Heat::Value",
            "properties": {"value": {"get_attr": [f"r{number - 1}", "value"]} if number else "x"},
        }
        for number in range(count)
    }


def test_a_flat_stack_takes_the_same_few_commits_whatever_its_size(
    site: Orchestration, meter: Meter
) -> None:
    commits = []
    for count in (3, 60):
        meter.reset()
        site.create(f"flat-{count}", template(values(count)))
        rest(site)
        commits.append(meter.commits)
    assert commits == [4, 4]


def test_a_chain_takes_one_commit_a_link(site: Orchestration, meter: Meter) -> None:
    site.create("chain", template(chain(20)))
    rest(site)
    assert meter.commits == 23


def test_an_update_writes_the_resource_that_changes_and_no_other(
    site: Orchestration, meter: Meter
) -> None:
    stack = site.create("web", template(values(40)))
    rest(site)
    before = rows(site)
    meter.reset()
    assert site.ask("PUT", stack, {"template": template(values(40, "other"))})[0] == 202
    rest(site)
    assert meter.commits in (
        4,
        5,
    )  # the lock goes with the last turn, or after a wake that came then
    changed = [name for name, row in rows(site).items() if row != before[name]]
    assert changed == ["r0"]


def test_a_plan_of_an_update_takes_the_same_few_statements_whatever_its_size(
    site: Orchestration, meter: Meter
) -> None:
    statements = []
    for count in (3, 60):
        stack = site.create(f"planned-{count}", template(values(count)))
        rest(site)
        meter.reset()
        new = {"template": template(values(count, "other"))}
        assert site.ask("PUT", f"{stack}/preview", new)[0] == 200
        statements.append([each for each in meter.statements if POLL not in each])
    assert len(statements[0]) == len(statements[1])


def test_a_plan_reads_its_machines_together(site: Orchestration, meter: Meter) -> None:
    """A machine that is read by itself would be read so for each of a thousand."""
    reads = []
    for count in (2, 6):
        names = [f"n{count}-{number}" for number in range(count)]
        nodes = template({name: node(name) for name in names})
        site.wait_for(site.create(f"rack-{count}", nodes), "CREATE_COMPLETE")
        stack = site.create(f"web-{count}", template({name: machine(name) for name in names}))
        site.wait_for(stack, "CREATE_COMPLETE")
        rest(site)
        meter.reset()
        changed = template({name: machine(name, "b") for name in names})
        status, preview = site.ask("PUT", f"{stack}/preview", {"template": changed})
        assert (status, preview["plan"]["summary"]) == (200, {"rebuild": count})
        reads.append(sum("nodes.instance_info" in each for each in meter.statements))
    assert reads == [1, 1]


def test_a_plan_looks_at_each_named_node_once(
    site: Orchestration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each other resource for each of them: a thousand of these would be a million."""
    values: list[object] = []
    value = effects._value
    monkeypatch.setattr(effects, "_value", lambda *each: values.append(each) or value(*each))
    calls = []
    for count in (3, 12):
        names = [f"b{count}-{number}" for number in range(count)]
        nodes = template({name: node(name) for name in names})
        site.wait_for(site.create(f"rack-b{count}", nodes), "CREATE_COMPLETE")
        values.clear()
        new = {"stack_name": "x", "template": template({name: machine(name) for name in names})}
        status, preview = site.ask("POST", "/stacks/preview", new)
        assert (status, len(preview["plan"]["steps"])) == (200, count)
        calls.append(len(values) / count)
    assert calls[0] == calls[1]


def node(name: str) -> dict[str, Any]:
    return {"type": "OS::Ironic::Node", "properties": {"name": name, "driver": "fake-hardware"}}


def machine(name: str, image: str = "a") -> dict[str, Any]:
    source = {"source": f"http://images/{image}.img", "os_hash_value": "0" * 64}
    image_of_it = {"os_hash_algo": "sha256", **source}
    return {"type": "OS::Ironic::Instance", "properties": {"node": name, "image": image_of_it}}


def test_no_statement_of_a_stack_is_rendered_twice(site: Orchestration) -> None:
    live(site, "first")
    rendered: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, _params: Any, ctx: Any, _many: bool) -> None:
        is_new = ctx.compiled is not None and ctx.cache_hit is not CacheStats.CACHE_HIT
        if is_new and "FROM nodes" not in statement:  # those are of periodics
            rendered.append(statement)

    sa.event.listen(sa.Engine, "after_cursor_execute", note)
    try:
        live(site, "second")
    finally:
        sa.event.remove(sa.Engine, "after_cursor_execute", note)
    assert rendered == []


def live(site: Orchestration, name: str) -> None:
    """Create, change and delete a stack."""
    stack = site.create(name, template(chain(3)))
    rest(site)
    assert site.ask("PUT", stack, {"template": template(values(4))})[0] == 202
    rest(site)
    assert site.ask("DELETE", stack)[0] == 204
    rest(site)


def rows(site: Orchestration) -> dict[str, Any]:
    with site.service.db.read() as conn:
        found = conn.execute(sa.select(RESOURCES)).mappings()
        return {row["name"]: dict(row) for row in found}
