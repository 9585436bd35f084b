"""What a later order does to machines that an earlier one still works at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import State
from tests.kit import trees
from tests.kit.machine_sites import Site, make_site, template
from tests.kit.row_engines import Engine, Kill, Killed


def web(image: str = "a", **more: Any) -> dict[str, Any]:
    properties = {"selector": {"resource_class": "pool"}, "image": {"source": f"http://{image}"}}
    return {"web": {"type": "OS::Ironic::Instance", "properties": properties | more}}


def waiting(folder: Path) -> Site:
    """A site whose one machine waits for its agent, as a deployment does for most of its time."""
    site = make_site(trees.database(folder), pool=1)
    site.create(template(web(), "first"))
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


def another_image(site: Site) -> None:
    site.update(template(web("b"), "second"))


def without_it(site: Site) -> None:
    site.update(template({}, "second"))


def delete(site: Site) -> None:
    site.delete()


ENDS: dict[str, tuple[Callable[[Site], None], str, list[str], Any]] = {
    "another image": (
        another_image, "UPDATE_COMPLETE", ["active", "abort", "rebuild"], "http://b"),
    "taken out of the template": (
        without_it, "UPDATE_COMPLETE", ["active", "abort", "deleted"], None),
    "the stack is deleted": (delete, "DELETE_COMPLETE", ["active", "abort", "deleted"], None),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_a_deployment_that_nobody_wants_any_more_is_aborted(name: str, tmp_path: Path) -> None:
    order, end, ordered, image = ENDS[name]
    site = waiting(tmp_path)
    order(site)
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    assert f"{stack.action}_{stack.status}" == end
    assert verbs(site) == ordered
    assert image_of(site) == image


@pytest.mark.parametrize("name", ENDS)
def test_an_engine_that_dies_while_it_aborts_is_succeeded(name: str, tmp_path: Path) -> None:
    order, end, ordered, image = ENDS[name]
    for number in range(1, 7):
        (tmp_path / str(number)).mkdir()
        site = waiting(tmp_path / str(number))
        order(site)
        with contextlib.suppress(Killed):
            Engine(site.db, site.runtime(), Kill(number, before=True)).run(site.root)
        Engine(site.db, site.runtime()).run(site.root)
        stack = site.tree().stacks[0]
        assert (f"{stack.action}_{stack.status}", verbs(site)) == (end, ordered), number
        assert image_of(site) == image
        site.db.close()


def test_a_deployment_that_is_still_wanted_goes_on(tmp_path: Path) -> None:
    """Another name, or a change elsewhere, is no reason to begin again."""
    site = waiting(tmp_path)
    site.update(template(web(name="web-1"), "second"))
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
