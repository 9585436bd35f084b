"""Child stacks: the interface between composite resources and the engine.

The work of a template resource, a group or a chain is done by a child stack.  The parent resource
gives a ``Blueprint`` to ``Children`` and polls the ``Child`` until its action has ended::

    children.create(stack_id, "web-nested-3f2x", Blueprint(owner="nested", document=...))
    children.find(stack_id).status  # IN_PROGRESS; later COMPLETE or FAILED

Each call returns at once and is idempotent: the parent resource chooses the ID of its child, and
chooses the same ID after a crash.  A child has the files of its parent, and the part of the
parent's environment for the resource ``owner`` (Environment.child).  It never rolls back by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.view import ResourceView


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """The arguments of a create or an update of a child stack.

    ``changed``: names of the resources that an update concerns.  All others keep their state and
    their definition.  None: the update concerns all resources.
    """

    owner: str  # the name of the parent resource
    document: Mapping[str, Any]  # a whole template
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None  # None: that of the parent's action
    adopt: Mapping[str, Any] | None = None  # data of an abandoned stack, to be adopted
    changed: frozenset[str] | None = None


class Child(Protocol):
    """The current state of a child stack."""

    @property
    def id(self) -> str: ...
    @property
    def arn(self) -> str: ...
    @property
    def action(self) -> Action: ...
    @property
    def status(self) -> Status: ...
    @property
    def reason(self) -> str: ...

    @property
    def document(self) -> Mapping[str, Any]:
        """Return the current template, or the new one during an update."""

    def outputs(self) -> Mapping[str, Any]:
        """Return every output by name, null where it cannot be resolved; raises nothing."""

    def output(self, name: str) -> Any:
        """Return an output.  Raises the error of its value."""

    def resources(self) -> Mapping[str, ResourceView]:
        """Return the resources by name, those that are not ready included."""

    def statuses(self) -> Mapping[str, Status]:
        """Return the status of each resource's last action, by name."""


class Children(Protocol):
    """Create, update and delete child stacks; each call returns before the work is done."""

    @property
    def converges(self) -> bool:
        """Tell whether the running action compares resources with their live state."""

    def create(self, stack_id: str, name: str, blueprint: Blueprint) -> None:
        """Begin to create a child stack called ``name``, unless this ID exists already."""

    # Each call below leaves the child IN_PROGRESS, or COMPLETE if there is no work.
    # For a child that is IN_PROGRESS, the last call replaces the running action.

    def update(self, stack_id: str, blueprint: Blueprint) -> None:
        """Begin to update a child; a FAILED child may be updated, too."""

    def delete(self, stack_id: str) -> None:
        """Begin to delete a child; no error if it is gone."""

    def suspend(self, stack_id: str) -> None:
        """Begin to suspend a child, unless it is suspended."""

    def resume(self, stack_id: str) -> None:
        """Begin to resume a child, unless it was resumed."""

    def check(self, stack_id: str) -> None:
        """Begin to check all resources of a child."""

    def snapshot(self, stack_id: str) -> None:
        """Begin a snapshot of all resources of a child."""

    def cancel(self, stack_id: str) -> None:
        """Abort the actions in a child that is IN_PROGRESS; the child becomes FAILED."""

    def preempt(self, stack_id: str) -> None:
        """Let a child become FAILED at once; running actions of its resources go on.

        The next update of the child decides which of these actions are still of use.
        """

    def put_off(self, seconds: float) -> None:
        """Move the time-outs of the running actions of the stack, and of those above it."""

    def find(self, stack_id: str) -> Child | None:
        """Return the current state of a child; None if it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherStack:
    """A stack of another tree; outputs are read only when it is at rest.

    ``hidden``: the names of outputs that depend on secrets.
    """

    uuid: str
    name: str
    state: str  # such as UPDATE_IN_PROGRESS
    is_at_rest: bool
    outputs: Mapping[str, Any] = field(default_factory=dict)
    hidden: Collection[str] = ()


class OtherStacks(Protocol):
    """The stacks of other trees, with the rights of the last caller of this one."""

    def read(self, ident: str, names: Sequence[str] | None) -> OtherStack:
        """Return a stack of the project by name or ID, and outputs; ``names`` None: all.

        Raises EntityNotFound, Forbidden, and NotFound for an output without a value.
        """
