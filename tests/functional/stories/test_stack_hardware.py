"""The firmware of a group of running machines: by the catalogue, in batches, and watched."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.cli.client import Client
from bloomery.conf.drivers import Redfish
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Machine, Rack
from tests.functional.orchestration.test_drift import watch, why
from tests.functional.orchestration.test_machines import ironic
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

CLASS = "bm.rack"
COUNT = 3


class Floor:
    def __init__(self, site: Orchestration, rack: Rack, folder: Path) -> None:
        self.site, self.rack, self.folder = site, rack, folder
        self.api = Client(site.service.url)

    def enrol(self) -> None:
        for number, machine in enumerate(self.rack.machines, 1):
            fields: dict[str, Any] = {
                "name": f"n{number}",
                "driver": "redfish",
                "resource_class": CLASS,
            }
            fields |= {"driver_info": machine.driver_info, "automated_clean": False}
            node = self.api.post("/v1/nodes", fields)["uuid"]
            self.api.post("/v1/ports", {"node_uuid": node, "address": machine.mac})
        for verb, state in (("manage", "manageable"), ("provide", "available")):
            for number in range(1, COUNT + 1):
                self.api.put(f"/v1/nodes/n{number}/states/provision", {"target": verb})
            wait_for(functools.partial(self.are_all, state), state)

    def are_all(self, state: str) -> bool:
        nodes = ironic(self.site, "GET", "/v1/nodes/detail")[1]["nodes"]
        return {(node["provision_state"], node["reservation"]) for node in nodes} == {(state, None)}

    def store(self, version: str) -> str:
        """Store a catalogue with this version of the BIOS; return its digest."""
        entry = f'- {{model: Simulated, component: bios, version: "{version}", '
        text = f'{entry}url: "http://files.test/{version}"}}\n'
        self.api.put("/ext/v1/firmware/catalogue", {"catalogue": text})
        return str(self.api.get("/ext/v1/firmware/catalogue")["digest"])

    def write(self, digest: str | None) -> str:
        """Write the template of the group, and return its path."""
        member: dict[str, Any] = {
            "name": "worker-%index%", "selector": {"resource_class": CLASS},
            "image": {"boot_iso": "http://images.example.org/a.iso"},
        }  # fmt: skip
        if digest is not None:
            member["hardware"] = {"catalogue": digest, "disable_ramdisk": True}
        workers = {
            "type": "OS::Ironic::InstanceGroup",
            "properties": {"count": COUNT, "member": member},
            "update_policy": {
                "canary": {"size": 1}, "rolling_update": {"health_gate": {"settle_seconds": 0}},
            },
        }  # fmt: skip
        path = self.folder / "workers.json"
        path.write_text(json.dumps(template({"workers": workers})))
        return str(path)

    def bios(self) -> list[str]:
        return [machine.system.firmware["BIOS"] for machine in self.rack.machines]


@pytest.fixture
def floor(tmp_path: Path) -> Iterator[Floor]:
    redfish = Redfish(
        firmware_update_status_interval=1, firmware_update_reboot_delay=1,
        firmware_update_validation_interval=0, firmware_update_bmc_version_check_interval=1,
    )  # fmt: skip
    rules = Rules(update_s=0.1, restart_s=0.2)
    with (
        Rack(COUNT, apart=True, rules=rules, power_s=0.01) as rack,
        Orchestration(tmp_path / "state", redfish=redfish) as site,
    ):
        floor = Floor(site, rack, tmp_path)
        floor.enrol()
        yield floor


def test_a_group_gets_the_firmware_of_the_catalogue_in_batches(floor: Floor) -> None:
    site = floor.site
    done = run(site, "stack", "up", floor.write(None), "web", "--yes")
    assert done.exit_code == 0, done.output
    newest: Machine = floor.rack.machines[1]
    digest = floor.store("2.1")
    done = run(site, "firmware", "apply", "n2", "--yes")
    assert done.exit_code == 0, done.output
    assert floor.bios() == ["2.0.0", "2.1", "2.0.0"]

    plan = run(site, "stack", "plan", floor.write(digest), "web").output
    assert plan.count("bios 2.0.0 -> 2.1") == 2
    assert plan.count("its firmware is as in the catalogue") == 1
    assert "2 to service" in plan
    assert "2 machines, at most 1 at once" in plan
    events = list(newest.system.happened)
    done = run(site, "stack", "up", floor.write(digest), "web", "--yes")
    assert done.exit_code == 0, done.output
    assert floor.bios() == ["2.1"] * 3
    assert newest.system.happened == events  # it ran on
    watch(site)
    assert why(site, "web")["drifted"] == []

    floor.store("2.2")
    watch(site)
    differences = [each["differences"] for each in why(site, "web")["drifted"]]
    assert len(differences) == COUNT
    assert "hardware is applied again where its catalogue" in why(site, "web")["next_action"]
    for each in differences:
        assert sorted(each) == ["firmware/bios/current_version"]
        assert "is '2.1' and is to be '2.2'" in each["firmware/bios/current_version"]
    plan = run(site, "stack", "plan", floor.write("another"), "web").output
    assert plan.count("no firmware by it") == COUNT


def test_bad_firmware_pauses_at_the_canary_until_a_better_catalogue(floor: Floor) -> None:
    site = floor.site
    done = run(site, "stack", "up", floor.write(None), "web", "--yes")
    assert done.exit_code == 0, done.output
    _, listed = site.ask("GET", "/stacks/web")
    path = f"/stacks/web/{listed['stack']['id']}"
    body = {"template": json.loads(Path(floor.write(floor.store("bad-2.1"))).read_text())}
    assert site.ask("PUT", path, body)[0] == 202
    wait_for(lambda: "paused after batch 1" in run(site, "stack", "why", "web").output, "a pause")
    nodes = ironic(site, "GET", "/v1/nodes/detail")[1]["nodes"]
    [failed] = [node for node in nodes if node["provision_state"] == "service failed"]
    assert "cannot verify http://files.test/bad-2.1" in failed["last_error"]
    assert [node["provision_state"] for node in nodes].count("active") == COUNT - 1

    template_path = floor.write(floor.store("2.2"))
    plan = run(site, "stack", "plan", template_path, "web").output
    assert f"node {failed['name']} is in maintenance" in plan
    assert ("3 to service" in plan, "rebuild" in plan) == (True, False), plan
    floor.api.delete(f"/v1/nodes/{failed['uuid']}/maintenance")
    done = run(site, "stack", "up", template_path, "web", "--yes")
    assert done.exit_code == 0, done.output
    assert floor.bios() == ["2.2"] * COUNT


def test_a_saved_plan_is_refused_after_another_catalogue(floor: Floor) -> None:
    site, saved = floor.site, str(floor.folder / "plan.json")
    done = run(site, "stack", "up", floor.write(None), "web", "--yes")
    assert done.exit_code == 0, done.output
    template_path = floor.write(floor.store("2.1"))
    for version in ("2.2", "2.1"):
        done = run(site, "stack", "plan", template_path, "web", "--out", saved)
        assert done.exit_code == 0, done.output
        floor.store(version)
        done = run(site, "stack", "up", "--plan", saved, "--yes")
        assert (done.exit_code == 0) is (version == "2.1"), done.output
        if version == "2.2":
            assert "firmware of workers/" in done.output
            assert floor.bios() == ["2.0.0"] * COUNT
            floor.store("2.1")
    assert floor.bios() == ["2.1"] * COUNT
