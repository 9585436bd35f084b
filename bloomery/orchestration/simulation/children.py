"""Stacks below a simulated stack: ``Children`` and ``Child`` in memory.

Each runs in the background of the same world, on the same clock; who stands above looks at it now
and then, as it would at rows of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bloomery import errors
from bloomery.orchestration.resources.children import Blueprint
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.scheduler import TaskRunner
from bloomery.orchestration.scheduler.runner import Steps
from bloomery.orchestration.simulation import walks
from bloomery.orchestration.simulation.rows import RowFacade
from bloomery.orchestration.simulation.stacks import SimulatedStack
from bloomery.orchestration.stack import Stack, validate
from bloomery.orchestration.stack.nesting import Tree
from bloomery.orchestration.template import versions
from bloomery.orchestration.template.dialect import Identity
from bloomery.orchestration.template.view import ResourceView


class SimulatedChildren:
    """The children of one stack (``children.Children``)."""

    def __init__(self, parent: SimulatedStack) -> None:
        self._parent = parent
        self._runners: dict[str, TaskRunner] = {}

    def create(self, stack_id: str, name: str, blueprint: Blueprint) -> None:
        parent = self._parent
        if stack_id in parent.stacks:
            return
        stack = self._stack(name, stack_id, blueprint)
        child = SimulatedStack(stack, parent.simulation, parent.stacks, name=name, id=stack_id)
        child.children = SimulatedChildren(child)
        self._run(child, lambda: walks.create(child))

    def update(self, stack_id: str, blueprint: Blueprint) -> None:
        child = self._parent.stacks[stack_id]
        stack = self._stack(child.name, stack_id, blueprint)
        child.timeout_s = stack.timeout_s
        self._run(child, lambda: walks.update(child, stack))

    def delete(self, stack_id: str) -> None:
        child = self._parent.stacks.get(stack_id)
        if child is not None:
            self.cancel(stack_id)
            self._run(child, lambda: walks.delete(child))

    def suspend(self, stack_id: str) -> None:
        raise errors.NotSupported(feature="Suspending a stack in a simulation")

    def resume(self, stack_id: str) -> None:
        raise errors.NotSupported(feature="Resuming a stack in a simulation")

    def check(self, stack_id: str) -> None:
        raise errors.NotSupported(feature="Checking a stack in a simulation")

    def snapshot(self, stack_id: str) -> None:
        raise errors.NotSupported(feature="A snapshot of a stack in a simulation")

    def _run(self, child: SimulatedStack, task: Callable[[], Steps]) -> None:
        self._runners[child.id] = child.simulation.spawn(task)

    def cancel(self, stack_id: str) -> None:
        runner = self._runners.pop(stack_id, None)
        if runner is not None:
            runner.cancel()

    def find(self, stack_id: str) -> SimulatedChild | None:
        child = self._parent.stacks.get(stack_id)
        return None if child is None else SimulatedChild(child)

    def _stack(self, name: str, stack_id: str, blueprint: Blueprint) -> Stack:
        """The stack of a blueprint, validated; raises what is wrong with it."""
        parent = self._parent
        assert isinstance(parent.template, Stack)
        above = parent.template.definition
        limits, files = above.limits, above.template.files
        document = dict(blueprint.document)
        owner = parent.template.resolved_type(blueprint.owner)
        definition = above.child(
            versions.template_class(document)(document, files, limits=limits),
            above.environment.child(blueprint.owner, resolved=owner),
            identity=identity_of(parent.template, name, stack_id),
            facade=RowFacade(parent.rows[blueprint.owner]),
            user_parameters=blueprint.parameters,
        )
        others = (len(each.current_rows) for each in parent.stacks.values() if each.id != stack_id)
        tree = Tree(limits, files, resources=sum(others))
        depth = tree.deepen(parent.depth)
        timeout_s = blueprint.timeout_s or parent.timeout_s
        stack = Stack(definition, tree=tree, depth=depth, timeout_s=timeout_s)
        validate(stack)
        return stack


class SimulatedChild:
    """One of them as it is now (``children.Child``)."""

    __slots__ = ("_stack",)

    def __init__(self, stack: SimulatedStack) -> None:
        self._stack = stack

    @property
    def id(self) -> str:
        return self._stack.id

    @property
    def arn(self) -> str:
        return arn_of(self._stack.first, self._stack.name, self._stack.id)

    @property
    def action(self) -> Action:
        return self._stack.action

    @property
    def status(self) -> Status:
        return self._stack.status

    @property
    def reason(self) -> str:
        return self._stack.reason

    @property
    def document(self) -> Mapping[str, Any]:
        template = self._stack.template
        return template.definition.template.document if isinstance(template, Stack) else {}

    def outputs(self) -> Mapping[str, Any]:
        return {name: self._output_or_none(name) for name in self._stack.output_names()}

    def _output_or_none(self, name: str) -> Any:
        try:
            return self._stack.output(name)
        except errors.Failure:
            return None

    def output(self, name: str) -> Any:
        return self._stack.output(name)

    def resources(self) -> Mapping[str, ResourceView]:
        return dict[str, ResourceView](self._stack.current_rows)


def identity_of(stack: Stack, name: str, stack_id: str) -> Identity:
    """How a stack of the same project is known once it is stored."""
    return Identity(
        name=name,
        id=stack_id,
        arn=arn_of(stack, name, stack_id),
        project_id=stack.definition.identity.project_id,
    )


def arn_of(stack: Stack, name: str, stack_id: str) -> str:
    """How Heat names a stack everywhere: by project, name and id."""
    return f"arn:openstack:heat::{stack.definition.identity.project_id}:stacks/{name}/{stack_id}"
