"""Cleanings and inspections that failed for a cause that may pass are tried again by themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from bloomery import clock, errors
from bloomery.conductor.periodics import flow_retries, timeouts
from bloomery.db import rows
from bloomery.model.node import FLOW_RETRY
from bloomery.outcome import WaitForCall
from tests.kit.machines.scripted import Script, failing, in_turn
from tests.kit.servers.site import Site

FACTS = {"node": "it", "address": "bmc.test", "reason": "no route"}
SILENT = errors.BmcUnreachable(**FACTS)
BUSY = errors.BmcBusy(**FACTS)
ERASE = {"steps": [{"interface": "deploy", "step": "erase"}]}


class Cleaner:
    """A site whose nodes are cleaned by one step, and the hand that turns its clock."""

    def __init__(
        self, make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, *said: object,
        **step: object,
    ) -> None:  # fmt: skip
        self.script = Script()
        self.script.add("clean", "erase", in_turn(*said), **step)
        self.site = make_site(
            registry=self.script.registry(), failed_flow_retries=2, failed_flow_retry_delay=300
        )
        self._monkeypatch = monkeypatch
        self.node = self.site.enrol(provision_state="manageable")

    def order(self, verb: str = "provide", arguments: dict | None = None) -> None:
        self.site.order("do_provisioning_action", self.node, verb, arguments or {})

    def wait_for(self, state: str) -> None:
        self.site.wait_for_state(self.node, state)

    @property
    def note(self) -> dict:
        return dict(self.site.node(self.node).driver_internal_info.get(FLOW_RETRY) or {})

    def pass_time(self, seconds: float = 300) -> None:
        """Let time pass, and the job run."""
        now = clock.now
        self._monkeypatch.setattr(clock, "now", lambda: now() + timedelta(seconds=seconds))
        flow_retries.run(self.site.runtime)

    @property
    def erasures(self) -> int:
        return self.script.calls.count("erase")

    def texts(self) -> list[str]:
        return [row["event"] for row in self.site.history(self.node)]


Make = Callable[..., Cleaner]


@pytest.fixture
def cleaner(make_site, monkeypatch) -> Make:
    return lambda *said, **step: Cleaner(make_site, monkeypatch, *said, **step)


@pytest.mark.parametrize("cause", [SILENT, BUSY, errors.AgentUnreachable(**FACTS)])
def test_a_cleaning_that_failed_for_a_while_is_tried_again(cleaner: Make, cause: Exception):
    site = cleaner(cause, None)
    site.order()
    site.wait_for("clean failed")
    node = site.site.node(site.node)
    assert (node.maintenance, node.fault) == (True, "clean failure")
    assert (site.note["attempt"], site.note["of"]) == (1, 2)
    site.pass_time(200)
    assert site.site.node(site.node).provision_state == "clean failed"
    site.pass_time(101)
    site.wait_for("available")
    node = site.site.node(site.node)
    assert (node.maintenance, node.fault, node.last_error) == (False, None, None)
    assert (site.erasures, site.note) == (2, {})
    assert "It is tried again by itself: retry 1 of 2" in site.texts()


@pytest.mark.parametrize(
    ("cause", "step"),
    [
        (errors.BmcRefused(**FACTS), {}),
        (errors.BmcLoginLeftAlone(**FACTS), {}),
        (errors.StepFailure(reason="the disk is broken"), {}),
        (LookupError("a bug"), {}),
        (SILENT, {"resumable": False}),  # it may not run twice
    ],
)
def test_other_failures_are_for_an_operator(cleaner: Make, cause: Exception, step: dict):
    site = cleaner(cause, None, **step)
    site.order()
    site.wait_for("clean failed")
    assert site.note == {}
    site.pass_time()
    assert (site.site.node(site.node).provision_state, site.erasures) == ("clean failed", 1)


def test_retries_end_at_the_limit_and_an_order_counts_anew(cleaner: Make):
    site = cleaner(SILENT)
    site.order()
    site.wait_for("clean failed")
    for attempts in (2, 3):
        site.pass_time()
        site.wait_for("clean failed")
        assert site.erasures == attempts
    assert site.note == {}
    site.pass_time()
    assert site.erasures == 3
    site.site.order("set_maintenance", site.node, False, None)
    site.order("manage")
    site.order()
    site.wait_for("clean failed")
    assert site.note["attempt"] == 1


def test_a_manual_cleaning_has_its_steps_again(cleaner: Make):
    site = cleaner(SILENT, None)
    site.script.add("clean", "count")
    site.order("clean", ERASE)
    site.wait_for("clean failed")
    site.pass_time()
    site.wait_for("manageable")
    assert (site.erasures, "count" in site.script.calls) == (2, False)


def test_a_time_out_may_pass(cleaner: Make):
    site = cleaner(WaitForCall(reason="erasing"))
    site.order()
    site.wait_for("clean wait")
    long_ago = rows.now() - timedelta(days=1)
    site.site.set(site.node, provision_updated_at=long_ago)
    timeouts.run(site.site.runtime)
    site.wait_for("clean failed")
    assert site.note["attempt"] == 1


def test_an_inspection_is_tried_again(make_site, monkeypatch):
    script = Script()
    registry = script.registry()
    acts = in_turn(SILENT, None)
    monkeypatch.setattr(registry.interfaces["inspect"]["fake"], "inspect_hardware", acts)
    site = make_site(registry=registry, failed_flow_retries=1)
    node = site.enrol(provision_state="manageable")
    site.order("do_provisioning_action", node, "inspect", {})
    site.wait_for_state(node, "inspect failed")
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(seconds=300))
    flow_retries.run(site.runtime)
    site.wait_for_state(node, "manageable")
    found = site.node(node)
    assert (found.last_error, FLOW_RETRY in found.driver_internal_info) == (None, False)


def test_a_retry_that_is_refused_is_the_last(make_site, monkeypatch):
    registry = Script().registry()
    inspect = registry.interfaces["inspect"]["fake"]
    monkeypatch.setattr(inspect, "inspect_hardware", failing(SILENT))
    site = make_site(registry=registry, failed_flow_retries=2)
    node = site.enrol(provision_state="manageable")
    site.order("do_provisioning_action", node, "inspect", {})
    site.wait_for_state(node, "inspect failed")
    monkeypatch.setattr(
        inspect, "validate", failing(errors.MissingParameterValue(reason="no address"))
    )
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(seconds=300))
    flow_retries.run(site.runtime)
    found = site.node(node)
    assert (found.provision_state, found.driver_internal_info.get(FLOW_RETRY)) == (
        "inspect failed", None,
    )  # fmt: skip
    assert site.history(node)[-1]["event"] == "It is not tried again: no address"


def test_an_operator_who_takes_the_node_over_keeps_it(cleaner: Make):
    site = cleaner(SILENT, None)
    site.order()
    site.wait_for("clean failed")
    site.site.order("set_maintenance", site.node, True, "disks")
    site.pass_time()
    assert site.erasures == 1
    site.site.order("set_maintenance", site.node, False, None)
    site.order("manage")
    site.pass_time()
    assert (site.site.node(site.node).provision_state, site.erasures) == ("manageable", 1)


def test_a_full_pool_or_limit_puts_a_retry_off(make_site, monkeypatch):
    site = Cleaner(
        lambda **more: make_site(max_concurrent_clean=1, **more), monkeypatch, SILENT, None
    )
    site.order()
    site.wait_for("clean failed")
    other = site.site.enrol(provision_state="clean wait")  # nobody fails it at once
    site.pass_time()
    assert (site.site.node(site.node).provision_state, site.erasures) == ("manageable", 1)
    site.site.set(other, provision_state="manageable")
    site.pass_time(0)
    site.wait_for("available")


def test_without_the_option_nothing_is_noted(make_site):
    script = Script()
    script.add("clean", "erase", failing(SILENT))
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="manageable")
    site.order("do_provisioning_action", node, "provide", {})
    site.wait_for_state(node, "clean failed")
    assert FLOW_RETRY not in site.node(node).driver_internal_info
