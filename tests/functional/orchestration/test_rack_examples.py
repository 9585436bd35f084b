"""The examples of machines, on a rack of simulated servers with Redfish BMCs.

Each is created, updated and deleted over REST; what came of it is looked at over Redfish, past the
service.  Five run with every `make test`, all of them with `make test-long`.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from bloomery.cli.client import Client
from bloomery.db.tables import EVENTS
from bloomery.lab import rack
from bloomery.lab.bmc import Rules
from tests.functional.orchestration.test_drift import told, watch
from tests.functional.orchestration.test_machines import ironic
from tests.kit.clients.templates import EXAMPLES
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for

A, B = "http://images.example.org/a.iso", "http://images.example.org/b.iso"
CLASS = "bm.demo"
POOL = 3  # machines that are available; one more is left to those examples that enrol it
Outputs = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A machine as its BMC tells it."""

    power: str
    image: str | None


class Floor:
    """A service, and the rack that it serves."""

    def __init__(self, site: Orchestration, servers: rack.Rack) -> None:
        self.site, self.servers = site, servers
        self.spare = servers.machines[POOL]

    def enrol(self) -> None:
        api = Client(self.site.service.url)
        for number, server in enumerate(self.servers.machines[:POOL], 1):
            fields = {"name": f"n{number}", "driver": "redfish", "resource_class": CLASS}
            node = api.post("/v1/nodes", fields | {"driver_info": server.driver_info})["uuid"]
            api.post("/v1/ports", {"node_uuid": node, "address": server.mac})
        for verb, state in (("manage", "manageable"), ("provide", "available")):
            for number in range(1, POOL + 1):
                api.put(f"/v1/nodes/n{number}/states/provision", {"target": verb})
            self.wait_for_pool(state)

    def nodes(self) -> list[dict[str, Any]]:
        return list(ironic(self.site, "GET", "/v1/nodes/detail")[1]["nodes"])

    def wait_for_pool(self, state: str = "available") -> list[dict[str, Any]]:
        """Wait until all nodes stand there, and nobody holds them; return them."""

        def arrived() -> list[dict[str, Any]] | None:
            nodes = self.nodes()
            at_rest = {(node["provision_state"], node["reservation"]) for node in nodes}
            return nodes if at_rest == {(state, None)} else None

        return wait_for(arrived, f"the pool to be {state}", timeout_s=20)

    def see(self, server: rack.Machine) -> Seen:
        """Ask the BMC of a server, as anybody may who has its password."""
        system = self.redfish(server, server.system_id)
        [manager] = system["Links"]["ManagedBy"]
        media = self.redfish(server, manager["@odata.id"])["VirtualMedia"]["@odata.id"]
        drive = self.redfish(server, f"{media}/Cd")
        return Seen(power=system["PowerState"], image=drive["Image"] if drive["Inserted"] else None)

    def redfish(self, server: rack.Machine, path: str) -> dict[str, Any]:
        login = base64.b64encode(f"{server.username}:{server.password}".encode()).decode()
        request = urllib.request.Request(
            f"{server.address}{path}", headers={"Authorization": f"Basic {login}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return dict(json.load(answer))

    def is_deployed(self) -> bool:
        return any(node["provision_state"] == "active" for node in self.nodes())

    def running(self) -> list[Seen]:
        """Return what the servers of the pool are that have an instance."""
        active = {node["name"] for node in self.nodes() if node["instance_uuid"]}
        servers = enumerate(self.servers.machines[:POOL], 1)
        return [self.see(server) for number, server in servers if f"n{number}" in active]


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Floor]:
    folder = tmp_path_factory.mktemp("rack")
    machines = POOL + 1
    with (
        rack.Rack(
            machines, apart=True, rules=Rules(update_s=0.2), power_s=0.01, disks_gib=(480, 480)
        ) as servers,
        Orchestration(folder / "state") as site,
    ):
        made = Floor(site, servers)
        made.enrol()
        yield made


# ------------------------------------------------------------------------------------ what to see

Look = Callable[[Floor, Outputs], None]


def runs(*images: str, power: str = "On") -> Look:
    """So many machines run from these images."""

    def look(floor: Floor, outputs: Outputs) -> None:
        assert sorted(floor.running(), key=str) == sorted(
            (Seen(power=power, image=image) for image in images), key=str
        )

    return look


def tells(**expected: Any) -> Look:
    """The outputs have these values."""

    def look(floor: Floor, outputs: Outputs) -> None:
        assert {name: outputs[name] for name in expected} == expected

    return look


def both(*looks: Look) -> Look:
    def look(floor: Floor, outputs: Outputs) -> None:
        for each in looks:
            each(floor, outputs)

    return look


def bios(value: str) -> Look:
    """The machine, which is none of the rack, has this setting, and its node tells it."""

    def look(floor: Floor, outputs: Outputs) -> None:
        real = floor.redfish(floor.spare, f"{floor.spare.system_id}/Bios")["Attributes"]
        settings = ironic(floor.site, "GET", "/v1/nodes/new-1/bios")[1]["bios"]
        told_of = {each["name"]: each["value"] for each in settings}["ProcTurboMode"]
        assert (real["ProcTurboMode"], told_of) == (value, value)

    return look


def turbo(value: str, count: int) -> Look:
    """So many machines of the pool run with this setting, which was read past the service."""

    def look(floor: Floor, outputs: Outputs) -> None:
        active = {node["name"] for node in floor.nodes() if node["provision_state"] == "active"}
        values = [
            floor.redfish(server, f"{server.system_id}/Bios")["Attributes"]["ProcTurboMode"]
            for number, server in enumerate(floor.servers.machines[:POOL], 1)
            if f"n{number}" in active
        ]
        assert values == [value] * count

    return look


def flashed(version: str) -> Look:
    """It runs this version of its BIOS, and its node tells that it was flashed."""

    def look(floor: Floor, outputs: Outputs) -> None:
        real = floor.redfish(floor.spare, floor.spare.system_id)["BiosVersion"]
        rows = ironic(floor.site, "GET", "/v1/nodes/new-1/firmware")[1]["firmware"]
        last = {each["component"]: each["last_version_flashed"] for each in rows}
        assert (real, last["bios"], last["bmc"]) == (version, version, None)

    return look


def volumes(level: str) -> Look:
    """The BMC has one volume, of this RAID level."""

    def look(floor: Floor, outputs: Outputs) -> None:
        storage = floor.redfish(floor.spare, f"{floor.spare.system_id}/Storage")["Members"]
        [controller] = [floor.redfish(floor.spare, each["@odata.id"]) for each in storage]
        members = floor.redfish(floor.spare, controller["Volumes"]["@odata.id"])["Members"]
        [volume] = [floor.redfish(floor.spare, each["@odata.id"]) for each in members]
        assert volume["RAIDType"] == f"RAID{level}"

    return look


@dataclass(frozen=True, kw_only=True)
class Example:
    """``change``: what the update gives instead; ``made``, ``changed``: what is seen then."""

    change: dict[str, Any]
    made: Look
    changed: Look
    given: dict[str, Any] = field(default_factory=dict)


NEW_ISO = {"iso": B}
EXAMPLE: dict[str, Example] = {
    "allocation": Example(
        change={"name": "yours"}, made=runs(None, power="Off"), changed=runs(None, power="Off")),
    "allocation-replaced": Example(
        change={"traits": []}, made=tells(state="active"), changed=tells(state="active")),
    "cluster": Example(
        given={"controls": 1, "workers": 2, "settle": 0}, change=NEW_ISO,
        made=both(runs(A, A, A), tells(ready=2, degraded=[])), changed=runs(B, B, B)),
    "deploy-template": Example(
        change={"priority": 20}, made=tells(trait="CUSTOM_HARDENED"),
        changed=tells(trait="CUSTOM_HARDENED")),
    "deployed-server": Example(
        change={"greeting": "hi"}, made=both(runs(A), tells(state="active")), changed=runs(A)),
    "first-boot": Example(change=NEW_ISO, made=runs(A), changed=runs(B)),
    "group-canary": Example(
        change=NEW_ISO, made=both(runs(A, A), tells(ready=2)), changed=runs(B, B)),
    "group-continue": Example(change=NEW_ISO, made=runs(A, A), changed=runs(B, B)),
    "group-hardware": Example(
        change={"turbo": "Enabled"}, made=both(runs(A, A), turbo("Disabled", 2)),
        changed=both(runs(A, A), turbo("Enabled", 2), tells(ready=2))),
    "group-pause": Example(change=NEW_ISO, made=runs(A, A), changed=runs(B, B)),
    "group-rollback-batch": Example(change=NEW_ISO, made=runs(A, A), changed=runs(B, B)),
    "group-spread": Example(change=NEW_ISO, made=runs(A, A), changed=runs(B, B)),
    "group-stop": Example(change=NEW_ISO, made=runs(A, A), changed=runs(B, B)),
    "group-surge": Example(change=NEW_ISO, made=runs(A), changed=runs(B)),
    "hardware-bios": Example(
        change={"turbo": "Enabled"}, made=bios("Disabled"), changed=bios("Enabled")),
    "hardware-firmware": Example(
        change={"firmware": "http://images.example.org/bios-2.2"},
        made=both(bios("Disabled"), flashed("bios-2.1")),
        changed=both(bios("Disabled"), flashed("bios-2.2"))),
    "hardware-deploy": Example(
        change={"turbo": "Enabled"} | NEW_ISO,
        made=both(bios("Disabled"), tells(pending=[])), changed=bios("Enabled")),
    "hardware-raid": Example(change={"level": "0"}, made=volumes("1"), changed=volumes("0")),
    "instance": Example(
        change={"name": "shop"}, made=both(runs(A), tells(name="web", state="active")),
        changed=both(runs(A), tells(name="shop"))),
    "instance-image-ignore": Example(change=NEW_ISO, made=runs(A), changed=runs(A)),
    "instance-image-rebuild": Example(change=NEW_ISO, made=runs(A), changed=runs(B)),
    "instance-image-replace": Example(change=NEW_ISO, made=runs(A), changed=runs(B)),
    "instance-power": Example(
        change={"power": "on"}, made=both(runs(A, power="Off"), tells(power="power off")),
        changed=both(runs(A), tells(power="power on"))),
    "instance-prepared": Example(
        change=NEW_ISO, made=tells(boot_mode="uefi", state="active"),
        changed=tells(boot_mode="uefi", state="active")),
    "instance-user-data": Example(change={"greeting": "hi"}, made=runs(A), changed=runs(A)),
    "instances-in-order": Example(change=NEW_ISO, made=runs(A, A), changed=runs(B, B)),
    "node-lookup": Example(
        change={"minimum": 2}, made=tells(count=3, free=3), changed=tells(count=3, free=3)),
    "node": Example(
        change={"class": "bm.other"}, made=tells(state="available"),
        changed=tells(state="available")),
    "node-target-state": Example(
        change={"state": "manageable"}, made=tells(state="available"),
        changed=tells(state="manageable")),
    "ports": Example(change={"pxe": False}, made=tells(pxe=True), changed=tells(pxe=False)),
    "runbook": Example(
        change={"run": "second"}, made=tells(result="success"),
        changed=tells(result="success")),
    "volumes": Example(
        change={"volume": "volume-b"}, made=lambda floor, outputs: None,
        changed=lambda floor, outputs: None),
}  # fmt: skip
OUTSIDE = {
    "machine": Example(
        given={"class": CLASS, "iso": A, "first_boot_timeout": 600}, change=NEW_ISO,
        made=both(runs(A), tells(state="active")), changed=runs(B)),
    "machines-of-a-rack": Example(
        change={"macs": ["52:54:00:00:00:01"]}, made=tells(state="available"),
        changed=tells(state="available")),
}  # examples beside those of one kind each  # fmt: skip
SHORT = (
    "instance-image-rebuild", "group-canary", "group-hardware", "hardware-firmware",
    "hardware-raid",
)  # fmt: skip


def test_every_example_of_machines_is_tried() -> None:
    assert set(EXAMPLE) == {path.stem for path in (EXAMPLES / "machines").glob("*.yaml")}


def _live(floor: Floor, name: str) -> None:
    """Create, update and delete a stack of an example, and look each time."""
    example = (EXAMPLE | OUTSIDE)[name]
    folder = EXAMPLES / "machines" if name in EXAMPLE else EXAMPLES
    document = yaml.safe_load((folder / f"{name}.yaml").read_text())
    document["heat_template_version"] = "2021-04-16"
    parameters = _parameters(floor, document) | example.given
    path = floor.site.create(name, document, parameters=parameters)
    try:
        _boot(floor, path, parameters)
        example.made(floor, _outputs(floor, path, "CREATE_COMPLETE"))
        parameters |= example.change
        body = {"template": document, "parameters": parameters}
        assert floor.site.ask("PUT", path, body)[0] == 202
        _boot(floor, path, parameters)
        example.changed(floor, _outputs(floor, path, "UPDATE_COMPLETE"))
        assert floor.site.ask("POST", f"{path}/actions", {"check": None})[0] in (200, 201, 202)
        floor.site.wait_for(path, "CHECK_COMPLETE")
    finally:
        assert floor.site.ask("DELETE", path)[0] == 204
        floor.site.wait_for(path, "DELETE_COMPLETE")
    _check_freed(floor)


def _parameters(floor: Floor, document: dict[str, Any]) -> dict[str, Any]:
    """Return what the parameters of an example are on this rack."""
    bmc: Any = floor.spare.driver_info
    if "bmc_password" in document["parameters"]:
        bmc = floor.spare.address
    values = {"iso": A, "class": CLASS, "bmc": bmc, "bmc_password": floor.spare.password}
    return {name: value for name, value in values.items() if name in document["parameters"]}


def _boot(floor: Floor, path: str, parameters: dict[str, Any]) -> None:
    """Say for a machine that it has come up, where the example waits for that."""
    if "first_boot_timeout" in parameters:
        runs_it = [Seen(power="On", image=parameters["iso"])]
        wait_for(lambda: floor.running() == runs_it and floor.is_deployed(), "the system")
        assert floor.site.ask("POST", f"{path}/resources/ready/signal", {})[0] == 200


def _outputs(floor: Floor, path: str, state: str) -> Outputs:
    stack = floor.site.wait_for(path, state, timeout_s=20)
    assert not [each for each in stack["outputs"] if "output_error" in each]
    return {each["output_key"]: each["output_value"] for each in stack["outputs"]}


def _check_freed(floor: Floor) -> None:
    """Nothing is left of the stack: neither on the nodes, nor beside them."""
    for node in floor.wait_for_pool():
        facts = (node["instance_uuid"], node["lessee"], node["allocation_uuid"])
        assert facts == (None, None, None), node["name"]
        assert "stack" not in node["extra"] | node["instance_info"], node["name"]
    for plural in ("allocations", "deploy_templates", "runbooks"):
        assert ironic(floor.site, "GET", f"/v1/{plural}")[1][plural] == []
    assert {floor.see(server).power for server in floor.servers.machines[:POOL]} == {"Off"}


@pytest.mark.parametrize("name", SHORT)
def test_an_example_lives_on_the_rack(floor: Floor, name: str) -> None:
    _live(floor, name)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted((EXAMPLE | OUTSIDE).keys() - set(SHORT)))
