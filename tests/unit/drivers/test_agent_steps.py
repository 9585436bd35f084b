"""Steps that an agent offers: what is known of them before it boots, and what is asked of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Agent, Deploy
from bloomery.drivers.agent import agent_steps, image
from bloomery.drivers.agent.deploy import AgentDeploy
from bloomery.model.node import Node
from bloomery.model.step import Step
from tests.kit.machines.agent_server import AgentServer, step
from tests.kit.machines.driver_task import FakeTask

CONF = dataclasses.replace(Conf(), agent=Agent(command_timeout=2, verify_ca="False"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentServer]:
    with AgentServer(tmp_path) as made:
        made.token = "t" * 32
        yield made


@pytest.fixture
def task(server: AgentServer) -> FakeTask:
    info = {"agent_url": server.url, "agent_secret_token": server.token}
    return FakeTask({}, driver_internal_info=info, provision_state="cleaning")


def priorities(node: Node, phase: str = "clean", **options: Any) -> dict[str, int]:
    conf = dataclasses.replace(Conf(), deploy=Deploy(**options))
    return {
        step.step: step.priority
        for step in agent_steps.list_steps(node, phase, conf)
        if step.priority
    }


def test_an_agent_that_never_booted_is_taken_to_be_the_published_one(task: FakeTask) -> None:
    assert priorities(task.node) == {"erase_devices": 10, "erase_devices_metadata": 99}
    names = {step.step for step in agent_steps.list_steps(task.node, "deploy", Conf())}
    assert names == {
        "apply_configuration", "erase_devices_metadata", "clean_uefi_nvram", "inject_files",
    }  # fmt: skip
    assert agent_steps.list_steps(task.node, "verify", Conf()) == []


def test_the_operators_priorities_are_those_of_cleaning_alone(task: FakeTask) -> None:
    options = {"erase_devices_priority": 0, "erase_devices_metadata_priority": 50}
    assert priorities(task.node, **options) == {"erase_devices_metadata": 50}
    assert priorities(task.node, "deploy", **options) == {}


def test_what_an_agent_told_is_remembered_for_the_next_plan(
    server: AgentServer, task: FakeTask
) -> None:
    server.steps["clean"] = [
        step("flash", 50, reboot_requested=True, abortable=False, argsinfo={"url": {}}),
        step("create_configuration", 0, interface="raid", abortable=False),
        step("factory_reset", 0, interface="bios"),
    ]
    agent_steps.refresh(task, CONF, "clean")
    assert agent_steps.list_steps(task.node, "clean", Conf()) == [
        Step(interface="deploy", step="flash", priority=50, argsinfo={"url": {}}, resumable=True),
        Step(interface="raid", step="create_configuration", resumable=True),
    ]
    assert task.node.driver_internal_info["hardware_manager_version"] == server.versions


def test_an_agent_that_tells_too_much_is_not_remembered(
    server: AgentServer, task: FakeTask
) -> None:
    server.steps["clean"] = [step(f"step-{n}", note="x" * 1000) for n in range(300)]
    with pytest.raises(errors.StepFailure, match="KiB, and 256 can be remembered"):
        agent_steps.refresh(task, CONF, "clean")
    assert "agent_cached_clean_steps" not in task.node.driver_internal_info


@pytest.mark.parametrize(
    "entry",
    [{}, {"step": 7, "interface": "deploy"}, {"step": "a"}, "a", None,
     {"step": "a", "interface": "deploy", "priority": "high"}],
    ids=str,
)  # fmt: skip
def test_a_list_that_is_none_fails_by_name(server: AgentServer, task: FakeTask, entry: Any) -> None:
    server.steps["clean"] = [entry]
    with pytest.raises(errors.StepFailure, match="is no list of steps"):
        agent_steps.refresh(task, CONF, "clean")


def test_an_agent_sees_no_secret_of_the_node(server: AgentServer, task: FakeTask) -> None:
    task.node.driver_info = {"redfish_password": {"$sealed": "x", "token": "y"}}
    task.node.instance_info = {"configdrive": {"$sealed": "x", "token": "y"}, "image_url": "u"}
    agent_steps.refresh(task, CONF, "clean")
    node = server.params["clean.get_clean_steps"]["node"]
    assert node["driver_info"] == {"redfish_password": "******"}
    assert node["instance_info"] == {"configdrive": "******", "image_url": "******"}
    assert node["driver_internal_info"]["agent_secret_token"] == "******"
    assert node["driver_internal_info"]["agent_erase_devices_iterations"] == 1


def test_agents_whose_versions_change_all_the_time_are_given_up(
    server: AgentServer, task: FakeTask
) -> None:
    server.mismatches = 2
    deploy, asked = AgentDeploy(CONF), Step(interface="deploy", step="erase_devices")
    for _ in range(2):
        deploy.run_step(task, asked)
        task.turn = 1
        server.finish()
    with pytest.raises(errors.StepFailure, match="hardware managers change all the time"):
        deploy.run_step(task, asked)


def test_a_step_of_nobody_is_named(task: FakeTask) -> None:
    with pytest.raises(errors.StepNotFound, match="dance"):
        AgentDeploy(CONF).run_step(task, Step(interface="deploy", step="dance"))


def test_an_agents_step_is_none_where_no_agent_runs(task: FakeTask) -> None:
    task.node.provision_state = "manageable"
    with pytest.raises(errors.StepNotFound, match="erase_devices"):
        AgentDeploy(CONF).run_step(task, Step(interface="deploy", step="erase_devices"))


@pytest.mark.parametrize(
    ("instance", "properties", "seen", "mode"),
    [
        ({"capabilities": "boot_mode:bios"}, {"capabilities": "boot_mode:uefi"}, "uefi", "bios"),
        ({}, {"capabilities": "boot_mode:bios"}, "uefi", "bios"),
        ({}, {}, "bios", "bios"),
        ({}, {}, None, "uefi"),
    ],
)
def test_a_machine_boots_as_asked_else_as_seen_else_as_most_do(
    task: FakeTask, instance: Any, properties: Any, seen: str | None, mode: str
) -> None:
    task.node.instance_info, task.node.properties = instance, properties
    task.node.boot_mode = seen
    assert image.boot_mode(task, CONF) == mode
