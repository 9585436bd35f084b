"""A Node that is configured, inspected anew and brought back, on machines in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import State
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import Site, make_site, template
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.row_engines import Engine


class Noting(MemoryMachines):
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


# ----------------------------------------------------------------- boot, protection, retirement


def plain(name: str = "n1", **more: Any) -> dict[str, Any]:
    properties = {"name": name, "driver": "fake-hardware", **more}
    return {"node": {"type": "OS::Ironic::Node", "properties": properties}}


def updated(site: Site, **more: Any) -> str:
    site.update(template(plain(**more), str(more)))
    return run(site)


def reason(site: Site) -> str:
    return str(site.tree().resources[0].reason)


def test_a_node_boots_as_it_is_told_before_it_is_inspected(site: Site) -> None:
    class Asked(Noting):
        def set_boot(self, uuid: str, field: str, value: Any) -> None:
            assert self._node(uuid)["provision_state"] == State.MANAGEABLE
            assert ("inspect" in verbs(site)) is False
            super().set_boot(uuid, field, value)

    site.machines.__class__ = Asked
    site.create(template(plain(boot_mode="uefi", secure_boot=True), "first"))
    assert run(site) == "CREATE_COMPLETE"
    real = site.machines.get_node("n1")
    assert (real["boot_mode"], real["secure_boot"]) == ("uefi", True)


def test_a_boot_mode_that_takes_its_time_is_looked_for(site: Site) -> None:
    """No event tells of it."""

    class Slow(Noting):
        looks = 0
        times: tuple[float, ...] = ()

        def set_boot(self, uuid: str, field: str, value: Any) -> None:
            self.times = (site.now_s,)
            self._node(uuid)["reservation"] = "host"

        def get_node(self, ident: str) -> dict[str, Any]:
            real = self._node(ident)
            if real["reservation"]:
                self.looks += 1
                if self.looks > 3:
                    real |= {"reservation": None, "boot_mode": "uefi"}
                    self.times = (*self.times, site.now_s)
            return dict(real)

    site.machines.__class__ = Slow
    site.create(template(plain(boot_mode="uefi", inspect="none"), "first"))
    assert run(site) == "CREATE_COMPLETE"
    assert isinstance(site.machines, Slow)
    asked_at, seen_at = site.machines.times
    assert 0 < seen_at - asked_at < 30  # seconds between two looks of the net


def test_a_boot_mode_that_never_comes_is_given_up(site: Site) -> None:
    class Stuck(Noting):
        def set_boot(self, uuid: str, field: str, value: Any) -> None:
            self._node(uuid)["reservation"] = "host"

    site.machines.__class__ = Stuck
    site.create(template(plain(boot_mode="uefi", timeouts={"verify": 60}), "first"))
    assert run(site) == "CREATE_FAILED"
    assert "cannot wait longer than 60 s for its boot_mode" in reason(site)


def test_a_boot_mode_that_the_machine_refuses_fails_the_node(site: Site) -> None:
    class Refusing(Noting):
        def set_boot(self, uuid: str, field: str, value: Any) -> None:
            self._node(uuid)["last_error"] = "no such boot mode"

    site.machines.__class__ = Refusing
    site.create(template(plain(boot_mode="uefi"), "first"))
    assert run(site) == "CREATE_FAILED"
    assert reason(site).endswith("no such boot mode")


def test_a_machine_that_somebody_has_does_not_boot_otherwise(site: Site) -> None:
    site.create(template(plain(), "first"))
    assert run(site) == "CREATE_COMPLETE"
    site.machines.nodes[site.machines.get_node("n1")["uuid"]]["instance_uuid"] = "somebody"
    assert updated(site, boot_mode="uefi") == "UPDATE_FAILED"
    assert "cannot set boot_mode of node n1: it is in use" in reason(site)
    assert site.machines.get_node("n1")["boot_mode"] is None


def test_a_system_on_a_node_is_protected_by_the_node(site: Site) -> None:
    site.create(template(plain(protected=True), "first"))
    assert run(site) == "CREATE_COMPLETE"  # nothing is on it yet
    real = site.machines.nodes[site.machines.get_node("n1")["uuid"]]
    assert real["protected"] is False
    real |= {"provision_state": State.ACTIVE, "instance_uuid": "somebody"}
    assert updated(site, protected=True, description="x") == "UPDATE_COMPLETE"
    assert real["protected"] is True
    assert updated(site, protected=False) == "UPDATE_COMPLETE"
    assert real["protected"] is False


def test_a_node_that_is_retired_goes_down_first_and_comes_up_again(site: Site) -> None:
    site.create(template(plain(inspect="none"), "first"))
    assert run(site) == "CREATE_COMPLETE"
    assert updated(site, inspect="none", retired=True) == "UPDATE_COMPLETE"
    real = site.machines.get_node("n1")
    assert (real["provision_state"], real["retired"]) == (State.MANAGEABLE, True)
    assert updated(site, inspect="none") == "UPDATE_COMPLETE"
    assert verbs(site)[2:] == ["manage", "provide"]


def test_a_node_is_given_to_its_owner_after_it_was_enrolled(site: Site) -> None:
    class Enrolling(Noting):
        def create_node(self, fields: dict[str, Any]) -> None:
            assert "owner" not in fields
            super().create_node(fields)

    site.machines.__class__ = Enrolling
    site.create(template(plain(owner="p1"), "first"))
    assert run(site) == "CREATE_COMPLETE"
    assert site.machines.get_node("n1")["owner"] == "p1"
