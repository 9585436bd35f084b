"""An agent inspects: the node boots it, waits, and goes on with what it has found out."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.conductor import enrollment, inspection, recovery
from bloomery.db import rows
from bloomery.db.tables import STEP_RUNS
from bloomery.drivers.agent.inspect import AgentInspect
from bloomery.drivers.base import DriverTask
from tests.kit.machines.agent import Agent
from tests.kit.waiting import wait_for

MAC = "52:54:00:00:00:01"
BMC = "192.0.2.9"


@pytest.fixture
def stage(make_stage):
    return make_stage(enabled_inspect_interfaces=("agent", "fake"))


@pytest.fixture
def node(stage):
    """A node that waits for the agent that inspects it."""
    node = stage.bring_to("manageable", inspect_interface="agent")
    assert stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC}).status == 201
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    return node


@pytest.fixture
def agent(stage):
    return Agent(stage.api, [MAC, "52:54:00:00:00:02"])


def arguments(stage, node):
    return {row["args"] for row in stage.site.rows(STEP_RUNS, node_uuid=node)}


def test_what_an_agent_finds_out_stands_on_its_node(stage, node, agent):
    assert stage.show(node)["power_state"] == "power on"
    agent.expect(agent.try_to_hand_in(), 202)
    assert agent.node["uuid"] == node
    assert len(agent.config["agent_token"]) >= 32
    shown = stage.wait_for(node, "manageable")
    assert shown["properties"]["cpu_arch"] == "x86_64"
    assert shown["last_error"] is None
    assert shown["inspection_finished_at"] is not None
    ports = stage.api.get(f"/v1/nodes/{node}/ports").json["ports"]
    assert sorted(port["address"] for port in ports) == sorted(agent.macs)
    found = stage.api.get(f"/v1/nodes/{node}/inventory").json
    assert found["inventory"]["memory"] == {"physical_mb": 16384}
    assert stage.steps(node, "inspect") == [
        ("inspect.inspect_hardware", "done"), ("inspect.finish", "done"),
    ]  # fmt: skip


def test_the_machine_is_switched_off_and_its_agent_forgotten(stage, node, agent):
    agent.try_to_hand_in()
    shown = stage.wait_for(node, "manageable")
    assert shown["power_state"] == "power off"
    left = {"agent_secret_token", "agent_url", "lookup_bmc_addresses", "inspector_manage_boot"}
    assert not left & shown["driver_internal_info"].keys()


def test_the_parent_of_a_child_goes_on_before_the_agent_of_the_child(stage, agent):
    parent = stage.enrol()
    stage.power(parent, "power off")
    child = stage.bring_to("manageable", inspect_interface="agent", parent_node=parent)
    stage.api.post("/v1/ports", {"node_uuid": child, "address": MAC})
    stage.ask(child, "inspect")
    stage.wait_for(child, "inspect wait")
    assert stage.show(parent)["power_state"] == "power on"
    agent.expect(agent.try_to_hand_in(), 202)
    assert stage.wait_for(child, "manageable")["last_error"] is None
    assert stage.steps(child, "inspect")[0] == ("power.power_on", "done")


def test_what_was_handed_in_is_in_rows_until_it_is_processed(stage, node, agent):
    agent.try_to_hand_in()
    stage.wait_for(node, "manageable")
    assert arguments(stage, node) == {"{}"}


def test_an_inventory_survives_a_conductor_that_dies_on_it(stage, node, agent, monkeypatch):
    real, deaths = inspection.process, []

    def die_once(task: DriverTask, *args, **more):
        if not deaths:
            deaths.append(task)
            raise SystemExit
        return real(task, *args, **more)

    monkeypatch.setattr(inspection, "process", die_once)
    agent.try_to_hand_in()
    stage.wait_for(node, "inspecting")
    assert any("physical_mb" in args for args in arguments(stage, node))
    recovery.adopt_all(stage.site.service.runtime)
    assert stage.wait_for(node, "manageable")["properties"]["cpu_arch"] == "x86_64"


def test_an_agent_that_reports_an_error_fails_the_inspection(stage, node, agent):
    data = {"inventory": agent.inventory(), "error": "no disk was found"}
    assert agent.try_to_hand_in(data).status == 202
    shown = stage.wait_for(node, "inspect failed")
    assert "no disk was found" in shown["last_error"]
    assert arguments(stage, node) == {"{}"}


def test_the_agent_of_an_inspection_that_fails_runs_on_no_longer(stage, node, agent):
    agent.try_to_hand_in({"inventory": agent.inventory(), "error": "no disk was found"})
    shown = stage.wait_for(node, "inspect failed")
    assert shown["power_state"] == "power off"
    left = {"agent_secret_token", "agent_url", "lookup_bmc_addresses", "inspector_manage_boot"}
    assert not left & shown["driver_internal_info"].keys()


def test_an_inspection_that_fails_at_its_end_is_not_ended_twice(stage, node, agent, monkeypatch):
    calls = []

    def fail(self, task):
        calls.append(task.node.uuid)
        raise errors.PowerStateFailure(pstate="power off")

    monkeypatch.setattr(AgentInspect, "finish", fail)
    assert agent.try_to_hand_in().status == 202
    stage.wait_for(node, "inspect failed")
    assert calls == [node]


def test_an_inventory_has_a_limited_number_of_interfaces(stage, node, agent):
    agent.macs = [f"52:54:00:00:{n >> 8:02x}:{n & 255:02x}" for n in range(1001)]
    answer = agent.try_to_hand_in()
    assert (answer.status, "interfaces" in answer.said) == (400, True), answer.body
    assert stage.standing(node) == ("inspect wait", "manageable")


def test_a_line_of_the_log_names_a_few_addresses_alone(stage, node, agent, caplog):
    agent.macs = [f"52:54:00:00:01:{n:02x}" for n in range(100)]
    assert agent.try_to_hand_in(node_uuid="00000000-0000-4000-8000-000000000000").status == 404
    line = next(r.getMessage() for r in caplog.records if "is refused" in r.getMessage())
    assert "and 92 more" in line
    assert len(line) < 400


def test_an_agent_of_old_is_told_the_uuid_alone(stage, node, agent):
    answer = agent.try_to_hand_in(version="1.1")
    assert (answer.status, answer.json) == (202, {"uuid": node})
    stage.wait_for(node, "manageable")


@pytest.mark.parametrize("version", ["1.2", "1.83"])
def test_versions_between_know_no_inspection(stage, node, agent, version):
    assert agent.try_to_hand_in(version=version).status == 404
    assert agent.try_to_hand_in(version="1.1", node_uuid=node).status == 404


@pytest.mark.parametrize(
    "data",
    [
        {}, [], None, {"inventory": {}}, {"inventory": {"interfaces": []}},
        {"inventory": {"interfaces": [{}]}}, {"inventory": {"interfaces": [{"mac_address": 5}]}},
        {"inventory": {"interfaces": [{"mac_address": "nonsense"}]}},
        {"inventory": {"interfaces": [{"mac_address": MAC}], "bmc_address": 5}},
    ],
)  # fmt: skip
def test_an_inventory_that_is_none_is_refused(stage, node, agent, data):
    raw = rows.dump(data).encode()
    answer = agent.api.ask("POST", "/v1/continue_inspection", raw=raw, version="1.84")
    assert answer.status == 400, answer.body
    assert stage.standing(node) == ("inspect wait", "manageable")


def test_a_node_that_waits_for_nothing_is_not_there(stage, agent):
    node = stage.bring_to("manageable", inspect_interface="agent")
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    assert agent.try_to_hand_in().status == 404
    assert agent.try_to_hand_in(node_uuid=node).status == 404
    assert agent.try_to_hand_in(node_uuid="00000000-0000-4000-8000-000000000000").status == 404
    assert stage.standing(node) == ("manageable", None)


def test_a_node_is_found_by_its_bmc(stage):
    node = stage.bring_to(
        "manageable", inspect_interface="agent", driver_info={"redfish_address": f"https://{BMC}"}
    )
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    agent = Agent(stage.api, ["52:54:00:00:00:07"])
    assert agent.try_to_hand_in().status == 404
    data = {"inventory": agent.inventory(bmc_address=BMC)}
    assert agent.try_to_hand_in(data).status == 202
    stage.wait_for(node, "manageable")


def test_what_leads_to_two_nodes_leads_to_none(stage, node, agent):
    other = stage.bring_to(
        "manageable", inspect_interface="agent", driver_info={"ipmi_address": BMC}
    )
    stage.ask(other, "inspect")
    stage.wait_for(other, "inspect wait")
    data = {"inventory": agent.inventory(bmc_address=BMC)}
    assert agent.try_to_hand_in(data).status == 404
    assert agent.try_to_hand_in(node_uuid=other).status == 404
    assert stage.standing(node) == stage.standing(other) == ("inspect wait", "manageable")


def test_a_heartbeat_does_not_end_the_wait_for_an_inventory(stage, node, agent):
    agent.look_up()
    assert agent.call().status == 202
    stage.site.agent_calls(node)
    assert stage.standing(node) == ("inspect wait", "manageable")
    assert agent.try_to_hand_in().status == 202
    stage.wait_for(node, "manageable")


def test_abort_ends_the_wait(stage, node, agent):
    stage.ask(node, "abort")
    shown = stage.wait_for(node, "inspect failed")
    assert "aborted on request" in shown["last_error"]
    assert shown["power_state"] == "power off"
    assert agent.try_to_hand_in().status == 404


def test_an_agent_that_never_comes_is_not_waited_for_for_ever(stage, node):
    stage.let_time_pass(node)
    assert stage.standing(node) == ("inspect failed", "manageable")
    assert "inspect_wait_timeout" in stage.show(node)["last_error"]


def test_a_node_that_may_not_be_off_is_restarted(stage, agent):
    node = stage.bring_to("manageable", inspect_interface="agent", disable_power_off=True)
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    stage.ask(node, "inspect")
    assert stage.wait_for(node, "inspect wait")["power_state"] == "power on"
    assert agent.try_to_hand_in().status == 202
    assert stage.wait_for(node, "manageable")["power_state"] == "power on"


def test_a_machine_that_nobody_here_boots_boots_from_its_network(make_stage):
    stage = make_stage(enabled_inspect_interfaces=("agent",))
    node = stage.bring_to("manageable", driver_info={"inspector_manage_boot": "false"})
    stage.ask(node, "inspect")
    shown = stage.wait_for(node, "inspect wait")
    assert shown["driver_internal_info"]["inspector_manage_boot"] is False
    device = stage.api.get(f"/v1/nodes/{node}/management/boot_device").json
    assert device == {"boot_device": "pxe", "persistent": False}


def test_inspection_out_of_band_takes_no_inventory(stage, agent):
    node = stage.bring_to("manageable", fake={"wait": {"inspect.inspect_hardware": -1}})
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    assert agent.try_to_hand_in().status == 400
    assert stage.standing(node) == ("inspect wait", "manageable")


# -------------------------------------------------------------------------------- discovery


def test_an_unknown_machine_is_enrolled_where_it_is_wanted(stage, agent):
    assert agent.try_to_hand_in().status == 404
    stage.configure("auto_discovery", enabled=True, driver="fake-hardware")
    agent.expect(agent.try_to_hand_in(), 202)
    node = agent.node["uuid"]
    shown = stage.wait_for(node, "enroll")
    assert shown["properties"]["cpu_arch"] == "x86_64"
    assert (shown["driver"], shown["inspect_interface"]) == ("fake-hardware", "agent")
    data = stage.api.get(f"/v1/nodes/{node}/inventory").json["plugin_data"]
    assert data["auto_discovered"] is True
    assert stage.steps(node, "discover") == [("inspect.process", "done")]
    assert arguments(stage, node) == {"{}"}


def test_a_machine_that_cannot_be_enrolled_is_not_told_why(stage, agent):
    stage.configure("auto_discovery", enabled=True, driver="no-such")
    assert agent.try_to_hand_in().status == 404


def test_strangers_without_a_login_fill_no_site(stage, agent, caplog):
    stage.api.post("/v1/nodes", {"driver": "fake-hardware"})
    discovery = {"enabled": True, "driver": "fake-hardware"}
    stage.configure("auto_discovery", **discovery, most_enrolled=1)
    assert agent.try_to_hand_in().status == 404
    assert len(stage.api.get("/v1/nodes").json["nodes"]) == 1
    assert "[auto_discovery]most_enrolled" in caplog.text
    stage.configure("auto_discovery", **discovery, most_enrolled=2)
    agent.expect(agent.try_to_hand_in(), 202)


def test_a_discovery_that_fails_leaves_no_node(stage, agent):
    stage.configure("auto_discovery", enabled=True, driver="fake-hardware")
    agent.expect(agent.try_to_hand_in({"inventory": agent.inventory(), "error": "broken"}), 202)
    wait_for(lambda: stage.api.get("/v1/nodes").json["nodes"] == [], "no node")
    assert stage.site.rows(STEP_RUNS) == []


def test_an_agent_that_posts_twice_at_a_time_gets_one_node(stage, agent, monkeypatch):
    stage.configure("auto_discovery", enabled=True, driver="fake-hardware")
    real, nobody_else_came = inspection.process, [True]

    def process(task, *args, **more):
        if nobody_else_came:
            nobody_else_came.clear()
            agent.expect(agent.try_to_hand_in(), 202)
            wait_for(lambda: stage.api.get("/v1/ports").json["ports"], "its ports")
        return real(task, *args, **more)

    monkeypatch.setattr(inspection, "process", process)
    monkeypatch.setitem(enrollment.DISCOVER.own_steps, "process", process)
    assert agent.try_to_hand_in().status == 202
    wait_for(lambda: agent.node, "the other post")
    wait_for(lambda: len(stage.api.get("/v1/nodes").json["nodes"]) == 1, "one node")
    assert stage.wait_for(agent.node["uuid"], "enroll")["properties"]["cpu_arch"] == "x86_64"
