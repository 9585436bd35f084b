"""Simulate whole lives of stacks: create, updates, delete, each with its result."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.model.stacks import OrderKind
from bloomery.orchestration.engine import definitions
from bloomery.orchestration.engine.definitions import Library
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.resources import states
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.simulation import results
from bloomery.orchestration.simulation.results import Result
from bloomery.orchestration.simulation.simulation import Simulation
from bloomery.orchestration.stack import Stack, validate


def run(stack: Stack, *, rollback: bool = False, simulation: Simulation | None = None) -> Result:
    """Validate a stack and create it in memory.  The result has any Failure; none is raised."""
    return Lifecycle(simulation).create(stack, rollback=rollback)


class Lifecycle:
    """The life of one root stack; each verb runs to its end and returns a result.

    Each verb does the API's part, too: it accepts an order with the state that clients would see.
    """

    def __init__(self, simulation: Simulation | None = None) -> None:
        self.simulation = simulation or Simulation()
        self.tree: StackTree | None = None
        self.stack: EngineStack | None = None

    def create(self, stack: Stack, *, rollback: bool = False) -> Result:
        return self._result_of(lambda: self._create(stack, rollback=rollback))

    def update(self, stack: Stack, *, rollback: bool = False) -> Result:
        """Bring the stack to another template."""
        return self._result_of(lambda: self._update(stack, rollback=rollback))

    def delete(self) -> Result:
        return self._result_of(self._delete)

    def _result_of(self, verb: Callable[[], EngineStack]) -> Result:
        """Return the result of a verb, or its refusal as a result."""
        try:
            stack = verb()
        except errors.Failure as exc:
            return Result(status=None, error=results.error_of(exc))
        return self._result(stack)

    def _result(self, stack: EngineStack) -> Result:
        outputs = {}
        for name in stack.template.outputs:
            description = stack.definition.outputs[name].description
            try:
                outputs[name] = results.Output(description=description, value=stack.output(name))
            except Exception as exc:  # noqa: BLE001  # the failure of one does not affect others
                error = results.error_of(exc, stack.changes.redaction)
                outputs[name] = results.Output(description=description, error=error)
        failure = stack.failure
        return Result(
            status=f"{stack.action}_{stack.status}",
            reason=stack.reason,
            error=None if failure is None else results.Error(type=failure[0], message=failure[1]),
            outputs=outputs,
            events=tuple(self.simulation.events),
            resources=tuple(row.copy() for row in stack.rows.values()),
        )

    def _create(self, stack: Stack, *, rollback: bool) -> EngineStack:
        validate(stack)
        identity, simulation = stack.definition.identity, self.simulation
        stack_id, template = simulation.new_id(), _template_of(stack)
        row = model.Stack(
            uuid=stack_id,
            name=identity.name,
            project=identity.project_id,
            root_uuid=stack_id,
            template_uuid=template.uuid,
            action=Action.CREATE.value,
            status=Status.IN_PROGRESS.value,
            reason=states.started(Action.CREATE),
            disable_rollback=not rollback,
            deadline_at=self._deadline(stack),
            created_at=simulation.utc(),
        )
        runtime = simulation.runtime()
        library = Library(runtime, {})
        library.add(template, with_id(stack, identity.name, stack_id))
        self.tree = StackTree.load(_tree(row), runtime, library)
        self.stack = self.tree.stacks[stack_id]
        return self._order(OrderKind.CREATE, row)

    def _update(self, stack: Stack, *, rollback: bool) -> EngineStack:
        current = self._current()
        if current.action is Action.DELETE:
            raise errors.NotSupported(feature="Updating a stack that is being deleted")
        validate(stack)
        new, template = with_id(stack, current.name, current.id), _template_of(stack)
        new.definition.parameters.check_immutable(current.definition.definition.parameters)
        assert self.tree is not None
        self.tree.actions.library.add(template, new)
        row = self._accepted(
            Action.UPDATE,
            stack,
            template_uuid=template.uuid,
            previous_template_uuid=current.row.template_uuid,
            disable_rollback=not rollback,
        )
        return self._order(OrderKind.UPDATE, row)

    def _delete(self) -> EngineStack:
        row = self._accepted(Action.DELETE, self._current().definition)
        return self._order(OrderKind.DELETE, row)

    def _current(self) -> EngineStack:
        if self.stack is None or self.stack.id not in self.stack.stacks:
            raise errors.NotFound(reason="cannot find the stack: create it first")
        return self.stack

    def _accepted(self, action: Action, stack: Stack, **columns: Any) -> model.Stack:
        row = self._current().value()
        return dataclasses.replace(
            row,
            action=action.value,
            status=Status.IN_PROGRESS.value,
            reason=states.started(action),
            traversal=row.traversal + 1,
            deadline_at=self._deadline(stack),
            **columns,
        )

    def _deadline(self, stack: Stack) -> Any:
        return self.simulation.utc() + timedelta(seconds=stack.timeout_s)

    def _order(self, kind: OrderKind, row: model.Stack) -> EngineStack:
        """Accept an order with the state of its stack, and run the tree to its end."""
        assert self.tree is not None
        assert self.stack is not None
        order = model.Order(
            root_uuid=row.root_uuid, stack_uuid=row.uuid, kind=kind,
            id=next(self.simulation.order_ids),
        )  # fmt: skip
        self.simulation.store(model.Turn(stacks=[row]))
        started = model.Event(
            uuid=str(uuid.uuid4()),
            stack_uuid=row.uuid,
            root_uuid=row.root_uuid,
            created_at=self.simulation.utc(),
            action=row.action,
            status=row.status,
            name=row.name,
            type=states.STACK_TYPE,
            physical_id=row.uuid,
            reason=row.reason,
        )
        self.simulation.emit_events([started])
        self.tree.take(_tree(row, order))
        self.simulation.run_to_completion(self.tree)
        return self.stack


def with_id(stack: Stack, name: str, stack_id: str) -> Stack:
    """Return the same stack with an ID, for its pseudo parameters."""
    project = stack.definition.identity.project_id
    definition = stack.definition.stored_as(definitions.identity_of(name, stack_id, project))
    return Stack(definition, depth=stack.depth, timeout_s=stack.timeout_s)


def _template_of(stack: Stack) -> model.Template:
    definition = stack.definition
    return model.Template(
        uuid=str(uuid.uuid4()),
        template=definition.template.document,
        environment=definition.environment.document(),
        files=definition.template.files,
    )


def _tree(row: model.Stack, *orders: model.Order) -> model.Tree:
    return model.Tree(stacks=[row], resources=[], templates={}, properties={}, orders=orders)
