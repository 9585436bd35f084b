"""``bloomery firmware``: the versions of a fleet, and updates by a catalogue, from a terminal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from bloomery.cli.client import ApiError, Client
from bloomery.conf.drivers import Redfish
from bloomery.db.tables import NODES
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Machine, Rack
from tests.functional.cli.conftest import Run
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for

QUICK = Rules(update_s=0.1, restart_s=0.2)
FILES = "http://files.test"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    """A service that looks soon for a new version."""
    redfish = Redfish(
        firmware_update_status_interval=1, firmware_update_reboot_delay=1,
        firmware_update_validation_interval=0, firmware_update_bmc_version_check_interval=1,
    )  # fmt: skip
    with Orchestration(tmp_path_factory.mktemp("site") / "state", redfish=redfish) as running:
        yield running


@pytest.fixture
def api(site: Orchestration) -> Client:
    return Client(site.service.url)


@pytest.fixture
def enrol(api: Client) -> Iterator:
    """Start a rack, and bring its machines to manageable."""
    racks = []

    def started(count: int, prefix: str, **spec) -> list[Machine]:
        racks.append(rack := Rack(count, apart=True, prefix=prefix, rules=QUICK, **spec))
        rack.start()
        for machine in rack.machines:
            node = {key: value for key, value in machine.node.items() if key != "ports"}
            api.post("/v1/nodes", node | {"resource_class": prefix, "automated_clean": False})
            api.put(f"/v1/nodes/{machine.name}/states/provision", {"target": "manage"})
        for machine in rack.machines:
            wait_for(lambda name=machine.name: state(api, name) == "manageable", machine.name)
        return rack.machines

    yield started
    for node in list(api.pages("/v1/nodes?limit=100", "nodes")):
        api.put(f"/ext/v1/nodes/{node['uuid']}/forget?force=true", None)
    wait_for(lambda: not api.get("/v1/nodes?limit=1")["nodes"], "the nodes to be gone")
    for rack in racks:
        rack.stop()


@pytest.fixture
def stored(run: Run, tmp_path):
    """Store a catalogue of the lab's machines: the version of each component, and more."""

    def store(files: str = FILES, more: str = "", **versions: str) -> None:
        lines = (
            f'- {{model: Simulated, component: {name}, version: "{version}", '
            f'url: "{files}/{version}"{more}}}\n'
            for name, version in versions.items()
        )
        (tmp_path / "catalogue.yaml").write_text("".join(lines))
        result = run(f"firmware catalogue set {tmp_path}/catalogue.yaml")
        assert result.exit_code == 0, result.output

    yield store
    run("firmware catalogue remove --yes")


def state(api: Client, name: str) -> str | None:
    node = api.get(f"/v1/nodes/{name}?fields=provision_state,reservation")
    return None if node["reservation"] else node["provision_state"]


def put_in(site: Orchestration, machine: Machine, provision_state: str) -> None:
    change = sa.update(NODES).where(NODES.c.name == machine.name)
    site.service.db.transact(
        lambda conn: conn.execute(change.values(provision_state=provision_state))
    )


def bios_of(machine: Machine) -> str:
    return machine.system.firmware["BIOS"]


# ------------------------------------------------------------------------------- the catalogue


def test_a_bad_catalogue_leaves_the_former_one(run: Run, api: Client, stored, tmp_path) -> None:
    stored(bios="2.1")
    before = api.get("/ext/v1/firmware/catalogue")
    bad = (
        '# new\n- {model: Simulated, component: bios, version: 2.10, url: "http://files.test/2"}\n'
    )
    (tmp_path / "bad.yaml").write_text(bad)
    result = run(f"firmware catalogue set {tmp_path}/bad.yaml")
    assert result.exit_code == 1
    assert "cannot take the catalogue: line 2: version is no text for YAML" in result.output
    assert api.get("/ext/v1/firmware/catalogue") == before
    assert (before["entries"], len(before["digest"])) == (1, 16)
    shown = run("firmware catalogue show")
    assert shown.stdout == before["catalogue"]
    assert run("firmware catalogue show --digest").stdout == f"{before['digest']}\n"


def test_without_a_catalogue_nothing_is_planned(run: Run, api: Client) -> None:
    assert api.get("/ext/v1/firmware/catalogue") == {
        "catalogue": None, "digest": None, "entries": 0,
    }  # fmt: skip
    for words in ("catalogue show", "plan", "apply --all --yes"):
        result = run(f"firmware {words}")
        assert (result.exit_code, "bloomery firmware catalogue set" in result.output) == (1, True)


# ------------------------------------------------------------------------------ list and plan


