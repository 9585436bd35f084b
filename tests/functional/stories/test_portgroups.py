"""Port groups and the real conductor: what a group asks of its ports and does to them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from bloomery.conductor import row_updates
from bloomery.db import records
from bloomery.model.nouns import PORTGROUP

MAC = "52:54:00:00:00:{:02x}"


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


@pytest.fixture
def node(stage: Any) -> str:
    return stage.site.enrol()


@pytest.fixture
def group(stage: Any, node: str) -> str:
    answer = stage.api.post("/v1/portgroups", {"node_uuid": node, "name": "bond0"})
    assert answer.status == 201
    return answer.json["uuid"]


def add_port(stage: Any, node: str, number: int, **more: Any) -> Any:
    body = {"address": MAC.format(number), "node_uuid": node} | more
    return stage.api.post("/v1/ports", body)


def change(stage: Any, group: str, *operations: Any) -> Any:
    return stage.api.patch(f"/v1/portgroups/{group}", list(operations))


def test_the_option_names_the_mode_of_a_group_that_names_none(stage: Any, group: str):
    assert stage.api.get(f"/v1/portgroups/{group}").json["mode"] == "active-backup"


def test_a_group_without_standalone_ports_takes_no_pxe(stage: Any, node: str, group: str):
    booting = add_port(stage, node, 1, portgroup_uuid=group).json["uuid"]
    off = replace("/standalone_ports_supported", False)
    assert change(stage, group, off).status == 409
    stage.api.patch(f"/v1/ports/{booting}", [replace("/pxe_enabled", False)])
    assert change(stage, group, off).status == 200
    assert add_port(stage, node, 2, portgroup_uuid=group).status == 409
    assert add_port(stage, node, 2, portgroup_uuid=group, pxe_enabled=False).status == 201


def test_ports_follow_the_network_of_their_group(stage: Any, node: str, group: str):
    port = add_port(stage, node, 1, portgroup_uuid=group, physical_network="a").json["uuid"]
    assert change(stage, group, replace("/physical_network", "b")).status == 200
    path = f"/v1/ports/{port}"
    assert stage.api.get(path).json["physical_network"] == "b"
    moved = [replace("/physical_network", "c")]
    assert stage.api.patch(path, moved).status == 400
    assert stage.api.patch(path, moved, version=101).status == 409
    assert stage.api.patch(path, [replace("/physical_network", "b")]).status == 200
    assert add_port(stage, node, 2, portgroup_uuid=group, physical_network="a").status == 409


def test_a_port_joins_only_a_group_of_its_node(stage: Any, group: str):
    other = stage.site.enrol()
    assert add_port(stage, other, 1, portgroup_uuid=group).status == 400
    assert add_port(stage, other, 1, portgroup_uuid=str(uuid.uuid4())).status == 400


def test_a_group_moves_to_another_node_while_it_is_empty(stage: Any, node: str, group: str):
    other = stage.site.enrol()
    port = add_port(stage, node, 1, portgroup_uuid=group).json["uuid"]
    move = replace("/node_uuid", other)
    answer = change(stage, group, move)
    assert (answer.status, "contains ports" in answer.said) == (400, True)
    stage.api.delete(f"/v1/ports/{port}")
    stage.site.set(node, provision_state="active")
    assert change(stage, group, move).status == 409
    stage.site.set(node, provision_state="manageable")
    assert change(stage, group, move).json["node_uuid"] == other


def test_a_group_that_moved_meanwhile_is_changed_under_the_lock_of_its_new_node(
    stage: Any, node: str, group: str, monkeypatch: pytest.MonkeyPatch
):
    other, changes = stage.site.enrol(), []
    change_row = row_updates.change

    def change_later(context: Any, locked: str, work: Any) -> Any:
        if not changes:
            stage.site.db.transact(
                lambda conn: records.update(conn, PORTGROUP, group, {"node_uuid": other})
            )
            stage.site.set(other, reservation="host-z")
        changes.append(locked)
        return change_row(context, locked, work)

    monkeypatch.setattr(row_updates, "change", change_later)
    assert stage.api.delete(f"/v1/portgroups/{group}").status == 409
    stage.site.set(other, reservation=None)
    assert changes == [node, other]


def test_a_group_without_a_network_takes_any_port(stage: Any, node: str, group: str):
    first = add_port(stage, node, 1, portgroup_uuid=group)
    assert change(stage, group, replace("/physical_network", "")).status == 200
    assert stage.api.get(f"/v1/ports/{first.json['uuid']}").json["physical_network"] is None
    assert add_port(stage, node, 2, portgroup_uuid=group).status == 201


def test_ports_that_are_on_the_network_already_are_not_changed(stage: Any, node: str, group: str):
    body = {"portgroup_uuid": group, "physical_network": "a"}
    port = add_port(stage, node, 1, **body).json
    assert change(stage, group, replace("/physical_network", "a")).status == 200
    assert stage.api.get(f"/v1/ports/{port['uuid']}").json["updated_at"] is None


def test_an_empty_mode_is_the_default_one(stage):
    body = {"node_uuid": stage.enrol(), "mode": ""}
    assert stage.api.post("/v1/portgroups", body).json["mode"] == "active-backup"
