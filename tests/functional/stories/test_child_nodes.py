"""Steps that run on the nodes below a node."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.operations import lookup
from bloomery.outcome import Again, Done, Hold, WaitForCall
from tests.kit.machines.scripted import Script, failing, in_turn
from tests.kit.waiting import wait_for

CHILDREN = {"execute_on_child_nodes": True}
WASH = {"interface": "deploy", "step": "wash"} | CHILDREN
POWER_ON = {"interface": "power", "step": "power_on"} | CHILDREN
CALL = WaitForCall(reason="until the agent calls")


@pytest.fixture
def script():
    script = Script()
    script.add("clean", "wash", priority=0, requires_ramdisk=False)
    script.add("service", "wash", priority=0, requires_ramdisk=False)
    return script


@pytest.fixture
def stage(make_stage, script):
    return make_stage(registry=script.registry())


@pytest.fixture
def family(stage):
    """A managed node with two children."""
    parent = stage.bring_to("manageable")
    return parent, [stage.enrol(parent_node=parent) for _ in range(2)]


def clean(stage, node, *steps, state="manageable", **along):
    stage.ask(node, "clean", clean_steps=list(steps), **along)
    return stage.wait_for(node, state)


def rows(stage, node):
    return [
        (run["interface"] + "." + run["step"], run["state"])
        for run in stage.site.runs(node)
        if run["phase"] == "clean"
    ]


def washed(script):
    """Let the step note which node it runs on."""
    nodes = []

    def wash(task):
        nodes.append(task.node.uuid)
        return Done(result={"node": {"extra": {"washed": True}}})

    script.when("wash", wash)
    return nodes


def test_each_child_runs_the_step_and_the_node_itself_does_not(stage, script, family):
    parent, children = family
    nodes = washed(script)
    shown = clean(stage, parent, WASH)
    assert nodes == children
    assert rows(stage, parent) == [("deploy.wash", "done")] * 2
    assert shown["extra"] == {}, "what a child's step found is the child's"
    for child in children:
        shown = stage.show(child)
        assert (shown["extra"], shown["reservation"]) == ({"washed": True}, None)
        assert shown["provision_state"] == "enroll"


def test_a_limit_without_the_flag_is_refused_before_the_parent_is_touched(stage, family):
    parent, children = family
    step = {"interface": "power", "step": "power_off", "limit_child_node_execution": children[:1]}
    answer = stage.api.put(
        f"/v1/nodes/{parent}/states/provision", {"target": "clean", "clean_steps": [step]}
    )
    assert answer.status == 400
    assert "clean_steps/0: limit_child_node_execution needs execute_on_child_nodes" in answer.said
    assert stage.show(parent)["provision_state"] == "manageable"


def test_only_the_children_that_are_named_run_it_in_that_order(stage, script, family):
    parent, children = family
    nodes = washed(script)
    chosen = [children[1], children[0], children[1]]
    clean(stage, parent, WASH | {"limit_child_node_execution": chosen})
    assert nodes == [children[1], children[0]]
    nodes.clear()
    clean(stage, parent, WASH | {"limit_child_node_execution": children[:1]})
    assert nodes == children[:1]


def test_a_node_without_children_has_nothing_to_run(stage, script):
    node = stage.bring_to("manageable")
    nodes = washed(script)
    clean(stage, node, WASH)
    assert nodes == []


@pytest.mark.parametrize("limit", [{}, {"limit_child_node_execution": []}], ids=["none", "empty"])
@pytest.mark.parametrize("number", [0, 2])
def test_a_child_that_comes_after_the_caller_was_authorized_is_left_alone(
    stage, script, monkeypatch, number, limit
):
    parent = stage.bring_to("manageable")
    children = [stage.enrol(parent_node=parent) for _ in range(number)]
    nodes = washed(script)
    conductor_of = lookup.conductor_of

    def late(*args):
        monkeypatch.undo()
        stage.site.enrol(parent_node=parent)
        return conductor_of(*args)

    monkeypatch.setattr(lookup, "conductor_of", late)
    clean(stage, parent, WASH | limit)
    assert nodes == children


def test_children_are_switched_on_and_off(stage, family):
    parent, children = family
    clean(stage, parent, POWER_ON)
    assert [stage.show(child)["power_state"] for child in children] == ["power on"] * 2
    assert [stage.told(child)[-2:] for child in children] == [
        ["power_set.start", "power_set.end"]
    ] * 2
    clean(stage, parent, POWER_ON | {"step": "power_off"})
    assert [stage.show(child)["power_state"] for child in children] == ["power off"] * 2


def test_a_child_that_may_not_be_switched_off_stays_on(stage, family):
    parent, children = family
    clean(stage, parent, POWER_ON)
    stage.patch(children[0], disable_power_off=True)
    shown = clean(stage, parent, POWER_ON | {"step": "power_off"}, state="clean failed")
    assert f"on child node {children[0]}" in shown["last_error"]
    assert "disable_power_off" in shown["last_error"]
    assert [stage.show(child)["power_state"] for child in children] == ["power on"] * 2


@pytest.mark.parametrize("step", ["power_off", "reboot"])
def test_the_agent_of_a_child_ends_with_its_power(stage, family, step):
    parent, (child, _) = family
    clean(stage, parent, POWER_ON)
    session = {"agent_url": "http://192.0.2.7:9999", "agent_start_attempted": True}
    with stage.site.acquire(child) as task:
        task.node.driver_internal_info = session
        task.save()
    clean(stage, parent, POWER_ON)
    assert stage.site.node(child).driver_internal_info == session, "it was on"
    clean(stage, parent, POWER_ON | {"step": step})
    assert stage.site.node(child).driver_internal_info.keys() == {"last_power_state_change"}


def test_a_child_is_free_while_the_flow_of_its_parent_goes_on(make_stage, script):
    stage = make_stage(registry=script.registry(), node_locked_retry_attempts=0)
    script.add("clean", "rinse", priority=0, requires_ramdisk=False)
    parent = stage.bring_to("manageable")
    child = stage.enrol(parent_node=parent)
    free = []

    def rinse(task):
        with stage.site.acquire(child) as other:
            free.append(other.node.uuid)

    script.when("rinse", rinse)
    clean(stage, parent, WASH, {"interface": "deploy", "step": "rinse"})
    assert free == [child]


def test_it_works_in_service_as_well(stage, script):
    parent = stage.bring_to("active")
    child = stage.enrol(parent_node=parent)
    nodes = washed(script)
    stage.ask(parent, "service", service_steps=[WASH])
    stage.wait_for(parent, "active")
    assert nodes == [child]


def test_a_child_that_fails_names_itself_and_ends_the_flow(stage, script, family):
    parent, children = family
    script.when("wash", failing(errors.StepFailure(reason="no soap")))
    shown = clean(stage, parent, WASH, state="clean failed")
    sentence = f"no soap (clean step deploy.wash on child node {children[0]} of {parent[:8]})"
    assert shown["last_error"] == sentence
    assert rows(stage, parent) == [("deploy.wash", "failed"), ("deploy.wash", "skipped")]
    assert stage.show(children[0])["last_error"] is None
    assert stage.site.is_free(children[0])


def test_a_step_that_a_child_does_not_offer_is_refused_before_harm(stage, script, family):
    parent, children = family
    nodes = washed(script)
    dry = {"interface": "deploy", "step": "dry"} | CHILDREN
    shown = clean(stage, parent, WASH, dry, state="clean failed")
    assert nodes == []
    assert children[0] in shown["last_error"]
    assert "no interface of it offers deploy.dry" in shown["last_error"]


@pytest.mark.parametrize("step", ["hold", "wait"])
def test_children_do_not_hold(stage, family, step):
    parent, _ = family
    named = {"interface": "deploy", "step": step} | CHILDREN
    shown = clean(stage, parent, named, state="clean failed")
    assert f"step deploy.{step} cannot run on child nodes" in shown["last_error"]


@pytest.mark.parametrize(
    ("name", "status", "sentence"),
    [
        ("no-such", 400, "'no-such', which is no child of node"),
        (5, 400, "5 is not of type"),
        ("66666666-6666-4666-8666-666666666666", 404, "could not be found"),
    ],
)
def test_a_node_that_is_no_child_cannot_be_named(stage, family, name, status, sentence):
    parent, _ = family
    step = WASH | {"limit_child_node_execution": [name]}
    answer = stage.try_to(parent, "clean", clean_steps=[step])
    assert answer.status == status
    assert sentence in answer.said
    assert stage.standing(parent) == ("manageable", None)


def test_a_child_whose_driver_is_not_enabled_fails_only_what_names_it(stage, script, family):
    parent, children = family
    stage.site.set(children[1], driver="redfish")
    nodes = washed(script)
    clean(stage, parent, WASH | {"limit_child_node_execution": children[:1]})
    assert nodes == children[:1]
    shown = clean(stage, parent, WASH, state="clean failed")
    assert f"cannot run steps on child node {children[1]}" in shown["last_error"]
    assert nodes == children[:1]


def test_children_are_let_go_before_their_parent_goes_on(stage, script, family):
    parent, children = family
    held = []

    def look(task):
        reserved = [child for child in children if stage.site.node(child).reservation]
        held.append((reserved, task.child is not None))
        return Done()

    script.when("wash", look)
    clean(stage, parent, WASH, {"interface": "deploy", "step": "wash"})
    assert held == [([child], False) for child in children] + [([], False)]


def test_a_neighbour_is_no_child(stage, family):
    parent, _ = family
    step = WASH | {"limit_child_node_execution": [stage.enrol()]}
    assert stage.try_to(parent, "clean", clean_steps=[step]).status == 400


@pytest.mark.parametrize("outcome", [CALL, Hold(reason="for ever")], ids=["wait", "hold"])
def test_a_child_that_wants_to_wait_fails(stage, script, family, outcome):
    parent, children = family
    script.when("wash", in_turn(outcome))
    shown = clean(stage, parent, WASH, state="clean failed")
    assert children[0] in shown["last_error"]
    assert "permit_child_node_step_async_result" in shown["last_error"]


def test_a_child_may_want_to_wait_where_the_operator_permits_it(make_stage, script):
    stage = make_stage(registry=script.registry(), permit_child_node_step_async_result=True)
    script.when("wash", in_turn(CALL))
    parent = stage.bring_to("manageable")
    child = stage.enrol(parent_node=parent)
    assert clean(stage, parent, WASH)["last_error"] is None
    assert stage.show(child)["provision_state"] == "enroll"


def test_a_child_is_held_as_long_as_its_machine_works(stage, script, family):
    parent, children = family
    holders = []

    def wash(task):
        holders.append([stage.site.node(child).reservation for child in children])
        return None if task.turn else Again(after_s=0.01, reason="it washes")

    script.when("wash", wash)
    clean(stage, parent, WASH)
    host = stage.site.runtime.host
    assert holders == [[host, None]] * 2 + [[None, host]] * 2


def test_a_child_that_is_busy_is_waited_for_and_then_named(make_stage, script):
    stage = make_stage(registry=script.registry(), node_locked_retry_attempts=0)
    parent = stage.bring_to("manageable")
    child = stage.enrol(parent_node=parent)
    with stage.site.acquire(child):
        shown = clean(stage, parent, WASH, state="clean failed")
    assert f"on child node {child}" in shown["last_error"]
    assert "is locked by host" in shown["last_error"]


def test_a_conductor_that_takes_over_goes_on_with_the_child_that_was_not_done(
    make_site, script, family, stage
):
    parent, children = family
    nodes = washed(script)
    seen = []

    def wash(task):
        seen.append(task.node.uuid)
        if len(seen) == 2:
            return Again(after_s=3600, reason="it washes long")
        nodes.append(task.node.uuid)
        return None

    script.when("wash", wash)
    stage.ask(parent, "clean", clean_steps=[WASH])
    wait_for(lambda: rows(stage, parent)[-1:] == [("deploy.wash", "again")], "the second child")
    assert stage.why(parent)["step"]["child_node"] == children[1]
    assert stage.site.node(children[1]).reservation is not None
    stage.site.close()
    again = stage.site.restarted(registry=script.registry())
    try:
        again.wait_for_state(parent, "manageable")
        wait_for(lambda: again.is_free(children[1]), "the child to be free")
        assert nodes == children
    finally:
        again.close()


def test_a_ramdisk_that_is_not_wanted_is_not_booted(stage, script, family):
    parent, _ = family
    script.add("clean", "rinse", priority=0)
    rinse = {"interface": "deploy", "step": "rinse"}
    shown = clean(stage, parent, rinse, state="clean failed", disable_ramdisk=True)
    assert "deploy.rinse need an agent's ramdisk" in shown["last_error"]
    stage.ask(parent, "manage")
    before = script.calls.count("prepare_cleaning")
    own = {"interface": "deploy", "step": "wash"}
    hold = {"interface": "deploy", "step": "hold"}
    clean(stage, parent, hold, own, state="clean hold", disable_ramdisk=True)
    stage.ask(parent, "unhold")
    stage.wait_for(parent, "manageable")
    assert script.calls.count("prepare_cleaning") == before
    clean(stage, parent, own, rinse)
    assert script.calls.count("prepare_cleaning") == before + 1