def test_versions_of_the_fleet_are_lines_of_a_list(run: Run, api: Client, enrol, stored) -> None:
    machines = enrol(5, "list")
    machines[0].system.firmware["BIOS"] = "2.0.9"
    api.put(f"/v1/nodes/{machines[0].name}/states/provision", {
        "target": "clean", "disable_ramdisk": True, "clean_steps": [
            {"interface": "bios", "step": "apply_configuration", "args": {"settings": []}},
        ],
    })  # fmt: skip
    wait_for(lambda: state(api, machines[0].name) == "manageable", "the cleaning")
    stored(bios="2.0.9")
    names = [machine.name for machine in machines]
    lines = json.loads(run("firmware list --resource-class list --json").stdout)
    own = [each for each in lines if each["component"] == "bios"]
    assert own == [
        {"model": "Simulated", "component": "bios", "version": "2.0.0",
         "catalogue_version": "2.0.9", "machines": names[1:]},
        {"model": "Simulated", "component": "bios", "version": "2.0.9",
         "catalogue_version": "2.0.9", "machines": names[:1]},
    ]  # fmt: skip
    assert [each["model"] for each in lines if each["component"] == "nic"] == ["LAB-NIC"]
    text = run("firmware list --component bios --resource-class list").stdout.splitlines()
    assert [line.split()[:6] for line in text[1:]] == [
        ["Simulated", "bios", "2.0.0", "2.0.9", "4", f"{names[1]},"],
        ["Simulated", "bios", "2.0.9", "the", "same", "1"],
    ]
    assert text[1].endswith(f"{names[3]} and 1 more")


def test_a_machine_whose_firmware_was_never_read_is_counted(run: Run, api: Client, stored) -> None:
    api.post("/v1/nodes", {"driver": "fake-hardware", "name": "unread"})
    stored(bios="2.1")
    assert "1 machine with unknown firmware" in run("firmware list unread").output
    assert "1 machine: 1 with unknown firmware" in run("firmware plan unread").stdout
    assert run("firmware apply unread --yes").stdout == "nothing is out of date\n"
    api.delete("/v1/nodes/unread")


# -------------------------------------------------------------------------------------- apply


def test_a_class_is_updated_by_the_verbs_of_its_states(
    run: Run, api: Client, site: Orchestration, enrol, stored
) -> None:
    machines = enrol(5, "fleet")
    ready, free, used, away, right = machines
    put_in(site, free, "available")
    put_in(site, used, "active")
    put_in(site, away, "rescue")
    right.system.firmware["BIOS"] = "2.1"
    stored(bmc="bmc-1.1", bios="2.1")
    plan = json.loads(run("firmware plan --resource-class fleet --json").stdout)
    both = [
        {"component": "bios", "current_version": "2.0.0", "catalogue_version": "2.1"},
        {"component": "bmc", "current_version": "1.0.0", "catalogue_version": "bmc-1.1"},
    ]
    assert [(each["name"], each["verbs"]) for each in plan] == [
        (ready.name, ["clean"]), (free.name, ["manage", "clean", "provide"]),
        (used.name, ["service"]), (away.name, []), (right.name, ["clean"]),
    ]  # fmt: skip
    assert all(each["updates"] == both for each in plan)
    text = run("firmware plan --resource-class fleet").stdout
    assert "5 machines: 4 to update, 1 not now" in text
    result = run("firmware apply --resource-class fleet --yes --json")
    assert result.exit_code == 1
    results = {each["node"]: each["error"] for each in json.loads(result.stdout)}
    assert "it is in rescue: firmware is updated in manageable" in results.pop(away.name)
    assert set(results.values()) == {None}
    wait_for(lambda: state(api, free.name) == "available", "the machine to be available again")
    for machine in (ready, free, used, right):
        assert machine.system.firmware | {"NIC": ""} == {"BIOS": "2.1", "BMC": "bmc-1.1", "NIC": ""}
    assert "BIOS firmware is 2.1" not in right.system.happened  # its BMC showed the version
    assert (state(api, ready.name), state(api, used.name)) == ("manageable", "active")
    assert "4 as the catalogue says" in run("firmware plan --resource-class fleet").stdout
    again = run(f"firmware apply {ready.name} --yes")
    assert (again.exit_code, again.stdout) == (0, "nothing is out of date\n")


def test_why_tells_what_is_out_of_date_and_no_more(run: Run, api: Client, enrol, stored) -> None:
    (machine,) = enrol(1, "why")
    before = api.get(f"/ext/v1/nodes/{machine.name}/why")
    stored(bmc="1.0.0", bios="2.1")
    document = api.get(f"/ext/v1/nodes/{machine.name}/why")
    assert before["outdated_firmware"] == []
    assert document["outdated_firmware"] == [
        {"component": "bios", "current_version": "2.0.0", "catalogue_version": "2.1"},
    ]
    same = ("cause_code", "cause", "next_action")
    assert [document[key] for key in same] == [before[key] for key in same]
    assert (
        "  firmware out of date: bios 2.0.0, to be 2.1 (bloomery"
        in run(f"node why {machine.name}").stdout
    )


