"""Each mechanism that Heat's operators and plug-ins know by name has a test, and it is found here.

A name on the left is Heat's; on the right is who tests what stands in its place.  What stands there
and in what it differs is told in ``doc/explanation/stack-engine.md``.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]
API: Final = "unit/api/orchestration"
ORDERS: Final = "unit/orchestration/orders"
HOST: Final = "unit/orchestration/engine_host"
ENGINE: Final = "unit/orchestration/engine"
GRAPH: Final = "unit/orchestration/graph/test_graph.py"
SIMULATION: Final = "unit/orchestration/simulation/test_resource_actions.py"
STACK: Final = "unit/orchestration/stack"
TASK: Final = "unit/conductor/test_task_manager.py"
MECHANISMS: Final = {
    "create_stack": f"{ORDERS}/test_create.py::test_one_commit_holds_all_that_clients_see",
    "update_stack": f"{ORDERS}/test_changes.py::test_an_update_supersedes_what_goes_on",
    "limits of stacks": f"{ORDERS}/test_create.py::test_a_project_has_so_many_stacks_and_no_more",
    "stack name": f"{ORDERS}/test_create.py::test_a_name_that_is_none_is_refused",
    "convergence off": f"{ORDERS}/test_changes.py::"
    "test_without_convergence_a_busy_stack_answers_409",
    "stored credentials": f"{ORDERS}/test_changes.py::test_each_call_renews_whom_engines_act_for",
    "StackLock": f"{HOST}/test_locks.py::test_a_free_tree_is_taken_and_the_generation_counts",
    "StackLock steal": f"{HOST}/test_locks.py::"
    "test_the_tree_of_a_dead_engine_is_stolen_and_the_dead_one_is_fenced",
    "ThreadGroupManager.start": f"{HOST}/test_threads.py::test_a_group_is_stepped_until_it_ends",
    "ThreadGroupManager.start_with_lock": f"{HOST}/test_threads.py::"
    "test_a_tree_is_worked_on_under_its_lock",
    "ThreadGroupManager.add_timer": f"{HOST}/test_threads.py::"
    "test_timers_are_called_again_and_again",
    "EngineService": f"{HOST}/test_engine_service.py::"
    "test_what_is_ordered_is_worked_on_and_the_lock_is_free_afterwards",
    "resource_mapping": f"{HOST}/test_plugin_modules.py::"
    "test_kinds_and_constraints_of_modules_stand_beside_those_installed",
    "purge_deleted": f"{HOST}/test_purge.py::"
    "test_of_a_stack_that_was_deleted_long_ago_nothing_is_left",
    "TaskRunner": f"{ENGINE}/test_kills.py::test_each_turn_may_be_another_engine_s",
    "wrappertask": "unit/orchestration/resources/test_composites.py::"
    "test_a_composite_follows_its_child_to_the_end",
    "DependencyTaskGroup": f"{GRAPH}::test_a_walk_tells_who_has_become_ready",
    "DependencyTaskGroup reverse": f"{GRAPH}::"
    "test_what_is_required_comes_first_and_the_same_input_always_gives_the_same_order",
    "error_wait_time": f"{ENGINE}/test_orders.py::test_what_a_row_in_progress_needed_goes_after_it",
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
    # the API
    "302 by name": f"{API}/test_lookup.py::test_name_leads_to_the_address_and_nothing_is_done",
    "tenant and identity wrapper": "functional/orchestration/test_policy_matrix.py::"
    "test_stack_of_another_project_is_not_there",
    "update controller": f"{API}/test_stacks.py::test_update_is_accepted_and_says_little",
    "template_url": f"{API}/test_templates.py::test_template_behind_a_url_is_fetched",
    "order of checks": f"{API}/test_stacks.py::"
    "test_wrong_shapes_are_refused_before_the_engine_is_asked",
    "error remoting": "functional/rpc/test_contract.py::test_every_error_comes_back_as_itself",
    # what is loaded
    "template class by version": "unit/orchestration/template/test_versions.py::"
    "test_each_date_has_a_class_of_its_own_version",
    "available_resource_mapping": f"{HOST}/test_plugin_modules.py::"
    "test_what_is_available_is_asked_before_what_there_is",
    "client plug-ins and constraints": "unit/orchestration/properties/test_custom.py::"
    "test_every_check_of_ours_is_offered_by_entry_points",
    "global environment": "unit/orchestration/orders/test_templates.py::"
    "test_environment_of_the_operator_stands_below_that_of_the_request",
    "lifecycle plug-ins": f"{ENGINE}/test_lifecycle_plugins.py::test_plug_ins_hear_of_each_action",
    # a stack and its rows
    "adopt parameters": f"{ORDERS}/test_create.py::test_adopted_data_bring_template_and_parameters",
    "template sections and shapes": f"{STACK}/test_outcomes.py::"
    "test_it_is_refused_with_its_place_and_the_way_out",
    "dependency order": f"{STACK}/test_stacks.py::test_what_is_required_comes_first",
    "Resource.validate": f"{STACK}/test_stacks.py::test_a_kind_checks_what_its_schema_cannot_see",
    "total_resources": f"{STACK}/test_nesting.py::test_resources_are_counted_over_the_whole_tree",
    "state_set": f"{HOST}/test_store.py::test_the_api_and_the_relay_are_told_with_the_turn",
    "load and store": f"{HOST}/test_store.py::"
    "test_what_a_turn_writes_is_what_the_next_engine_loads",
    "final state with the lock": f"{HOST}/test_store.py::"
    "test_a_lock_is_released_with_the_turn_that_rests",
    "stored context": "unit/orchestration/test_operations.py::"
    "test_an_engine_asks_in_the_name_of_the_last_caller",
    "encryption at rest": f"{HOST}/test_store.py::test_no_secret_stands_in_a_row",
    "guard of a method": f"{HOST}/test_tree_work.py::"
    "test_a_turn_that_fails_drops_the_tree_and_the_next_one_begins_from_rows",
    # the engine
    "live engine": f"{HOST}/test_threads.py::test_a_tree_of_a_live_engine_is_left_alone",
    "stack watch": f"{HOST}/test_engine_service.py::"
    "test_what_a_former_life_left_is_taken_up_at_the_start",
    "convergence": f"{ENGINE}/test_orders.py::"
    "test_a_second_update_waits_for_the_row_that_is_under_way_alone",
    "leaf resources": f"{ENGINE}/test_kinds_in_trees.py::"
    "test_what_is_asked_of_a_stack_is_asked_of_those_below",
    "handle and check": f"{SIMULATION}::"
    "test_a_check_is_asked_until_it_says_true_and_may_ask_for_rest",
    "snapshot": f"{ENGINE}/test_orders.py::test_a_snapshot_keeps_what_each_resource_has",
    "Timeout": f"{SIMULATION}::test_who_waits_when_time_is_up_is_told_to_give_up_once",
    "run_to_completion": f"{SIMULATION}::"
    "test_a_simulation_may_run_on_another_clock_and_tell_as_it_goes",
    "aggregate_exceptions": f"{ENGINE}/test_orders.py::"
    "test_a_check_goes_on_when_one_resource_is_sick",
    "PollingTaskGroup": f"{ENGINE}/test_costs.py::"
    "test_many_who_wait_for_what_is_elsewhere_are_looked_at_together_and_less_often",
    "CircularDependencyException": "unit/orchestration/graph/test_graph.py::"
    "test_whoever_asks_for_an_order_is_told_of_the_cycle_before_the_first_key",
    # the conductor's half
    "TaskManager": f"{TASK}::test_an_exclusive_task_reserves_the_node_until_the_block_ends",
    "upgrade_lock": f"{TASK}::test_upgrading_locks_and_reads_the_node_anew",
    "require_exclusive_lock": f"{TASK}::test_what_needs_an_exclusive_lock_refuses_a_shared_one",
    "spawn_after": f"{TASK}::test_the_usual_shape_runs_in_the_background_and_frees_the_node",
    "set_spawn_error_hook": f"{TASK}::test_a_spawn_that_fails_calls_the_hook_and_is_raised",
    "process_event": "unit/conductor/test_moves.py::"
    "test_a_move_with_a_worker_clears_the_error_and_keeps_its_aim",
    "provision notifications": "functional/notifications/test_story.py::"
    "test_a_node_is_told_from_enrolled_to_gone",
    "power_state_corrected": "functional/notifications/test_story.py::"
    "test_verify_tells_after_its_end_that_it_found_another_power_state",
}


@cache
def functions_of(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_has_its_test(mechanism: str) -> None:
    """The test is collected, always runs, and can fail."""
    file, _, name = MECHANISMS[mechanism].partition("::")
    test = functions_of(TESTS / file)[name]
    assert (name.startswith("test_"), Path(file).name.startswith("test_")) == (True, True)
    assert not any("skip" in ast.unparse(mark) for mark in test.decorator_list)
    assert any(
        isinstance(node, ast.Assert) or "raises" in ast.unparse(node)
        for node in ast.walk(test)
        if isinstance(node, ast.Assert | ast.With)
    )


PAGE: Final = TESTS.parent / "doc/explanation/stack-engine.md"
ROOMS: Final = {
    "Here": TESTS.parent / "bloomery/orchestration",
    "Shown by": TESTS / "unit/orchestration",
}


def rows_of(title: str) -> list[dict[str, str]]:
    """Return the table below a heading of the page, each row by its columns."""
    section = PAGE.read_text(encoding="utf-8").partition(f"# {title}\n")[2]
    lines = section[section.index("|") :].partition("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("title", "columns"),
    [("Mechanisms of Heat", ("Here", "Shown by")), ("Other mechanisms", ("Here",))],
)
def test_the_page_names_functions_and_tests_that_exist(
    title: str, columns: tuple[str, ...]
) -> None:
    rows = rows_of(title)
    assert len(rows) > 10
    for row, column in ((row, column) for row in rows for column in columns):
        places = re.findall(r"`([\w/.]+): ([\w, ]+)`", row[column])
        assert places, row["Heat"]
        for file, names in places:
            text = (ROOMS[column] / file).read_text(encoding="utf-8")
            for name in names.split(", "):
                assert re.search(rf"((def|class) |^){name}\b", text, re.MULTILINE), (file, name)


def test_no_test_stands_for_two_mechanisms() -> None:
    assert len(set(MECHANISMS.values())) == len(MECHANISMS)
