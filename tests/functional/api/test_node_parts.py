"""What lies below a node: traits, history, BIOS, firmware, inventory, virtual interfaces."""

from __future__ import annotations

import uuid as uuids
from functools import partial

import pytest
import sqlalchemy as sa

from bloomery.db import rows, tables
from bloomery.db.history import insert
from bloomery.model.node_facts import HistoryEntry


@pytest.fixture
def node(world):
    return world.node()


# ------------------------------------------------------------------------------------ traits


def test_traits_are_replaced_added_and_removed(world, node):
    path = f"/v1/nodes/{node}/traits"
    answer = world.api.put(path, {"traits": ["CUSTOM_A", "HW_CPU_X86_VMX", "CUSTOM_A"]})
    assert (answer.status, answer.body) == (204, b"")
    assert "location" not in answer.headers
    assert set(world.api.get(path).json["traits"]) == {"CUSTOM_A", "HW_CPU_X86_VMX"}
    answer = world.api.put(f"{path}/CUSTOM_B")
    assert answer.headers["location"] == f"http://localhost/v1/nodes/{node}/traits/CUSTOM_B"
    assert world.api.put(f"{path}/CUSTOM_B", {}).status == 204
    assert set(world.api.get(f"/v1/nodes/{node}").json["traits"]) == {
        "CUSTOM_A",
        "CUSTOM_B",
        "HW_CPU_X86_VMX",
    }
    assert world.api.delete(f"{path}/CUSTOM_A").status == 204
    assert world.api.delete(f"{path}/CUSTOM_A").status == 404
    assert world.api.delete(path).status == 204
    assert world.api.delete(path).status == 204
    assert world.api.get(path).json == {"traits": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "", {}, 400),
        ("PUT", "", None, 400),
        ("PUT", "", {"traits": []}, 204),
        ("PUT", "", {"traits": None}, 400),
        ("PUT", "", {"traits": "CUSTOM_A"}, 400),
        ("PUT", "", {"traits": ["nonsense"]}, 400),
        ("PUT", "", {"traits": [5]}, 400),
        ("PUT", "", {"traits": ["CUSTOM_" + "A" * 300]}, 400),
        ("PUT", "", {"traits": [f"CUSTOM_{n}" for n in range(51)]}, 400),
        ("PUT", "/custom_a", None, 400),
        ("PUT", "/CUSTOM_A", {"traits": []}, 400),
        ("DELETE", "/not%20a%20trait", None, 404),
    ],
)
def test_traits_are_checked(world, node, method, path, body, status):
    assert world.api.ask(method, f"/v1/nodes/{node}/traits{path}", body).status == status


# ----------------------------------------------------------------------------------- history


@pytest.fixture
def history(world, node):
    entries = [
        HistoryEntry(
            uuid=str(uuids.uuid4()), node_uuid=node, created_at=rows.now(), severity="INFO",
            event=f"event {n} " + "x" * 300 * (n == 1), event_type="provisioning",
            conductor="host-1", user="u", project="p", state="active", duration_seconds=1.5,
        )
        for n in range(3)
    ]  # fmt: skip
    for entry in entries:
        world.site.db.transact(partial(insert, entry=entry))
    return entries


def test_history_is_short_unless_detail_is_asked_for(world, node, history):
    found = world.api.get(f"/v1/nodes/{node}/history").json["history"]
    assert [entry["event"][:7] for entry in found] == ["event 0", "event 1", "event 2"]
    assert set(found[0]) == {"uuid", "created_at", "severity", "event", "links"}
    assert len(found[1]["event"]) == 254
    assert found[1]["event"].endswith("...")
    href = f"http://localhost/v1/nodes/{node}/history/{history[0].uuid}"
    assert found[0]["links"] == [{"href": href, "rel": "self"}]


@pytest.mark.parametrize(
    ("version", "keys"),
    [(78, 8), (113, 9), (115, 12)],
)
def test_history_entry_shows_what_the_version_knows(world, node, history, version, keys):
    path = f"/v1/nodes/{node}/history/{history[1].uuid}"
    one = world.api.get(path, version=version).json
    assert len(one) == keys
    assert (
        one
        == world.api.get(f"/v1/nodes/{node}/history?detail=1", version=version).json["history"][1]
    )
    assert len(one["event"]) > 300


def test_history_has_pages(world, node, history):
    page = world.api.get(f"/v1/nodes/{node}/history?limit=2").json
    assert len(page["history"]) == 2
    assert page["next"].startswith(f"http://localhost/v1/nodes/{node}/history?")
    marker = page["history"][-1]["uuid"]
    rest = world.api.get(f"/v1/nodes/{node}/history?limit=2&marker={marker}").json
    assert [entry["uuid"] for entry in rest["history"]] == [history[2].uuid]
    down = world.api.get(f"/v1/nodes/{node}/history?sort_dir=desc").json["history"]
    assert down[0]["uuid"] == history[2].uuid


