"""The machines of a stack are rebooted, switched or serviced, batch by batch, as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.cli import node_orders
from bloomery.db.tables import EVENTS, NODES
from tests.functional.orchestration.test_machines import enrol, ironic, node_of
from tests.functional.stories.test_stack_machine_orders import WORKERS, instance, machine, make
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration, template

STEPS = [{"interface": "power", "step": "reboot", "args": {}}]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        for number in range(1, 4):
            enrol(running, f"n{number}", ports=[])
        yield running


@pytest.fixture
def path(site: Orchestration) -> str:
    """Make a stack of a group of two, one more machine, and a resource without any."""
    return make(site, workers=WORKERS, db=instance("db"), note={"type": "OS::Heat::None"})


def behave(site: Orchestration, name: str, **script: Any) -> None:
    patch = [{"op": "add", "path": "/driver_info/fake", "value": script}]
    assert ironic(site, "PATCH", f"/v1/nodes/{name}", patch)[0] == 200


def orders(site: Orchestration) -> list[tuple[str, str]]:
    """Return the nodes of power orders and their targets, in the order in which they began."""
    return [(node, facts["to_power"]) for node, facts in events(site, "power_set", "start")]


def events(site: Orchestration, action: str, *statuses: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the names of nodes and the facts of their events, oldest first."""
    rows = sa.select(EVENTS.c.facts, NODES.c.name).join(
        NODES, NODES.c.uuid == EVENTS.c.object_uuid
    ).where(EVENTS.c.action == action, EVENTS.c.status.in_(statuses))  # fmt: skip
    with site.service.db.read() as conn:
        found = [(row.name, row.facts) for row in conn.execute(rows.order_by(EVENTS.c.id))]
    return [(name, json.loads(facts)) for name, facts in found]


def names_of(site: Orchestration, path: str) -> dict[str, str]:
    """Return the name of each machine's node, by the path of its resource."""
    _, document = site.ask("GET", f"{path}/resources?nested_depth=2")
    return {
        each["resource_name"]: node_of(site, each["physical_resource_id"])["name"]
        for each in document["resources"]
        if each["resource_type"] == "OS::Ironic::Instance"
    }


def test_all_machines_of_a_stack_are_switched(site: Orchestration, path: str) -> None:
    nodes = set(names_of(site, path).values())
    for words, target, power in (
        (("reboot",), "rebooting", "power on"),
        (("reboot", "--soft"), "soft rebooting", "power on"),
        (("power", "off"), "power off", "power off"),
        (("power", "on"), "power on", "power on"),
        (("power off", "--soft"), "soft power off", "power off"),
    ):
        before = len(orders(site))
        done = run(site, "stack", "act", "web", *words, "--batch", "2", "--yes")
        assert done.exit_code == 0, done.output
        assert sorted(orders(site)[before:]) == sorted((node, target) for node in nodes)
        assert {node_of(site, node)["power_state"] for node in nodes} == {power}
        assert ("differs from its template" in done.output) == (power == "power off")
    assert (len(nodes), site.stack(path)["stack_status"]) == (3, "CREATE_COMPLETE")


def test_the_machines_of_a_group_are_serviced_one_after_the_other(
    site: Orchestration, path: str, tmp_path: Path
) -> None:
    file = tmp_path / "steps.yaml"
    file.write_text("- {interface: power, step: reboot}\n", encoding="utf-8")
    other = machine(site, path, "db")
    words = ("service", "--steps", str(file), "--resource", "workers", "--yes", "--json")
    done = run(site, "stack", "act", "web", *words)
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout)
    assert [each["resource"].split("/")[0] for each in results] == ["workers", "workers"]
    assert {each["error"] for each in results} == {None}
    nodes = [each["node"] for each in results]
    moves = [
        (node, facts["provision_state"])
        for node, facts in events(site, "provision_set", "start", "end")
        if facts["event"] in ("service", "done") and node in nodes
    ]  # fmt: skip
    assert moves[-4:] == [
        (node, state) for node in nodes for state in ("servicing", "active")
    ], moves  # fmt: skip
    assert machine(site, path, "db")["provision_updated_at"] == other["provision_updated_at"]


