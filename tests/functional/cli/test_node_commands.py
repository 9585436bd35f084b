"""``bloomery node``: a machine's day from a terminal."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.cli.client import Client
from bloomery.db import hardware
from bloomery.drivers.fake.hardware import FakeDeploy, FakeManagement, FakePower
from bloomery.drivers.noop import NoopNetwork
from tests.functional.cli.conftest import Run
from tests.invariants.test_docs import ROOT, words_after
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for

PAGE = ROOT / "doc/guides/machines.md"


@pytest.fixture
def api(site: Orchestration) -> Client:
    return Client(site.service.url)


def create(api: Client, *names: str) -> None:
    for name in names:
        api.post("/v1/nodes", {"driver": "fake-hardware", "name": name, "resource_class": "bm"})


def node(api: Client, name: str) -> Any:
    return api.get(f"/v1/nodes/{name}")


def test_the_day_of_the_page(run: Run, api: Client) -> None:
    create(api, "web-1", "web-2")
    seen = set()
    for words in words_after(PAGE, "bloomery"):
        if words[0] != "node" or not {"web-1", "list"}.intersection(words):
            continue
        result = run(" ".join(words))
        assert result.exit_code == 0, (words, result.output)
        seen.add(words[1])
    assert seen == {
        "list", "show", "why", "timeline", "manage", "provide", "deploy", "undeploy", "power",
        "maintenance", "retire", "delete",
    }  # fmt: skip
    for command in ("show", "why", "timeline"):
        gone = run(f"node {command} web-1")
        assert gone.exit_code == 1
        assert "cannot find a node called web-1; bloomery node list" in gone.stderr


def test_nodes_are_listed_shown_and_explained(run: Run, api: Client) -> None:
    create(api, "see-1", "see-2")
    api.put("/v1/nodes/see-2/maintenance", {"reason": "new disks"})
    heading, *lines = run("node list").stdout.splitlines()
    assert heading.split() == ["NAME", "STATE", "POWER", "CLASS", "PROBLEM"]
    assert [line.split()[:2] for line in lines] == [["see-1", "enroll"], ["see-2", "enroll"]]
    rows = json.loads(run("node list --problems --json").stdout)
    assert [row["name"] for row in rows] == ["see-2"]
    empty = run("node list --state active")
    assert (empty.stdout, empty.stderr) == ("", "there is no node in active\n")
    shown = dict(line.split(maxsplit=1) for line in run("node show see-2").stdout.splitlines())
    assert shown["maintenance_reason"] == "new disks"
    document = json.loads(run("node show see-2 --json").stdout)
    assert document["maintenance_reason"] == "new disks"
    told = json.loads(run("node why see-2 --json").stdout)
    assert f"next: {told['next_action']}" in run("node why see-2").stdout
    assert run("node timeline see-1").exit_code == 0
    for name in ("see-1", "see-2"):
        api.delete(f"/v1/nodes/{name}")


def test_children_are_shown_with_their_parent(run: Run, api: Client, site: Orchestration) -> None:
    create(api, "host-1")
    for name in ("dpu-1", "dpu-2"):
        api.post("/v1/nodes", {"driver": "fake-hardware", "name": name, "parent_node": "host-1"})
    vendor = {"product_name": "BlueField-3", "serial_number": "MT1"}
    inventory = {"inventory": {"system_vendor": vendor}, "plugin_data": {}}
    uuid = node(api, "dpu-1")["uuid"]
    firmware = [
        {"component": "bmc", "current_version": "24.1"},
        {"component": "bios", "current_version": "4.9"},
    ]
    site.service.db.transact(lambda conn: hardware.replace_inventory(conn, uuid, inventory))
    site.service.db.transact(lambda conn: hardware.replace_firmware(conn, uuid, firmware))
    lines = run("node show host-1").stdout.splitlines()
    rows = [line.split() for line in lines[lines.index("") + 1 :]]
    assert rows == [
        ["CHILD", "STATE", "POWER", "PRODUCT", "SERIAL", "FIRMWARE"],
        ["dpu-1", "enroll", "-", "BlueField-3", "MT1", "bios", "4.9,", "bmc", "24.1"],
        ["dpu-2", "enroll", "-", "-", "-", "-"],
    ]
    document = json.loads(run("node show host-1 --json").stdout)
    assert [child["name"] for child in document["children"]] == ["dpu-1", "dpu-2"]
    assert document["children"][0]["firmware"] == {"bios": "4.9", "bmc": "24.1"}
    assert json.loads(run("node show dpu-1 --json").stdout)["children"] == []
    for name in ("dpu-1", "dpu-2", "host-1"):
        api.delete(f"/v1/nodes/{name}")


def test_user_data_goes_with_a_deployment(run: Run, api: Client, tmp_path: Path) -> None:
    create(api, "cloudy")
    file = tmp_path / "user-data"
    file.write_text("#cloud-config\npassword: opensesame\n")
    run("node manage cloudy --wait")
    assert "last cleaned" not in run("node why cloudy").stdout
    run("node provide cloudy --wait --yes")
    assert "last cleaned: 20" in run("node why cloudy").stdout
    refused = run(f"node deploy cloudy --check --user-data {file}")
    assert (refused.exit_code, "--check deploys nothing" in refused.stderr) == (2, True)
    deployed = run(f"node deploy cloudy --user-data {file} --wait")
    assert deployed.exit_code == 0, deployed.output
    assert "opensesame" not in deployed.output
    assert node(api, "cloudy")["instance_info"]["configdrive"] == "******"


def test_orders_are_watched_and_refusals_printed(run: Run, api: Client) -> None:
    create(api, "do-1", "do-2")
    done = run("node manage do-1 do-2 --wait")
    assert done.exit_code == 0, done.output
    assert {node(api, name)["provision_state"] for name in ("do-1", "do-2")} == {"manageable"}
    assert run("node provide do-1 --wait --yes").exit_code == 0
    checked = run("node deploy do-1 do-2 --check")
    assert (checked.exit_code, checked.stdout) == (1, "do-1: could be deployed\n")
    assert checked.stderr == "do-2: it is in manageable, and not in available\n"
    assert run("node deploy do-1 --check").exit_code == 0
    deployed = run("node deploy do-1 --set image_source=http://10.0.0.1/i --wait")
    assert deployed.exit_code == 0
    assert deployed.stdout.startswith("do-1: instance_info set\ndo-1: accepted\n")
    assert deployed.stdout.count("accepted") == 1
    info = node(api, "do-1")["instance_info"]
    assert info["image_source"] == "http://10.0.0.1/i"
    switched = run("node power off do-1 --wait")
    assert (switched.exit_code, "s] do-1: power off\n" in switched.stdout) == (0, True)
    assert node(api, "do-1")["power_state"] == "power off"
    assert run("node power on do-1 --wait").exit_code == 0
    assert node(api, "do-1")["power_state"] == "power on"

    refused = run("node deploy do-2 nobody --wait")
    assert refused.exit_code == 1
    first = "cannot deploy it while it is manageable; first: bloomery node provide do-2 --wait"
    assert f"do-2: {first}\n" in refused.stderr
    there = "cannot find a node called nobody; bloomery node list shows those that are there"
    assert f"nobody: {there}\n" in refused.stderr
    missing = run("node delete nobody --yes")
    assert (missing.exit_code, missing.stderr) == (1, f"nobody: {there}\n")
    document = run("node deploy do-2 nobody --json")
    assert document.exit_code == 1
    assert json.loads(document.stdout) == [
        {"node": "do-2", "error": first}, {"node": "nobody", "error": there}
    ]  # fmt: skip
    assert run("node retire do-2 --reason old").exit_code == 0
    assert (node(api, "do-2")["retired"], node(api, "do-2")["retired_reason"]) == (True, "old")
    assert run("node retire do-2 --undo").exit_code == 0
    assert node(api, "do-2")["retired"] is False


@pytest.mark.parametrize("interface", [FakePower, NoopNetwork, FakeDeploy])
def test_a_check_says_what_a_deployment_is_refused_for(
    run: Run, api: Client, monkeypatch: pytest.MonkeyPatch, interface: type
) -> None:
    def refuse(*_args: Any) -> None:
        raise errors.InvalidParameterValue(reason="a value is missing")

    name = f"check-{interface.__name__}"
    create(api, name)
    assert run(f"node manage {name} --wait").exit_code == 0
    assert run(f"node provide {name} --wait --yes").exit_code == 0
    assert run(f"node deploy {name} --check").stdout == f"{name}: could be deployed\n"
    monkeypatch.setattr(interface, "validate", refuse)
    refused, checked = run(f"node deploy {name}"), run(f"node deploy {name} --check")
    assert (refused.exit_code, checked.exit_code) == (1, 1), (refused.output, checked.output)
    assert "a value is missing" in refused.stderr
    assert "a value is missing" in checked.stderr
    monkeypatch.undo()
    api.put(f"/v1/nodes/{name}/maintenance", {})
    api.delete(f"/v1/nodes/{name}")


@pytest.mark.parametrize("cleans", [True, False])
def test_the_watch_of_a_retired_node_ends_where_it_rests(run: Run, api: Client, cleans) -> None:
    name = f"old-{cleans}"
    create(api, name)
    for words in (f"manage {name}", f"provide {name} --yes", f"deploy {name}"):
        assert run(f"node {words} --wait").exit_code == 0
    assert run(f"node retire {name}").exit_code == 0
    api.patch(f"/v1/nodes/{name}", [{"op": "add", "path": "/automated_clean", "value": cleans}])
    done = run(f"node undeploy {name} --yes --wait --timeout 10")
    assert done.exit_code == 0, done.output
    state = "manageable" if cleans else "available"
    assert node(api, name)["provision_state"] == state
    api.delete(f"/v1/nodes/{name}")


def test_a_node_that_fails_ends_the_watch_with_its_error(run: Run, api: Client) -> None:
    create(api, "sick")
    fails = {"op": "add", "path": "/driver_info/fake", "value": {"fail": ["power"]}}
    api.patch("/v1/nodes/sick", [fails])
    failed = run("node manage sick --wait")
    assert failed.exit_code == 1
    assert "Error: cannot take every node to manageable: sick is in enroll: " in failed.stderr
    error = node(api, "sick")["last_error"]
    document = run("node manage sick --wait --json")
    assert document.exit_code == 1
    assert json.loads(document.stdout)[0]["error"] == f"sick is in enroll: {error}"
    assert run("node why sick").stdout.count(error) == 1, "an error is told twice"


def test_what_a_step_waits_for_is_told_once(run: Run, api: Client) -> None:
    create(api, "waits")
    waits = {"op": "add", "path": "/driver_info/fake", "value": {"wait": {"deploy.deploy": -1}}}
    api.patch("/v1/nodes/waits", [waits])
    assert run("node manage waits --wait").exit_code == 0
    assert run("node provide waits --wait --yes").exit_code == 0
    assert run("node deploy waits").exit_code == 0
    wait_for(lambda: node(api, "waits")["provision_state"] == "wait call-back", "the wait")
    step = json.loads(run("node why waits --json").stdout)["step"]
    explained = run("node why waits").stdout
    assert explained.count(step["reason"]) == 1, explained
    assert f"step {step['position']} of {step['of']}, {step['name']}\n" in explained
    assert run("node undeploy waits --wait --yes").exit_code == 0


def test_work_that_waits_is_aborted(run: Run, api: Client) -> None:
    create(api, "stays")
    waits = {
        "op": "add",
        "path": "/driver_info/fake",
        "value": {"wait": {"deploy.prepare_cleaning": -1}},
    }
    api.patch("/v1/nodes/stays", [waits])
    assert "cannot abort it while it is enroll" in run("node abort stays").stderr
    run("node manage stays --wait")
    run("node provide stays --yes")
    wait_for(lambda: node(api, "stays")["provision_state"] == "clean wait", "the wait")
    assert run("node abort stays").output == "stays: accepted\n"
    wait_for(lambda: node(api, "stays")["provision_state"] == "clean failed", "the end")


def test_erased_disks_are_shown_and_their_proof_checked(
    run: Run, api: Client, site: Orchestration, tmp_path: Path
) -> None:
    create(api, "wiped")
    assert "no erasure is recorded" in run("node erasure wiped").stderr
    disks = [
        {"name": "/dev/sda", "serial": "S-1", "model": None, "is_erased": True},
        {"name": "/dev/sdb", "serial": None, "model": "SSD", "is_erased": False},
    ]
    proof = {"step": "erase_devices", "began_at": "2026-01-01", "ended_at": "2026-01-02",
             "methods": ["one", "two"], "agent": None, "disks": disks}  # fmt: skip
    uuid = node(api, "wiped")["uuid"]
    site.service.db.transact(lambda conn: hardware.add_erasure(conn, uuid, proof))
    heading, *lines = run("node erasure wiped").stdout.splitlines()
    assert heading == "2026-01-02  erase_devices: one; two"
    assert [line.split()[0] for line in lines] == ["/dev/sda", "/dev/sdb"]
    assert [line.endswith("NOT ERASED") for line in lines] == [False, True]
    signed, keys = tmp_path / "proof.json", tmp_path / "keys.pem"
    signed.write_text(run("node erasure wiped --json").stdout)
    keys.write_text(run(f"keys public --state-dir {site._home.path}").stdout)
    assert run(f"node check-erasure {signed} --public-key {keys}").exit_code == 0


def test_a_node_with_an_instance_is_forgotten_with_force(run: Run, api: Client) -> None:
    create(api, "gone-1")
    api.put("/v1/nodes/gone-1/maintenance", {"reason": "lost"})
    patch = [{"op": "add", "path": "/instance_uuid", "value": str(uuid.uuid4())}]
    api.patch("/v1/nodes/gone-1", patch)
    refused = run("node forget gone-1 --yes")
    assert (refused.exit_code, "ask with force" in refused.stderr) == (1, True)
    forgotten = run("node forget gone-1 --yes --force")
    assert (forgotten.exit_code, forgotten.stdout) == (0, "gone-1: accepted\n")
    wait_for(lambda: "gone-1" not in run("node list").stdout, "the node to be forgotten")


def test_sensors_are_printed_with_the_least_and_the_greatest_value(
    run: Run, api: Client, site: Orchestration, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(api, "warm")
    off = run("node sensors warm")
    assert (off.exit_code, off.stdout) == (0, "")
    assert "set [sensor_data]send_sensor_data on host" in off.stderr
    document = json.loads(run("node sensors warm --json").stdout)
    readings = [[f"2026-11-29T12:0{minute}:00+00:00", 20.5 + minute] for minute in (0, 4, 2)]
    sensor = {"name": "CPU 1@1", "kind": "Temperature", "unit": "celsius", "status": None}
    more = {"is_read": True, "reason": None, "kept_since": readings[0][0]}
    shown = document | more | {"sensors": [sensor | {"readings": readings}]}
    monkeypatch.setattr("bloomery.operations.hardware.get_sensors", lambda ctx, ident: shown)
    printed = run("node sensors warm")
    assert [line.split() for line in printed.stdout.splitlines()] == [
        ["SENSOR", "VALUE", "UNIT", "STATUS", "LEAST", "GREATEST", "READ", "AT"],
        ["CPU", "1@1", "22.5", "celsius", "-", "20.5", "24.5", "2026-11-29T12:02:00"],
    ]
    assert "kept since 2026-11-29T12:00:00" in printed.stderr
    shown |= {"sensors": [], "kept_since": None}
    assert "no reading yet; one comes every 600 s" in run("node sensors warm").stderr


@pytest.mark.parametrize("line", ["provide ask", "undeploy ask", "delete ask", "forget ask"])
def test_orders_that_lose_something_ask_first(run: Run, line: str) -> None:
    result = run(f"node {line}")
    assert result.exit_code == 2
    assert "--yes goes on without asking" in result.stderr


def test_a_console_that_is_not_enabled_is_refused_with_the_way_out(run: Run, api: Client) -> None:
    create(api, "silent")
    refused = run("node console silent")
    way = "enable it: baremetal node console enable silent"
    assert refused.stderr == f"Error: the console of silent is not enabled; {way}\n"
    assert refused.exit_code == 1
    gone = run("node console nobody --read-only")
    assert "cannot find a node called nobody" in gone.stderr
    api.delete("/v1/nodes/silent")


def test_the_log_of_the_bmc_is_printed_with_the_doubt_in_its_clock(
    run: Run, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(api, "logs")
    refused = run("node bmc-log logs")
    assert (refused.exit_code, "does not support read_bmc_log" in refused.stderr) == (1, True)
    log = {"name": "Sel", "total": 2, "clock_difference_s": -3600.0, "entries": [
        {"id": "2", "created_at": "2026-11-29T12:04:05+00:00", "severity": "Critical",
         "message": "DIMM A3 uncorrectable ECC"},
        {"id": "1", "created_at": None, "severity": None, "message": "Log cleared"},
    ]}  # fmt: skip
    monkeypatch.setattr(FakeManagement, "read_bmc_log", lambda self, task: log)
    printed = run("node bmc-log logs")
    assert [line.split() for line in printed.stdout.splitlines()] == [
        ["-", "-", "Log", "cleared"],
        ["2026-11-29T12:04:05", "Critical", "DIMM", "A3", "uncorrectable", "ECC"],
    ]
    assert "the BMC's clock is 3600 s behind the conductor's" in printed.stderr
    assert json.loads(run("node bmc-log logs --json").stdout) == log
    log |= {"entries": [], "clock_difference_s": None}
    assert "the BMC's log is empty" in run("node bmc-log logs").stderr
    log |= {"name": None}
    assert "the BMC has no log" in run("node bmc-log logs").stderr