def test_links_to_what_is_of_a_node_name_it_by_uuid(world, node, history, found_out):
    world.api.patch(f"/v1/nodes/{node}", [{"op": "add", "path": "/name", "value": "web-1"}])
    path = f"history/{history[0].uuid}"
    by_name = world.api.get("/v1/nodes/web-1/history").json["history"][0]
    assert by_name["links"][0]["href"] == f"http://localhost/v1/nodes/{node}/{path}"
    assert world.api.get(f"/v1/nodes/web-1/{path}").json["links"] == by_name["links"]
    setting = world.api.get("/v1/nodes/web-1/bios/Boot").json["Boot"]
    assert setting["links"][0]["href"] == f"http://localhost/v1/nodes/{node}/bios/Boot"


def test_history_is_checked(world, node):
    path = f"/v1/nodes/{node}/history"
    assert world.api.get(f"{path}?fields=uuid").status == 400
    assert world.api.get(f"{path}/{uuids.uuid4()}").status == 404
    assert world.api.get(f"{path}/nonsense").status == 404
    assert world.api.get(f"{path}?sort_key=nonsense").status == 400


# ------------------------------------------------------------------------- what was found out


@pytest.fixture
def found_out(world, node):
    stamp = {"node_uuid": node, "created_at": rows.now()}

    def work(conn):
        for name in ("Virtualization", "Boot"):
            conn.execute(
                sa.insert(tables.BIOS_SETTINGS),
                stamp
                | {
                    "name": name,
                    "value": "on",
                    "allowable_values": '["on","off"]' if name == "Boot" else "null",
                    "read_only": False,
                },
            )
        conn.execute(
            sa.insert(tables.FIRMWARE),
            stamp
            | {"component": "bmc", "initial_version": "1", "current_version": "2", "vendor": "v"},
        )
        conn.execute(
            sa.insert(tables.NODE_INVENTORY),
            stamp | {"inventory_data": '{"cpu": 1}', "plugin_data": '{"lldp": 2}'},
        )

    world.site.db.transact(work)


def test_bios_settings_are_listed_by_name(world, node, found_out):
    found = world.api.get(f"/v1/nodes/{node}/bios").json["bios"]
    assert [setting["name"] for setting in found] == ["Boot", "Virtualization"]
    assert set(found[0]) == {"name", "value", "created_at", "updated_at", "links"}
    some = world.api.get(f"/v1/nodes/{node}/bios?fields=name,read_only").json["bios"][0]
    assert set(some) == {"name", "read_only", "created_at", "updated_at", "links"}
    whole = world.api.get(f"/v1/nodes/{node}/bios?detail=true").json["bios"][0]
    assert whole["allowable_values"] == ["on", "off"]
    assert len(whole) == 14
    free = world.api.get(f"/v1/nodes/{node}/bios/Virtualization").json["Virtualization"]
    assert free["allowable_values"] == []


def test_one_bios_setting_stands_under_its_name(world, node, found_out):
    assert len(world.api.get(f"/v1/nodes/{node}/bios/Boot").json["Boot"]) == 14
    assert len(world.api.get(f"/v1/nodes/{node}/bios/Boot", version=73).json["Boot"]) == 5
    assert world.api.get(f"/v1/nodes/{node}/bios/boot").status == 404
    assert world.api.get(f"/v1/nodes/{node}/bios?detail=1&fields=name").status == 400
    assert world.api.get(f"/v1/nodes/{node}/bios?fields=name", version=73).status == 400


def test_firmware_shows_what_the_version_knows(world, node, found_out):
    found = world.api.get(f"/v1/nodes/{node}/firmware").json["firmware"]
    assert (found[0]["component"], found[0]["vendor"]) == ("bmc", "v")
    assert (
        "vendor" not in world.api.get(f"/v1/nodes/{node}/firmware", version=113).json["firmware"][0]
    )
    some = world.api.get(f"/v1/nodes/{node}/firmware?fields=component").json["firmware"]
    assert some == [{"component": "bmc"}]
    assert world.api.get(f"/v1/nodes/{node}/firmware?fields=nonsense").status == 400


def test_inventory_is_what_inspection_found(world, node, found_out):
    found = world.api.get(f"/v1/nodes/{node}/inventory").json
    assert found == {"inventory": {"cpu": 1}, "plugin_data": {"lldp": 2}}
    assert world.api.get(f"/v1/nodes/{world.node()}/inventory").status == 404


# -------------------------------------------------------------------------------------- vifs


def test_vifs_are_attached_and_detached(world, node):
    path = f"/v1/nodes/{node}/vifs"
    vif = str(uuids.uuid4())
    answer = world.api.post(path, {"id": vif, "anything": 1})
    assert (answer.status, answer.body) == (204, b"")
    assert world.api.get(path).json == {"vifs": [{"id": vif}]}
    assert world.api.delete(f"{path}/{vif}").status == 204
    assert world.api.delete(f"{path}/{vif}").status == 204
    assert world.api.get(path).json == {"vifs": []}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"id": 5},
        {"id": "not a name"},
        {"id": "a", "port_uuid": str(uuids.uuid4()), "portgroup_uuid": str(uuids.uuid4())},
    ],
)
def test_vifs_are_checked(world, node, body):
    assert world.api.post(f"/v1/nodes/{node}/vifs", body).status == 400
