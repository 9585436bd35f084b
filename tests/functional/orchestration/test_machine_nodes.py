"""A Node that is configured, inspected anew and brought back, on machines in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import State
from bloomery.orchestration.simulation.machines import SimulatedMachines
from tests.kit import trees
from tests.kit.machine_sites import Site, make_site, template
from tests.kit.row_engines import Engine


class Noting(SimulatedMachines):
    """Notes the steps of cleanings."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.steps: list[list[str]] = []

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        super().set_provision_state(uuid, verb, **arguments)
        if verb == "clean":
            steps = arguments["clean_steps"]
            self.steps.append([f"{each['interface']}.{each['step']}" for each in steps])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(trees.database(tmp_path), Noting, pool=0)


def node(turbo: str = "on", **more: Any) -> dict[str, Any]:
    configuration = {
        "bios": {"settings": {"Turbo": turbo}},
        "firmware": [{"component": "bmc", "url": "http://f"}],
    }
    properties = {
        "name": "n1", "driver": "fake-hardware", "hardware_configuration": configuration | more,
    }  # fmt: skip
    return {"node": {"type": "OS::Ironic::Node", "properties": properties}}


def run(site: Site) -> str:
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    return f"{stack.action}_{stack.status}"


def created(site: Site) -> Noting:
    site.create(template(node(), "first"))
    assert run(site) == "CREATE_COMPLETE"
    assert isinstance(site.machines, Noting)
    return site.machines


def verbs(site: Site) -> list[str]:
    return [verb for _, verb in site.machines.orders]


def test_a_node_is_configured_between_its_inspection_and_its_use(site: Site) -> None:
    machines = created(site)
    assert verbs(site) == ["manage", "inspect", "clean", "provide"]
    assert machines.steps == [["firmware.update", "bios.apply_configuration"]]
    (row,) = site.tree().resources
    assert row.data["timings"].keys() == {"verify", "inspect", "clean"}


def test_an_update_runs_the_sections_that_differ(site: Site) -> None:
    machines = created(site)
    site.update(template(node("off"), "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert verbs(site)[4:] == ["manage", "clean", "provide"]
    assert machines.steps[1:] == [["bios.apply_configuration"]]


def test_a_node_that_is_in_use_is_not_configured(site: Site) -> None:
    machines = created(site)
    machines.get_node("n1")
    (real,) = machines.nodes.values()
    real["instance_uuid"] = trees.ident("somebody")
    site.update(template(node("off"), "second"))
    assert run(site) == "UPDATE_FAILED"
    assert (
        "cannot configure node n1: it is available, and in use" in site.tree().resources[0].reason
    )
    assert len(machines.steps) == 1


def test_a_change_of_raid_has_to_be_allowed(site: Site) -> None:
    created(site)
    raid = {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]}
    site.update(template(node(raid=raid), "second"))
    assert run(site) == "UPDATE_FAILED"
    assert "allow_destructive" in site.tree().resources[0].reason
    site.update(template(node(raid=raid, allow_destructive=True), "third"))
    assert run(site) == "UPDATE_COMPLETE"
    assert verbs(site)[4:] == ["manage", "clean", "provide"]


def test_a_configuration_that_failed_is_run_again_by_the_next_update(site: Site) -> None:
    site.machines.fail_next("clean", "no such setting")
    site.create(template(node(), "first"))
    assert run(site) == "CREATE_FAILED"
    assert site.tree().resources[0].reason.endswith("no such setting")
    site.update(template(node(), "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert verbs(site)[2:] == ["clean", "manage", "clean", "provide"]
    assert site.machines.get_node("n1")["provision_state"] == State.AVAILABLE


def test_a_node_that_is_available_is_inspected_anew_where_that_is_wanted(site: Site) -> None:
    always = {"type": "OS::Ironic::Node", "properties": {
        "name": "n1", "driver": "fake-hardware", "inspect": "always"}}  # fmt: skip
    site.create(template({"node": always}, "first"))
    assert run(site) == "CREATE_COMPLETE"
    changed = {**always, "properties": {**always["properties"], "driver_info": {"a": "b"}}}
    site.update(template({"node": changed}, "second"))
    assert run(site) == "UPDATE_COMPLETE"
    assert verbs(site)[3:] == ["manage", "inspect", "provide"]
