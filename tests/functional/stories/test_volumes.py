"""Volumes and the real conductor: a machine that may run keeps them; their secrets stay secret."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery.db.tables import EVENTS, VOLUME_TARGETS

IQN = {"type": "iqn", "connector_id": "iqn.2017-07.org.example:web-1"}
DISK = {"volume_type": "iscsi", "volume_id": "vol-1", "boot_index": 0}
CHANGE = [{"op": "add", "path": "/extra/a", "value": 1}]


@pytest.fixture
def node(stage: Any) -> str:
    return stage.site.enrol()


def add(stage: Any, plural: str, body: dict[str, Any], **more: Any) -> str:
    answer = stage.api.post(f"/v1/volume/{plural}", body | more)
    assert answer.status == 201
    return f"/v1/volume/{plural}/{answer.json['uuid']}"


@pytest.mark.parametrize(("plural", "body"), [("connectors", IQN), ("targets", DISK)])
@pytest.mark.parametrize(
    ("power", "state", "patched", "deleted"),
    [
        ("power off", "active", 200, 204),
        (None, "active", 400, 400),
        ("power on", "active", 400, 400),
        ("power on", "enroll", 400, 204),
        ("power on", "manageable", 400, 204),
    ],
)
def test_a_machine_that_may_run_keeps_its_volumes(
    stage: Any, node: str, plural: str, body: Any, power: str, state: str, patched: int,
    deleted: int,
):  # fmt: skip
    path = add(stage, plural, body, node_uuid=node)
    stage.site.set(node, power_state=power, provision_state=state)
    assert stage.api.patch(path, CHANGE).status == patched
    extra = stage.api.get(path).json["extra"]
    same = [{"op": "replace", "path": "/extra", "value": extra}]
    assert stage.api.patch(path, same).status == patched
    assert stage.api.delete(path).status == deleted
    assert stage.api.get(path).status == (404 if deleted == 204 else 200)


@pytest.mark.parametrize(("plural", "body"), [("connectors", IQN), ("targets", DISK)])
def test_what_a_running_machine_refuses_has_a_name(stage: Any, node: str, plural: str, body: Any):
    path = add(stage, plural, body, node_uuid=node)
    stage.site.set(node, power_state="power on", provision_state="active")
    noun = f"volume {plural.removesuffix('s')}"
    assert f'"{noun} update"' in stage.api.patch(path, CHANGE).said
    assert f'"{noun} deletion"' in stage.api.delete(path).said


def test_secrets_of_a_target_are_sealed_and_only_drivers_read_them(stage: Any, node: str):
    secret = {"auth_password": "correct horse", "target_lun": 1}
    path = add(stage, "targets", DISK, node_uuid=node, properties=secret)
    stage.site.set(node, power_state="power off")
    assert stage.api.get(path).json["properties"] == {"auth_password": "******", "target_lun": 1}
    with stage.site.acquire(node) as task:
        assert task.volume_targets[0].properties == secret
    change = [{"op": "add", "path": "/properties/auth_password", "value": "battery staple"}]
    assert stage.api.patch(path, change).json["properties"]["auth_password"] == "******"
    with stage.site.db.read() as conn:
        rows = str(
            conn.execute(VOLUME_TARGETS.select()).all() + conn.execute(EVENTS.select()).all()
        )
    assert "horse" not in rows
    assert "battery" not in rows
