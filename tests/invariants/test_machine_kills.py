"""An engine is killed before and after each commit of a stack of machines; another one ends it.

Whatever the kill: each verb was ordered of each node as often as without it, nothing was made
twice, and nothing is left over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from bloomery.model.stacks import Template
from tests.kit import trees
from tests.kit.machine_sites import Site, copied, make_site
from tests.kit.row_engines import Engine, Kill, Killed

TEXT = """
heat_template_version: '2021-04-16'
resources:
  node:
    type: OS::Ironic::Node
    properties:
      name: n1
      driver: fake-hardware
      resource_class: bm
      ports: [{address: '52:54:00:00:00:01'}]
  port:
    type: OS::Ironic::Port
    properties: {node: {get_resource: node}, address: '52:54:00:00:00:02'}
  slot:
    type: OS::Ironic::Allocation
    depends_on: [node, port]
    properties: {resource_class: bm}
  web:
    type: OS::Ironic::Instance
    properties:
      allocation: {get_resource: slot}
      image: {source: IMAGE}
      retry: {attempts: 2}
  other:
    type: OS::Ironic::Instance
    properties:
      selector: {resource_class: pool}
      image: {source: IMAGE}
      retry: {attempts: 2}
      power: 'off'
"""


def template(image: str = "http://images/a") -> Template:
    return trees.template(image, template=yaml.safe_load(TEXT.replace("IMAGE", image)))


def create(site: Site) -> None:
    site.create(template())


def create_with_a_failure(site: Site) -> None:
    site.machines.fail_next("active", "no disk")
    site.create(template())


def rebuild(site: Site) -> None:
    site.update(template("http://images/b"))


@dataclass(frozen=True)
class Flow:
    name: str
    order: Callable[[Site], Any]
    ends: str
    before: Callable[[Site], None] | None = None


FLOWS = [
    Flow("create", create, "CREATE_COMPLETE"),
    Flow("create on a second attempt", create_with_a_failure, "CREATE_COMPLETE"),
    Flow("rebuild", rebuild, "UPDATE_COMPLETE", create),
    Flow("delete", lambda site: site.delete(), "DELETE_COMPLETE", create),
]  # fmt: skip


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    sites = {}
    for number, flow in enumerate(FLOWS):
        site = make_site(trees.database(tmp_path_factory.mktemp(f"flow-{number}")))
        if flow.before is not None:
            flow.before(site)
            Engine(site.db, site.runtime()).run(site.root)
        sites[flow.name] = site
    yield sites
    for site in sites.values():
        site.db.close()


def run(flow: Flow, site: Site, kill: Kill | None = None) -> tuple[dict[str, Any], int]:
    """Let a flow end, by a successor where the first engine is killed; return its end."""
    flow.order(site)
    engine = Engine(site.db, site.runtime(), kill)
    try:
        engine.run(site.root)
    except Killed:
        Engine(site.db, site.runtime()).run(site.root)
    else:
        assert kill is None, "the engine was not killed"
    tree = site.tree()
    names = {uuid: node["name"] for uuid, node in site.machines.nodes.items()}
    end = {
        "stack": (tree.stacks[0].action, tree.stacks[0].status),
        "resources": sorted((row.name, row.action, row.status) for row in tree.resources),
        "orders": sorted(Counter(verb for _, verb in site.machines.orders).items()),
        "nodes": Counter(
            (node["provision_state"], node["power_state"], bool(node["instance_uuid"]),
             node["instance_info"].get("image_source"))
            for node in site.machines.nodes.values()
        ),
        "records": {noun: len(kept) for noun, kept in site.machines.records.items()},
    }  # fmt: skip
    assert len(names) == len(set(names.values())), "a node was made twice"
    site.db.close()
    return end, engine.commits


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_killed_at_any_commit_machines_end_the_same_and_are_ordered_nothing_twice(
    flow: Flow, starts: dict[str, Site], tmp_path: Path
) -> None:
    start = starts[flow.name]
    calm, commits = run(flow, copied(start, tmp_path / "calm.sqlite"))
    assert "_".join(calm["stack"]) == flow.ends
    for number in range(1, commits + 1):
        for before in (True, False):
            if number == commits and not before:
                continue
            site = copied(start, tmp_path / f"{number}-{before}.sqlite")
            end, _ = run(flow, site, Kill(number, before=before))
            assert end == calm, f"killed {'before' if before else 'after'} commit {number}"


def test_nothing_of_a_stack_that_was_deleted_is_left(
    starts: dict[str, Site], tmp_path: Path
) -> None:
    flow = next(each for each in FLOWS if each.name == "delete")
    end, _ = run(flow, copied(starts["delete"], tmp_path / "a.sqlite"))
    assert not any(end["records"].values())
    assert end["nodes"] == {("available", "power off", False, None): 2}
