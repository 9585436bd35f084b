"""Rehearse whole lives of stacks: create, updates, delete, each with its result."""

from __future__ import annotations

from collections.abc import Callable

from bloomery import errors
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.simulation import results
from bloomery.orchestration.simulation.children import SimulatedChildren, identity_of
from bloomery.orchestration.simulation.results import Result
from bloomery.orchestration.simulation.rows import Row
from bloomery.orchestration.simulation.simulation import Simulation
from bloomery.orchestration.simulation.stacks import SimulatedStack
from bloomery.orchestration.stack import Stack


def run(stack: Stack, *, rollback: bool = False, simulation: Simulation | None = None) -> Result:
    """Validate a stack, create it in memory and tell what came of it.  Nothing is raised."""
    return Lifecycle(simulation).create(stack, rollback=rollback)


class Lifecycle:
    """One root stack through its life; each verb runs to its end and returns a result."""

    def __init__(self, simulation: Simulation | None = None) -> None:
        self.simulation = simulation or Simulation()
        self.stack: SimulatedStack | None = None

    def create(self, stack: Stack, *, rollback: bool = False) -> Result:
        return self._told(lambda: self._create(stack, rollback=rollback))

    def update(self, stack: Stack, *, rollback: bool = False) -> Result:
        """Bring the stack to another template."""
        return self._told(lambda: self._update(stack, rollback=rollback))

    def delete(self) -> Result:
        return self._told(self._delete)

    def _told(self, verb: Callable[[], SimulatedStack]) -> Result:
        """What came of a verb, or why it was refused."""
        try:
            made = verb()
        except errors.Failure as exc:
            return Result(status=None, error=results.error_of(exc))
        return _result(made)

    def _create(self, stack: Stack, *, rollback: bool) -> SimulatedStack:
        stack.validate()
        made = self._made(stack)
        self.simulation.run(lambda: made.create(rollback=rollback))
        return made

    def _update(self, stack: Stack, *, rollback: bool) -> SimulatedStack:
        made = self._present()
        if made.action is Action.DELETE:
            raise errors.NotSupported(feature="Updating a stack that is being deleted")
        stack.validate()
        new = with_id(stack, made.name, made.id)
        if isinstance(made.template, Stack):
            new.definition.parameters.check_immutable(made.template.definition.parameters)
        made.timeout_s = stack.timeout_s
        self.simulation.run(lambda: made.update(new, rollback=rollback))
        return made

    def _delete(self) -> SimulatedStack:
        made = self._present()
        self.simulation.run(made.delete)
        return made

    def _present(self) -> SimulatedStack:
        if self.stack is None or self.stack.id not in self.simulation.stacks:
            raise errors.NotFound(reason="cannot find the stack: create it first")
        return self.stack

    def _made(self, stack: Stack) -> SimulatedStack:
        name, stack_id = stack.definition.identity.name, self.simulation.new_id()
        made = SimulatedStack(
            with_id(stack, name, stack_id),
            self.simulation,
            name=name,
            id=stack_id,
            timeout_s=stack.timeout_s,
        )
        made.children = SimulatedChildren(made)
        self.stack = made
        return made


def with_id(stack: Stack, name: str, stack_id: str) -> Stack:
    """The same stack with an id, as pseudo parameters tell it once it is stored."""
    definition = stack.definition.stored_as(identity_of(stack, name, stack_id))
    return Stack(definition, depth=stack.depth, timeout_s=stack.timeout_s)


def _result(made: SimulatedStack) -> Result:
    return Result(
        status=f"{made.action}_{made.status}",
        reason=made.reason,
        error=made.failure,
        outputs={name: _output(made, name) for name in made.output_names()},
        events=tuple(made.simulation.events),
        resources=tuple(_resource(row) for row in made.rows.values()),
    )


def _output(made: SimulatedStack, name: str) -> results.Output:
    assert isinstance(made.template, Stack)
    description = made.template.definition.outputs[name].description
    try:
        return results.Output(description=description, value=made.output(name))
    except Exception as exc:  # noqa: BLE001  # one output that cannot be told spoils no other
        error = results.error_of(exc, made.simulation.redaction)
        return results.Output(description=description, error=error)


def _resource(row: Row) -> results.Resource:
    record = row.record
    return results.Resource(
        name=record.name,
        type=record.type,
        state=f"{record.action}_{record.status}",
        reason=record.reason,
        physical_id=record.physical_id,
    )