def test_every_other_example_lives_on_the_rack(floor: Floor, name: str) -> None:
    _live(floor, name)


def test_suspend_and_resume_go_through_a_rack_in_order(floor: Floor) -> None:
    """What needs another goes off before it, and comes on after it."""
    document = yaml.safe_load((EXAMPLES / "machines" / "instances-in-order.yaml").read_text())
    document["heat_template_version"] = "2021-04-16"
    path = floor.site.create("in-order", document, parameters=_parameters(floor, document))
    outputs = _outputs(floor, path, "CREATE_COMPLETE")
    try:
        for verb, power, order in (("suspend", "Off", ["web", "database"]),
                                   ("resume", "On", ["database", "web"])):  # fmt: skip
            before = len(_switched(floor))
            assert floor.site.ask("POST", f"{path}/actions", {verb: None})[0] in (200, 201, 202)
            floor.site.wait_for(path, f"{verb.upper()}_COMPLETE")
            runs(A, A, power=power)(floor, {})
            names = {outputs[name]: name for name in order}
            assert [names[node] for node in _switched(floor)[before:]] == order
            watch(floor.site)
            assert told(floor.site, "in-order") == []  # off is what it is to be, and then on
    finally:
        assert floor.site.ask("DELETE", path)[0] == 204
        floor.site.wait_for(path, "DELETE_COMPLETE")
    _check_freed(floor)


def _switched(floor: Floor) -> list[str]:
    """Return the nodes whose power was changed, in the order in which that ended."""
    query = sa.select(EVENTS.c.object_uuid).where(
        EVENTS.c.object == "node", EVENTS.c.action == "power_set", EVENTS.c.status == "end"
    )
    with floor.site.service.db.read() as conn:
        return [str(each) for each in conn.execute(query.order_by(EVENTS.c.id)).scalars()]
