"""``bloomery bmc password rotate``: batches of BMCs, from a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bloomery.cli.client import Client
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Machine, Rack
from tests.functional.cli.conftest import Run
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for


@pytest.fixture
def api(site: Orchestration) -> Client:
    return Client(site.service.url)


@pytest.fixture
def enrol(api: Client) -> Iterator:
    """Start a rack, and bring its machines to manageable."""
    racks = []

    def started(count: int, prefix: str, **more) -> list[Machine]:
        racks.append(rack := Rack(count, apart=more.pop("apart", True), prefix=prefix, **more))
        rack.start()
        for machine in rack.machines:
            node = {key: value for key, value in machine.node.items() if key != "ports"}
            api.post("/v1/nodes", node | {"resource_class": prefix})
            api.put(f"/v1/nodes/{machine.name}/states/provision", {"target": "manage"})
        for machine in rack.machines:
            wait_for(lambda name=machine.name: state(api, name) == "manageable", machine.name)
        return rack.machines

    yield started
    for rack in racks:
        rack.stop()


def state(api: Client, name: str) -> str | None:
    node = api.get(f"/v1/nodes/{name}?fields=provision_state,reservation")
    return None if node["reservation"] else node["provision_state"]


def is_powered(api: Client, machine: Machine) -> bool:
    """Whether the service switches the machine on with the login that it has."""
    api.put(f"/v1/nodes/{machine.name}/states/power", {"target": "power on"})
    wait_for(lambda: state(api, machine.name), "the order")
    return api.get(f"/v1/nodes/{machine.name}")["power_state"] == "power on"


def test_a_class_of_machines_is_changed_batch_by_batch(run: Run, api: Client, enrol) -> None:
    machines = enrol(6, "rot")
    result = run("bmc password rotate --resource-class rot --batch 4 --yes")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [f"{machine.name}: changed" for machine in machines]
    passwords = {machine.bmc.passwords["admin"] for machine in machines}
    assert (len(passwords), "password" in passwords) == (6, False)
    assert is_powered(api, machines[0])
    # one for a look between the change and its record
    assert max(machine.bmc.wrong_passwords for machine in machines) <= 1


def test_nodes_with_one_login_are_changed_together(run: Run, api: Client, enrol) -> None:
    machines = enrol(2, "one", apart=False)
    result = run("bmc password rotate --resource-class one --yes")
    one, other = (machine.name for machine in machines)
    assert result.stdout.splitlines() == [f"{one}: changed", f"{other}: changed (with {one})"]
    assert is_powered(api, machines[1])


def test_a_failure_ends_the_command_after_its_batch(run: Run, api: Client, enrol) -> None:
    machines = enrol(3, "bad", rules=Rules(password_chars=(8, 20)))
    machines[1].bmc.faults.add(kind="status", status=400, path="/Accounts/", method="PATCH")
    names = " ".join(machine.name for machine in machines)
    result = run(f"bmc password rotate {names} --batch 1 --yes --json")
    assert result.exit_code == 1
    first, second, third = json.loads(result.stdout)
    assert first["error"] is None
    assert "lab fault" in second["error"]
    assert third["error"] == "not begun, after a failure"
    kept = [machine.bmc.passwords["admin"] == "password" for machine in machines]
    assert kept == [False, True, True]


def test_one_password_for_all_comes_from_a_file(run: Run, api: Client, enrol, tmp_path) -> None:
    (machine,) = enrol(1, "own")
    (tmp_path / "new").write_text("our-own-password\n")
    result = run(f"bmc password rotate {machine.name} --password-file {tmp_path}/new --yes")
    assert result.exit_code == 0, result.output
    assert machine.bmc.passwords["admin"] == "our-own-password"
    assert "our-own-password" not in result.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("", "choose them: --all, or filters"),
        ("web-1 --all", "not both"),
        ("--all", "cannot ask"),
    ],
)
def test_what_is_missing_is_named(run: Run, enrol, words, text) -> None:
    enrol(1, f"ask{len(words)}")
    result = run(f"bmc password rotate {words}")
    assert (result.exit_code, text in result.output) == (2, True)
