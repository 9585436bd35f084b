"""Provide: a managed node is cleaned by itself and becomes available."""

from __future__ import annotations

import pytest

CLEAN_STEPS = [
    ("deploy.prepare_cleaning", "done"),
    ("vendor.log_passthrough", "done"),
    ("deploy.tear_down_cleaning", "done"),
]


@pytest.fixture
def node(stage):
    return stage.bring_to("manageable")


def test_provided_node_is_cleaned_and_available(stage, node):
    stage.ask(node, "provide")
    shown = stage.wait_for(node, "available")
    assert stage.standing(node) == ("available", None)
    assert (shown["last_error"], shown["clean_step"]) == (None, {})
    assert "clean_steps" not in shown["driver_internal_info"]
    assert stage.moves(node)[-2:] == ["manageable -> cleaning", "cleaning -> available"]
    assert stage.told(node)[-2:] == ["provision_set.start", "provision_set.end"]
    assert stage.steps(node, "clean") == CLEAN_STEPS


def test_node_whose_own_word_is_no_is_not_cleaned(stage, node):
    stage.patch(node, automated_clean=False)
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    assert ("vendor.log_passthrough", "done") not in stage.steps(node, "clean")


def test_option_switches_automated_cleaning_off(make_stage):
    stage = make_stage(automated_clean=False)
    node = stage.bring_to("available")
    assert ("vendor.log_passthrough", "done") not in stage.steps(node, "clean")


def test_own_word_of_a_node_beats_the_option(make_stage):
    stage = make_stage(automated_clean=False)
    node = stage.bring_to("available", automated_clean=True)
    assert stage.steps(node, "clean") == CLEAN_STEPS


def test_priority_override_switches_a_step_off(make_stage):
    stage = make_stage(clean_step_priority_override={"vendor.log_passthrough": "0"})
    node = stage.bring_to("available")
    assert stage.steps(node, "clean") == [CLEAN_STEPS[0], CLEAN_STEPS[2]]


def test_retired_node_is_not_provided(stage, node):
    stage.patch(node, retired=True, retired_reason="too old")
    answer = stage.try_to(node, "provide")
    assert answer.status == 400
    assert "retired" in answer.said
    assert stage.standing(node) == ("manageable", None)
    assert stage.moves(node)[-1] == "verifying -> manageable"


def test_maintenance_keeps_a_node_back_where_the_operator_says_so(make_stage):
    stage = make_stage(allow_provisioning_in_maintenance=False)
    node = stage.bring_to("manageable")
    stage.patch(node, maintenance=True)
    answer = stage.try_to(node, "provide")
    assert answer.status == 400
    assert "maintenance" in answer.said
    assert stage.standing(node) == ("manageable", None)


def test_maintenance_does_not_matter_otherwise(stage, node):
    stage.patch(node, maintenance=True)
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    assert stage.care(node) == (True, None)


def test_failing_step_needs_an_operator(stage, node):
    stage.behave(node, fail=["vendor"])
    stage.ask(node, "provide")
    shown = stage.wait_for(node, "clean failed")
    assert stage.standing(node) == ("clean failed", "available")
    assert stage.care(node) == (True, "clean failure")
    assert shown["maintenance_reason"] == shown["last_error"]
    assert "vendor.log_passthrough" in shown["last_error"]
    assert shown["clean_step"] == {}
    assert stage.steps(node, "clean") == [
        CLEAN_STEPS[0], ("vendor.log_passthrough", "failed"),
        ("deploy.tear_down_cleaning", "skipped"),
    ]  # fmt: skip
    assert stage.errors(node) == [shown["last_error"]]


def test_reason_that_an_operator_gave_stays(stage, node):
    stage.behave(node, fail=["vendor"])
    stage.api.put(f"/v1/nodes/{node}/maintenance", {"reason": "new disks"})
    stage.ask(node, "provide")
    assert stage.wait_for(node, "clean failed")["maintenance_reason"] == "new disks"


def test_failure_before_any_step_needs_no_maintenance(stage, node):
    stage.behave(node, fail=["deploy.prepare_cleaning"])
    stage.ask(node, "provide")
    stage.wait_for(node, "clean failed")
    assert stage.care(node) == (False, None)


@pytest.mark.parametrize(("wanted", "power"), [(True, "power off"), (False, "power on")])
def test_failed_node_is_switched_off_where_the_operator_says_so(make_stage, wanted, power):
    stage = make_stage(poweroff_in_cleanfail=wanted)
    node = stage.bring_to("manageable", {"fail": ["vendor"]})
    stage.power(node, "power on")
    stage.ask(node, "provide")
    assert stage.wait_for(node, "clean failed")["power_state"] == power


def test_manage_after_a_failure_keeps_what_was_said_of_it(stage, node):
    stage.behave(node, fail=["vendor"])
    stage.ask(node, "provide")
    said = stage.wait_for(node, "clean failed")["last_error"]
    stage.ask(node, "manage")
    assert stage.standing(node) == ("manageable", None)
    assert stage.show(node)["last_error"] == said
    assert stage.care(node) == (True, "clean failure"), "only an operator ends maintenance"


def test_limit_on_cleaning_is_told_and_nothing_is_written(make_stage):
    stage = make_stage(max_concurrent_clean=1)
    busy = stage.bring_to("manageable", {"wait": {"vendor.log_passthrough": -1}})
    node = stage.bring_to("manageable")
    stage.ask(busy, "provide")
    stage.wait_for(busy, "clean wait")
    before = stage.show(node)
    answer = stage.try_to(node, "provide")
    assert answer.status == 503
    assert "max_concurrent_clean" in answer.said
    assert stage.show(node) == before


@pytest.mark.parametrize(("per_group", "status"), [(True, 202), (False, 503)])
def test_limit_counts_the_nodes_of_the_own_group_where_the_operator_says_so(
    make_stage, per_group, status
):
    stage = make_stage(max_concurrent_clean=1, max_concurrent_per_conductor_group=per_group)
    busy = stage.bring_to("manageable", {"wait": {"vendor.log_passthrough": -1}})
    node = stage.bring_to("manageable")
    stage.ask(busy, "provide")
    stage.wait_for(busy, "clean wait")
    stage.site.set(busy, conductor_group="east")
    assert stage.try_to(node, "provide").status == status
    stage.wait_until_free(node)
