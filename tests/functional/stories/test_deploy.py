"""Deploy: an available node gets its user's system."""

from __future__ import annotations

import json

import pytest

from bloomery.db.tables import DEPLOY_TEMPLATES, NODES

DRIVE = "H4sIAAAAAAAAAwMAAAAAAAAAAAA="
CALLS = {"wait": {"deploy.deploy": 0.01}}
NEVER_CALLS = {"wait": {"deploy.deploy": -1}}


@pytest.fixture
def node(stage):
    return stage.bring_to("available")


def step(interface, name, priority, **args):
    return {"interface": interface, "step": name, "args": args, "priority": priority}


def test_deployed_node_is_active(stage, node):
    request = stage.ask(node, "active")
    shown = stage.wait_for(node, "active")
    assert stage.standing(node) == ("active", None)
    assert (shown["last_error"], shown["deploy_step"]) == (None, {})
    assert stage.moves(node)[-2:] == ["available -> deploying", "deploying -> active"]
    assert stage.told(node)[-2:] == ["provision_set.start", "provision_set.end"]
    assert stage.steps(node, "deploy") == [("deploy.prepare", "done"), ("deploy.deploy", "done")]
    assert request in {row["request_id"] for row in stage.site.history(node)}


def test_configdrive_is_sealed_where_it_is_stored_and_masked_where_it_is_shown(stage, node):
    stage.ask(node, "active", configdrive=DRIVE)
    stage.wait_for(node, "active")
    [row] = stage.site.rows(NODES, uuid=node)
    assert DRIVE not in str(row)
    stored = json.loads(row["instance_info"])["configdrive"]
    assert stage.site.runtime.sealer.open(stored) == DRIVE
    assert stage.show(node)["instance_info"]["configdrive"] == "******"


def test_steps_of_the_request_override_those_of_the_driver(stage, node):
    off = [step("deploy", "deploy", 0)]
    stage.ask(node, "active", deploy_steps=[*off, step("bios", "factory_reset", 9)])
    stage.wait_for(node, "active")
    assert stage.steps(node, "deploy") == [
        ("deploy.prepare", "done"), ("bios.factory_reset", "done"),
    ]  # fmt: skip


def test_a_deployment_without_steps_fails(stage, node):
    stage.ask(node, "active", deploy_steps=[step("deploy", "deploy", 0)])
    shown = stage.wait_for(node, "deploy failed")
    assert "no deploy step is left" in shown["last_error"]
    assert stage.care(node) == (False, None)


def test_the_core_step_is_not_moved(stage, node):
    answer = stage.try_to(node, "active", deploy_steps=[step("deploy", "deploy", 50)])
    assert answer.status == 400
    assert "its priority can be 0 only" in answer.said
    assert stage.standing(node) == ("available", None)


@pytest.mark.parametrize("priority", [50, 0])
def test_a_step_that_no_interface_offers_is_named(stage, node, priority):
    answer = stage.try_to(node, "active", deploy_steps=[step("raid", "build", priority)])
    assert answer.status == 400
    assert "no interface of it offers raid.build; it offers" in answer.said
    assert stage.standing(node) == ("available", None)


def test_failing_deployment_can_be_repeated_and_given_up(stage, node):
    stage.behave(node, fail=["deploy.deploy"])
    stage.ask(node, "active")
    shown = stage.wait_for(node, "deploy failed")
    assert stage.standing(node) == ("deploy failed", "active")
    assert "deploy.deploy" in shown["last_error"]
    assert shown["deploy_step"] == {}
    assert stage.care(node) == (False, None)
    assert stage.errors(node) == [shown["last_error"]]
    stage.ask(node, "active")
    stage.wait_for(node, "deploy failed")
    assert stage.moves(node)[-2:] == ["deploy failed -> deploying", "deploying -> deploy failed"]
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["last_error"] is None


def test_what_was_prepared_is_taken_away_after_a_failure(stage, node):
    """A clean-up that fails, too, does not hide the first failure."""
    stage.behave(node, fail=["deploy.deploy", "deploy.clean_up"])
    stage.ask(node, "active")
    assert "deploy.deploy" in stage.wait_for(node, "deploy failed")["last_error"]


