"""The engine of steps: success, failure at each step, and what is not yet done."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from bloomery import errors
from bloomery.drivers.base import DriverTask
from bloomery.outcome import Again, Hold, WaitForCall
from tests.kit.machines.scripted import Script, failing, in_turn
from tests.kit.servers.site import Site
from tests.kit.servers.stories import full_pool
from tests.kit.waiting import wait_for


class Boom(Exception):
    pass


class Mute(Exception):
    """An error that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.fixture
def script() -> Script:
    made = Script()
    for phase in ("verify", "clean", "deploy"):
        made.add(phase, f"{phase}_one")
        made.add(phase, f"{phase}_two")
    return made


@pytest.fixture
def site(make_site, script: Script) -> Site:
    return make_site(registry=script.registry())


def manage(site: Site, node: str) -> None:
    site.provision(node, "manage")


def provide(site: Site, node: str) -> None:
    site.provision(node, "provide")


def undeploy(site: Site, node: str) -> None:
    site.provision(node, "deleted")


def test_a_machine_goes_through_its_life(site: Site, script: Script):
    node = site.enrol()
    for act, state in (
        (manage, "manageable"), (provide, "available"), (Site.deploy, "active"),
        (undeploy, "available"),
    ):  # fmt: skip
        act(site, node)
        ended = site.wait_for_state(node, state)
        assert ended.target_provision_state is None
        assert ended.last_error is None
        assert (ended.deploy_step, ended.clean_step) == ({}, {})
    assert script.calls == [
        "get_power_state", "verify_one", "verify_two",
        "prepare_cleaning", "clean_one", "clean_two", "tear_down_cleaning",
        "prepare", "deploy_one", "deploy_two",
        "tear_down",
        "prepare_cleaning", "clean_one", "clean_two", "tear_down_cleaning",
    ]  # fmt: skip
    assert {run["state"] for run in site.runs(node)} == {"done"}
    assert all(run["started_at"] and run["finished_at"] for run in site.runs(node))
    moves = [entry for entry in site.history(node) if entry["event_type"] == "transition"]
    assert [entry["state"] for entry in moves] == [
        "verifying", "manageable", "cleaning", "available", "deploying", "active",
        "deleting", "cleaning", "available",
    ]  # fmt: skip


# order, state before, the step that fails, what is skipped, state after, target after
FAILURES = [
    (manage, "enroll", "get_power_state", 2, "enroll", None),
    (provide, "manageable", "prepare_cleaning", 4, "clean failed", "available"),
    (provide, "manageable", "clean_one", 3, "clean failed", "available"),
    (provide, "manageable", "clean_two", 2, "clean failed", "available"),
    (provide, "manageable", "tear_down_cleaning", 0, "clean failed", "available"),
    (Site.deploy, "available", "prepare", 2, "deploy failed", "active"),
    (Site.deploy, "available", "deploy_one", 1, "deploy failed", "active"),
    (Site.deploy, "available", "deploy_two", 0, "deploy failed", "active"),
    (undeploy, "active", "tear_down", 0, "error", None),
]
CAUSES = [
    (errors.BmcRefused(node="n", address="bmc", reason="wrong password"), "wrong password"),
    (Boom("no such disk"), "Boom: no such disk (deploy step deploy.deploy_two of "),
    (KeyError("key"), "key"),
    (RecursionError("deep"), "deep"),
    (TimeoutError(), "TimeoutError"),
    (Mute(), "Mute"),
]


@pytest.mark.parametrize(
    ("cause", "words"), CAUSES, ids=[type(cause).__name__ for cause, _ in CAUSES]
)
def test_a_cause_is_named_with_its_step(site: Site, script: Script, cause: Exception, words: str):
    script.when("deploy_two", failing(cause))
    node = site.enrol(provision_state="available")
    site.deploy(node)
    failed = site.wait_for_state(node, "deploy failed")
    assert words in failed.last_error
    assert failed.last_error.endswith(f"(deploy step deploy.deploy_two of {node[:8]})")


@pytest.mark.parametrize(
    ("order", "before", "step", "skipped", "after", "target"),
    FAILURES,
    ids=[f"{each[1]}-{each[2]}" for each in FAILURES],
)
def test_a_flow_that_fails_says_where_and_ends_clean(
    site: Site, script: Script, order: Any, before: str, step: str, skipped: int, after: str,
    target: str | None,
):  # fmt: skip
    cause = Boom("no such disk")
    script.when(step, failing(cause))
    node = site.enrol(provision_state=before)
    order(site, node)
    failed = site.wait_for_state(node, after)
    wait_for(lambda: site.runtime.node_locks.in_use == 0, "the gate to open")
    assert failed.target_provision_state == target
    assert node not in failed.last_error
    assert failed.last_error.count(node[:8]) == 1
    assert errors.brief(cause) in failed.last_error
    assert (failed.deploy_step, failed.clean_step) == ({}, {})
    found = [run["state"] for run in site.runs(node)]
    assert found.count("failed") == 1
    assert found.count("skipped") == skipped
    assert set(found) <= {"done", "failed", "skipped"}
    [row] = [run for run in site.runs(node) if run["state"] == "failed"]
    assert row["error"] == failed.last_error
    assert site.history(node)[-1]["severity"] == "ERROR"
    assert site.events(node)[-1]["status"] == "error"