@pytest.mark.parametrize(("budget", "begun"), [(0, 1), (1, 2)])
def test_no_batch_begins_beyond_the_budget_of_failures(
    site: Orchestration, path: str, budget: int, begun: int
) -> None:
    """A reboot that fails leaves the machine on, and is no success."""
    nodes = names_of(site, path)
    for node in nodes.values():
        behave(site, node, fail=["power.reboot"])
    before = len(orders(site))
    words = ("reboot", "--failures", str(budget), "--yes", "--json")
    done = run(site, "stack", "act", "web", *words)
    assert done.exit_code == 1, done.output
    errors = [each["error"] for each in json.loads(done.stdout)]
    assert ["told to fail" in each for each in errors] == [True] * begun + [False] * (3 - begun)
    assert all("not begun, after" in each for each in errors[begun:])
    assert len(orders(site)) - before == begun


def test_what_cannot_be_ordered_is_refused_before_any_order(
    site: Orchestration, path: str, tmp_path: Path
) -> None:
    steps, bad = tmp_path / "steps.json", tmp_path / "bad.yaml"
    steps.write_text(json.dumps(STEPS))
    bad.write_text("step: reboot\n")
    before = orders(site)
    for words, code, sentence in (
        ("other reboot", 1, "cannot find a stack called other"),
        ("web dance", 2, "there is no action 'dance': reboot, power on, power off, service"),
        ("web service", 2, "service takes --steps FILE, or --runbook NAME"),
        (f"web service --steps {steps} --runbook r", 2, "give --steps or --runbook, not both"),
        (f"web reboot --steps {steps}", 2, "--steps and --runbook are for service"),
        ("web power on --soft", 2, "--soft is for off and reboot"),
        (f"web service --steps {bad}", 1, f"cannot read {bad}: it is no list of steps"),
        (f"web service --steps {bad}.not", 1, f"cannot read {bad}.not: No such file"),
        ("web reboot --resource nothing", 1, "stack web has no resource nothing"),
        ("web reboot --resource note", 1, "note of stack web has no machine"),
        ("web reboot", 2, "standard input is no terminal"),
    ):
        yes = () if "terminal" in sentence else ("--yes",)
        refused = run(site, "stack", "act", *words.split(), *yes)
        assert refused.exit_code == code, refused.output
        assert sentence in " ".join(refused.output.split()), refused.output
    assert orders(site) == before


def test_a_machine_that_another_has_by_now_is_left_alone(site: Orchestration, path: str) -> None:
    """The resource still names the node; the mark on the node does not name the resource."""
    node = machine(site, path, "db")
    patch = [{"op": "remove", "path": "/instance_info/stack"}]
    assert ironic(site, "PATCH", f"/v1/nodes/{node['uuid']}", patch)[0] == 200
    before = len(orders(site))
    done = run(site, "stack", "act", "web", "reboot", "--batch", "3", "--yes")
    assert done.exit_code == 1, done.output
    assert f"db (node {node['name']}): it is not this resource's any more" in done.output
    assert node["name"] not in {name for name, _ in orders(site)[before:]}
    assert len(orders(site)) == before + 2


def test_a_stack_that_is_changed_meanwhile_gets_no_further_order(
    site: Orchestration, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = node_orders.Fleet.watch

    def update(self: Any, *arguments: Any) -> None:
        """Change the stack while the first batch is watched."""
        watch(self, *arguments)
        if len(orders(site)) == before + 1:
            resources = {"workers": WORKERS, "db": instance("db")}
            assert site.ask("PUT", path, {"template": template(resources)})[0] == 202
            site.wait_for(path, "UPDATE_COMPLETE")

    before = len(orders(site))
    monkeypatch.setattr(node_orders.Fleet, "watch", update)
    done = run(site, "stack", "act", "web", "reboot", "--yes", "--failures", "3")
    assert done.exit_code == 1, done.output
    assert done.output.count("not begun: stack web has changed since: UPDATE_COMPLETE") == 2
    assert len(orders(site)) == before + 1


def test_a_stack_at_work_gets_no_orders_from_others(site: Orchestration, path: str) -> None:
    held = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 3600, "value": "a"}}
    resources = {"workers": WORKERS, "db": instance("db"), "held": held}
    assert site.ask("PUT", path, {"template": template(resources)})[0] == 202
    before = orders(site)
    done = run(site, "stack", "act", "web", "reboot", "--yes")
    assert done.exit_code == 1
    assert "cannot act on stack web: it is UPDATE_IN_PROGRESS; look on with" in done.output
    assert orders(site) == before