def test_node_waits_for_its_agent_and_goes_on(stage, node):
    stage.site.service.periodics.stop()  # it would let the agent call before we look
    stage.behave(node, **CALLS)
    stage.ask(node, "active")
    shown = stage.wait_for(node, "wait call-back")
    assert stage.standing(node) == ("wait call-back", "active")
    assert shown["deploy_step"]["step"] == "deploy"
    assert shown["reservation"] is None
    stage.let_agents_call(node, "active")
    assert stage.moves(node)[-4:] == [
        "available -> deploying", "deploying -> wait call-back", "wait call-back -> deploying",
        "deploying -> active",
    ]  # fmt: skip
    assert stage.steps(node, "deploy") == [("deploy.prepare", "done"), ("deploy.deploy", "done")]


def test_agent_that_never_calls_is_not_waited_for_for_ever(stage, node):
    stage.behave(node, **NEVER_CALLS)
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    stage.let_agents_call(node, "wait call-back")
    stage.let_time_pass(node)
    assert stage.standing(node) == ("deploy failed", "active")
    said = stage.show(node)["last_error"]
    assert "timed out in wait call-back" in said
    assert "deploy_callback_timeout" in said
    assert stage.steps(node, "deploy")[-1] == ("deploy.deploy", "failed")


def test_abort_while_it_waits(stage, node):
    stage.behave(node, **NEVER_CALLS)
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    stage.ask(node, "abort")
    shown = stage.wait_for(node, "deploy failed")
    assert stage.standing(node) == ("deploy failed", "active")
    assert "aborted on request in wait call-back at step deploy.deploy" in shown["last_error"]
    assert shown["deploy_step"] == {}
    assert stage.care(node) == (False, None)
    assert stage.steps(node, "deploy")[-1] == ("deploy.deploy", "failed")
    assert stage.why(node)["step"] is None


def test_rebuild_deploys_anew_and_keeps_the_instance(stage, node):
    stage.patch(node, **{"instance_info.hostname": "web-1"})
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    stage.ask(node, "rebuild")
    shown = stage.wait_for(node, "active")
    assert stage.moves(node)[-2:] == ["active -> deploying", "deploying -> active"]
    assert shown["instance_info"]["hostname"] == "web-1"


def test_protected_node_refuses_what_would_end_it(stage, node):
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    stage.patch(node, protected=True, protected_reason="the database")
    for verb in ("rebuild", "deleted"):
        answer = stage.try_to(node, verb)
        assert answer.status == 403, verb
        assert "protected" in answer.said
    assert stage.api.delete(f"/v1/nodes/{node}").status in {403, 409}
    stage.api.put(f"/v1/nodes/{node}/maintenance", {})
    assert stage.api.delete(f"/v1/nodes/{node}").status == 403
    assert stage.standing(node) == ("active", None)
    stage.api.delete(f"/v1/nodes/{node}/maintenance")
    stage.patch(node, protected=False)
    stage.ask(node, "rebuild")
    assert stage.wait_for(node, "active")["protected_reason"] is None


def test_maintenance_refuses_a_deployment(stage, node):
    stage.patch(node, maintenance=True)
    for verb in ("active", "deploy"):
        answer = stage.try_to(node, verb)
        assert answer.status == 400, verb
        assert f"baremetal node maintenance unset {node} (DELETE /v1/nodes/" in answer.said
    stage.patch(node, name="web-1")
    assert "node maintenance unset web-1 (DELETE" in stage.try_to(node, "active").said


@pytest.mark.parametrize("name", ["web-1", None])
def test_refusals_call_a_node_by_its_name(stage, node, name):
    stage.site.set(node, name=name, instance_info='{"traits": ["CUSTOM_GPU"]}')
    refusals = [
        stage.try_to(node, "active"),
        stage.try_to(node, "provide"),
        stage.try_power(node, "power sideways"),
        stage.api.patch(f"/v1/nodes/{node}", [{"op": "add", "path": "/retired", "value": True}]),
    ]
    stage.site.set(node, provision_state="active", protected=True, disable_power_off=True)
    refusals += [
        stage.try_to(node, "deleted"),
        stage.try_to(node, "rebuild"),
        stage.try_power(node, "power off"),
        stage.api.delete(f"/v1/nodes/{node}"),
    ]
    stage.site.set(node, provision_state="cleaning", reservation="host-1")
    refusals += [stage.try_to(node, "active"), stage.try_power(node, "power on")]
    for answer in refusals:
        assert answer.status >= 400
        assert (name or node) in answer.said, answer.said
        assert name is None or node not in answer.said, answer.said
    stage.site.set(node, provision_state="available", reservation=None)


