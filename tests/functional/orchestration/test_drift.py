"""Machines that were changed behind the back of their stacks: what a check says of them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db import stack_drift
from bloomery.db.tables import EVENTS, NODES
from tests.functional.orchestration.test_machines import IMAGE, SLOT, WEB, enrol, ironic, node_of
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

NODE = {
    "name": "n2", "driver": "fake-hardware", "resource_class": "spare",
    "lessee": "p2", "target_state": "manageable", "traits": ["CUSTOM_A"],
}  # fmt: skip
SPARE = {
    "node": {"type": "OS::Ironic::Node", "properties": NODE},
    "port": {
        "type": "OS::Ironic::Port",
        "properties": {"node": {"get_resource": "node"}, "address": "52:54:00:00:00:21"},
    },
    "hardware": {
        "type": "OS::Ironic::HardwareConfiguration",
        "properties": {
            "node": {"get_resource": "node"}, "bios": {"settings": {"Turbo": "Enabled"}},
        },
    },
}  # fmt: skip
Change = Callable[[Orchestration], None]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    with Orchestration(tmp_path_factory.mktemp("drift") / "state") as running:
        enrol(running)
        spare = running.create("spare", template(SPARE))
        web = running.create("web", template({"slot": SLOT, "web": WEB}))
        running.wait_for(spare, "CREATE_COMPLETE")
        owned = {**SPARE, "node": {**SPARE["node"], "properties": {**NODE, "owner": "p1"}}}
        assert running.ask("PUT", spare, {"template": template(owned)})[0] == 202
        running.wait_for(spare, "UPDATE_COMPLETE")
        running.wait_for(web, "CREATE_COMPLETE")
        yield running


def patched(node: str, path: str, value: Any) -> Change:
    body = [{"op": "replace" if value is not None else "remove", "path": path, "value": value}]
    return lambda site: asked(site, "PATCH", f"/v1/nodes/{node}", body)


def asked(site: Orchestration, method: str, path: str, body: Any = None) -> None:
    status, answer = ironic(site, method, path, body)
    assert status < 300, answer


def power(target: str) -> Change:
    def change(site: Orchestration) -> None:
        asked(site, "PUT", "/v1/nodes/n1/states/power", {"target": target})
        wait_for(lambda: node_of(site)["power_state"] == target, "the power")

    return change


def fault(text: str | None) -> Change:
    change = sa.update(NODES).where(NODES.c.name == "n1").values(fault=text)
    return lambda site: site.service.db.transact(lambda conn: conn.execute(change)) and None


def turbo(value: str) -> Change:
    settings = [{"name": "Turbo", "value": value}]
    step = {"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}}

    def change(site: Orchestration) -> None:
        body = {"target": "clean", "clean_steps": [step]}
        asked(site, "PUT", "/v1/nodes/n2/states/provision", body)
        wait_for(lambda: node_of(site, "n2")["provision_state"] == "manageable", "the cleaning")

    return change


def moved(address: str) -> Change:
    def change(site: Orchestration) -> None:
        ports = ironic(site, "GET", "/v1/ports?node=n2")[1]["ports"]
        body = [{"op": "replace", "path": "/address", "value": address}]
        asked(site, "PATCH", f"/v1/ports/{ports[0]['uuid']}", body)

    return change


def in_maintenance(site: Orchestration) -> None:
    asked(site, "PUT", "/v1/nodes/n1/maintenance", {"reason": "broken"})


def out_of_maintenance(site: Orchestration) -> None:
    asked(site, "DELETE", "/v1/nodes/n1/maintenance")


def traits(*names: str) -> Change:
    return lambda site: asked(site, "PUT", "/v1/nodes/n2/traits", {"traits": list(names)})


IMAGE_PATH = "/instance_info/image_source"
ROWS: dict[str, tuple[Change, Change, str, str, str]] = {
    "image": (patched("n1", IMAGE_PATH, "http://b.img"),
              patched("n1", IMAGE_PATH, IMAGE["source"]), "web", "web",
              f"instance_info/image_source is 'http://b.img' and is to be {IMAGE['source']!r}"),
    "power": (power("power off"), power("power on"), "web", "web",
              "power_state is 'power off' and is to be 'power on'"),
    "maintenance": (in_maintenance, out_of_maintenance, "web", "web",
                    "maintenance is True and is to be False"),
    "fault": (fault("power failure"), fault(None), "web", "web",
              "fault is 'power failure' and is to be None"),
    "traits": (traits("CUSTOM_B"), traits("CUSTOM_A"), "spare", "node",
               "traits is ['CUSTOM_B'] and is to be ['CUSTOM_A']"),
    "class": (patched("n2", "/resource_class", "other"),
              patched("n2", "/resource_class", "spare"), "spare", "node",
              "resource_class is 'other' and is to be 'spare'"),
    "owner": (patched("n2", "/owner", "p9"), patched("n2", "/owner", "p1"), "spare", "node",
              "owner is 'p9' and is to be 'p1'"),
    "lessee": (patched("n2", "/lessee", "p9"), patched("n2", "/lessee", "p2"), "spare", "node",
               "lessee is 'p9' and is to be 'p2'"),
    "port address": (moved("52:54:00:00:00:22"), moved("52:54:00:00:00:21"), "spare", "port",
                     "address is '52:54:00:00:00:22' and is to be '52:54:00:00:00:21'"),
    "bios setting": (turbo("Disabled"), turbo("Enabled"), "spare", "hardware",
                     "bios/Turbo is 'Disabled' and is to be 'Enabled'"),
}  # fmt: skip


def check(site: Orchestration, stack: str, *states: str) -> dict[str, str]:
    """Check a stack; return the resources that are not as they should be, with their reasons."""
    path = f"/stacks/{stack}"
    document = site.ask("GET", path)[1]["stack"]
    path = f"{path}/{document['id']}"
    assert site.ask("POST", f"{path}/actions", {"check": None})[0] in (200, 201, 202)
    site.wait_for(path, *states)
    return {
        name: each["resource_status_reason"]
        for name, each in site.resources(path).items()
        if each["resource_status"] == "CHECK_FAILED"
    }


@pytest.mark.parametrize("name", ROWS)
def test_a_check_finds_a_prepared_difference_and_no_other(site: Orchestration, name: str) -> None:
    change, undo, stack, resource, sentence = ROWS[name]
    assert check(site, stack, "CHECK_COMPLETE") == {}
    change(site)
    try:
        found = check(site, stack, "CHECK_FAILED")
    finally:
        undo(site)
    assert found == {resource: f"Drifted: resources.{resource}: {sentence}"}
    assert check(site, stack, "CHECK_COMPLETE") == {}


@pytest.mark.parametrize("name", ["power", "traits", "class", "owner", "lessee", "port address"])
def test_an_update_that_converges_brings_it_back(site: Orchestration, name: str) -> None:
    change, _undo, stack, resource, _sentence = ROWS[name]
    path = path_of(site, stack)
    body = {"template": site.ask("GET", f"{path}/template")[1]}
    change(site)
    assert site.ask("PUT", f"{path}/preview", body)[1]["plan"]["steps"] == []
    converged = body | {"converge": True}
    [step] = site.ask("PUT", f"{path}/preview", converged)[1]["plan"]["steps"]
    assert (step["resource"], step["certain"]) == (resource, True)
    assert site.ask("PUT", path, converged)[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")
    assert check(site, stack, "CHECK_COMPLETE") == {}


def test_an_instance_that_was_taken_away_is_told(tmp_path: Path) -> None:
    with Orchestration(tmp_path / "state") as site:
        enrol(site)
        web = site.create("web", template({"slot": SLOT, "web": WEB}))
        site.wait_for(web, "CREATE_COMPLETE")
        asked(site, "PUT", "/v1/nodes/n1/states/provision", {"target": "deleted"})
        wait_for(lambda: node_of(site)["provision_state"] == "available", "the end of it")
        found = check(site, "web", "CHECK_FAILED")
        assert "the instance was taken away from the node" in found["web"]
        assert "could not be found" in found["slot"]
        asked(site, "PUT", "/v1/nodes/n1/maintenance", {"reason": "to go"})
        asked(site, "DELETE", "/v1/nodes/n1")
        found = check(site, "rack-n1", "CHECK_FAILED")
        assert "could not be found" in found["node"]


# ------------------------------------------------------------------------------------- the watch


def watch(site: Orchestration) -> None:
    """Let the drift watch look at every machine once."""
    drift = site.service.stacks.engine.drift
    assert drift is not None
    drift.look()


def told(site: Orchestration, stack: str) -> list[tuple[str, str, str]]:
    """Return what the watch has told of a stack, the oldest first."""
    path = site.ask("GET", f"/stacks/{stack}")[1]["stack"]
    _, document = site.ask("GET", f"/stacks/{stack}/{path['id']}/events?sort_dir=asc")
    return [
        (each["resource_name"], each["resource_status"], each["resource_status_reason"])
        for each in document["events"]
        if each["resource_status"].startswith("DRIFT_")
    ]


def rows_of(site: Orchestration, stack: str, action: str) -> list[Any]:
    uuid = path_of(site, stack).rpartition("/")[2]
    query = sa.select(EVENTS).where(EVENTS.c.object_uuid == uuid, EVENTS.c.action == action)
    with site.service.db.read() as conn:
        return list(conn.execute(query.order_by(EVENTS.c.id)))


def test_a_difference_is_told_once_and_so_is_its_end(site: Orchestration) -> None:
    before = len(told(site, "web"))
    watch(site)
    assert len(told(site, "web")) == before
    power("power off")(site)
    watch(site)
    watch(site)
    in_maintenance(site)
    watch(site)
    told_why = why(site, "web")
    found = told_why["drifted"]
    power("power on")(site)
    out_of_maintenance(site)
    watch(site)
    watch(site)
    assert told(site, "web")[before:] == [
        ("web", "DRIFT_FAILED", "power_state is 'power off' and is to be 'power on'"),
        ("web", "DRIFT_FAILED", "maintenance is True and is to be False"),
        ("web", "DRIFT_COMPLETE", "as the template says again: maintenance, power_state"),
    ]
    assert [(each["resource"], sorted(each["differences"])) for each in found] == [
        ("web", ["maintenance", "power_state"])
    ]
    assert "repair the machines" in told_why["next_action"]
    assert why(site, "web")["drifted"] == []
    assert "nothing" in why(site, "web")["next_action"]
    assert site.resources(path_of(site, "web"))["web"]["resource_status"] != "CHECK_FAILED"
    rows = rows_of(site, "web", "drift")
    assert [(row.status, row.level) for row in rows][-3:] == [
        ("error", "error"), ("error", "error"), ("end", "info"),
    ]  # fmt: skip


def path_of(site: Orchestration, stack: str) -> str:
    return f"/stacks/{stack}/{site.ask('GET', f'/stacks/{stack}')[1]['stack']['id']}"


def why(site: Orchestration, stack: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection(*site.service.orchestration_api.address, timeout=60)
    try:
        connection.request("GET", f"/ext/v1/stacks/{stack}/why")
        document: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return document


def test_a_resource_is_marked_where_the_operator_asks_for_it(tmp_path: Path) -> None:
    with Orchestration(tmp_path / "state", drift_sets_check_failed=True) as site:
        enrol(site)
        web = site.create("web", template({"slot": SLOT, "web": WEB}))
        site.wait_for(web, "CREATE_COMPLETE")
        power("power off")(site)
        watch(site)
        marked = wait_for(lambda: state_of(site, web, "CHECK_FAILED"), "the mark")
        assert marked["resource_status_reason"] == (
            "Drifted: resources.web: power_state is 'power off' and is to be 'power on'"
        )
        power("power on")(site)
        watch(site)
        wait_for(lambda: state_of(site, web, "CHECK_COMPLETE"), "the end of it")
        ironic(site, "PUT", "/v1/nodes/n1/states/provision", {"target": "deleted"})
        wait_for(lambda: node_of(site)["provision_state"] == "available", "the end of it")
        watch(site)
        reasons = [reason for _, state, reason in told(site, "web") if state == "DRIFT_FAILED"]
        assert "the instance was taken away from the node" in reasons
        assert site.ask("DELETE", web)[0] == 204
        site.wait_for(web, "DELETE_COMPLETE")
        watch(site)
        with site.service.db.read() as conn:
            assert stack_drift.count_by_type(conn) == {}


def state_of(site: Orchestration, path: str, state: str) -> dict[str, Any] | None:
    resource = site.resources(path)["web"]
    return resource if resource["resource_status"] == state else None


def test_a_node_that_is_worked_at_is_looked_at_later(site: Orchestration) -> None:
    before = len(told(site, "web"))
    change = sa.update(NODES).where(NODES.c.name == "n1")
    site.service.db.transact(
        lambda conn: conn.execute(change.values(reservation="c", power_state="power off"))
    )
    watch(site)
    assert len(told(site, "web")) == before
    site.service.db.transact(
        lambda conn: conn.execute(change.values(reservation=None, power_state="power on"))
    )
