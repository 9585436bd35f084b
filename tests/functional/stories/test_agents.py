"""An agent in a ramdisk: it looks its node up, calls, and is told to go on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bloomery.conductor import task_manager
from bloomery.db import rows
from tests.kit.machines import agent as kit
from tests.kit.machines.agent import Agent
from tests.kit.waiting import wait_for

MAC = "52:54:00:00:00:01"
WAITS = {"wait": {"deploy.deploy": -1}}  # for an agent that no driver plays


@pytest.fixture
def stage(make_stage, tmp_path):
    stage = make_stage()
    stage.configure("agent", certificates_path=str(tmp_path / "certificates"))
    return stage


@pytest.fixture
def node(stage):
    return waiting_node(stage)


def waiting_node(stage):
    """Return a node that waits for its agent."""
    node = stage.bring_to("available", fake=WAITS)
    port = {"node_uuid": node, "address": MAC}
    assert stage.api.post("/v1/ports", port).status == 201
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    return node


@pytest.fixture
def agent(stage):
    return Agent(stage.api, [MAC])


def info(stage, node):
    return stage.site.node(node).driver_internal_info


# ------------------------------------------------------------------------------------ lookup


def token_for(stage, agent, address):
    stage.api.address, before = address, stage.api.address
    try:
        return agent.try_to_look_up().json["config"]["agent_token"]
    finally:
        stage.api.address = before


def test_a_token_whose_answer_was_lost_is_given_again_to_its_address_until_a_heartbeat(
    stage, node, agent
):
    first = token_for(stage, agent, "192.0.2.7")
    assert (len(first) >= 32, info(stage, node)["agent_looked_up"]) == (True, True)
    assert token_for(stage, agent, "192.0.2.7") == first
    assert token_for(stage, agent, "192.0.2.8") == "******"
    with stage.site.acquire(node, purpose="test") as task:  # a flow that saves keeps both
        token_for(stage, agent, "192.0.2.7")
        task.node.extra = {"a": 1}
        task.save()
    assert token_for(stage, agent, "192.0.2.7") == first
    stage.api.put(f"/v1/nodes/{node}/maintenance")
    agent.look_up()
    agent.config["agent_token"] = first
    assert agent.call().status == 202
    assert token_for(stage, agent, "192.0.2.7") == "******"


def test_an_agent_finds_its_node_and_gets_a_token(stage, node, agent):
    agent.look_up()
    assert agent.node["uuid"] == node
    assert sorted(agent.node) == [
        "driver_internal_info", "instance_info", "links", "properties", "uuid",
    ]  # fmt: skip
    assert len(agent.config["agent_token"]) >= 32


def test_an_agent_is_told_how_to_work(agent, node):
    agent.look_up()
    config = agent.config
    assert config.pop("agent_token")
    assert config == {
        "metrics": {
            "backend": "noop", "prepend_host": False, "prepend_uuid": False,
            "prepend_host_reverse": True, "global_prefix": None,
        },
        "metrics_statsd": {"statsd_host": "localhost", "statsd_port": 8125},
        "heartbeat_timeout": 300,
        "agent_containers": {
            "allow_arbitrary_containers": False, "allowed_containers": [],
            "container_steps_file": "/etc/ironic-python-agent.d/mysteps.yaml",
            "runner": "podman", "pull_options": [], "run_options": ["--rm", "--network=host"],
        },
        "agent_token_required": True,
        "agent_md5_checksum_enable": True,
        "disable_deep_image_inspection": False,
        "permitted_image_formats": ["raw", "gpt", "qcow2", "iso"],
        "agent_skip_bmc_detect": False,
        "enable_bios_bootloader_install": False,
        "tls_min_version": "1.3",
        "tls_cipher_suites": None,
    }  # fmt: skip


def test_the_token_is_kept_sealed_and_shown_to_nobody(stage, node, agent):
    agent.look_up()
    token = agent.config["agent_token"]
    assert token not in rows.dump(info(stage, node))
    assert stage.show(node)["driver_internal_info"]["agent_secret_token"] == "******"
    assert agent.try_to_look_up().json["node"]["driver_internal_info"]["agent_secret_token"] == (
        "******"
    )


def test_lookups_of_an_agent_at_once_get_one_token(stage, node):
    tokens = []
    start = threading.Barrier(4)

    def look_up():
        start.wait()
        tokens.append(Agent(stage.api, [MAC]).try_to_look_up().json["config"]["agent_token"])

    threads = [threading.Thread(target=look_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(tokens)), "******" in tokens) == (1, False)


def test_a_flow_that_holds_the_node_keeps_the_token_of_a_lookup(stage, node, agent):
    """The agent asks while it boots or writes an image, and is not told to come again."""
    with stage.site.acquire(node) as task:
        agent.look_up()
        task.node.driver_internal_info["step"] = 1
        task.save()
        assert task.node.driver_internal_info["agent_secret_token"]
        task.node.driver_internal_info["step"] = 2
        task.save()
    assert info(stage, node)["step"] == 2
    assert agent.call().status == 202


def test_a_token_for_a_kernel_is_in_the_row_before_anybody_has_it(stage, node, agent):
    with stage.site.acquire(node) as task:
        token = task.make_agent_token()
        agent.look_up()
        assert agent.token == "******"
        assert task.make_agent_token() == token, "once for each boot"
    assert token not in rows.dump(info(stage, node))
    agent.boot(f"quiet ipa-agent-token={token}")
    agent.look_up()
    assert agent.call().status == 202


def test_a_token_that_a_lookup_gave_is_void_when_a_kernel_gets_one(stage, node, agent):
    agent.look_up()
    with stage.site.acquire(node) as task:
        task.make_agent_token()
    assert agent.call().status == 400


def test_a_token_of_a_kernel_ends_with_what_boots_the_agent(stage, node):
    with stage.site.acquire(node) as task:
        token = task.make_agent_token()
        task.forget_agent(may_boot_again=True)
        assert task.make_agent_token() == token
        task.forget_agent()
        assert task.make_agent_token() != token


def test_a_session_that_ends_drops_a_token_that_its_flow_never_saw(stage, node, agent):
    with stage.site.acquire(node) as task:
        agent.look_up()
        task.ends_agent_session = True
        task.save()
    assert "agent_secret_token" not in info(stage, node)
    assert agent.call().status == 400
    agent.look_up()
    assert agent.config["agent_token"] != "******"


def test_a_step_that_restarts_the_node_ends_the_session_of_its_agent(stage):
    stage.configure("api", restrict_lookup=False)
    node = stage.bring_to("manageable")
    hold = {"interface": "deploy", "step": "hold"}
    steps = [hold, {"interface": "power", "step": "reboot"}, hold]
    stage.ask(node, "clean", clean_steps=steps)
    stage.wait_for(node, "clean hold")
    agent = Agent(stage.api)
    agent.look_up(node_uuid=node)
    stage.ask(node, "unhold")
    wait_for(lambda: "last_power_state_change" in info(stage, node), "the node to restart")
    stage.wait_for(node, "clean hold")
    assert "agent_secret_token" not in info(stage, node)
    agent.look_up(node_uuid=node)
    assert agent.config["agent_token"] != "******"


@pytest.mark.parametrize("query", [{}, {"addresses": ""}, {"addresses": "nonsense,11:22"}])
def test_a_lookup_by_nothing_is_refused(stage, node, query):
    assert Agent(stage.api).try_to_look_up(**query).status == 400


def test_a_lookup_by_uuid_needs_no_address(stage, node):
    agent = Agent(stage.api, ["nonsense"])
    agent.look_up(node_uuid=node)
    assert agent.node["uuid"] == node
    assert agent.try_to_look_up(node_uuid="no-uuid").status == 400


def test_addresses_of_two_nodes_find_none(stage, node, agent):
    other = stage.bring_to("available")
    stage.api.post("/v1/ports", {"node_uuid": other, "address": "52:54:00:00:00:02"})
    agent.macs.append("52:54:00:00:00:02")
    assert agent.try_to_look_up().status == 404


def test_a_lookup_does_not_tell_a_missing_node_from_one_that_waits_for_no_agent(stage, agent):
    other = stage.bring_to("available")
    answers = [
        agent.try_to_look_up(node_uuid=uuid)
        for uuid in (other, "00000000-0000-4000-8000-000000000000")
    ]
    assert [answer.status for answer in answers] == [404, 404]
    assert answers[0].body == answers[1].body


def test_lookup_is_as_wide_as_it_is_configured(stage, agent):
    other = stage.bring_to("available", driver_info={"fast_track": True})
    agent.look_up(node_uuid=other)
    plain = stage.bring_to("available")
    stage.configure("api", restrict_lookup=False)
    agent.look_up(node_uuid=plain)


def test_older_agents_get_no_token_and_the_oldest_no_answer(stage, node):
    old = Agent(stage.api, [MAC], version="1.61")
    old.look_up()
    assert old.config["agent_token"] is None
    Agent(stage.api, [MAC]).look_up()
    old.look_up()
    assert old.config["agent_token"] == "******"
    assert Agent(stage.api, [MAC], version="1.21").try_to_look_up().status == 404


# ---------------------------------------------------------------------------------- heartbeat


def test_a_call_lets_the_flow_go_on(stage, node, agent):
    agent.look_up()
    assert agent.call().status == 202
    stage.wait_for(node, "active")
    left = info(stage, node)
    assert left["agent_last_heartbeat"]
    assert not {"agent_secret_token", "agent_url", "agent_verify_ca"} & left.keys()


def test_a_call_may_name_its_node_in_the_body(stage, node, agent):
    agent.look_up()
    assert agent.call(node_ident="nobody").status == 404
    assert agent.call(node_ident="no name").status == 400
    assert agent.call(node_ident=node, agent_token="another").status == 400
    assert agent.call(node_ident=node).status == 202
    stage.wait_for(node, "active")


def test_older_agents_name_no_node_in_the_body_either(stage, node):
    agent = Agent(stage.api, version="1.21")
    assert agent.call(node_ident=node).status == 404
    assert agent.call(node_ident="no name").status == 400
    callback = {"callback_url": kit.URL}
    assert stage.api.post("/v1/heartbeat", callback, version="1.21").status == 400


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("no disk is large enough", "the agent reports an error: no disk is large enough"),
        (None, "the agent reports an error: it says no more"),
        ("x" * 200_000, "(198976 more characters)"),
    ],
    ids=["a sentence", "nothing", "too much"],
)
def test_an_agent_that_reports_an_error_fails_the_step_that_waits(
    stage, node, agent, message, words
):
    agent.version = "1.72"
    agent.look_up()
    assert agent.call(agent_status="error", agent_status_message=message).status == 202
    stage.wait_for(node, "deploy failed")
    shown = stage.site.node(node)
    assert words in shown.last_error
    assert len(rows.dump(shown.driver_internal_info)) < 10_000


def test_texts_of_an_agent_are_bounded(stage, node, agent):
    agent.version = "1.72"
    agent.look_up()
    stage.api.put(f"/v1/nodes/{node}/maintenance")
    assert agent.call(agent_status="end", agent_status_message="y" * 200_000).status == 202
    assert len(info(stage, node)["agent_status_message"]) < 2_000
    assert agent.call(agent_version="1" * 300).status == 400


def test_what_an_agent_says_stands_on_its_node(stage, node, agent):
    agent.version = "1.72"
    agent.look_up()
    stage.api.put(f"/v1/nodes/{node}/maintenance")
    assert agent.call(agent_status="start", agent_status_message="writing").status == 202
    shown = info(stage, node)
    assert shown["agent_url"] == kit.URL
    assert shown["agent_version"] == "11.0.0"
    assert (shown["agent_status"], shown["agent_status_message"]) == ("start", "writing")
    assert Path(shown["agent_verify_ca"]).read_text() == kit.CERTIFICATE


@pytest.mark.parametrize(
    "changes",
    [
        {"agent_token": "another"}, {"agent_token": None}, {"agent_token": "******"},
        {"agent_version": None}, {"callback_url": "http://192.0.2.7:9999"}, {"callback_url": None},
        {"callback_url": "nonsense"}, {"callback_url": "https://"}, {"callback_url": "https://["},
        {"callback_url": "https://192.0.2.7:99999"}, {"agent_status": "happy"}, {"agent_token": 5},
        {"unknown": "x"}, {"agent_token": "\u00e9"},
    ],
)  # fmt: skip
def test_a_call_that_is_wrong_is_refused_and_changes_nothing(stage, node, agent, changes):
    agent.version = "1.72"
    agent.look_up()
    before = stage.site.node(node)
    answer = agent.call(**changes)
    assert (answer.status, answer.form) == (400, "first"), answer.body
    assert agent.config["agent_token"] not in answer.body.decode()
    assert stage.site.node(node) == before


def test_a_call_before_any_lookup_is_refused(stage, node, agent):
    agent.node = {"uuid": node}
    assert agent.call(agent_token="x").status == 400
    agent.node = {"uuid": "00000000-0000-4000-8000-000000000000"}
    assert agent.call(agent_token="x").status == 404


def test_url_and_certificate_stay_the_same_for_a_session(stage, node, agent):
    agent.look_up()
    stage.api.put(f"/v1/nodes/{node}/maintenance")
    assert agent.call().status == 202
    assert agent.call(callback_url="https://192.0.2.8:9999").status == 400
    assert agent.call(agent_verify_ca="another").status == 400
    assert agent.call(agent_verify_ca=None).status == 202
    assert agent.call().status == 202


@pytest.mark.parametrize(
    ("version", "field"),
    [("1.35", "agent_version"), ("1.67", "agent_verify_ca"), ("1.71", "agent_status_message")],
)
def test_fields_that_are_newer_than_the_agent_are_refused(stage, node, agent, version, field):
    agent.look_up()
    agent.version = version
    said = {"agent_verify_ca": None, "agent_version": None} | {field: "x"}
    answer = agent.call(**said)
    assert answer.status == 400
    assert f'"{field}" not recognised' in answer.said


def test_the_first_call_to_a_busy_node_is_put_off_and_later_ones_pass_by(stage, node, agent):
    agent.look_up()
    with stage.site.acquire(node):
        assert agent.call().status == 409
    stage.api.put(f"/v1/nodes/{node}/maintenance")
    assert agent.call().status == 202
    before = stage.site.node(node)
    with stage.site.acquire(node):
        assert agent.call().status == 202
    assert stage.site.node(node).driver_internal_info == before.driver_internal_info


def change_before_the_lock(stage, node, monkeypatch, change):
    """Let ``change`` happen to the node between a call's first look at it and its lock."""
    real = task_manager.acquire

    def acquire(context, node_id, **more):
        if more.get("purpose") == "heartbeat":
            monkeypatch.setattr(task_manager, "acquire", real)
            with real(context, node_id, purpose="another") as task:
                change(task)
                task.save()
        return real(context, node_id, **more)

    monkeypatch.setattr(task_manager, "acquire", acquire)