def test_limit_on_deployments_is_told_and_nothing_is_written(make_stage):
    stage = make_stage(max_concurrent_deploy=1)
    busy = stage.bring_to("available", NEVER_CALLS)
    node = stage.bring_to("available")
    stage.ask(busy, "active")
    stage.wait_for(busy, "wait call-back")
    before = stage.site.everything()
    answer = stage.try_to(node, "active")
    assert answer.status == 503
    assert "max_concurrent_deploy" in answer.said
    assert without_locks(stage.site.everything()) == without_locks(before)


def without_locks(tables):
    return {
        name: [{k: v for k, v in row.items() if k != "lock_generation"} for row in found]
        for name, found in tables.items()
    }


def test_missing_driver_value_is_told_before_anything_moves(stage, node):
    stage.misconfigure(node)
    answer = stage.try_to(node, "active")
    assert answer.status == 400
    assert "driver_info/fake" in answer.said
    assert stage.standing(node) == ("available", None)


# ------------------------------------------------------------------------------ deploy templates


def template(stage, name, *steps):
    answer = stage.api.post("/v1/deploy_templates", {"name": name, "steps": list(steps)})
    assert answer.status == 201
    return f"/v1/deploy_templates/{answer.json['uuid']}"


def ask_for(stage, node, *traits):
    stage.api.put(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_A", "CUSTOM_B"]})
    asked = [{"op": "add", "path": "/instance_info/traits", "value": list(traits)}]
    assert stage.api.patch(f"/v1/nodes/{node}", asked).status == 200


def test_templates_of_the_instances_traits_override_the_driver_and_the_request_overrides_them(
    stage, node
):
    template(stage, "CUSTOM_A", step("deploy", "deploy", 0), step("power", "power_on", 40))
    template(stage, "CUSTOM_C", step("power", "reboot", 50))
    ask_for(stage, node, "CUSTOM_A")
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    assert stage.steps(node, "deploy") == [("deploy.prepare", "done"), ("power.power_on", "done")]
    others = [step("power", "power_on", 0), step("bios", "factory_reset", 9)]
    stage.ask(node, "rebuild", deploy_steps=others)
    stage.wait_for(node, "active")
    assert stage.steps(node, "deploy")[-2:] == [
        ("deploy.prepare", "done"), ("bios.factory_reset", "done"),
    ]  # fmt: skip


def test_a_step_of_two_templates_and_a_trait_that_the_node_lacks_are_refused(stage, node):
    for name in ("CUSTOM_A", "CUSTOM_B"):
        template(stage, name, step("power", "power_on", 40))
    ask_for(stage, node, "CUSTOM_A", "CUSTOM_B")
    answer = stage.api.put(f"/v1/nodes/{node}/states/provision", {"target": "active"})
    assert (answer.status, "power.power_on must come once" in str(answer.body)) == (400, True)
    ask_for(stage, node, "CUSTOM_C")
    answer = stage.api.put(f"/v1/nodes/{node}/states/provision", {"target": "active"})
    assert (answer.status, "CUSTOM_C" in str(answer.body)) == (400, True)
    assert stage.standing(node)[0] == "available"


def test_a_step_of_a_template_that_no_interface_offers_is_named_with_the_template(stage, node):
    template(stage, "CUSTOM_A", step("deploy", "write_imgae", 40))
    ask_for(stage, node, "CUSTOM_A")
    answer = stage.try_to(node, "active")
    assert answer.status == 400
    assert "deploy.write_imgae (of deploy template CUSTOM_A)" in answer.said
    assert stage.standing(node) == ("available", None)


def test_a_template_is_changed_by_the_index_of_a_step_and_its_secrets_are_sealed(stage):
    path = template(stage, "CUSTOM_A", step("power", "power_on", 40, admin_password="hunter2"))
    change = [{"op": "replace", "path": "/steps/0/priority", "value": "41"}]
    [shown] = stage.api.patch(path, change).json["steps"]
    assert (shown["priority"], shown["args"]) == (41, {"admin_password": "******"})
    [row] = stage.site.rows(DEPLOY_TEMPLATES, name="CUSTOM_A")
    assert "hunter2" not in str(row)
