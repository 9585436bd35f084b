"""Deployments in trees: servers that answer before their engine has written what it did."""

from __future__ import annotations

from bloomery.model.stacks import OrderKind
from tests.kit.stacks import tree_world
from tests.kit.stacks.memory_machines import MemorySoftware

DEPLOYED = """
resources:
  c: {type: OS::Heat::SoftwareConfig, properties: {config: echo, group: script}}
  d:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: c}, server: server-1}
"""


def begun(world):
    return any(each.name == "d" and each.pending_action for each in world.store.resources.values())


def test_the_token_of_a_deployment_is_stored_before_its_server_can_know_it():
    software = MemorySoftware()
    world = tree_world.World(software=lambda _project: software)
    world.create(DEPLOYED)
    world.run(lambda: begun(world))
    token = world.row("d").data["token"]
    assert "token" in world.row("d").redacted
    assert software.deployments == {}
    world.kill = lambda when, _number: when == "before" and bool(software.deployments)
    world.run(lambda: bool(software.deployments))
    (deployment,) = software.deployments.values()
    inputs = software.configs[deployment["config_id"]]["inputs"]
    assert any(str(entry.get("value")).endswith(f"?token={token}") for entry in inputs)
    assert world.row("d").physical_id is None
    world.kill = lambda _when, _number: False
    world.ask(OrderKind.SIGNAL, "d", details={"deploy_status_code": 0})
    world.run()
    assert world.state == "CREATE_COMPLETE"
    assert world.row("d").data["token"] == token
    assert len(software.deployments) == 1


def test_a_deployment_that_nobody_answers_says_at_the_time_out_for_whom_it_waited():
    software = MemorySoftware()
    world = tree_world.World(software=lambda _project: software)
    world.deadline_s = 60
    world.create(DEPLOYED)
    world.run()
    assert (world.state, world.root.reason) == ("CREATE_FAILED", "Timed out")
    assert world.row("d").reason.endswith("Timed out): server server-1 has not signalled yet")