@pytest.mark.parametrize("broken", [["verify_one"], ["verify_two"], ["verify_one", "verify_two"]])
def test_a_verify_step_that_fails_is_recorded_and_passed_over(
    site: Site, script: Script, broken: list[str]
):
    for step in broken:
        script.when(step, failing(Boom(step)))
    node = site.enrol()
    manage(site, node)
    site.wait_for_state(node, "manageable")
    failed = [run["step"] for run in site.runs(node) if run["state"] == "failed"]
    assert failed == broken
    said = [entry["event"] for entry in site.history(node) if entry["severity"] == "ERROR"]
    assert len(said) == len(broken)
    assert script.calls[-1] == "verify_two"


def test_what_a_step_wrote_on_the_node_is_saved_with_its_end(site: Site, script: Script):
    def find(task: DriverTask) -> None:
        task.node.properties["found"] = 1

    script.when("deploy_one", find)
    node = site.enrol(provision_state="available")
    site.deploy(node)
    assert site.wait_for_state(node, "active").properties == {"found": 1}


def test_a_running_step_is_shown_on_the_node(site: Site, script: Script):
    seen: list[Any] = []
    script.when("deploy_two", lambda task: seen.append(site.node(task.node.uuid)))
    node = site.enrol(provision_state="available")
    site.deploy(node)
    done = site.wait_for_state(node, "active")
    [shown] = seen
    assert shown.deploy_step["step"] == "deploy_two"
    assert shown.driver_internal_info["deploy_step_index"] == 1
    steps = [step["step"] for step in shown.driver_internal_info["deploy_steps"]]
    assert steps == ["deploy_one", "deploy_two"]
    assert "deploy_steps" not in done.driver_internal_info


# -------------------------------------------------------------------------------- not yet done


def test_a_step_is_called_again_with_its_turn_and_keeps_the_lock(site: Site, script: Script):
    turns: list[tuple[int, str | None]] = []

    def slow(task: DriverTask) -> Any:
        turns.append((task.turn, site.node(task.node.uuid).reservation))
        return Again(after_s=0.01, reason=f"{task.turn} done") if task.turn < 3 else None

    script.when("deploy_one", slow)
    node = site.enrol(provision_state="available")
    site.deploy(node)
    site.wait_for_state(node, "active")
    assert turns == [(turn, site.runtime.host) for turn in range(4)]
    assert script.calls.count("deploy_two") == 1


def test_the_row_of_a_step_that_waits_its_turn_says_until_when_and_why(site: Site, script: Script):
    go_on = threading.Event()
    script.when(
        "deploy_one",
        lambda task: None if go_on.is_set() else Again(after_s=0.05, reason="the BMC is busy"),
    )
    node = site.enrol(provision_state="available")
    site.deploy(node)
    row = wait_for(
        lambda: next((run for run in site.runs(node) if run["state"] == "again"), None), "a pause"
    )
    assert row["reason"] == "the BMC is busy"
    assert row["due_at"] > row["started_at"]
    go_on.set()
    site.wait_for_state(node, "active")


def test_three_workers_look_after_a_hundred_nodes_that_wait(make_site):
    """No thread is held between the turns of a flow: all hundred wait at the same time."""
    script = Script()
    waiting: set[str] = set()
    mutex = threading.Lock()

    def slow(task: DriverTask) -> Any:
        with mutex:
            waiting.add(task.node.uuid)
            everybody = len(waiting) == 100
        return None if everybody else Again(after_s=0.05, reason="until all are here")

    script.add("deploy", "slow", slow)
    site = make_site(registry=script.registry(), workers_pool_size=3, patience_s=5)
    nodes = [site.enrol(provision_state="available") for _ in range(100)]
    for node in nodes:
        deploy_when_there_is_room(site, node)
    for node in nodes:
        site.wait_for_state(node, "active", timeout_s=30)


def deploy_when_there_is_room(site: Site, node: str) -> None:
    def told() -> bool:
        try:
            site.deploy(node)
        except errors.NoFreeConductorWorker:
            return False
        return True

    wait_for(told, "a free worker")


