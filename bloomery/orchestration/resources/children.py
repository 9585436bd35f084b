"""Child stacks as the resource above them sees them: the seam of all composite kinds.

A nested template, a group and a chain stand for a whole stack each.  They know nothing of who walks
stacks: they hand a ``Blueprint`` to ``Children`` and look at the ``Child`` until it has ended::

    children.create(stack_id, "web-nested-3f2x", Blueprint(owner="nested", document=...))
    children.find(stack_id).status  # IN_PROGRESS; later COMPLETE or FAILED

Each verb returns at once, and asked twice it lands in the same place: the id of a child is chosen
by the resource above, which chooses the same one after a crash.  A simulation keeps children
in memory, the engine as rows; both give a child the files of its parent and what the parent's
environment says for the resource ``owner`` (Environment.child), and never let it roll back alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.view import ResourceView


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """What a child stack is made from, or changed to.

    ``changed``: names of the resources that an update is about; whatever state the others are in,
    they and their definitions stay as they are.  None: it is about all of them.
    """

    owner: str  # the name of the resource above
    document: Mapping[str, Any]  # a whole template
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None  # None: that of the parent's action
    adopt: Mapping[str, Any] | None = None  # what an abandoned stack left, to be taken over
    changed: frozenset[str] | None = None


class Child(Protocol):
    """One child stack as it is now."""

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
        """The template it has now, or is changing to."""

    def outputs(self) -> Mapping[str, Any]:
        """Every output by name, null where it cannot be told yet; nothing is raised."""

    def output(self, name: str) -> Any:
        """One output; raises the fault of that output."""

    def resources(self) -> Mapping[str, ResourceView]:
        """Its resources by name, those that are not ready included."""

    def statuses(self) -> Mapping[str, Status]:
        """How the last action of each resource is, by name."""


class Children(Protocol):
    """Make, change and remove child stacks; each verb returns before the work is done."""

    @property
    def converges(self) -> bool:
        """Whether the action under way compares resources with what is really there."""

    def create(self, stack_id: str, name: str, blueprint: Blueprint) -> None:
        """Begin a child stack called ``name``; one that is there already is left alone."""

    # Each of the following leaves the child IN_PROGRESS, or COMPLETE where nothing is to be done;
    # one that is busy turns to what it is asked last.

    def update(self, stack_id: str, blueprint: Blueprint) -> None:
        """Begin to change a child; one that has ended in FAILED may be changed too."""

    def delete(self, stack_id: str) -> None:
        """Begin to remove a child; one that is gone is no error."""

    def suspend(self, stack_id: str) -> None:
        """Begin to suspend a child; one that is suspended is left alone."""

    def resume(self, stack_id: str) -> None:
        """Begin to resume a child; one that was resumed is left alone."""

    def check(self, stack_id: str) -> None:
        """Begin to look whether all that the child stands for is there."""

    def snapshot(self, stack_id: str) -> None:
        """Begin a snapshot of all resources of a child."""

    def cancel(self, stack_id: str) -> None:
        """Stop what the child is doing, as CREATE or UPDATE FAILED; idle ones are left alone."""

    def preempt(self, stack_id: str) -> None:
        """Let what the child is doing be FAILED, and each of its resources come to its end.

        The next update of the child sees which of them are still of use.
        """

    def find(self, stack_id: str) -> Child | None:
        """The child as it is now; None when it is gone."""
