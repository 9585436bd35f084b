"""Each mechanism that Heat's operators and plug-ins know by name has a test, and it is found here.

A name on the left is Heat's; on the right is who tests what stands in its place.  What stands there
and in what it differs is told in ``doc/stack-engine.md``.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]
SERVICE: Final = "unit/orchestration/service"
ENGINE: Final = "unit/orchestration/engine"
MECHANISMS: Final = {
    "create_stack": f"{SERVICE}/test_create.py::test_one_commit_holds_all_that_clients_see",
    "update_stack": f"{SERVICE}/test_changes.py::test_an_update_supersedes_what_goes_on",
    "limits of stacks": f"{SERVICE}/test_create.py::test_a_project_has_so_many_stacks_and_no_more",
    "stack name": f"{SERVICE}/test_create.py::test_a_name_that_is_none_is_refused",
    "convergence off": f"{SERVICE}/test_changes.py::"
    "test_without_convergence_a_busy_stack_answers_409",
    "stored credentials": f"{SERVICE}/test_changes.py::test_each_call_renews_whom_engines_act_for",
    "StackLock": f"{SERVICE}/test_locks.py::test_a_free_tree_is_taken_and_the_generation_counts",
    "StackLock steal": f"{SERVICE}/test_locks.py::"
    "test_the_tree_of_a_dead_engine_is_stolen_and_the_dead_one_is_fenced",
    "ThreadGroupManager.start": f"{SERVICE}/test_threads.py::test_a_group_is_stepped_until_it_ends",
    "ThreadGroupManager.start_with_lock": f"{SERVICE}/test_threads.py::"
    "test_a_tree_is_worked_on_under_its_lock",
    "ThreadGroupManager.add_timer": f"{SERVICE}/test_threads.py::"
    "test_timers_are_called_again_and_again",
    "EngineService": f"{SERVICE}/test_engine_service.py::"
    "test_what_is_ordered_is_worked_on_and_the_lock_is_free_afterwards",
    "resource_mapping": f"{SERVICE}/test_plugin_modules.py::"
    "test_kinds_and_constraints_of_modules_stand_beside_those_installed",
    "purge_deleted": f"{SERVICE}/test_purge.py::"
    "test_of_a_stack_that_was_deleted_long_ago_nothing_is_left",
    "TaskRunner": "unit/orchestration/scheduler/test_runner.py::"
    "test_starting_makes_the_first_step_and_each_step_one_more",
    "wrappertask": "unit/orchestration/scheduler/test_wrapping.py::"
    "test_a_yielded_task_takes_its_steps_in_place",
    "DependencyTaskGroup": "unit/orchestration/scheduler/test_groups.py::"
    "test_each_key_runs_after_what_it_requires",
    "DependencyTaskGroup reverse": "unit/orchestration/scheduler/test_groups.py::"
    "test_in_reverse_d_and_e_come_first_then_b_and_c_and_a_last",
    "error_wait_time": "unit/orchestration/scheduler/test_groups.py::"
    "test_with_grace_what_runs_ends_and_nothing_begins",
    "stack_task": f"{ENGINE}/test_orders.py::test_a_suspend_goes_backwards_and_a_resume_forwards",
    "StackUpdate": f"{ENGINE}/test_traces.py::test_updates",
    "backup resources": f"{ENGINE}/test_traces.py::test_a_failed_update_is_rolled_back",
    "updater": "functional/wire/test_updates.py::"
    "test_a_replacement_is_made_before_the_old_one_is_deleted",
    "cleanup_prev": "functional/wire/test_updates.py::"
    "test_what_a_resource_in_flight_needed_is_deleted_after_it",
    "rollback of a create": f"{ENGINE}/test_traces.py::"
    "test_a_rolled_back_creation_leaves_an_empty_stack_that_can_be_updated",
    "timeout_secs": f"{ENGINE}/test_traces.py::"
    "test_time_that_is_up_aborts_what_runs_and_is_told_first_by_the_resource",
    "message queue": f"{ENGINE}/test_orders.py::"
    "test_a_cancelled_update_fails_at_once_and_what_runs_ends_by_itself",
    "delete": f"{ENGINE}/test_orders.py::test_a_delete_aborts_what_is_under_way",
    "handle_signal": "functional/orchestration/test_signals.py::"
    "test_a_stack_waits_for_signals_over_http_and_over_a_restart",
    "break-point hooks": "functional/wire/test_events_and_actions.py::"
    "test_hooks_pause_a_resource_until_they_are_cleared",
    "snapshot and restore": f"{ENGINE}/test_orders.py::test_a_restore_is_an_update_by_another_name",
    "abandon and adopt": "functional/orchestration/test_lives.py::"
    "test_an_abandoned_stack_is_adopted_with_what_it_has",
    "302 by name": "functional/wire/test_updates.py::test_a_deleted_stack_is_still_shown_by_its_id",
}


@cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_has_its_test(mechanism: str) -> None:
    file, _, function = MECHANISMS[mechanism].partition("::")
    assert function in functions_of(TESTS / file)