@pytest.mark.parametrize(("then", "calls"), [("same", 2), ("next", 1)])
def test_a_flow_that_waits_for_a_call_lets_go_and_goes_on_with_it(
    site: Site, script: Script, then: Any, calls: int
):
    script.when("deploy_one", in_turn(WaitForCall(reason="the agent boots", then=then), None))
    node = site.enrol(provision_state="available")
    site.deploy(node)
    parked = site.wait_for_state(node, "wait call-back")
    assert parked.target_provision_state == "active"
    wait_for(lambda: site.runtime.node_locks.in_use == 0, "the gate to open")
    assert "deploy_two" not in script.calls
    site.agent_calls(node)
    site.wait_for_state(node, "active")
    assert script.calls.count("deploy_one") == calls
    assert script.calls.count("deploy_two") == 1
    assert {run["state"] for run in site.runs(node)} == {"done"}


def test_a_flow_that_is_held_waits_for_an_operator(site: Site, script: Script):
    script.when("deploy_one", in_turn(Hold(reason="look at it"), None))
    node = site.enrol(provision_state="available")
    site.deploy(node)
    site.wait_for_state(node, "deploy hold")
    site.provision(node, "unhold")
    site.wait_for_state(node, "wait call-back")
    site.agent_calls(node)
    site.wait_for_state(node, "active")
    assert script.calls.count("deploy_two") == 1


@pytest.mark.parametrize("outcome", [WaitForCall(reason="for whom"), Hold(reason="for what")])
def test_a_phase_without_that_state_fails_instead(site: Site, script: Script, outcome: Any):
    script.when("tear_down", in_turn(outcome))
    node = site.enrol(provision_state="active")
    undeploy(site, node)
    assert "deleting" in site.wait_for_state(node, "error").last_error


# ------------------------------------------------------------------------------------ workers


def test_a_full_pool_is_told_with_nothing_written(make_site):
    site = make_site(workers_pool_size=4)
    nodes = {
        "active": site.enrol(provision_state="available"),
        "deleted": site.enrol(provision_state="active"),
        "provide": site.enrol(provision_state="manageable"),
    }
    orders = [("do_provisioning_action", (node, verb, {})) for verb, node in nodes.items()]
    orders.append(("change_node_power_state", (site.enrol(), "power on", None)))
    with full_pool(site):
        before = site.everything()
        for method, args in orders:
            with pytest.raises(errors.NoFreeConductorWorker) as told:
                site.order(method, *args)
            assert told.value.status == 503
        assert site.everything() == before
    for method, args in orders:
        site.order(method, *args)


def test_a_slot_is_given_back_when_the_order_is_refused(site: Site):
    node = site.enrol(provision_state="enroll")
    with pytest.raises(errors.InvalidStateRequested):
        site.deploy(node)
    wait_for(lambda: site.runtime.workers.busy == 0, "the slot, and jobs of the start, to end")


ORDERS = [
    (Site.deploy, "available"),
    (undeploy, "active"),
    (provide, "manageable"),
    (manage, "enroll"),
]


@pytest.mark.parametrize(("order", "state"), ORDERS)
def test_a_worker_that_never_came_puts_the_node_back(
    site: Site, monkeypatch, order: Any, state: str
):
    node = site.enrol(provision_state=state)
    before = site.node(node)

    def refuse(*_args: Any, **_more: Any) -> Any:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(site.runtime.workers, "submit", refuse)
    with pytest.raises(RuntimeError, match="new thread"):
        order(site, node)
    after = site.node(node)
    assert (after.provision_state, after.target_provision_state) == (state, None)
    assert "new thread" in after.last_error
    assert (after.deploy_step, after.clean_step) == (before.deploy_step, before.clean_step)
    assert "deploy_steps" not in after.driver_internal_info
    assert after.reservation is None
    assert {run["state"] for run in site.runs(node)} == {"skipped"}
    entry = site.history(node)[-1]
    assert (entry["state"], entry["severity"]) == (state, "ERROR")
    told = site.events(node)[-1]
    assert (told["action"], told["status"]) == ("provision_set", "error")
    wait_for(lambda: site.runtime.workers.busy == 0, "the slot to be given back")
    assert site.runtime.node_locks.in_use == 0
    monkeypatch.undo()
    order(site, node)
    wait_for(lambda: site.is_free(node), "the second try")


def test_a_power_order_whose_worker_never_came_is_taken_back(site: Site, monkeypatch):
    node = site.enrol(provision_state="active", power_state="power off")

    def refuse(*_args: Any, **_more: Any) -> Any:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(site.runtime.workers, "submit", refuse)
    with pytest.raises(RuntimeError):
        site.order("change_node_power_state", node, "power on", None)
    after = site.node(node)
    assert (after.power_state, after.target_power_state) == ("power off", None)
    assert "new thread" in after.last_error
    assert {run["state"] for run in site.runs(node)} == {"skipped"}
    assert site.events(node)[-1]["status"] == "error"
