"""Many nodes in one request, each with a result of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.cli.client import ApiError, Client
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.operations import bulk
from bloomery.state_dir import StateDir
from tests.kit.waiting import wait_for

Json = dict[str, Any]
MAC = "52:54:00:00:00:0{}"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path: Path = tmp_path_factory.mktemp("bulk") / "state"
    with StateDir(path) as home, Service(Conf(api=Api(port=0)), home) as running:
        yield Client(running.url)


def machine(name: str | None, *macs: str, **more: Any) -> Json:
    ports = [{"address": mac} for mac in macs]
    named = {} if name is None else {"name": name}
    return {"driver": "fake-hardware", "ports": ports, **named, **more}


def enrol(api: Client, *machines: Json) -> list[Json]:
    results: list[Json] = api.post("/ext/v1/nodes:batch", {"nodes": list(machines)})["results"]
    return results


def act(api: Client, *nodes: str, **action: Any) -> list[Json]:
    results: list[Json] = api.post("/ext/v1/nodes:act", {"nodes": list(nodes), **action})["results"]
    return results


def macs_of(api: Client, node: str) -> set[str]:
    return {port["address"] for port in api.get(f"/v1/nodes/{node}/ports")["ports"]}


def test_a_repeated_request_creates_only_what_is_missing(api: Client) -> None:
    first = enrol(api, machine("again-1", MAC.format(1)), machine("again-2"))
    assert [each["result"] for each in first] == ["created", "created"]
    more = machine("again-1", MAC.format(1), MAC.format(2).upper(), extra={"rack": 7})
    second = enrol(api, more, machine("again-2"), machine("again-3"))
    assert [each["result"] for each in second] == ["completed", "present", "created"]
    assert [each["uuid"] for each in second[:2]] == [each["uuid"] for each in first]
    assert macs_of(api, first[0]["uuid"]) == {MAC.format(1), MAC.format(2)}
    assert api.get("/v1/nodes/again-1")["extra"] == {}


@pytest.mark.parametrize(
    ("name", "other", "expected", "status"),
    [
        pytest.param("race-1", machine("race-1", MAC.format(6)), "present", None, id="whole"),
        pytest.param("race-2", machine("race-2"), "completed", None, id="node"),
        pytest.param(
            "race-3", machine("race-3", driver_info={"fake_address": "10.0.0.1"}), "refused", 409,
            id="another machine",
        ),
    ],
)  # fmt: skip
def test_a_lost_race_with_an_equal_request_is_no_refusal(
    api: Client, monkeypatch: pytest.MonkeyPatch, name: str, other: Json, expected: str,
    status: int | None,
) -> None:  # fmt: skip
    """The other request commits after this one has looked, and before it writes."""
    find, looks = bulk._find, []

    def look(ctx: Any, key: str) -> Any:
        looks.append(key)
        row = find(ctx, key)
        if len(looks) == 1:
            enrol(api, other)
        return row

    monkeypatch.setattr(bulk, "_find", look)
    macs = [MAC.format(6)] if name == "race-1" else [MAC.format(7)] if name == "race-2" else []
    more = {"driver_info": {"fake_address": "10.0.0.2"}} if name == "race-3" else {}
    [result] = enrol(api, machine(name, *macs, **more))
    monkeypatch.undo()
    assert result["result"] == expected, result
    assert (result["error"] or {}).get("status") == status


def test_a_port_that_an_equal_request_has_just_made_is_no_refusal(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, raced = bulk.records.create, []

    def race(ctx: Any, noun: Any, body: Json) -> Any:
        if not raced:
            raced.append(create(ctx, noun, dict(body)))
        return create(ctx, noun, body)

    monkeypatch.setattr(bulk.records, "create", race)
    [result] = enrol(api, machine("race-4", MAC.format(8), MAC.format(9)))
    assert (result["result"], result["error"]) == ("created", None)
    assert macs_of(api, result["uuid"]) == {MAC.format(8), MAC.format(9)}
    [refused] = enrol(api, machine("race-5", MAC.format(9)))
    assert refused["error"]["status"] == 409


def test_a_uuid_is_a_key_as_well(api: Client) -> None:
    uuid = "11111111-2222-4333-8444-555555555555"
    for result in ("created", "present"):
        [answer] = enrol(api, machine(None, uuid=uuid))
        assert (answer["result"], answer["uuid"], answer["name"]) == (result, uuid, None)


@pytest.mark.parametrize(
    ("faulty", "status", "words"),
    [
        (machine(None), 400, "give it a name or a uuid"),
        (machine("bad", driver="no-such"), 400, "no-such"),
        (machine("bad", rack=7), 400, "rack"),
        ({"name": "bad"}, 400, "driver"),
        (machine("bad", "not-a-mac"), 400, "not-a-mac"),
        ({**machine("bad"), "ports": [{"physical_network": "a"}]}, 400, "address"),
        (machine("there", driver="redfish"), 409, "is there with another driver"),
        (machine("there", driver_info={"redfish_address": "https://b"}), 409,
         "another redfish_address"),
    ],
)  # fmt: skip
def test_a_faulty_machine_is_refused_alone(
    api: Client, request: pytest.FixtureRequest, faulty: Json, status: int, words: str
) -> None:
    enrol(api, machine("there"))
    good = f"beside-{abs(hash(request.node.name))}"
    refused, created = enrol(api, faulty, machine(good))
    assert (refused["result"], refused["error"]["status"]) == ("refused", status), refused
    assert words in refused["error"]["message"]
    assert created["result"] == "created"


def test_a_refused_machine_repeats_no_secret(api: Client) -> None:
    info = {"fake_password": "hunter2", "deep": {"password": "hunter2"}}
    [refused] = enrol(api, machine("leaky", driver_info=info, rack="x"))
    assert refused["result"] == "refused"
    assert "hunter2" not in str(refused)


def test_an_action_is_ordered_of_each_node(api: Client) -> None:
    enrol(api, machine("act-1"), machine("act-2"))
    results = act(api, "act-1", "nobody", "act-2", provision={"target": "manage"})
    assert [each["node"] for each in results] == ["act-1", "nobody", "act-2"]
    assert [each["result"] for each in results] == ["accepted", "refused", "accepted"]
    assert (results[1]["error"]["status"], results[1]["error"]["code"]) == (404, "node.not_found")
    for name in ("act-1", "act-2"):
        wait_for(
            lambda name=name: api.get(f"/v1/nodes/{name}")["provision_state"] == "manageable",
            "the verb",
        )
    act(api, "act-1", "act-2", power={"target": "power on"})
    wait_for(lambda: api.get("/v1/nodes/act-2")["power_state"] == "power on", "the power")
    act(api, "act-1", maintenance={"on": True, "reason": "new disks"})
    assert api.get("/v1/nodes/act-1")["maintenance_reason"] == "new disks"
    act(api, "act-1", maintenance={"on": False})
    assert api.get("/v1/nodes/act-1")["maintenance"] is False


def test_a_node_in_the_wrong_state_is_refused_as_alone(api: Client) -> None:
    enrol(api, machine("wrong-1"))
    [refused] = act(api, "wrong-1", provision={"target": "active"})
    with pytest.raises(ApiError) as alone:
        api.put("/v1/nodes/wrong-1/states/provision", {"target": "active"})
    assert str(alone.value).startswith(refused["error"]["message"][:60])
    assert alone.value.facts["answer"] == refused["error"]["status"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"nodes": ["a"]}, "exactly one of firmware, maintenance, power, provision"),
        ({"nodes": ["a"], "power": {"target": "power on"}, "maintenance": {"on": True}},
         "not maintenance and power"),
        ({"nodes": ["a", "a"], "maintenance": {"on": True}}, "non-unique"),
        ({"nodes": [], "maintenance": {"on": True}}, "nodes"),
        ({"nodes": ["a"], "provision": {}}, "target"),
        ({"nodes": [f"n{i}" for i in range(bulk.MOST + 1)], "maintenance": {"on": True}},
         f"{bulk.MOST} are allowed; send several requests"),
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_read_is_refused_as_a_whole(
    api: Client, body: Json, words: str
) -> None:
    with pytest.raises(ApiError) as refused:
        api.post("/ext/v1/nodes:act", body)
    assert refused.value.facts["answer"] == 400
    assert words in str(refused.value)


def test_too_many_machines_are_refused_before_any_is_created(api: Client) -> None:
    machines = [machine(f"many-{number}") for number in range(bulk.MOST + 1)]
    with pytest.raises(ApiError, match=f"{bulk.MOST} are allowed; send several requests"):
        enrol(api, *machines)
    with pytest.raises(ApiError, match="HTTP 404"):
        api.get("/v1/nodes/many-0")


PAST: Json = {
    "history": [{
        "uuid": "6b1c3ff1-6d1f-4f0e-9c44-0d4a3b7a7c01", "created_at": "2026-01-02T03:04:05.678901",
        "severity": "ERROR", "event": "deploy failed: the disk is gone", "user": "ann",
        "duration_seconds": 1.5,
    }],
    "inspected": {"inventory": {"disks": []}},
}  # fmt: skip


def test_the_past_of_an_imported_node_is_brought_once(api: Client) -> None:
    enrol(api, machine("past-1", imported={"provision_state": "active"}))
    for _ in range(2):
        api.post("/ext/v1/nodes/past-1/past", PAST)
    history = api.get("/v1/nodes/past-1/history?detail=True")["history"]
    (brought,) = [entry for entry in history if entry["severity"] == "ERROR"]
    assert (brought["event"], brought["user"]) == ("deploy failed: the disk is gone", "ann")
    assert brought["created_at"].startswith("2026-01-02T03:04:05")
    assert api.get("/v1/nodes/past-1/inventory") == {
        "inventory": {"disks": []}, "plugin_data": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "refusal"),
    [({"created_at": "yesterday"}, "created_at must be a time"), ({"uuid": None}, "history"),
     ({"state": "x" * 16}, "history"), ({"color": "red"}, "color")],
)  # fmt: skip
def test_a_past_that_cannot_be_is_refused(api: Client, change: Json, refusal: str) -> None:
    enrol(api, machine("past-2", imported={"provision_state": "active"}))
    with pytest.raises(ApiError, match=refusal):
        api.post("/ext/v1/nodes/past-2/past", {"history": [PAST["history"][0] | change]})
