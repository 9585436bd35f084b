"""What a later order does to machines that an earlier one still works at."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import State
from bloomery.model.stacks import Template
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import Site, make_site, template
from tests.kit.stacks.row_engines import Engine, Kill, Killed


def web(image: str = "a", **more: Any) -> dict[str, Any]:
    properties = {"selector": {"resource_class": "pool"}, "image": {"source": f"http://{image}"}}
    return {"web": {"type": "OS::Ironic::Instance", "properties": properties | more}}


Resources = dict[str, Any]
Nested = Callable[[Resources], Resources]


def in_group(resources: Resources) -> Resources:
    """The same as the only member of a group."""
    group = {"count": 1, "resource_def": resources["web"]}
    return {"group": {"type": "OS::Heat::ResourceGroup", "properties": group}}


def in_machine_group(resources: Resources) -> Resources:
    group = {"count": 1, "member": resources["web"]["properties"]}
    policy = {"rolling_update": {"health_gate": {"settle_seconds": 0}}}
    kind = {"type": "OS::Ironic::InstanceGroup", "update_policy": policy}
    return {"group": kind | {"properties": group}}


def waiting(folder: Path, nested: Nested = dict) -> Site:
    """A site whose one machine waits for its agent, as a deployment does for most of its time."""
    site = make_site(trees.database(folder), pool=1)
    site.create(template(nested(web()), "first"))
    return wait_for_agent(site)


def wait_for_agent(site: Site) -> Site:
    """Let an engine work until the machine waits for its agent; then the engine is gone."""
    (node,) = site.machines.nodes.values()

    def look(_commits: int) -> None:
        if node["provision_state"] == State.DEPLOYING:
            node["provision_state"] = State.DEPLOYWAIT
            site.machines._moves.clear()
            raise Killed

    with pytest.raises(Killed):
        Engine(site.db, site.runtime(), on_commit=look).run(site.root)
    assert node["provision_state"] == State.DEPLOYWAIT
    return site


def verbs(site: Site) -> list[str]:
    return [verb for _, verb in site.machines.orders]


def image_of(site: Site) -> Any:
    (node,) = site.machines.nodes.values()
    return node["instance_info"].get("image_source")


def call_back(site: Site) -> None:
    """The agent reports, and the deployment goes on to its end."""
    for uuid, node in site.machines.nodes.items():
        node["provision_state"] = State.DEPLOYING
        site.machines._moves[uuid] = (site.now_s + 100, State.ACTIVE, "")


def another_image(site: Site, nested: Nested) -> None:
    site.update(template(nested(web("b")), "second"))


def without_it(site: Site, _nested: Nested) -> None:
    site.update(template({}, "second"))


def delete(site: Site, _nested: Nested) -> None:
    site.delete()


ENDS: dict[str, tuple[Callable[[Site, Nested], None], str, list[str], Any]] = {
    "another image": (
        another_image, "UPDATE_COMPLETE", ["active", "abort", "rebuild"], "http://b"),
    "taken out of the template": (
        without_it, "UPDATE_COMPLETE", ["active", "abort", "deleted"], None),
    "the stack is deleted": (delete, "DELETE_COMPLETE", ["active", "abort", "deleted"], None),
}  # fmt: skip
every_nesting = pytest.mark.parametrize("nested", [dict, in_group, in_machine_group])


@every_nesting
@pytest.mark.parametrize("name", ENDS)
def test_a_deployment_that_nobody_wants_any_more_is_aborted(
    name: str, nested: Nested, tmp_path: Path
) -> None:
    order, end, ordered, image = ENDS[name]
    site = waiting(tmp_path, nested)
    order(site, nested)
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    assert f"{stack.action}_{stack.status}" == end, stack.reason
    assert verbs(site) == ordered
    assert image_of(site) == image


def test_the_uuid_of_its_node_is_no_reason_to_abort_a_deployment(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    uuid = site.machines.get_node("p1")["uuid"]
    by_name, by_uuid = web(node="p1"), web(node=uuid)
    for resources in (by_name, by_uuid):
        del resources["web"]["properties"]["selector"]
    site.create(template(by_name, "first"))
    wait_for_agent(site)
    site.update(template(by_uuid, "second"))

    def look(commits: int) -> None:
        if commits == 1:
            call_back(site)

    Engine(site.db, site.runtime(), on_commit=look).run(site.root)
    assert verbs(site) == ["active"]
    assert (site.stack().action, site.stack().status) == ("UPDATE", "COMPLETE")


@every_nesting
@pytest.mark.parametrize("name", ENDS)
def test_an_engine_that_dies_while_it_aborts_is_succeeded(
    name: str, nested: Nested, tmp_path: Path
) -> None:
    order, end, ordered, image = ENDS[name]
    for number in range(1, 9):
        (tmp_path / str(number)).mkdir()
        site = waiting(tmp_path / str(number), nested)
        order(site, nested)
        with contextlib.suppress(Killed):
            Engine(site.db, site.runtime(), Kill(number, before=True)).run(site.root)
        if site.tree().stacks[0].status == "IN_PROGRESS":
            Engine(site.db, site.runtime()).run(site.root)
        stack = site.tree().stacks[0]
        assert (f"{stack.action}_{stack.status}", verbs(site)) == (end, ordered), number
        assert image_of(site) == image
        site.db.close()


@every_nesting
def test_a_deployment_that_is_still_wanted_goes_on(nested: Nested, tmp_path: Path) -> None:
    """Another name, or a change elsewhere, is no reason to begin again."""
    site = waiting(tmp_path, nested)
    site.update(template(nested(web(name="web-1")), "second"))
    call_back(site)
    Engine(site.db, site.runtime()).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    assert verbs(site) == ["active"]
    (node,) = site.machines.nodes.values()
    assert node["instance_name"] == "web-1"


def test_an_update_that_is_cancelled_aborts_its_rebuild_and_brings_the_old_image_back(
    tmp_path: Path,
) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    site.create(template(web(), "first"))
    Engine(site.db, site.runtime()).run(site.root)
    site.update(template(web("b"), "second"), rollback=True)
    wait_for_agent(site)
    site.cancel()
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    assert f"{stack.action}_{stack.status}" == "ROLLBACK_COMPLETE"
    assert verbs(site) == ["active", "rebuild", "abort", "rebuild"]
    assert image_of(site) == "http://a"


def test_a_cleaning_that_waits_is_aborted_with_its_stack(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=0)
    node = {"name": "n1", "driver": "fake-hardware"}
    site.create(template({"node": {"type": "OS::Ironic::Node", "properties": node}}))

    def look(_commits: int) -> None:
        for each in site.machines.nodes.values():
            if each["provision_state"] == State.CLEANING:
                each["provision_state"] = State.CLEANWAIT
                site.machines._moves.clear()
                raise Killed

    with pytest.raises(Killed):
        Engine(site.db, site.runtime(), on_commit=look).run(site.root)
    site.delete()
    Engine(site.db, site.runtime()).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    assert verbs(site)[-2:] == ["abort", "manage"]
    assert not site.machines.nodes


def test_a_deployment_that_another_file_does_without_is_aborted(tmp_path: Path) -> None:
    """The stack below is of a file; nothing in the template above it changes."""

    def of_file(image: str) -> Template:
        text = {"heat_template_version": "2021-04-16", "resources": web(image)}
        document = template({"below": {"type": "web.yaml"}}).template
        return trees.template(image, template=document, files={"web.yaml": json.dumps(text)})

    site = make_site(trees.database(tmp_path), pool=1)
    site.create(of_file("a"))
    wait_for_agent(site)
    site.update(of_file("b"))
    Engine(site.db, site.runtime()).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE", site.tree().stacks[0].reason
    assert verbs(site) == ["active", "abort", "rebuild"]
    assert image_of(site) == "http://b"


def in_nested_stack(resources: Resources) -> Resources:
    """The group of machines in a nested stack."""
    inner = {"heat_template_version": "2021-04-16", "resources": in_machine_group(resources)}
    return {"outer": {"type": "OS::Heat::Stack", "properties": {"template": json.dumps(inner)}}}


def paused(folder: Path, nested: Nested) -> Site:
    """A site whose roll-out waits for a signal, because a machine could not be rebuilt."""
    site = make_site(trees.database(folder), pool=1)
    site.create(template(nested(web()), "first"))
    Engine(site.db, site.runtime()).run(site.root)
    site.machines.fail_next("rebuild", "no disk")
    site.update(template(nested(web("b")), "second"))

    def look(_commits: int) -> None:
        if any("roll-out paused" in row.reason for row in site.tree().resources):
            raise Killed

    with pytest.raises(Killed):
        Engine(site.db, site.runtime(), on_commit=look).run(site.root)
    return site


@pytest.mark.parametrize("nested", [in_machine_group, in_nested_stack])
@pytest.mark.parametrize("image", ["b", "c"], ids=["same", "new"])
@pytest.mark.parametrize("cancelled", [False, True], ids=["at-once", "after-a-cancel"])
def test_a_roll_out_that_is_paused_ends_for_another_order(
    tmp_path: Path, nested: Nested, image: str, cancelled: bool
) -> None:
    """Nobody needs to signal first, also where the new order has the same definition."""
    site = paused(tmp_path, nested)
    before_s = site.now_s
    if cancelled:
        site.stop()
        Engine(site.db, site.runtime()).run(site.root)
        assert [row.name for row in site.tree().resources if row.status == "IN_PROGRESS"] == []
    site.update(template(nested(web(image)), "third"))
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    assert f"{stack.action}_{stack.status}" == "UPDATE_COMPLETE", stack.reason
    assert image_of(site) == f"http://{image}"
    assert site.now_s - before_s < 1800, "it does not wait for a time-out"


def test_a_group_waits_for_members_that_an_earlier_order_still_makes(tmp_path: Path) -> None:
    """A group that grows meanwhile deploys none of them again."""
    site = waiting(tmp_path, in_machine_group)
    call_back(site)
    site.machines.add_node(name="p2", resource_class="pool")
    larger = in_machine_group(web())
    larger["group"]["properties"]["count"] = 2
    site.update(template(larger, "second"))
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    assert f"{stack.action}_{stack.status}" == "UPDATE_COMPLETE", stack.reason
    assert verbs(site) == ["active", "active"]
