"""The lives of stacks that simulations tell, with rows: by one engine after another.

Each engine loads the tree, works on it and is forgotten, so that what a stack comes to depends on
its rows alone.  What holds in memory must hold of them, to the last event.  One test stays
there: its two templates mean two kinds by one name, which an engine that reads rows cannot.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.db.engine import Database
from bloomery.model import stacks as model
from bloomery.model.stacks import OrderKind
from bloomery.orchestration import simulation
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.engine_host.locks import Lease, StackLock
from bloomery.orchestration.engine_host.store import RowStore
from bloomery.orchestration.simulation import Simulation
from bloomery.orchestration.simulation.lifecycle import Lifecycle
from bloomery.orchestration.simulation.results import Result
from bloomery.orchestration.stack import Stack
from tests.kit.stacks import trees
from tests.unit.orchestration.simulation.test_children import (  # noqa: F401  run here again
    test_a_chain_goes_one_by_one,
    test_a_child_is_deleted_once_however_often_it_is_asked,
    test_a_child_that_was_never_made_is_made_by_the_next_update,
    test_a_deletion_takes_everything_below_with_it,
    test_a_failed_update_below_is_rolled_back_from_above,
    test_a_group_changes_batch_by_batch,
    test_a_group_of_more_members_than_a_stack_may_have_is_refused_late_too,
    test_a_group_of_nested_templates_is_two_levels_deep,
    test_a_nested_template_is_a_stack_of_its_own,
    test_a_nested_template_sees_the_policies_of_its_resource,
    test_a_template_gives_its_own_reference_id,
    test_an_update_is_always_handed_down_and_touches_only_what_has_changed,
    test_another_template_changes_the_stack_that_is_there,
    test_each_batch_has_its_share_of_the_time,
    test_members_that_stay_keep_their_ids,
    test_stacks_below_count_together,
    test_the_environment_reaches_below,
    test_time_that_is_up_above_stops_what_runs_below,
    test_what_a_group_cannot_know_at_validation_fails_when_its_members_are_made,
    test_what_fails_below_is_told_with_its_whole_path,
    test_who_is_left_at_work_when_all_is_over_has_the_rest_of_its_time,
)
from tests.unit.orchestration.simulation.test_overriding import (  # noqa: F401  run here again
    test_a_template_in_the_place_of_a_type_may_hold_a_resource_of_that_type,
)
from tests.unit.orchestration.simulation.test_resource_actions import (  # noqa: F401  run here again
    test_a_check_is_asked_until_it_says_true_and_may_ask_for_rest,
    test_a_deletion_in_conflict_is_tried_again,
    test_a_deletion_that_fails_fails_the_stack_and_may_be_asked_again,
    test_a_failed_resource_that_is_as_wanted_and_stays_is_complete_again,
    test_a_fault_of_the_simulation_itself_fails_the_stack,
    test_a_kind_is_asked_again_once_its_values_are_known,
    test_a_property_that_turns_out_wrong_fails_its_resource,
    test_a_real_thing_in_error_is_deleted_and_made_again,
    test_a_simulation_may_run_on_another_clock_and_tell_as_it_goes,
    test_a_stack_that_could_not_be_deleted_takes_no_update,
    test_a_template_that_is_refused_begins_nothing,
    test_all_attributes_of_a_resource_come_as_a_map,
    test_an_adopted_resource_is_looked_at_where_its_kind_can,
    test_an_immutable_parameter_keeps_its_value,
    test_an_output_that_cannot_be_told_spoils_no_other,
    test_an_update_whose_values_cannot_be_read_fails_at_that_resource,
    test_another_failure_is_final,
    test_pseudo_parameters_know_the_stack,
    test_the_wait_doubles_and_after_six_attempts_the_first_failure_is_told,
    test_what_failed_before_it_had_values_is_deleted_without_its_kind,
    test_what_failed_or_was_never_made_has_no_attributes_and_is_known_by_its_name,
    test_what_is_not_there_can_neither_be_changed_nor_deleted,
    test_what_resources_hold_is_counted_until_they_are_gone,
    test_whatever_a_kind_raises_is_a_failure_of_the_resource,
    test_who_waits_when_time_is_up_is_told_to_give_up_once,
)
from tests.unit.orchestration.simulation.test_traces import (  # noqa: F401  run here again
    test_a_change_seen_only_on_the_way_replaces_too,
    test_a_condition_that_turns_false_deletes,
    test_a_deletion_goes_backwards,
    test_a_failed_update_with_rollback_takes_the_old_ones_back,
    test_a_failed_update_without_rollback_stays_where_it_is,
    test_a_replaced_resource_says_so_and_its_dependants_turn_to_the_new_one,
    test_a_retained_resource_is_told_of_and_not_called,
    test_a_rolled_back_creation_leaves_an_empty_stack_that_can_be_updated,
    test_a_time_out_fails_the_resource_and_the_stack,
    test_after_a_failure_nothing_more_begins_and_the_next_update_makes_what_is_missing,
    test_an_external_resource_is_adopted_looked_at_and_let_go,
    test_another_name_of_its_kind_keeps_a_resource,
    test_creations_go_as_heat_tells_them,
    test_hooks_are_announced_and_not_waited_for,
    test_reasons_are_those_of_heat,
    test_restricted_actions_fail_the_update,
    test_updates_go_as_heat_tells_them,
    test_what_becomes_ready_when_time_is_up_is_not_begun,
    test_what_had_begun_when_another_failed_is_let_finish,
    test_what_stays_keeps_its_id,
    test_what_was_feared_to_be_replaced_may_turn_out_unchanged,
)


class RowLifecycle(Lifecycle):
    """Takes the place of ``simulation.Lifecycle``.

    ``turns``: after so many turns an engine is forgotten; None: when it has followed its order.
    """

    def __init__(
        self, db: Database, simulation: Simulation | None = None, *, turns: int | None
    ) -> None:
        super().__init__(simulation)
        self._db = db
        self._turns = turns
        self._made = 0  # turns of the present engine
        self._stored: set[str] = set()  # templates that engines have written
        self._store = RowStore(db, trees.SEALER)
        self._lease: Lease | None = None
        self._runtime = self.simulation.runtime()

    def create(self, stack: Stack, *, rollback: bool = False) -> Result:
        self._runtime = dataclasses.replace(self._runtime, timeout_s=stack.timeout_s)
        return super().create(stack, rollback=rollback)

    def _order(self, kind: OrderKind, row: model.Stack) -> EngineStack:
        """Accept an order, and let one engine after the other follow it."""
        assert self.tree is not None
        assert self.stack is not None
        templates = self._stored_templates()
        kinds = self.stack.definition.definition.environment.registry.kinds
        self._runtime = dataclasses.replace(self._runtime, kinds=kinds)
        order = model.Order(root_uuid=row.root_uuid, stack_uuid=row.uuid, kind=kind)
        trees.accept(self._db, order, row, templates=templates)
        self.simulation.store(model.Turn(stacks=[row]))
        self.simulation.emit_events([_started(row, self.simulation)])
        self._lease, failure = None, None
        while not self._turn(row):
            failure = self.stack.failure or failure
        self.stack.failure = self.stack.failure or failure
        return self.stack

    def _stored_templates(self) -> tuple[model.Template, ...]:
        """The templates that clients gave, with their parameters where rows have them."""
        assert self.tree is not None
        library = self.tree.actions.library
        return tuple(
            _with_parameters(template, library.stack(self.stack.row, uuid, timeout_s=0))
            for uuid, template in library.templates.items()
            if self.stack is not None and uuid not in self._stored
        )

    def _turn(self, row: model.Stack) -> bool:
        """Make one turn; was it the last?"""
        if self._lease is None or self._made == self._turns:
            self._begin(row)
        self._made += 1
        assert self._lease is not None
        assert self.tree is not None
        turn = self.tree.turn()
        released = self._store.write(row.root_uuid, self._lease, turn).released
        self.simulation.store(turn)
        self._stored |= {each.uuid for each in turn.templates}
        self.simulation.emit_events(turn.events)
        due_s = self.tree.due_at()
        if not released and (due_s is None or due_s > self.simulation.clock.now()):
            self.simulation.clock.wait(due_s)
        return released

    def _begin(self, row: model.Stack) -> None:
        """Let an engine take the tree over that knows its rows and nothing else."""
        self._made = 0
        lock = StackLock(self._db, row.root_uuid, str(uuid.uuid4()))
        self._lease = lock.acquire(trees.nobody)
        self._store = RowStore(self._db, trees.SEALER)
        self.tree = StackTree.load(self._store.load(row.root_uuid), self._runtime)
        self.stack = self.tree.stacks[row.uuid]


def _with_parameters(template: model.Template, stack: Stack) -> model.Template:
    given = dict(stack.definition.user_parameters)
    environment = dict(template.environment)
    environment["parameters"] = {**environment.get("parameters", {}), **given}
    return dataclasses.replace(template, environment=environment)


def _started(row: model.Stack, simulation: Simulation) -> model.Event:
    values: dict[str, Any] = {
        "action": row.action, "name": row.name, "reason": row.reason,
        "stack_uuid": row.uuid, "root_uuid": row.root_uuid, "physical_id": row.uuid,
        "created_at": simulation.utc(),
    }  # fmt: skip
    return trees.event(row.status, **values)


ONE_MOMENT = {
    # in which order acts have begun that end in one moment is not in rows
    "test_a_group_changes_batch_by_batch",
    "test_what_had_begun_when_another_failed_is_let_finish",
    # a deadline that has come when a tree is loaded is looked at a millisecond later
    "test_a_time_out_fails_the_resource_and_the_stack",
    "test_each_batch_has_its_share_of_the_time",
    "test_what_becomes_ready_when_time_is_up_is_not_begun",
    "test_who_is_left_at_work_when_all_is_over_has_the_rest_of_its_time",
}


@pytest.fixture(autouse=True)
def on_rows(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Put rows below what the tests call simulations; every other turn is another engine's.

    One engine alone works for tests of how one moment goes, which several engines cannot tell.
    """
    databases: list[Database] = []
    turns = None if request.node.originalname in ONE_MOMENT else 2

    def life(world: Simulation | None = None) -> RowLifecycle:
        folder = tmp_path / f"life-{len(databases)}"
        folder.mkdir()
        databases.append(trees.database(folder))
        return RowLifecycle(databases[-1], world, turns=turns)

    def run(
        stack: Stack, *, rollback: bool = False, simulation: Simulation | None = None
    ) -> Result:
        return life(simulation).create(stack, rollback=rollback)

    monkeypatch.setattr(simulation, "Lifecycle", life)
    monkeypatch.setattr(simulation, "run", run)
    yield
    for database in databases:
        database.close()
