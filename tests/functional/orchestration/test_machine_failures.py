"""What befalls machines while a stack has them: each row a misfortune, and what becomes of it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import State
from bloomery.orchestration.resources.machines import ALLOCATION
from tests.kit import trees
from tests.kit.machine_sites import Site, make_site, template
from tests.kit.row_engines import Engine, Kill, Killed

IMAGE = {"source": "http://images/a"}
WEB = {"selector": {"resource_class": "pool"}, "image": IMAGE}


def instance(**more: Any) -> dict[str, Any]:
    return {"web": {"type": "OS::Ironic::Instance", "properties": {**WEB, **more}}}


def only_node(site: Site) -> dict[str, Any]:
    (node,) = site.machines.nodes.values()
    return node


def at(site: Site, moment: Callable[[Site], bool], deed: Callable[[Site], Any]) -> Engine:
    """Return an engine; ``deed`` is done once, after the first commit at which ``moment`` is."""
    done: list[bool] = []

    def look(_commits: int) -> None:
        if not done and moment(site):
            done.append(True)
            deed(site)

    return Engine(site.db, site.runtime(), on_commit=look)


def is_deploying(site: Site) -> bool:
    return only_node(site)["provision_state"] == State.DEPLOYING


def is_reserved(site: Site) -> bool:
    return only_node(site)["instance_uuid"] is not None


def fail_deploy(site: Site) -> None:
    """The conductor gives the deployment up: no call-back, a lost BMC, its own death."""
    uuid = only_node(site)["uuid"]
    site.machines._moves[uuid] = (site.now_s, State.DEPLOYFAIL, "no call-back")


def vanish(site: Site) -> None:
    site.machines.nodes.clear()
    site.machines._moves.clear()


def maintain(site: Site) -> None:
    only_node(site).update(maintenance=True, maintenance_reason="smoke")


def take_the_allocation(site: Site) -> None:
    site.machines.records[ALLOCATION].clear()
    only_node(site).update(instance_uuid=None, allocation_uuid=None)


def take_the_node(site: Site) -> None:
    only_node(site)["instance_uuid"] = trees.ident("somebody else")


def hold_for_ever(site: Site) -> None:
    uuid = only_node(site)["uuid"]
    del site.machines._moves[uuid]
    only_node(site)["provision_state"] = State.DEPLOYHOLD


MISFORTUNES: dict[str, tuple[Callable[[Site], bool], Callable[[Site], Any], str]] = {
    "no call-back": (is_deploying, fail_deploy, "no call-back"),
    "deleted by hand": (is_deploying, vanish, "could not be found"),
    "maintenance set by hand": (is_reserved, maintain, r"it is in maintenance \(smoke\)"),
    "the node is taken": (is_reserved, take_the_node, "another instance has it"),
    "held for longer than its time": (is_deploying, hold_for_ever, "cannot wait longer than 600 s"),
}


@pytest.mark.parametrize("name", MISFORTUNES)
def test_a_creation_fails_with_the_words_of_the_machine(name: str, tmp_path: Path) -> None:
    moment, deed, words = MISFORTUNES[name]
    site = make_site(trees.database(tmp_path), pool=1)
    site.create(template(instance(timeouts={"deploy": 600})))
    at(site, moment, deed).run(site.root)
    tree = site.tree()
    assert tree.stacks[0].status == "FAILED"
    assert re.search(words, tree.resources[0].reason), tree.resources[0].reason


@pytest.mark.parametrize("name", MISFORTUNES)
def test_what_failed_so_can_be_deleted(name: str, tmp_path: Path) -> None:
    moment, deed, _ = MISFORTUNES[name]
    site = make_site(trees.database(tmp_path), pool=1)
    site.create(template(instance(timeouts={"deploy": 600})))
    at(site, moment, deed).run(site.root)
    if name == "held for longer than its time":
        only_node(site)["provision_state"] = State.DEPLOYFAIL  # somebody aborts
    site.delete()
    Engine(site.db, site.runtime()).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    for node in site.machines.nodes.values():
        assert "stack" not in node["instance_info"]
    if name != "the node is taken":
        assert not site.machines.records.get(ALLOCATION)


def test_two_stacks_and_one_node(tmp_path: Path) -> None:
    """The second waits for capacity, and gets the node when the first gives it back."""
    site = make_site(trees.database(tmp_path), pool=1)
    node = only_node(site)
    node["instance_uuid"] = trees.ident("first")
    slot = {"type": "OS::Ironic::Allocation", "properties": {
        "resource_class": "pool", "wait_for_capacity": True, "timeout": 600}}  # fmt: skip
    site.create(template({"slot": slot}))
    reasons = []

    def give_back(_commits: int) -> None:
        reasons.extend(row.reason for row in site.tree().resources)
        if site.now_s > 100:
            node["instance_uuid"] = None

    Engine(site.db, site.runtime(), on_commit=give_back).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    assert "no available nodes" in reasons
    assert len(site.machines.records[ALLOCATION]) == 1


def test_capacity_that_never_comes_is_told_in_time(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=0)
    slot = {"type": "OS::Ironic::Allocation", "properties": {
        "resource_class": "pool", "wait_for_capacity": True, "timeout": 600}}  # fmt: skip
    site.create(template({"slot": slot}))
    Engine(site.db, site.runtime()).run(site.root)
    (row,) = site.tree().resources
    assert (row.status, row.reason.split(": ")[-1]) == ("FAILED", "no available nodes")
    assert 600 <= site.now_s <= 700


def test_all_errors_of_all_attempts_are_told(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=3)
    for reason in ("no disk", "no network"):
        site.machines.fail_next("active", reason)
    site.create(template(instance(retry={"attempts": 2})))
    Engine(site.db, site.runtime()).run(site.root)
    (row,) = site.tree().resources
    assert row.reason.endswith("no disk; no network")
    nodes = [uuid for uuid, verb in site.machines.orders if verb == "active"]
    assert len(nodes) == 2


def test_a_failed_one_is_written_anew_on_its_node_by_the_next_update(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    site.machines.fail_next("active", "no disk")
    site.create(template(instance(), "a"))
    Engine(site.db, site.runtime()).run(site.root)
    site.update(template(instance(image={"source": "http://images/b"}), "b"))
    Engine(site.db, site.runtime()).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    assert [verb for _, verb in site.machines.orders] == ["active", "rebuild"]
    assert only_node(site)["instance_info"]["image_source"] == "http://images/b"


def test_one_whose_node_is_gone_is_replaced_by_the_next_update(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    site.create(template(instance(), "a"))
    Engine(site.db, site.runtime()).run(site.root)
    vanish(site)
    site.machines.records[ALLOCATION].clear()
    other = site.machines.add_node(name="p9", resource_class="pool")
    site.update(template(instance(image={"source": "http://images/b"}), "b"))
    Engine(site.db, site.runtime()).run(site.root)
    tree = site.tree()
    assert tree.stacks[0].status == "COMPLETE"
    assert [row.physical_id for row in tree.resources] == [other]


def test_what_is_retained_keeps_running_without_the_mark(tmp_path: Path) -> None:
    """Another stack may have it then; an engine that dies has taken the mark away, or does."""
    for number, kill in enumerate((None, Kill(2, before=True), Kill(2, before=False))):
        (tmp_path / str(number)).mkdir()
        site = make_site(trees.database(tmp_path / str(number)), pool=1)
        web = instance()["web"] | {"deletion_policy": "Retain"}
        site.create(template({"web": web}))
        Engine(site.db, site.runtime()).run(site.root)
        site.delete()
        with contextlib.suppress(Killed):
            Engine(site.db, site.runtime(), kill).run(site.root)
        if kill is not None:
            Engine(site.db, site.runtime()).run(site.root)
        assert site.tree().stacks[0].status == "COMPLETE"
        assert only_node(site)["provision_state"] == State.ACTIVE
        assert only_node(site)["instance_info"] == {"image_source": "http://images/a"}
        assert [verb for _, verb in site.machines.orders] == ["active"]


def test_a_protected_machine_is_left_alone_and_named(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    site.create(template(instance()))
    Engine(site.db, site.runtime()).run(site.root)
    node = only_node(site)
    node["protected"] = True
    site.delete()
    Engine(site.db, site.runtime()).run(site.root)
    (row,) = site.tree().resources
    assert node["uuid"] in row.reason
    assert "protected" in row.reason
    assert node["provision_state"] == State.ACTIVE
