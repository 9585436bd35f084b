from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from cryptography.fernet import Fernet

from bloomery.db import rows
from bloomery.events import snapshots
from bloomery.model import node as node_model
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.node import Node
from bloomery.model.nouns import INSPECTION_RULE, PORT
from bloomery.model.port import Port
from bloomery.notifications import routes
from bloomery.objects import payloads
from bloomery.secrets import MASK, Sealer

UUID = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"
HUSH = "do-not-tell"


def node(**more: Any) -> Node:
    return Node(uuid=UUID, driver="fake-hardware", **more)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("where", sorted(node_model.SECRET_OBJECTS))
def test_no_secret_gets_into_a_snapshot(where: str, sealed: bool):
    value: Any = {"args": {"bmc_password": HUSH}, "redfish_password": HUSH, "plain": "said"}
    if sealed:
        value = Sealer(Fernet.generate_key()).seal(value)
    shot = snapshots.node_snapshot(node(**{where: value}))
    assert shot[where] == {
        "args": {"bmc_password": MASK}, "redfish_password": MASK, "plain": "said",
    }  # fmt: skip
    assert HUSH not in rows.dump(shot)


@pytest.mark.parametrize("sensitive", [True, False])
def test_what_a_sensitive_rule_does_is_not_told(sensitive: bool):
    actions = [{"op": "api-call", "args": {"url": "http://a", "headers": {"auth_token": HUSH}}}]
    values: Any = {"uuid": UUID, "actions": actions, "sensitive": sensitive}
    for shot in (
        snapshots.record_snapshot(INSPECTION_RULE, InspectionRule(**values)),
        snapshots.record_request(INSPECTION_RULE, values),
    ):
        assert HUSH not in rows.dump(shot)
        assert bool(shot["actions"]) is not sensitive


def test_the_image_and_the_configuration_drive_of_an_instance_are_not_told():
    info = {"image_source": "http://a", "image_url": "http://b?sig=1", "configdrive": "H4sI"}
    assert snapshots.node_snapshot(node(instance_info=info))["instance_info"] == {
        "image_source": "http://a", "image_url": MASK, "configdrive": MASK,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("noun", "shot"),
    [
        ("node", snapshots.node_snapshot(node())),
        ("node", snapshots.node_request({"uuid": UUID, "driver": "fake-hardware"})),
        ("port", snapshots.record_snapshot(PORT, Port(uuid=UUID, address="a", node_uuid=UUID))),
        ("port", snapshots.record_request(PORT, {"uuid": UUID, "address": "a", "node_uuid": UUID})),
    ],
)
def test_a_snapshot_has_every_field_that_a_payload_of_its_noun_shows(noun: str, shot: Any):
    wanted = {
        field
        for (of, _), route in routes.ROUTES.items()
        if of == noun
        for field in payloads.PAYLOADS[route.payload].fields
        if field not in payloads.PAYLOADS[route.payload].facts
    }
    assert wanted <= set(shot)


@pytest.mark.parametrize(
    ("shot", "table"),
    [
        (snapshots.node_snapshot(node()), node_model.FIELDS),
        (
            snapshots.record_snapshot(PORT, Port(uuid=UUID, address="a", node_uuid=UUID)),
            PORT.fields,
        ),
    ],
)
def test_a_snapshot_is_the_object_as_the_api_has_it(shot: Any, table: Any):
    assert set(shot) == {f.name for f in table.values() if f.column or f.name == "traits"}
    json.loads(rows.dump(shot))


def test_what_the_server_fills_in_is_null_while_a_node_is_only_asked_for():
    shot = snapshots.node_request(
        {"uuid": UUID, "driver": "fake-hardware", "provision_state": "enroll", "retired": True},
    )
    server = ("console_enabled", "maintenance", "protected", "disable_power_off", "created_at")
    interfaces = [f"{kind}_interface" for kind in node_model.INTERFACES]
    assert {shot[name] for name in (*server, *interfaces)} == {None}
    assert (shot["provision_state"], shot["retired"], shot["traits"]) == ("enroll", True, [])
    assert (shot["extra"], shot["conductor_group"]) == ({}, "")


def test_a_port_that_is_asked_for_says_that_dynamic_groups_may_have_it():
    values = {"uuid": UUID, "address": "a", "node_uuid": UUID}
    assert snapshots.record_request(PORT, values)["available_for_dynamic_portgroup"] is True
    refused = snapshots.record_request(PORT, values | {"available_for_dynamic_portgroup": False})
    assert refused["available_for_dynamic_portgroup"] is False
    assert refused["pxe_enabled"] is None


def test_a_snapshot_leaves_its_object_alone():
    original = node(driver_info={"redfish_password": HUSH})
    before = dataclasses.asdict(original)
    snapshots.node_snapshot(original)
    assert dataclasses.asdict(original) == before
