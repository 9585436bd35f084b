"""Rehearse whole lives of stacks: create, updates, delete, each with its result."""

from __future__ import annotations

from collections.abc import Callable

from bloomery import errors
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.simulation import results, walks
from bloomery.orchestration.simulation.children import SimulatedChildren, identity_of
from bloomery.orchestration.simulation.results import Result
from bloomery.orchestration.simulation.rows import Row
from bloomery.orchestration.simulation.simulation import Simulation
from bloomery.orchestration.simulation.stacks import SimulatedStack
from bloomery.orchestration.stack import Stack, validate


def run(stack: Stack, *, rollback: bool = False, simulation: Simulation | None = None) -> Result:
    """Validate a stack, create it in memory and tell what came of it.  Nothing is raised."""
    return Lifecycle(simulation).create(stack, rollback=rollback)


class Lifecycle:
    """One root stack through its life; each verb runs to its end and returns a result."""

    def __init__(self, simulation: Simulation | None = None) -> None:
        self.simulation = simulation or Simulation()
        self.stack: SimulatedStack | None = None

    def create(self, stack: Stack, *, rollback: bool = False) -> Result:
        return self._result_of(lambda: self._create(stack, rollback=rollback))

    def update(self, stack: Stack, *, rollback: bool = False) -> Result:
        """Bring the stack to another template."""
        return self._result_of(lambda: self._update(stack, rollback=rollback))

    def delete(self) -> Result:
        return self._result_of(self._delete)

    def _result_of(self, verb: Callable[[], SimulatedStack]) -> Result:
        """What came of a verb, or why it was refused."""
        try:
            simulated = verb()
        except errors.Failure as exc:
            return Result(status=None, error=results.error_of(exc))
        return _result(simulated)

    def _create(self, stack: Stack, *, rollback: bool) -> SimulatedStack:
        validate(stack)
        simulated = self._begin(stack)
        self.simulation.run(lambda: walks.create(simulated, rollback=rollback))
        return simulated

    def _update(self, stack: Stack, *, rollback: bool) -> SimulatedStack:
        simulated = self._present()
        if simulated.action is Action.DELETE:
            raise errors.NotSupported(feature="Updating a stack that is being deleted")
        validate(stack)
        new = with_id(stack, simulated.name, simulated.id)
        if isinstance(simulated.template, Stack):
            new.definition.parameters.check_immutable(simulated.template.definition.parameters)
        simulated.timeout_s = stack.timeout_s
        self.simulation.run(lambda: walks.update(simulated, new, rollback=rollback))
        return simulated

    def _delete(self) -> SimulatedStack:
        simulated = self._present()
        self.simulation.run(lambda: walks.delete(simulated))
        return simulated

    def _present(self) -> SimulatedStack:
        if self.stack is None or self.stack.id not in self.stack.stacks:
            raise errors.NotFound(reason="cannot find the stack: create it first")
        return self.stack

    def _begin(self, stack: Stack) -> SimulatedStack:
        name, stack_id = stack.definition.identity.name, self.simulation.new_id()
        root = with_id(stack, name, stack_id)
        simulated = SimulatedStack(root, self.simulation, {}, name=name, id=stack_id)
        simulated.children = SimulatedChildren(simulated)
        self.stack = simulated
        return simulated


def with_id(stack: Stack, name: str, stack_id: str) -> Stack:
    """The same stack with an id, as pseudo parameters tell it once it is stored."""
    definition = stack.definition.stored_as(identity_of(stack, name, stack_id))
    return Stack(definition, depth=stack.depth, timeout_s=stack.timeout_s)


def _result(simulated: SimulatedStack) -> Result:
    return Result(
        status=f"{simulated.action}_{simulated.status}",
        reason=simulated.reason,
        error=simulated.failure,
        outputs={name: _output(simulated, name) for name in simulated.output_names()},
        events=tuple(simulated.simulation.events),
        resources=tuple(_resource(row) for row in simulated.rows.values()),
    )


def _output(simulated: SimulatedStack, name: str) -> results.Output:
    assert isinstance(simulated.template, Stack)
    description = simulated.template.definition.outputs[name].description
    try:
        return results.Output(description=description, value=simulated.output(name))
    except Exception as exc:  # noqa: BLE001  # one output that cannot be told spoils no other
        error = results.error_of(exc, simulated.simulation.redaction)
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
