"""Which machine goes first when an Instance is replaced, and what a failure on the way leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.orchestration.resources import instance, instance_info
from bloomery.orchestration.resources.machines import ALLOCATION
from tests.kit.stacks import machine_kills, trees
from tests.kit.stacks.machine_sites import Site, make_site, template
from tests.kit.stacks.row_engines import Engine

SLOT = {"type": "OS::Ironic::Allocation", "properties": {"resource_class": "pool"}}


def web(image: str = "a", **more: Any) -> dict[str, Any]:
    values = {"image": {"source": f"http://images/{image}"}, "image_update_policy": "replace"}
    return {"type": "OS::Ironic::Instance", "properties": values | more}


def run(site: Site) -> str:
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    return f"{stack.action}_{stack.status}"


def node_of(site: Site, name: str = "web") -> str:
    """The name of the node that a resource runs on."""
    (row,) = [each for each in site.tree().resources if each.name == name]
    return str(site.machines.nodes[row.physical_id or ""]["name"])


def made(folder: Path, pool: int = 2, **resources: Any) -> Site:
    site = make_site(trees.database(folder), pool=pool)
    site.create(template(resources, "first"))
    assert run(site) == "CREATE_COMPLETE"
    return site


def test_the_machine_is_given_back_and_taken_again(tmp_path: Path) -> None:
    selector = {"resource_class": "pool"}
    site = made(tmp_path, web=web(selector=selector, replace_order="delete_first"))
    before = node_of(site)
    after = web("b", selector=selector, replace_order="delete_first")
    site.update(template({"web": after}, "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert node_of(site) == before
    assert [verb for _, verb in site.machines.orders] == ["active", "deleted", "active"]


def test_the_old_machine_runs_until_the_new_one_does(tmp_path: Path) -> None:
    selector = {"resource_class": "pool"}
    site = made(tmp_path, web=web(selector=selector))
    before = node_of(site)
    site.update(template({"web": web("b", selector=selector)}, "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert node_of(site) != before
    assert [verb for _, verb in site.machines.orders] == ["active", "active", "deleted"]


def test_another_machine_is_taken_where_the_former_one_was_lost(tmp_path: Path) -> None:
    """It was given back, and is broken: its place is not waited for."""
    selector = {"resource_class": "pool"}
    site = made(tmp_path, web=web(selector=selector, replace_order="delete_first"))
    before = node_of(site)
    after = web("b", selector=selector, replace_order="delete_first")
    site.update(template({"web": after}, "second"))

    def break_it(_commits: int) -> None:
        node = site.machines.get_node(before)
        if node["provision_state"] == State.AVAILABLE and node["instance_uuid"] is None:
            site.machines.nodes[node["uuid"]]["maintenance"] = True

    Engine(site.db, site.runtime(), on_commit=break_it).run(site.root)
    assert site.tree().stacks[0].status == "COMPLETE"
    assert node_of(site) != before
    assert len(site.machines.records[ALLOCATION]) == 1


@pytest.mark.parametrize(("first", "second", "orders"), [
    ("Delete", "Retain", ["active", "active"]),
    ("Retain", "Delete", ["active", "deleted", "active"]),
])  # fmt: skip
def test_the_policy_of_an_update_that_failed_before_the_machine_counts(
    tmp_path: Path, first: str, second: str, orders: list[str]
) -> None:
    """The plan says so, too: it compares with the stack's template."""
    values = {"selector": {"resource_class": "pool"}, "replace_order": "delete_first"}
    old = web(**values)
    site = made(tmp_path, web=old | {"deletion_policy": first})
    fails = {"type": "Test::Thing", "properties": {"fail": True}}
    changed = old | {"deletion_policy": second, "depends_on": "thing"}
    site.update(template({"thing": fails, "web": changed}, "second"))
    assert run(site) == "UPDATE_FAILED"
    site.update(template({"web": web("b", **values) | {"deletion_policy": second}}, "third"))
    assert run(site) == "UPDATE_COMPLETE"
    assert [verb for _, verb in site.machines.orders] == orders


