"""PUT states/provision: every verb in every state, and what may come along."""

from __future__ import annotations

import itertools
import uuid as uuids

import pytest
import sqlalchemy as sa

from bloomery.api.versions import MAX
from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.db import rows
from bloomery.db.tables import NODE_TRAITS, RUNBOOKS

STEP = {"interface": "deploy", "step": "erase"}
DEPLOY_STEP = STEP | {"args": {}, "priority": 10}
ALONG = {
    "clean": {"clean_steps": [STEP]},
    "service": {"service_steps": [STEP]},
    "rescue": {"rescue_password": "secret"},
}
SINCE = {
    "manage": 4, "provide": 4, "inspect": 6, "abort": 13, "clean": 15, "adopt": 17,
    "rescue": 38, "unrescue": 38, "deploy": 73,
}  # fmt: skip


def ask(world, uuid, verb, version=MAX, **along):
    body = {"target": verb} | along
    return world.api.put(f"/v1/nodes/{uuid}/states/provision", body, version=version)


@pytest.fixture
def node(world):
    return world.node()


@pytest.mark.parametrize("state", list(State))
def test_every_verb_is_taken_where_the_table_has_its_edge(world, node, state):
    for verb, event in states.VERBS.items():
        world.set(node, provision_state=state)
        answer = ask(world, node, verb, **ALONG.get(verb, {}))
        if (state, event) in states.DRAWN:
            assert answer.status == 202, (state, verb, answer.body)
            assert answer.headers["location"] == f"http://localhost/v1/nodes/{node}/states"
        else:
            assert answer.status == 400, (state, verb)
            assert f'"{verb}"' in answer.said
            assert f'"{state}"' in answer.said


def test_refusal_names_what_is_possible(world, node):
    world.set(node, provision_state="manageable")
    said = ask(world, node, "active").said
    assert "Possible now: provide, inspect, clean, adopt." in said


def test_location_echoes_the_name_that_was_used(world):
    world.api.node(name="web-1")
    answer = world.api.put("/v1/nodes/web-1/states/provision", {"target": "manage"})
    assert answer.headers["location"] == "http://localhost/v1/nodes/web-1/states"


@pytest.mark.parametrize("verb", SINCE)
def test_newer_verb_is_refused_whatever_the_state(world, node, verb):
    assert ask(world, node, verb, version=SINCE[verb] - 1).status == 406


@pytest.mark.parametrize(
    ("verb", "version", "state", "status"),
    [
        ("deploy", 72, "enroll", 406),
        ("undeploy", 72, "enroll", 400),
        ("undeploy", 72, "active", 202),
        ("unhold", 84, "enroll", 400),
        ("unhold", 84, "clean hold", 406),
        ("unhold", 85, "clean hold", 202),
        ("service", 86, "enroll", 400),
        ("service", 86, "active", 406),
        ("service", 87, "active", 202),
        ("abort", 40, "inspect wait", 406),
        ("abort", 41, "inspect wait", 202),
        ("abort", 109, "wait call-back", 406),
        ("abort", 110, "wait call-back", 202),
        ("abort", 13, "clean wait", 202),
    ],
)
def test_state_comes_before_version_for_some_verbs(world, node, verb, version, state, status):
    world.set(node, provision_state=state)
    along = ALONG.get(verb, {}) if version >= 87 or verb != "service" else ALONG["service"]
    assert ask(world, node, verb, version, **along).status == status


@pytest.mark.parametrize(
    ("target", "status"),
    [("nonsense", 400), (None, 400), ("done", 400), ("resume", 400), ("fail", 400)],
)
def test_word_that_is_no_verb_is_a_state_error(world, node, target, status):
    world.set(node, provision_state="deploying")
    answer = ask(world, node, target)
    assert answer.status == status
    assert str(target) in answer.said


def test_target_must_be_a_word(world, node):
    path = f"/v1/nodes/{node}/states/provision"
    assert world.api.put(path, {"target": 5}).status == 400
    assert world.api.put(path, {}).status == 400
    assert world.api.put(path, {"target": "manage", "nonsense": 1}).status == 400
    assert world.api.put(path + "?target=manage").status == 202


@pytest.mark.parametrize("word", ["nonsense", "active", None])
def test_locked_node_says_so_to_any_word(world, node, word):
    world.set(node, reservation="somebody")
    answer = ask(world, node, word)
    assert answer.status == 409
    assert "is locked by host somebody" in answer.said
    assert "retry-after" not in answer.headers  # python-ironicclient fails on it


