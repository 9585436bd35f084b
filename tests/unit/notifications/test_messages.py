from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bloomery.notifications import messages, routes
from bloomery.objects import payloads

EXAMPLES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("examples.json").read_text())
UUID = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"


def data(name: str, **snapshot: Any) -> dict[str, Any]:
    said = messages.payload(payloads.PAYLOADS[name], {"uuid": UUID} | snapshot, {})
    found: dict[str, Any] = said["ironic_object.data"]
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["event_type"])
def test_the_message_is_the_one_that_consumers_know(example: dict[str, Any]):
    _, noun, action, _ = example["event_type"].split(".")
    kind = routes.find(noun, action)
    assert kind is not None
    wire = example["payload"]
    snapshot = {k: v for k, v in wire["ironic_object.data"].items() if k not in kind.facts}
    facts = {k: wire["ironic_object.data"][k] for k in kind.facts}
    assert json.loads(json.dumps(messages.payload(kind, snapshot, facts))) == wire


@pytest.mark.parametrize("name", payloads.PAYLOADS)
def test_the_envelope_has_four_keys_and_every_field(name: str):
    kind = payloads.PAYLOADS[name]
    said = messages.payload(kind, {"uuid": UUID}, {})
    assert set(said) == {f"ironic_object.{key}" for key in ("name", "namespace", "version", "data")}
    assert set(said["ironic_object.data"]) == set(kind.fields)


@pytest.mark.parametrize("name", payloads.PAYLOADS)
def test_null_objects_are_empty(name: str):
    objects = [f for f, kind in payloads.PAYLOADS[name].fields.items() if kind == "object"]
    assert [data(name)[field] for field in objects] == [{} for _ in objects]


@pytest.mark.parametrize(
    "said",
    ["2026-03-01T10:00:00.987654+00:00", "2026-03-01T10:00:00Z", "2026-03-01T12:00:00+02:00"],
)
def test_times_are_utc_in_whole_seconds(said: str):
    assert data("NodePayload", created_at=said)["created_at"] == "2026-03-01T10:00:00Z"


def test_a_step_is_what_a_step_is_and_shows_no_secret():
    row = {
        "id": 7, "interface": "raid", "step": "apply", "priority": 3, "created_at": "now",
        "args": {"bmc_password": "hush", "level": 1},
    }  # fmt: skip
    assert data("DeployTemplateCRUDPayload", steps=[row])["steps"] == [
        {
            "interface": "raid", "step": "apply", "priority": 3,
            "args": {"bmc_password": "******", "level": 1},
        },
    ]  # fmt: skip


def test_properties_of_a_volume_target_never_leave():
    said = data("VolumeTargetCRUDPayload", properties={"auth_password": "hush"})
    assert said["properties"] == messages.REDACTED
    assert "hush" not in json.dumps(said)


@pytest.mark.parametrize(
    "wrong",
    [{"uuid": None}, {"extra": "text"}, {"created_at": "yesterday"}, {"traits": 7}],
)
def test_a_value_that_does_not_fit_is_an_error(wrong: dict[str, Any]):
    with pytest.raises((TypeError, ValueError)):
        data("NodePayload", **wrong)