def test_a_named_node_is_given_back_first(tmp_path: Path) -> None:
    site = made(tmp_path, web=web(node="p2"))
    site.update(template({"web": web("b", node="p2")}, "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert node_of(site) == "p2"
    node = site.machines.get_node("p2")
    assert node["instance_info"]["image_source"] == "http://images/b"


def test_the_uuid_of_a_node_that_was_named_is_no_other_place(tmp_path: Path) -> None:
    site = made(tmp_path, web=web(node="p2"))
    uuid = site.machines.get_node("p2")["uuid"]
    site.update(template({"web": web(node=uuid)}, "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert [verb for _, verb in site.machines.orders] == ["active"]
    site.update(template({"web": web(node=site.machines.get_node("p1")["uuid"])}, "third"))
    assert run(site) == "UPDATE_COMPLETE"
    assert node_of(site) == "p1"


def group(**selector: Any) -> dict[str, Any]:
    member = {
        "name": "m-%index%", "image": {"source": "http://images/a"},
        "selector": {"resource_class": "pool", **selector},
    }  # fmt: skip
    return {"type": "OS::Ironic::InstanceGroup", "properties": {"count": 2, "member": member}}


@pytest.mark.parametrize("makes", [lambda **more: web(selector={"resource_class": "pool", **more}),
                                   group])  # fmt: skip
def test_a_machine_that_still_fits_its_selector_is_kept(tmp_path: Path, makes: Any) -> None:
    site = made(tmp_path, pool=4, web=makes())
    used = {node["name"] for node in site.machines.nodes.values() if node["instance_uuid"]}
    ordered, unused = len(site.machines.orders), sorted({"p1", "p2", "p3", "p4"} - used)
    for name, selector in (
        ("second", {"exclude_nodes": unused[:1]}),
        ("third", {"candidate_nodes": [*used, unused[0]], "exclude_nodes": unused[1:]}),
    ):
        site.update(template({"web": makes(**selector)}, name))
        assert run(site) == "UPDATE_COMPLETE"
        assert site.machines.orders[ordered:] == []
    excluded = min(used)
    site.update(template({"web": makes(exclude_nodes=[excluded])}, "fourth"))
    assert run(site) == "UPDATE_COMPLETE"
    assert sorted(verb for _, verb in site.machines.orders[ordered:]) == ["active", "deleted"]
    assert site.machines.get_node(excluded)["instance_uuid"] is None


def test_an_allocation_outlives_the_instance_that_is_replaced_on_it(tmp_path: Path) -> None:
    """It goes with the instance in the bare-metal API, and is asked for again as it was."""
    on_it = {"allocation": {"get_resource": "slot"}}
    site = made(tmp_path, pool=1, slot=SLOT, web=web(**on_it))
    (before,) = site.machines.records[ALLOCATION].values()
    site.update(template({"slot": SLOT, "web": web("b", **on_it)}, "second"))
    assert run(site) == "UPDATE_COMPLETE"
    (after,) = site.machines.records[ALLOCATION].values()
    assert (after["uuid"], after["extra"]) == (before["uuid"], before["extra"])
    assert site.machines.get_node("p1")["instance_uuid"] == after["uuid"]
    site.delete()
    assert run(site) == "DELETE_COMPLETE"
    assert not site.machines.records[ALLOCATION]


def test_an_allocation_is_kept_where_the_teardown_says_so(tmp_path: Path) -> None:
    on_it = {"allocation": {"get_resource": "slot"}, "teardown": {"keep_allocation": True}}
    site = made(tmp_path, pool=1, slot=SLOT, web=web(**on_it))
    site.update(template({"slot": SLOT}, "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert len(site.machines.records[ALLOCATION]) == 1
    assert site.machines.get_node("p1")["provision_state"] == State.AVAILABLE


@pytest.mark.parametrize("order", ["create_first", "delete_first"])
def test_a_rollback_runs_the_old_image_where_it_ran(order: str, tmp_path: Path) -> None:
    site = machine_kills.begun(machine_kills.changed(fails=True, replace_order=order), tmp_path)
    before = node_of(site)
    machine_kills.changed(fails=True, replace_order=order).order(site)
    assert run(site) == "ROLLBACK_COMPLETE"
    assert node_of(site) == before
    node = site.machines.get_node(before)
    assert node["instance_info"]["image_source"] == "http://images/a"
    others = [each for each in site.machines.nodes.values() if each["uuid"] != node["uuid"]]
    assert [each["instance_uuid"] for each in others] == [None]


def test_what_was_to_go_first_and_could_not_is_put_right(tmp_path: Path) -> None:
    """A protected machine stays; the next update that is content with it leaves it running."""
    site = made(tmp_path, web=web(node="p1"))
    site.machines.nodes[site.machines.get_node("p1")["uuid"]]["protected"] = True
    site.update(template({"web": web("b", node="p1")}, "second"))
    assert run(site) == "UPDATE_FAILED"
    assert "protected" in site.tree().resources[0].reason
    site.update(template({"web": web(node="p1")}, "third"))
    assert run(site) == "UPDATE_COMPLETE"
    assert (site.tree().resources[0].action, node_of(site)) == ("UPDATE", "p1")
    assert [verb for _, verb in site.machines.orders] == ["active"]


def test_a_failed_deployment_is_done_again_by_an_update_that_changes_nothing(
    tmp_path: Path,
) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    site.machines.fail_next("active", "no disk")
    resources = {"web": web(node="p1", retry={"attempts": 1})}
    site.create(template(resources, "first"))
    assert run(site) == "CREATE_FAILED"
    site.update(template(resources, "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert [verb for _, verb in site.machines.orders] == ["active", "rebuild"]


def test_what_stays_on_its_machine_cannot_be_created_first() -> None:
    properties = dict.fromkeys(instance.Instance.properties_schema) | {
        "node": "p1", "image": {"source": "a"}, "image_update_policy": "replace",
        "replace_order": "create_first",
    }  # fmt: skip
    resource = object.__new__(instance.Instance)
    resource.properties = properties
    with pytest.raises(errors.StackValidationFailed, match="image_update_policy"):
        resource.validate()


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        ({"node": "a"}, {"node": "b"}, True),
        ({"node": "a"}, {"node": "b", "replace_order": "create_first"}, False),
        ({"node": "a"}, {"node": "a", "replace_order": "create_first"}, True),
        ({"allocation": "a"}, {"allocation": "b"}, False),
        ({"allocation": "a"}, {"allocation": "a"}, True),
        ({"selector": {}}, {"selector": {}}, False),
        ({"selector": {}}, {"selector": {}, "replace_order": "delete_first"}, True),
    ],
)
def test_who_is_deleted_first(before: Any, after: Any, first: bool) -> None:
    assert instance_info.deletes_first(before, after) is first
