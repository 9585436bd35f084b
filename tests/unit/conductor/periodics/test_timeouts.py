"""Time-outs: what waits too long for a call fails, and says for how long it waited."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from bloomery.conductor.periodics import timeouts
from bloomery.db import rows
from tests.kit.servers.stories import Stage, full_pool

WAITS = {
    "wait call-back": ("deploy_callback_timeout", "deploy failed", "active"),
    "clean wait": ("clean_callback_timeout", "clean failed", "available"),
    "service wait": ("service_callback_timeout", "service failed", "active"),
    "rescue wait": ("rescue_callback_timeout", "rescue failed", "rescue"),
    "inspect wait": ("inspect_wait_timeout", "inspect failed", "manageable"),
}
OLD = timedelta(seconds=30)


def wait_in(site, state, *, since=OLD, **values):
    """Return a node that waits in ``state``, with no flow that would account for it."""
    node = site.enrol()
    then = rows.now() - since
    said = {"provision_state": state, "target_provision_state": WAITS[state][2]}
    said |= {"provision_updated_at": then, "inspection_started_at": then}
    site.set(node, **said | values)
    return node


def fast(make_site, **more):
    return make_site(**{option: 1 for option, _, _ in WAITS.values()} | more)


@pytest.mark.parametrize("state", WAITS)
def test_each_wait_ends(make_site, state):
    site = fast(make_site)
    option, becomes, target = WAITS[state]
    node = wait_in(site, state)
    timeouts.run(site.runtime)
    shown = site.wait_for_state(node, becomes)
    assert shown.target_provision_state == target
    assert f"timed out in {state}" in shown.last_error
    assert f"1 s ([conductor]{option})" in shown.last_error
    assert site.history(node)[-1]["event"] == shown.last_error
    assert (shown.maintenance, shown.fault) == (False, None), "no step was running"


def wait_in_each(site, **values):
    """Return a node for each state that waits, in the order of the table."""
    return [wait_in(site, state, **values) for state in WAITS]


def states_of(site, nodes):
    return [site.node(node).provision_state for node in nodes]


def test_zero_means_no_limit(make_site):
    site = make_site(**{option: 0 for option, _, _ in WAITS.values()})
    nodes = wait_in_each(site, since=timedelta(days=400))
    timeouts.run(site.runtime)
    assert states_of(site, nodes) == list(WAITS)


def test_who_has_time_left_waits_on(make_site):
    site = make_site()
    nodes = wait_in_each(site)
    timeouts.run(site.runtime)
    assert states_of(site, nodes) == list(WAITS)


@pytest.mark.parametrize("values", [{"maintenance": True}, {"reservation": "somebody"}])
def test_busy_nodes_and_maintenance_are_left_alone(make_site, values):
    site = fast(make_site)
    nodes = wait_in_each(site, **values)
    timeouts.run(site.runtime)
    assert states_of(site, nodes) == list(WAITS)
    for node in nodes:
        site.set(node, reservation=None)


def test_manual_cleaning_keeps_its_target(make_site):
    site = fast(make_site)
    node = wait_in(site, "clean wait", target_provision_state="manageable")
    timeouts.run(site.runtime)
    assert site.wait_for_state(node, "clean failed").target_provision_state == "manageable"


def test_oldest_go_first_and_so_many_per_pass(make_site):
    site = fast(make_site, periodic_max_workers=2)
    nodes = [wait_in(site, "wait call-back", since=OLD * age) for age in (1, 3, 2)]
    timeouts.run(site.runtime)
    site.wait_for_state(nodes[1], "deploy failed")
    site.wait_for_state(nodes[2], "deploy failed")
    assert site.node(nodes[0]).provision_state == "wait call-back"


def test_nodes_that_cannot_be_timed_out_keep_nobody_behind_them(make_site):
    site = fast(make_site, periodic_max_workers=2)
    ahead = [wait_in(site, "wait call-back", since=OLD * 2, driver="gone") for _ in range(3)]
    behind = wait_in(site, "wait call-back")
    timeouts.run(site.runtime)
    site.wait_for_state(behind, "deploy failed")
    assert {site.node(node).provision_state for node in ahead} == {"wait call-back"}


def test_cleaning_that_waits_in_a_step_needs_an_operator(make_site):
    stage = Stage(fast(make_site))
    node = stage.bring_to("manageable", {"wait": {"vendor.log_passthrough": -1}})
    stage.ask(node, "provide")
    stage.wait_for(node, "clean wait")
    stage.let_time_pass(node)
    assert stage.standing(node) == ("clean failed", "available")
    assert stage.care(node) == (True, "clean failure")
    assert stage.show(node)["clean_step"] == {}


def test_cleaning_that_waits_before_its_steps_does_not(make_site):
    stage = Stage(fast(make_site))
    node = stage.bring_to("manageable", {"wait": {"deploy.prepare_cleaning": -1}})
    stage.ask(node, "provide")
    stage.wait_for(node, "clean wait")
    stage.let_time_pass(node)
    assert stage.standing(node) == ("clean failed", "available")
    assert stage.care(node) == (False, None)


def test_sign_of_life_begins_the_time_anew(make_site):
    stage = Stage(fast(make_site))
    node = stage.bring_to("available", {"wait": {"deploy.deploy": -1}})
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    stage.site.set(node, provision_updated_at=rows.now())
    timeouts.run(stage.site.runtime)
    assert stage.standing(node)[0] == "wait call-back"


def test_full_pool_leaves_the_work_to_the_next_pass(make_site):
    site = fast(make_site, workers_pool_size=3)
    node = wait_in(site, "wait call-back")
    with full_pool(site):
        timeouts.run(site.runtime)
    assert site.node(node).provision_state == "wait call-back"
    timeouts.run(site.runtime)
    site.wait_for_state(node, "deploy failed")


@dataclass
class Clocks:
    """Our own clock, and that of the wall, which somebody may set."""

    wall: datetime = field(default_factory=rows.now)
    own_s: float = 1000.0

    def watch(self) -> timeouts.Watch:
        return timeouts.Watch(clock=lambda: self.own_s, wall=lambda: self.wall)

    def pass_by(self, seconds: float) -> None:
        self.own_s += seconds
        self.wall += timedelta(seconds=seconds)

    def set_wall(self, hours: float) -> None:
        self.wall += timedelta(hours=hours)


@pytest.mark.parametrize("hours", [-1, 1], ids=["back", "forward"])
def test_a_clock_that_is_set_neither_holds_a_wait_nor_ends_it(make_site, hours):
    site, clocks = make_site(**{option: 600 for option, _, _ in WAITS.values()}), Clocks()
    nodes = wait_in_each(site, since=timedelta(0))
    watch = clocks.watch()
    timeouts.run(site.runtime, watch)
    clocks.set_wall(hours)
    clocks.pass_by(599)
    timeouts.run(site.runtime, watch)
    assert states_of(site, nodes) == list(WAITS)
    clocks.pass_by(2)
    timeouts.run(site.runtime, watch)
    for node, (_, becomes, _) in zip(nodes, WAITS.values(), strict=True):
        site.wait_for_state(node, becomes)


def test_after_a_restart_a_wait_lasts_no_longer_than_its_own_length(make_site):
    site, clocks = make_site(deploy_callback_timeout=600), Clocks()
    node = wait_in(site, "wait call-back", since=timedelta(0))
    clocks.set_wall(-1)
    watch = clocks.watch()
    timeouts.run(site.runtime, watch)
    clocks.pass_by(601)
    timeouts.run(site.runtime, watch)
    site.wait_for_state(node, "deploy failed")


def test_time_that_passed_while_nobody_looked_counts(make_site):
    site, clocks = make_site(deploy_callback_timeout=600), Clocks()
    node = wait_in(site, "wait call-back", since=timedelta(seconds=601))
    timeouts.run(site.runtime, clocks.watch())
    site.wait_for_state(node, "deploy failed")


def test_a_wait_that_begins_anew_has_its_whole_time(make_site):
    site, clocks = make_site(deploy_callback_timeout=600), Clocks()
    node = wait_in(site, "wait call-back", since=timedelta(0))
    watch = clocks.watch()
    timeouts.run(site.runtime, watch)
    clocks.pass_by(590)
    site.set(node, provision_updated_at=clocks.wall)
    timeouts.run(site.runtime, watch)
    clocks.pass_by(590)
    timeouts.run(site.runtime, watch)
    assert site.node(node).provision_state == "wait call-back"
    clocks.pass_by(20)
    timeouts.run(site.runtime, watch)
    site.wait_for_state(node, "deploy failed")
