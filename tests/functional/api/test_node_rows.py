"""The fleet in short rows: what each shows, to whom, and what is wrong with each node."""

from __future__ import annotations

import pytest

from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.db import events
from tests.kit.clients.callers import LESSEE, OWNER, Site

PATH = "/ext/v1/nodes"


def row_of(api, uuid: str):
    (row,) = [each for each in api.get(PATH).json["nodes"] if each["uuid"] == uuid]
    return row


def test_a_row_holds_what_a_table_of_the_fleet_shows(world) -> None:
    node = world.node(
        name="web-1", resource_class="large", owner="p1", description="<b>mine</b>",
        properties={"rack": "r7", "slot": 12}, extra={"rack": "r8", "serial_number": 4711},
        driver_info={"redfish_address": "https://admin:secret@10.0.0.7:8443/redfish"},
    )  # fmt: skip
    for mac in ("52:54:00:00:00:02", "52:54:00:00:00:01"):
        world.api.post("/v1/ports", {"node_uuid": node, "address": mac})
    row = row_of(world.api, node)
    expected = {
        "name": "web-1", "resource_class": "large", "owner": "p1", "description": "<b>mine</b>",
        "provision_state": "enroll", "conductor": "host-1", "rack": "r7", "slot": "12",
        "serial": "4711",
        "bmc_address": "10.0.0.7", "macs": ["52:54:00:00:00:01", "52:54:00:00:00:02"],
        "health": None, "cause_code": None, "cause": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("info", "address"),
    [
        ({"redfish_address": "bmc-1.example"}, "bmc-1.example"),
        ({"ipmi_address": "10.0.0.9"}, "10.0.0.9"),
        ({"redfish_address": "https://[fe80::1]:443"}, "fe80::1"),
        ({"redfish_address": "https://["}, None),
        ({"redfish_address": {"$sealed": "1", "token": "x", "shown": "https://***@b/"}}, "b"),
        ({"redfish_address": {"$sealed": "1", "token": "x"}}, "******"),
        ({}, None),
    ],
)
def test_of_a_bmc_the_host_alone_is_shown(world, info, address) -> None:
    assert row_of(world.api, world.node(driver_info=info))["bmc_address"] == address


@pytest.mark.parametrize(
    ("values", "code", "cause"),
    [
        ({}, None, None),
        ({"last_error": "no power"}, "last_error", "no power"),
        ({"maintenance": True}, "maintenance", "in maintenance"),
        ({"maintenance": True, "maintenance_reason": "a fan"}, "maintenance", "a fan"),
        ({"maintenance": True, "fault": "power failure", "maintenance_reason": "silent",
          "last_error": "older"}, "power_failure", "silent"),
        ({"driver": "gone"}, "no_conductor", "no conductor serves the node"),
        ({"provision_state": "error", "last_error": "stuck"}, "error", "stuck"),
        ({"provision_state": "clean hold"}, "clean_hold", "clean hold"),
        ({"provision_state": "deploy failed", "last_error": "password=secret " + "x" * 10_000},
         "deploy_failed", "password=****** " + "x" * 284),
    ],
)  # fmt: skip
def test_a_row_says_what_is_wrong(world, values, code, cause) -> None:
    row = row_of(world.api, world.node(**values))
    assert (row["cause_code"], row["cause"]) == (code, cause)
    problems = world.api.get("/ext/v1/fleet").json["problems"]
    assert [(each["code"], each["count"]) for each in problems] == [(code, 1)] * (code is not None)


def test_one_node_is_read_as_the_list_shows_it(world) -> None:
    node = world.node(name="web-1", provision_state="clean failed", last_error="no disk")
    for ident in (node, "web-1"):
        answer = world.api.get(f"{PATH}/{ident}").json
        assert answer["node"] == row_of(world.api, node)
        assert answer["last_event_id"] == world.api.get(PATH).json["last_event_id"]
    assert world.api.get(f"{PATH}/nobody").status == 404


@pytest.mark.parametrize("state", State)
def test_states_that_need_somebody_are_problems(world, state: State) -> None:
    code = row_of(world.api, world.node(provision_state=state))["cause_code"]
    is_bad = state in states.FAILURE_STATES | states.HOLD_STATES or state == State.ERROR
    assert (code is not None) == is_bad


def test_problems_are_counted_with_the_time_of_the_first(world) -> None:
    nodes = [world.node(provision_state="clean failed") for _ in range(2)]
    world.node(provision_state="available", maintenance=True)
    times = [row_of(world.api, node)["provision_updated_at"] for node in nodes]
    assert world.api.get("/ext/v1/fleet").json["problems"] == [
        {"code": "clean_failed", "text": "clean failed", "count": 2,
         "since": min(filter(None, times), default=None)},
        {"code": "maintenance", "text": "in maintenance", "count": 1, "since": None},
    ]  # fmt: skip


def test_pages_hold_each_node_once_and_the_last_event(world) -> None:
    nodes = [world.node() for _ in range(5)]
    with world.site.db.read() as conn:
        last = events.last_id(conn)
    seen, path = [], f"{PATH}?limit=2"
    while path:
        page = world.api.get(path).json
        assert page["last_event_id"] == last
        seen += [row["uuid"] for row in page["nodes"]]
        path = page.get("next", "").removeprefix("http://localhost")
    assert seen == nodes
    assert world.api.get("/ext/v1/fleet").json["last_event_id"] == last


@pytest.mark.parametrize(("query", "status"), [("limit=0", 400), ("marker=gone", 404)])
def test_a_page_that_is_none_is_refused(world, query, status) -> None:
    assert world.api.get(f"{PATH}?{query}").status == status


def test_a_project_sees_its_nodes_and_no_more_of_them_than_elsewhere(tmp_path) -> None:
    site = Site(tmp_path)
    node = site.as_admin("POST", "/v1/nodes", {
        "driver": "fake-hardware", "owner": OWNER, "lessee": LESSEE,
        "driver_info": {"redfish_address": "https://10.0.0.7"},
    }).json["uuid"]  # fmt: skip
    site.as_admin("POST", "/v1/nodes", {"driver": "fake-hardware", "owner": "others"})
    site.db.transact(
        lambda conn: conn.exec_driver_sql("UPDATE nodes SET last_error = 'told to few'")
    )
    seen = {}
    for place in ("owner", "lessee", "stranger"):
        site.become(place, "reader")
        rows = site.ask("GET", PATH).json["nodes"]
        problems = site.ask("GET", "/ext/v1/fleet").json["problems"]
        seen[place] = [(row["uuid"], row["bmc_address"], row["cause"]) for row in rows], problems
    problem = {"code": "last_error", "text": "the last order failed", "count": 1, "since": None}
    assert seen == {
        "owner": ([(node, "10.0.0.7", "told to few")], [problem]),
        "lessee": ([(node, None, None)], []),
        "stranger": ([], []),
    }
    site.db.close()
