from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from bloomery.events import oslo_sink
from bloomery.notifications import routes
from bloomery.objects import payloads
from bloomery.objects.payloads import Payload

EXAMPLES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("examples.json").read_text())

# What consumers rely on.  Whoever changes a field raises the version, and then the line here.
FINGERPRINTS = {
    "NodePayload": "1.17-71ad374dd455",
    "NodeCRUDPayload": "1.15-2b807cf11db4",
    "NodeSetPowerStatePayload": "1.17-ef4dc3af9c7b",
    "NodeCorrectedPowerStatePayload": "1.17-c021b9afad3b",
    "NodeSetProvisionStatePayload": "1.18-1b264fca8d7e",
    "PortCRUDPayload": "1.8-37b7d17b66f7",
    "PortgroupCRUDPayload": "1.3-f4c5b7dc1c4b",
    "ChassisCRUDPayload": "1.0-e9be70bd8262",
    "AllocationCRUDPayload": "1.1-da47f6ccf5bb",
    "VolumeConnectorCRUDPayload": "1.0-9aeb94cad7fb",
    "VolumeTargetCRUDPayload": "1.0-5a041cda33d9",
    "DeployTemplateCRUDPayload": "1.0-9cb1d64483c4",
    "RunbookCRUDPayload": "1.1-11c56ffa026c",
    "InspectionRuleCRUDPayload": "1.0-b89d76c13f1f",
}


def fingerprint(payload: Payload) -> str:
    said = json.dumps([sorted(payload.fields.items()), sorted(payload.facts)])
    return f"{payload.version}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"


@pytest.mark.parametrize("name", payloads.PAYLOADS)
def test_a_payload_that_changes_has_another_version(name: str):
    assert fingerprint(payloads.PAYLOADS[name]) == FINGERPRINTS[name]


def test_every_event_leads_to_a_payload_and_every_payload_is_reached():
    assert {route.payload for route in routes.ROUTES.values()} == set(payloads.PAYLOADS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["event_type"])
def test_the_fields_are_those_that_consumers_know(example: dict[str, Any]):
    _, noun, action, _ = example["event_type"].split(".")
    found = routes.find(noun, action)
    wire = example["payload"]
    assert found is not None
    assert (found.name, found.version) == (
        wire["ironic_object.name"],
        wire["ironic_object.version"],
    )
    assert set(found.fields) == set(wire["ironic_object.data"])


def test_examples_show_every_noun_and_every_way_of_a_node():
    assert {example["payload"]["ironic_object.name"] for example in EXAMPLES} == set(
        payloads.PAYLOADS,
    )


def test_an_event_of_our_own_has_no_payload():
    assert routes.find("node", "step") is None


@pytest.mark.parametrize("least", oslo_sink.LEVELS)
def test_a_level_lets_itself_and_what_is_above_pass(least: str):
    passing = [level for level in oslo_sink.LEVELS if oslo_sink.passes(level, least)]
    assert passing == list(oslo_sink.LEVELS[oslo_sink.LEVELS.index(least) :])