def test_one_component_alone_is_updated(run: Run, enrol, stored) -> None:
    (machine,) = enrol(1, "part")
    stored(bmc="bmc-1.1", bios="2.1")
    result = run(f"firmware apply {machine.name} --component bios --yes")
    assert result.stdout == f"{machine.name}: bios 2.0.0 -> 2.1\n"
    assert machine.system.firmware["BMC"] == "1.0.0"


@pytest.mark.parametrize("budget", [0, 1])
def test_failures_beyond_the_budget_end_the_command(run: Run, enrol, stored, budget: int) -> None:
    machines = enrol(3, f"bad{budget}")
    machines[1].bmc.faults.add(
        kind="status", status=400, path="SimpleUpdate", method="POST", times=-1
    )
    stored(bios="2.1")
    words = f"--resource-class bad{budget} --batch 1 --failures {budget} --yes --json"
    result = run(f"firmware apply {words}")
    assert result.exit_code == 1
    first, second, third = json.loads(result.stdout)
    assert (first["error"], "lab fault" in second["error"]) == (None, True)
    assert third["error"] == (None if budget else "not begun, after 1 failure")
    assert [bios_of(each) for each in machines] == ["2.1", "2.0.0", "2.1" if budget else "2.0.0"]


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("2.1-ignored", "the BMC reported the end of the update, and bios is still 2.0.0"),
        ("bad-2.1", "the BMC could not update bios: cannot verify"),
    ],
)
def test_an_update_that_is_none_is_a_failure(run: Run, enrol, stored, version, reason) -> None:
    (machine,) = enrol(1, f"not{len(version)}")
    stored(bios=version)
    result = run(f"firmware apply {machine.name} --yes")
    assert (result.exit_code, reason in result.stderr) == (1, True)
    assert bios_of(machine) == "2.0.0"


def test_a_file_with_another_checksum_reaches_no_bmc(run: Run, enrol, stored, files) -> None:
    (machine,) = enrol(1, "sum")
    stored(files, f", checksum: {hashlib.sha256(b'another').hexdigest()}", bios="2.1")
    result = run(f"firmware apply {machine.name} --yes")
    assert (result.exit_code, "does not match its checksum" in result.stderr) == (1, True)
    assert machine.bmc.tasks == {}


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ({"catalogue": "0123456789abcdef"}, "another one than the plan's: plan again"),
        ({"components": ["bmc"]}, "needs no update"),
        ({"rollback": {"component": "bios"}}, "give either catalogue or rollback"),
        ({"state": "available"}, "it is in available: ask for manage first"),
        ({"state": "deploying"}, "it is in deploying"),
        ({"maintenance": True}, "it is in maintenance"),
    ],
)
def test_an_order_that_does_not_fit_is_refused(
    api: Client, site: Orchestration, enrol, stored, order: dict, reason: str
) -> None:
    (machine,) = enrol(1, "order")
    stored(bios="2.1")
    order = dict(order)
    if order.pop("maintenance", False):
        api.put(f"/v1/nodes/{machine.name}/maintenance", {})
    if "state" in order:
        put_in(site, machine, order.pop("state"))
    order = {"catalogue": api.get("/ext/v1/firmware")["catalogue"]} | order
    answer = api.post("/ext/v1/nodes:act", {"nodes": [machine.name], "firmware": order})
    assert answer["results"][0]["error"]["status"] == (400 if "rollback" in order else 409)
    assert reason in answer["results"][0]["error"]["message"]
    assert machine.bmc.tasks == {}


def test_a_machine_without_a_name_or_a_right_is_not_there(api: Client) -> None:
    with pytest.raises(ApiError, match="404"):
        api.get("/ext/v1/nodes/nobody/firmware")


def test_a_class_returns_to_the_images_that_its_bmcs_keep(
    run: Run, api: Client, site: Orchestration, enrol, stored
) -> None:
    machines = enrol(2, "keeps", keeps_images=True)
    (bare,) = enrol(1, "bare")
    names = [machine.name for machine in machines]
    stored(bios="2.1")
    assert run("firmware apply --resource-class keeps --yes").exit_code == 0
    put_in(site, machines[1], "available")
    result = run(f"firmware rollback {' '.join(names)} {bare.name} --component bios --yes")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [f"{name}: bios 2.1 -> 2.0.0" for name in names]
    assert f"{bare.name}: " in result.stderr
    assert "its BMC keeps no other image of bios" in result.stderr
    assert [bios_of(each) for each in (*machines, bare)] == ["2.0.0"] * 3
    wait_for(lambda: state(api, names[1]) == "available", "the machine to be available again")
    assert bare.system.power == "Off"


@pytest.mark.parametrize(
    ("words", "text"), [("", "choose them: --all, or filters"), ("web-1 --all", "not both")]
)
def test_what_is_missing_is_named(run: Run, stored, words, text) -> None:
    stored(bios="2.1")
    result = run(f"firmware apply {words}")
    assert (result.exit_code, text in result.output) == (2, True)
