"""Machines taken over by ``external_id``: marked while a stack has them, else left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery.orchestration.resources.machines import PORT
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import Site, make_site, template
from tests.kit.stacks.row_engines import Engine


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(trees.database(tmp_path), pool=1)


def run(site: Site) -> str:
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    return f"{stack.action}_{stack.status}"


def take_over(site: Site, ident: str, kind: str = "Node") -> str:
    resource = {"type": f"OS::Ironic::{kind}", "external_id": ident}
    site.create(template({"thing": resource}, "first"))
    return run(site)


def node(site: Site) -> dict[str, Any]:
    return site.machines.get_node("p1")


def test_a_node_that_is_named_is_marked_and_left_as_it_is(site: Site) -> None:
    before = node(site)
    assert take_over(site, "p1") == "CREATE_COMPLETE"
    (row,) = site.tree().resources
    assert row.physical_id == before["uuid"]
    after = node(site)
    assert after["extra"].pop("stack")["resource"] == "thing"
    assert after == before


def test_its_mark_goes_with_the_stack_and_nothing_else(site: Site) -> None:
    before = node(site)
    take_over(site, "p1")
    site.delete()
    assert run(site) == "DELETE_COMPLETE"
    assert node(site) == before
    assert site.machines.orders == []


def test_a_node_of_another_stack_is_not_taken_over(site: Site) -> None:
    mark = {"stack": {"stack_id": trees.ident("another"), "resource": "n", "id": "1"}}
    site.machines.nodes[node(site)["uuid"]]["extra"] = mark
    assert take_over(site, "p1") == "CREATE_FAILED"
    assert "another stack has it" in site.tree().resources[0].reason
    site.delete()
    assert run(site) == "DELETE_COMPLETE"
    assert node(site)["extra"] == mark


def test_a_node_that_is_not_there_or_not_seen_is_not_found(site: Site) -> None:
    assert take_over(site, "p9") == "CREATE_FAILED"
    assert "p9 could not be found" in site.tree().resources[0].reason


def test_a_port_is_marked_and_kept(site: Site) -> None:
    uuid = trees.ident("port")
    site.machines.create(PORT, {"uuid": uuid, "node_uuid": node(site)["uuid"], "address": "a"})
    assert take_over(site, uuid, "Port") == "CREATE_COMPLETE"
    assert site.machines.records[PORT][uuid]["extra"]["stack"]["resource"] == "thing"
    site.delete()
    assert run(site) == "DELETE_COMPLETE"
    assert site.machines.records[PORT][uuid]["extra"] == {}
