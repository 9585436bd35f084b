"""Rehearse whole lives of stacks: create, updates, delete, each with its result."""

from __future__ import annotations

from collections.abc import Callable

from bloomery import errors
from bloomery.orchestration.rehearsal import results
from bloomery.orchestration.rehearsal.below import Below, arn_of
from bloomery.orchestration.rehearsal.results import Result
from bloomery.orchestration.rehearsal.rows import Row
from bloomery.orchestration.rehearsal.stacks import Rehearsed
from bloomery.orchestration.rehearsal.world import World
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.definition import Definition


def run(stack: Stack, *, rollback: bool = False, world: World | None = None) -> Result:
    """Validate a stack, create it in memory and tell what came of it.  Nothing is raised."""
    return Rehearsal(world).create(stack, rollback=rollback)


class Rehearsal:
    """One root stack through its life; each verb runs to its end and returns a result."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.stack: Rehearsed | None = None

    def create(self, stack: Stack, *, rollback: bool = False) -> Result:
        return self._told(lambda: self._create(stack, rollback=rollback))

    def update(self, stack: Stack, *, rollback: bool = False) -> Result:
        """Bring the stack to another template."""
        return self._told(lambda: self._update(stack, rollback=rollback))

    def delete(self) -> Result:
        return self._told(self._delete)

    def _told(self, verb: Callable[[], Rehearsed]) -> Result:
        """What came of a verb, or why it was refused."""
        try:
            made = verb()
        except errors.Failure as exc:
            return Result(status=None, error=results.error_of(exc))
        return _result(made)

    def _create(self, stack: Stack, *, rollback: bool) -> Rehearsed:
        stack.validate()
        made = self._made(stack)
        self.world.run(lambda: made.create(rollback=rollback))
        return made

    def _update(self, stack: Stack, *, rollback: bool) -> Rehearsed:
        made = self._present()
        if made.action is Action.DELETE:
            raise errors.NotSupported(feature="Updating a stack that is being deleted")
        stack.validate()
        new = known(stack, made.name, made.id)
        if isinstance(made.side, Stack):
            new.definition.parameters.check_immutable(made.side.definition.parameters)
        made.timeout_s = stack.timeout_s
        self.world.run(lambda: made.update(new, rollback=rollback))
        return made

    def _delete(self) -> Rehearsed:
        made = self._present()
        self.world.run(made.delete)
        return made

    def _present(self) -> Rehearsed:
        if self.stack is None or self.stack.id not in self.world.stacks:
            raise errors.NotFound(reason="cannot find the stack: create it first")
        return self.stack

    def _made(self, stack: Stack) -> Rehearsed:
        name, stack_id = stack.definition.identity.name, self.world.new_id()
        made = Rehearsed(
            known(stack, name, stack_id),
            self.world,
            name=name,
            id=stack_id,
            timeout_s=stack.timeout_s,
        )
        made.children = Below(made)
        self.stack = made
        return made


def known(stack: Stack, name: str, stack_id: str) -> Stack:
    """The same stack with an id, as pseudo parameters tell it once it is stored."""
    definition = stack.definition
    identity = definition.identity
    made = Definition(
        definition.template,
        definition.environment,
        name=name,
        id=stack_id,
        arn=arn_of(stack, name, stack_id),
        project_id=identity.project_id,
        given=definition.given,
        facade=definition.facade,
        means=definition.means,
        above=definition.above,
    )
    return Stack(made, depth=stack.depth, timeout_s=stack.timeout_s)


def _result(made: Rehearsed) -> Result:
    return Result(
        status=f"{made.action}_{made.status}",
        reason=made.reason,
        error=made.failure,
        outputs={name: _output(made, name) for name in made.output_names()},
        events=tuple(made.world.events),
        resources=tuple(_resource(row) for row in made.rows.values()),
    )


def _output(made: Rehearsed, name: str) -> results.Output:
    assert isinstance(made.side, Stack)
    description = made.side.definition.outputs[name].description
    try:
        return results.Output(description=description, value=made.output(name))
    except Exception as exc:  # noqa: BLE001  # one output that cannot be told spoils no other
        error = results.error_of(exc, made.world.discretion)
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