def test_locked_node_says_so_to_a_verb_that_fits(world, node):
    world.set(node, reservation="somebody")
    assert ask(world, node, "manage").status == 409


@pytest.mark.parametrize("state", ["available", "enroll", "active"])
@pytest.mark.parametrize("verb", ["active", "rebuild"])
def test_maintenance_stops_deployments_in_any_state(world, node, state, verb):
    world.set(node, provision_state=state, maintenance=True)
    answer = ask(world, node, verb)
    assert answer.status == 400
    assert "maintenance" in answer.said


@pytest.mark.parametrize(("verb", "state"), [("deleted", "active"), ("rebuild", "active")])
def test_protected_node_stays(world, node, verb, state):
    world.set(node, provision_state=state, protected=True)
    assert ask(world, node, verb).status == 403


# -------------------------------------------------------------------------------- what goes along


@pytest.mark.parametrize(
    ("state", "verb", "along", "version", "status"),
    [
        ("available", "active", {"configdrive": "http://x/y"}, 1, 202),
        ("available", "active", {"configdrive": "QUJD"}, 1, 202),
        ("available", "active", {"configdrive": ""}, 1, 202),
        ("available", "active", {"configdrive": None}, 1, 202),
        ("available", "active", {"configdrive": "not base64!"}, MAX, 400),
        ("available", "active", {"configdrive": "QUI=\n"}, MAX, 202),
        ("available", "active", {"configdrive": " " * 200_000 + "!"}, MAX, 400),
        ("available", "active", {"configdrive": "A=B"}, MAX, 202),
        ("available", "active", {"configdrive": 5}, MAX, 400),
        ("available", "active", {"clean_steps": []}, MAX, 202),
        ("available", "active", {"service_steps": []}, MAX, 202),
        ("available", "active", {"configdrive": {"meta_data": {}}}, 55, 400),
        ("available", "active", {"configdrive": {"meta_data": {}}}, 56, 202),
        ("available", "active", {"configdrive": {"vendor_data": {}}}, 58, 400),
        ("available", "active", {"configdrive": {"vendor_data": {}}}, 59, 202),
        ("available", "active", {"configdrive": {"user_data": 5}}, MAX, 400),
        ("available", "active", {"configdrive": {"nonsense": {}}}, MAX, 400),
        ("active", "rebuild", {"configdrive": "QUJD"}, 34, 400),
        ("active", "rebuild", {"configdrive": "QUJD"}, 35, 202),
        ("available", "deploy", {"configdrive": "QUJD"}, MAX, 400),
        ("available", "deploy", {"deploy_steps": [DEPLOY_STEP]}, MAX, 400),
        ("enroll", "manage", {"configdrive": "QUJD"}, MAX, 400),
        ("available", "active", {"deploy_steps": [DEPLOY_STEP]}, 68, 406),
        ("available", "active", {"deploy_steps": [DEPLOY_STEP]}, 69, 202),
        ("available", "active", {"deploy_steps": [STEP]}, MAX, 400),
        ("available", "active", {"deploy_steps": {}}, MAX, 400),
        ("enroll", "manage", {"deploy_steps": []}, MAX, 202),
        ("available", "active", {"clean_steps": [STEP]}, MAX, 400),
        ("available", "active", {"service_steps": [STEP]}, MAX, 400),
        ("available", "active", {"rescue_password": "x"}, MAX, 400),
        ("manageable", "clean", {}, MAX, 400),
        ("manageable", "clean", {"clean_steps": []}, MAX, 400),
        ("manageable", "clean", {"clean_steps": [STEP | {"priority": 1}]}, MAX, 400),
        ("manageable", "clean", {"clean_steps": [STEP | {"interface": "network"}]}, MAX, 400),
        ("manageable", "clean", {"clean_steps": [STEP | {"step": ""}]}, MAX, 400),
        ("manageable", "clean", {"clean_steps": [STEP | {"args": {"a": 1}}]}, 15, 202),
        ("manageable", "clean", {"clean_steps": ["x"]}, MAX, 400),
        ("manageable", "clean", {"clean_steps": [STEP], "disable_ramdisk": True}, 69, 406),
        ("manageable", "clean", {"clean_steps": [STEP], "disable_ramdisk": True}, 70, 202),
        ("active", "service", {"service_steps": []}, MAX, 400),
        ("active", "service", {"service_steps": [STEP], "disable_ramdisk": True}, 107, 406),
        ("active", "service", {"service_steps": [STEP], "disable_ramdisk": True}, 108, 202),
        ("available", "active", {"disable_ramdisk": True}, MAX, 400),
        ("available", "active", {"disable_ramdisk": True}, 69, 406),
        ("active", "rescue", {}, MAX, 400),
        ("active", "rescue", {"rescue_password": "   "}, MAX, 400),
        ("manageable", "clean", {"runbook": "x"}, 91, 406),
        ("manageable", "clean", {"runbook": "x"}, MAX, 404),
        ("manageable", "clean", {"runbook": "not a name"}, MAX, 400),
        ("manageable", "clean", {"runbook": "x", "clean_steps": [STEP]}, MAX, 404),
        ("available", "active", {"runbook": "x"}, MAX, 404),
        ("available", "active", {"configdrive": {"a": {"$sealed": "x"}}}, MAX, 400),
        (
            "manageable",
            "clean",
            {"clean_steps": [{"interface": "vendor", "step": "send_raw"}]},
            MAX,
            400,
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_arguments_belong_to_verbs_and_versions(world, node, state, verb, along, version, status):
    world.set(node, provision_state=state)
    answer = ask(world, node, verb, version, **along)
    assert answer.status == status, answer.body
    if status == 406:
        assert "1." in answer.said


@pytest.mark.parametrize(("verb", "state"), [("clean", "manageable"), ("service", "active")])
@pytest.mark.parametrize(("step", "status"), [("send_raw", 400), ("blink", 202)])
def test_a_runbook_runs_no_step_that_the_operator_rules_out(world, node, verb, state, step, status):
    world.set(node, provision_state=state)
    steps = [{"interface": "vendor", "step": step, "args": {}, "order": 1}]
    runbook = {
        "uuid": str(uuids.uuid4()), "name": "book", "steps": rows.dump(steps),
        "traits": rows.dump(["CUSTOM_A"]), "extra": "{}", "disable_ramdisk": 0, "public": 0,
        "created_at": rows.now(),
    }  # fmt: skip
    world.site.db.transact(lambda conn: conn.execute(sa.insert(RUNBOOKS).values(**runbook)))
    trait = {"node_uuid": node, "trait": "CUSTOM_A"}
    world.site.db.transact(lambda conn: conn.execute(sa.insert(NODE_TRAITS).values(**trait)))
    answer = ask(world, node, verb, runbook="book")
    assert answer.status == status, answer.body


def test_wrong_state_is_told_whatever_else_is_wrong(world, node):
    answer = ask(world, node, "active", configdrive="not base64!", clean_steps=[STEP])
    assert answer.status == 400
    assert 'in state "enroll"' in answer.said


def test_arguments_reach_the_conductor(world, node):
    world.set(node, provision_state="available")
    drive = {"meta_data": {"a": 1}, "user_data": "x"}
    ask(world, node, "active", configdrive=drive, deploy_steps=[DEPLOY_STEP])
    _, _, verb, arguments = world.conductor.calls[-1]
    assert (verb, arguments["configdrive"], arguments["steps"]) == ("active", drive, [DEPLOY_STEP])
    world.set(node, provision_state="manageable")
    ask(world, node, "clean", clean_steps=[STEP], disable_ramdisk=True)
    _, _, verb, arguments = world.conductor.calls[-1]
    assert (verb, arguments["steps"], arguments["disable_ramdisk"]) == ("clean", [STEP], True)


def test_no_combination_of_words_and_states_is_an_error_of_ours(world, node):
    words = [*states.VERBS, "done", "", "Active", "x" * 300]
    for state, word in itertools.product([*State, None, "nonsense"], words):
        world.set(node, provision_state=state)
        assert ask(world, node, word).status < 500


def test_wish_to_wait_travels_with_the_request(world, node):
    seen = []
    world.conductor.do_provisioning_action = lambda request, *_, **__: seen.append(request)
    path = f"/v1/nodes/{node}/states/provision"
    for prefer in ("wait=7", "respond-async, wait=600", "wait=x"):
        world.api.put(path, {"target": "manage"}, headers={"Prefer": prefer})
    assert [request.wait_s for request in seen] == [7.0, 60.0, None]
    assert all(uuids.UUID(request.request_id.removeprefix("req-")) for request in seen)


def test_all_interfaces_that_a_step_may_name_are_told(world):
    node = world.node(provision_state="manageable")
    body = {"target": "clean", "clean_steps": [STEP | {"interface": "nope"}]}
    answer = world.api.put(f"/v1/nodes/{node}/states/provision", body)
    assert answer.status == 400
    assert "'nope' is not one of " in answer.said
    assert all(name in answer.said for name in ("bios", "deploy", "power", "raid", "vendor"))