def test_a_token_that_is_dropped_while_its_agent_calls_is_not_taken(
    stage, node, agent, monkeypatch
):
    agent.look_up()

    def drop(task):
        del task.node.driver_internal_info["agent_secret_token"]
        task.ends_agent_session = True

    change_before_the_lock(stage, node, monkeypatch, drop)
    assert agent.call().status == 400
    assert stage.standing(node) == ("wait call-back", "active")


def test_a_call_does_not_replace_the_url_of_one_that_came_at_the_same_time(
    stage, node, agent, monkeypatch
):
    agent.look_up()

    def name_url(task):
        task.node.driver_internal_info["agent_url"] = "https://192.0.2.8:9999"

    change_before_the_lock(stage, node, monkeypatch, name_url)
    assert agent.call().status == 400
    assert info(stage, node)["agent_url"] == "https://192.0.2.8:9999"


def test_a_call_in_a_state_that_has_no_use_for_it_is_taken_and_ignored(stage, agent):
    other = stage.bring_to("active", driver_info={"fast_track": False})
    stage.configure("api", restrict_lookup=False)
    agent.look_up(node_uuid=other)
    before = info(stage, other)
    assert agent.call().status == 202
    assert info(stage, other) == before


def test_a_call_is_recorded_alone_where_agents_may_run_early(stage, agent):
    other = stage.bring_to("available", driver_info={"fast_track": True})
    agent.look_up(node_uuid=other)
    assert agent.call().status == 202
    assert info(stage, other)["agent_url"] == kit.URL
    assert stage.standing(other) == ("available", None)


def test_maintenance_ends_a_flow_where_provisioning_in_it_is_forbidden(make_stage):
    stage = make_stage(allow_provisioning_in_maintenance=False)
    node = stage.bring_to("available", fake=WAITS)
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    stage.api.put(f"/v1/nodes/{node}/maintenance")
    agent = Agent(stage.api)
    agent.look_up(node_uuid=node)
    assert agent.call(agent_verify_ca=None).status == 202
    assert "in maintenance" in stage.wait_for(node, "deploy failed")["last_error"]


def test_agents_are_kept_out_where_they_are_not_wanted(stage, node, agent):
    agent.look_up()
    stage.configure("api", enable_ramdisk_endpoints=False)
    assert agent.try_to_look_up().status == 403
    assert agent.call().status == 403


def test_the_certificate_goes_with_its_node(stage, agent):
    other = stage.bring_to("manageable", driver_info={"fast_track": True})
    agent.look_up(node_uuid=other)
    assert agent.call().status == 202
    path = Path(info(stage, other)["agent_verify_ca"])
    assert path.exists()
    assert stage.api.delete(f"/v1/nodes/{other}").status == 204
    assert not path.exists()
