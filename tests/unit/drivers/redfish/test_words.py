from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.drivers import substeps
from bloomery.drivers.redfish import inspect
from bloomery.outcome import DONE, Again
from tests.kit.machines.bmc import UNREACHABLE
from tests.kit.machines.driver_task import FakeTask, walk

AGAIN = Again(after_s=1, reason="not yet")


def test_a_found_boot_mode_leaves_other_capabilities_alone():
    assert inspect.with_boot_mode(None, "uefi") == "boot_mode:uefi"
    assert inspect.with_boot_mode("a:1,boot_mode:bios,b:2", "uefi") == "a:1,b:2,boot_mode:uefi"


def test_stages_go_on_where_they_stood():
    task, done = FakeTask({}), []
    answers = iter([None, AGAIN, AGAIN, DONE, None])

    def part(name):
        def do():
            done.append(name)
            return next(answers)

        return do

    said = walk(task, lambda: substeps.run_in_order(task, "x", part("a"), part("b"), part("c")))
    assert (done, len(said)) == (["a", "b", "b", "b", "c"], 2)
    assert task.node.driver_internal_info == {}


def test_stages_begin_anew_in_a_new_run():
    task, done = FakeTask({}), []
    task.node.driver_internal_info = {"x": 1}
    substeps.run_in_order(task, "x", lambda: done.append("a"), lambda: done.append("b"))
    assert done == ["a", "b"]


def test_a_stage_that_fails_leaves_nothing_behind():
    task = FakeTask({})
    task.turn, task.node.driver_internal_info = 1, {"substeps": {"x": 1}}

    def broken():
        raise errors.StepFailure(reason="no")

    with pytest.raises(errors.StepFailure):
        substeps.run_in_order(task, "x", lambda: None, broken)
    assert task.node.driver_internal_info == {}


def test_a_stage_that_met_silence_is_done_again_and_none_before_it():
    task, done = FakeTask({}), []
    answers = iter([None, AGAIN, UNREACHABLE, UNREACHABLE, None, None])

    def part(name):
        def do():
            done.append(name)
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return do

    def step():
        try:
            return substeps.run_in_order(task, "x", part("a"), part("b"), part("c"))
        except errors.BmcUnreachable:
            return AGAIN

    walk(task, step)
    assert done == ["a", "b", "b", "b", "b", "c"]
    assert task.node.driver_internal_info == {}


def test_a_stage_within_a_stage_goes_on_where_it_stood():
    task, done = FakeTask({}), []
    memory = {"substeps": {"outer": 1, "inner": 1}}
    task.turn, task.node.driver_internal_info = 3, dict(memory)

    def silent():
        done.append("silent")
        raise UNREACHABLE

    def inner():
        return substeps.run_in_order(task, "inner", lambda: done.append("done before"), silent)

    with pytest.raises(errors.BmcUnreachable):
        substeps.run_in_order(task, "outer", lambda: done.append("done before"), inner)
    assert done == ["silent"]
    assert task.node.driver_internal_info == memory
