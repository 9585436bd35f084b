"""Events of what belongs to a node are seen by the projects of the node."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.waiting import wait_for

OWNER, LESSEE = "c0ffee", "decaf"
CHILDREN = {
    "port": ("ports", {"address": "02:00:00:00:00:01"}, "/extra/a"),
    "portgroup": ("portgroups", {}, "/extra/a"),
    "volume_connector": ("volume/connectors", {"type": "iqn", "connector_id": "c"}, "/extra/a"),
    "volume_target": (
        "volume/targets",
        {"volume_type": "iscsi", "volume_id": "v", "boot_index": 0},
        "/extra/a",
    ),
}


def lent(stage) -> str:
    node = stage.enrol()
    stage.site.set(node, owner=OWNER, lessee=LESSEE)
    return node


def projects_of(stage, uuid: str) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Return who sees the events of an object, by action and status."""
    return {
        (row["action"], row["status"]): (row["owner"], row["lessee"])
        for row in stage.site.events(uuid)
    }


@pytest.mark.parametrize("kind", CHILDREN)
def test_projects_of_a_node_see_what_becomes_of_its(stage, kind: str):
    plural, body, path = CHILDREN[kind]
    node = lent(stage)
    uuid = stage.api.post(f"/v1/{plural}", {"node_uuid": node, **body}).json["uuid"]
    stage.site.set(node, maintenance=True, power_state="power off")
    patch = [{"op": "add", "path": path, "value": 1}]
    assert stage.api.patch(f"/v1/{plural}/{uuid}", patch).status == 200
    assert stage.api.delete(f"/v1/{plural}/{uuid}").status == 204
    shown = projects_of(stage, uuid)
    assert {action for action, _ in shown} == {"create", "update", "delete"}
    assert set(shown.values()) == {(OWNER, LESSEE)}


def test_ports_that_follow_their_group_are_shown_to_the_same_projects(stage):
    node = lent(stage)
    stage.site.set(node, maintenance=True)
    group = stage.api.post("/v1/portgroups", {"node_uuid": node}).json["uuid"]
    body = {"node_uuid": node, "portgroup_uuid": group, "address": "02:00:00:00:00:01"}
    port = stage.api.post("/v1/ports", body).json["uuid"]
    network = [{"op": "add", "path": "/physical_network", "value": "net-1"}]
    assert stage.api.patch(f"/v1/portgroups/{group}", network).status == 200
    assert projects_of(stage, port)["update", "end"] == (OWNER, LESSEE)


def test_projects_of_a_node_see_the_allocation_that_gets_it(stage):
    node = lent(stage)
    stage.site.set(
        node, provision_state="available", power_state="power off", resource_class="large"
    )
    uuid = stage.api.post("/v1/allocations", {"resource_class": "large"}).json["uuid"]
    wait_for(lambda: ("allocate", "end") in projects_of(stage, uuid), "its node")
    assert stage.api.delete(f"/v1/allocations/{uuid}").status == 204
    shown = projects_of(stage, uuid)
    assert shown["create", "end"] == (None, None), "nobody's, as long as it has no node"
    assert shown["allocate", "end"] == shown["delete", "end"] == (OWNER, LESSEE)


def test_a_project_sees_that_its_allocation_failed(stage):
    body = {"resource_class": "none-such", "owner": OWNER}
    uuid = stage.api.post("/v1/allocations", body).json["uuid"]
    wait_for(lambda: ("allocate", "error") in projects_of(stage, uuid), "its failure")
    assert set(projects_of(stage, uuid).values()) == {(OWNER, None)}
