"""What befalls machines while a stack has them: each row a misfortune, and what becomes of it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.orchestration.resources.machines import ALLOCATION
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import Site, make_site, template
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.row_engines import Engine, Kill, Killed

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


def take_the_node(site: Site) -> None:
    only_node(site)["instance_uuid"] = trees.ident("somebody else")


def hold_for_ever(site: Site) -> None:
    uuid = only_node(site)["uuid"]
    del site.machines._moves[uuid]
    only_node(site)["provision_state"] = State.DEPLOYHOLD


MISFORTUNES: dict[str, tuple[Callable[[Site], bool], Callable[[Site], Any], str]] = {
    "no call-back": (is_deploying, fail_deploy, "no call-back"),
    "deleted by hand": (is_deploying, vanish, "could not be found"),
    "maintenance set by hand": (
        is_reserved,
        maintain,
        r"it is in maintenance \(smoke\); baremetal node maintenance unset",
    ),
    "the node is taken": (is_reserved, take_the_node, "another instance has it"),
    "held for longer than its time": (is_deploying, hold_for_ever, "cannot wait longer than 600 s"),
}  # fmt: skip


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
    assert row.status == "FAILED"
    assert row.reason.endswith("cannot wait longer than 600 s for a node: no available nodes")
    assert 600 <= site.now_s < 630


class LateAllocator(MemoryMachines):
    """Answers, in the end, no more."""

    def create(self, noun: str, fields: dict[str, Any]) -> None:
        super().create(noun, fields)
        if noun == ALLOCATION and self._utc() >= self.silent_from_s:
            self.records[noun][fields["uuid"]] |= {"state": "allocating", "last_error": None}

    silent_from_s = 0.0


@pytest.mark.parametrize(
    ("waited_s", "reason"), [(600, "no available nodes"), (0, "it is allocating still")]
)
def test_the_time_of_an_allocation_ends_with_its_bound_and_the_last_reason(
    tmp_path: Path, waited_s: float, reason: str
) -> None:
    site = make_site(trees.database(tmp_path), LateAllocator, pool=0)
    assert isinstance(site.machines, LateAllocator)
    site.machines.silent_from_s = site.now_s + waited_s
    slot = {"type": "OS::Ironic::Allocation", "properties": {
        "resource_class": "pool", "wait_for_capacity": True, "timeout": 600}}  # fmt: skip
    site.create(template({"slot": slot}))
    Engine(site.db, site.runtime()).run(site.root)
    (row,) = site.tree().resources
    assert row.reason.endswith(f"cannot wait longer than 600 s for a node: {reason}")


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


def deploys(site: Site) -> list[str]:
    """The names of the nodes that were deployed, in this order."""
    nodes = site.machines.nodes
    return [nodes[uuid]["name"] for uuid, verb in site.machines.orders if verb == "active"]


def test_a_failed_node_is_left_for_another_and_quarantined(tmp_path: Path) -> None:
    """By default twice, on two nodes; the first is free again before, and is not taken."""
    site = make_site(trees.database(tmp_path), pool=3)
    site.machines.fail_next("active", "no disk")
    site.create(template(instance()))
    Engine(site.db, site.runtime()).run(site.root)
    tree = site.tree()
    assert tree.stacks[0].status == "COMPLETE"
    assert deploys(site) == ["p1", "p2"]
    failed = site.machines.get_node("p1")
    assert (failed["maintenance"], failed["instance_uuid"]) == (True, None)
    assert failed["maintenance_reason"].startswith("cannot be deployed for web of stack S (")
    assert failed["maintenance_reason"].endswith("): no disk")
    assert len(site.machines.records[ALLOCATION]) == 1


def test_a_failed_node_stays_in_use_where_that_is_wanted(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=2)
    site.machines.fail_next("active", "no disk")
    site.create(template(instance(retry={"quarantine_failed": False})))
    Engine(site.db, site.runtime()).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    assert not any(node["maintenance"] for node in site.machines.nodes.values())


class TenantsMachines(MemoryMachines):
    """Whose owner may not put nodes into maintenance."""

    def set_maintenance(self, uuid: str, on: bool, reason: str | None = None) -> None:
        raise errors.Forbidden(rule="baremetal:node:set_maintenance")


def test_who_may_not_quarantine_a_node_is_deployed_all_the_same(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), TenantsMachines, pool=2)
    site.machines.fail_next("active", "no disk")
    site.create(template(instance()))
    Engine(site.db, site.runtime()).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    assert deploys(site) == ["p1", "p2"]


def test_an_instance_without_another_node_says_so(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    site.machines.fail_next("active", "no disk")
    site.create(template(instance()))
    Engine(site.db, site.runtime()).run(site.root)
    (row,) = site.tree().resources
    assert row.reason.endswith("no disk; no other node is available")


@pytest.mark.parametrize("place", [{"node": "p1"}, {"retry": {"other_node": False}}])
def test_a_second_attempt_on_the_same_node(place: dict[str, Any], tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=2)
    site.machines.fail_next("active", "no disk")
    web = instance(**place)
    if "node" in place:
        del web["web"]["properties"]["selector"]
    site.create(template(web))
    Engine(site.db, site.runtime()).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    assert deploys(site) == ["p1", "p1"]


class PickyMachines(MemoryMachines):
    """Which refuse what a deployment is asked for."""

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        if verb == "active":
            raise errors.InvalidParameterValue(reason="no such step: raid.dance")
        super().set_provision_state(uuid, verb, **arguments)


def test_what_the_service_calls_invalid_is_not_tried_again(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), PickyMachines, pool=2)
    site.create(template(instance()))
    Engine(site.db, site.runtime()).run(site.root)
    (row,) = site.tree().resources
    assert (row.status, row.data["attempt"]) == ("FAILED", 1)
    assert "no such step: raid.dance" in row.reason


def test_a_system_that_never_comes_up_is_kept_to_be_looked_at(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    ready = {"type": "OS::Ironic::FirstBoot", "properties": {"timeout": 60}}
    web = instance(first_boot={"get_resource": "ready"})
    site.create(template({"ready": ready, **web}))
    Engine(site.db, site.runtime()).run(site.root)
    reasons = {row.name: row.reason for row in site.tree().resources}
    assert reasons["web"].endswith("cannot wait longer than 60 s for the system to come up")
    assert only_node(site)["provision_state"] == State.ACTIVE


@pytest.mark.parametrize(("waits", "status"), [(False, "COMPLETE"), (True, "FAILED")])
def test_a_node_that_could_not_be_cleaned(waits: bool, status: str, tmp_path: Path) -> None:
    """It matters to the stack only where that waits for it."""
    site = make_site(trees.database(tmp_path), pool=1)
    site.create(template(instance(teardown={"wait_for_cleaning": waits})))
    Engine(site.db, site.runtime()).run(site.root)
    site.delete()

    def fail_clean(site: Site) -> None:
        node = only_node(site)
        site.machines._moves.clear()
        site.machines._forget_instance(node)
        node.update(provision_state=State.CLEANFAIL, last_error="no agent")

    at(site, lambda site: only_node(site)["provision_state"] == State.DELETING, fail_clean).run(
        site.root
    )
    tree = site.tree()
    assert tree.stacks[0].status == status
    assert waits is any("no agent" in row.reason for row in tree.resources)
    way_out = "(baremetal node manage, baremetal node provide); then delete the stack again"
    assert waits is any(row.reason.endswith(way_out) for row in tree.resources)


def test_a_rollback_says_that_what_was_on_the_disk_is_lost(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    after = {"type": "Test::Thing", "depends_on": "web"}
    site.create(template({**instance(), "after": after}, "a"))
    Engine(site.db, site.runtime()).run(site.root)
    image = {"source": "http://images/b"}
    failing = {**after, "properties": {"fail": True}}
    site.update(template({**instance(image=image), "after": failing}, "b"), rollback=True)
    engine = Engine(site.db, site.runtime())
    engine.run(site.root)
    assert only_node(site)["instance_info"]["image_source"] == "http://images/a"
    told = [each.reason for turn in engine.turns for each in turn.events if each.name == "web"]
    assert [reason for reason in told if "root disk is lost" in reason] != []


def test_a_failed_one_is_written_anew_on_its_node_by_the_next_update(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    site.machines.fail_next("active", "no disk")
    once = {"retry": {"attempts": 1}}
    site.create(template(instance(**once), "a"))
    Engine(site.db, site.runtime()).run(site.root)
    site.update(template(instance(image={"source": "http://images/b"}, **once), "b"))
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
        assert only_node(site)["instance_info"] == {
            "image_source": "http://images/a",
            "traits": [],
        }
        assert [verb for _, verb in site.machines.orders] == ["active"]


def test_a_machine_with_the_mark_of_another_stack_is_left_alone(tmp_path: Path) -> None:
    """Also where nothing else says that it is used."""
    site = make_site(trees.database(tmp_path), pool=1)
    mark = {"stack": {"stack_id": trees.ident("another"), "resource": "web", "id": "1"}}
    only_node(site)["instance_info"] = mark
    site.create(template(instance()))
    Engine(site.db, site.runtime()).run(site.root)
    assert "another stack has it" in site.tree().resources[0].reason
    info = mark | {"traits": []}
    assert (site.machines.orders, only_node(site)["instance_info"]) == ([], info)


def test_a_protected_machine_is_left_alone_and_named(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    site.create(template(instance()))
    Engine(site.db, site.runtime()).run(site.root)
    node = only_node(site)
    node["protected"] = True
    site.delete()
    Engine(site.db, site.runtime()).run(site.root)
    (row,) = site.tree().resources
    assert f"undeploy node {node['name']}: it is protected" in row.reason
    assert "protected" in row.reason
    assert node["provision_state"] == State.ACTIVE
