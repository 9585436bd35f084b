"""A stack while an engine works on it: its state, its rows, and its values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Protocol

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.orchestration.engine import events
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.schedule import Schedule
from bloomery.orchestration.plan.template_side import Nothing
from bloomery.orchestration.resources import base, states
from bloomery.orchestration.resources.children import Children
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack

RESOURCE_FAILURE: Final = errors.ResourceFailure.__name__


class StackTimedOut(Exception):
    """The stack's action has timed out."""


class ResourceFailed(Exception):
    """An action on a resource failed; ``fault``: the failure in the stack's reason."""

    def __init__(self, action: Action, fault: states.Fault | str, cause: Exception) -> None:
        super().__init__(str(fault))
        self.action = action
        self.fault = fault
        self.cause = cause


class ResourcesFailed(Exception):
    """Resources failed in an action that goes on after failures (CHECK)."""


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """The resources that a partial update concerns, as a template of their own.

    ``names``: of these resources, and of those that the update removes.
    """

    stack: Stack
    template_uuid: str
    names: Collection[str]


class OpenTraversal(Protocol):
    """The traversal of a stack that is under way.  ``extra``: the arguments of its order."""

    @property
    def extra(self) -> Mapping[str, Any]: ...

    def action_ended(self, row: EngineResource, failure: Exception | None) -> None: ...

    def advance(self) -> None: ...

    def unset(self, row: EngineResource, hook: str) -> None: ...

    def graph_document(self) -> dict[str, Any]: ...


class EngineStack:
    """One stack of a tree.  ``template``: the current one; NOTHING while it is deleted.

    ``stacks``: all existing stacks of the tree, by UUID.
    """

    def __init__(
        self,
        row: model.Stack,
        template: Stack,
        schedule: Schedule,
        stacks: dict[str, EngineStack],
        children_of: Callable[[EngineStack], Children],
    ) -> None:
        self.row = row
        self.first = template
        self.template: Stack | Nothing = template
        self.part: TemplatePart | None = None  # None: the traversal concerns all resources
        self.superseded: str | None = None  # the template that the last partial update replaced
        self.schedule = schedule
        self.changes = schedule.changes
        self.runtime = schedule.runtime
        self.stacks = stacks
        self.children = children_of(self)
        self.timeout_s = template.timeout_s
        self.failure: tuple[str, str] | None = None  # type and text of the first failure
        self.rows: dict[str, EngineResource] = {}  # the current one of each name
        self.leftovers: dict[str, list[EngineResource]] = {}  # replaced, and still there
        self.current_rows: dict[str, EngineResource] = {}  # of the current template
        self.open_traversal: OpenTraversal | None = None
        self.open_rows: dict[str, EngineResource] = {}  # whose actions have not ended
        self._context: base.ResourceContext | None = None
        stacks[row.uuid] = self

    @property
    def id(self) -> str:
        return self.row.uuid

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def action(self) -> Action:
        return Action(self.row.action)

    @property
    def status(self) -> Status:
        return Status(self.row.status)

    @property
    def reason(self) -> str:
        return self.row.reason

    @property
    def traversal(self) -> int:
        return self.row.traversal

    @property
    def open(self) -> bool:
        return self.open_traversal is not None or bool(self.open_rows)

    @property
    def converges(self) -> bool:
        """Whether the update compares resources with their real state, here and in children."""
        return self.open_traversal is not None and bool(self.open_traversal.extra.get("converge"))

    def value(self) -> model.Stack:
        """Return the stack as it is stored."""
        traversal = self.open_traversal
        graph = None if traversal is None else traversal.graph_document()
        return replace(self.row, graph=graph, open=self.open)

    def change(self, **columns: Any) -> None:
        """Set ``columns``, and write the stack in the next transaction."""
        if columns:
            self.row = replace(self.row, **columns)
        self.changes.change_stack(self.id, self.value)

    # ------------------------------------------------------------------------------------ states

    def begin(self, action: Action, *, is_first: bool = False) -> None:
        """Begin a traversal: number it unless it is the first, emit its event, set its deadline."""
        if not is_first:
            self.change(traversal=self.traversal + 1)
        self.failure = None
        self.set_state(action, Status.IN_PROGRESS, events.started(action))
        self.change(deadline_at=self.runtime.utc() + timedelta(seconds=self.timeout_s))
        self.watch_deadline()

    def watch_deadline(self) -> None:
        if self.row.deadline_at is not None:
            self.schedule.set_deadline(self.id, self.row.deadline_at)

    def accept(self, row: model.Stack) -> None:
        """Take over the row that was stored with an order; its event was emitted then."""
        self.row, self.failure = row, None
        if row.deadline_at is None and self.status is Status.IN_PROGRESS:
            after = timedelta(seconds=self.timeout_s)
            self.row = replace(row, deadline_at=self.runtime.utc() + after)
        self.watch_deadline()
        self.change()

    def fail(self, exc: Exception) -> None:
        """Set the stack to FAILED, if this is the first failure of the present action."""
        if self.status is not Status.IN_PROGRESS:
            return
        kind, reason = _explained(self.action, exc)
        reason = self.changes.redaction.masked(reason)
        self.failure = (kind, reason)
        self.set_state(self.action, Status.FAILED, reason)

    def set_state(self, action: Action, status: Status, reason: str) -> None:
        self.change(action=action.value, status=status.value, reason=reason)
        self._event(self.name, events.STACK_TYPE, self.id, action, status, reason)
        if status is not Status.IN_PROGRESS:
            self.schedule.wake(self.id)

    def emit_event(self, row: EngineResource, action: str, status: Status, reason: str) -> None:
        """Emit an event of one of its resources."""
        used = row.properties_uuid
        self._event(row.name, row.type, row.physical_id, action, status, reason, used)

    def _event(
        self,
        resource: str,
        kind: str,
        physical_id: str | None,
        action: str,
        status: Status,
        reason: str,
        properties_uuid: str | None = None,
    ) -> None:
        self.changes.emit_event(
            stack_uuid=self.id,
            action=str(action),
            status=str(status),
            name=resource,
            type=kind,
            physical_id=physical_id,
            reason=reason,
            properties_uuid=properties_uuid,
            stack_name=self.name,
            project=self.row.project,
        )

    def set_template(self, new: Stack | Nothing, part: TemplatePart | None) -> None:
        self.template, self.part, self._context = new, part, None
        if isinstance(new, Stack):
            self.first = new
            self.timeout_s = new.timeout_s
            self.changes.redaction |= new.definition.redaction

    @property
    def live_template(self) -> Stack:
        assert isinstance(self.template, Stack)
        return self.template

    def context(self) -> base.ResourceContext:
        """Return the context of the stack's resources: one object for all of a traversal."""
        context = self._context
        if context is None or context.timeout_s != self.timeout_s:
            context = self._context = self._new_context()
        return context

    def _new_context(self) -> base.ResourceContext:
        runtime = self.runtime
        return runtime.resource_context(
            self.row, timeout_s=self.timeout_s, children=self.children,
            siblings=StackSiblings(self), engines=runtime.engines(),
            limits=self.first.definition.limits,
        )  # fmt: skip

    @property
    def hides(self) -> bool:
        """Whether the stack or a parent has hidden parameters, whose values may be anywhere."""
        parent = self.stacks.get(self.row.owner_uuid or "")
        return bool(self.first.hidden) or (parent is not None and parent.hides)


class StackSiblings:
    """The lookup of other resources of the same stack (``base.Siblings``)."""

    __slots__ = ("_names", "_stack")

    def __init__(self, stack: EngineStack) -> None:
        self._stack = stack
        self._names: dict[str, str] = {}  # by reference ID, from the last search

    def find(self, reference_id: Any) -> base.Resource | None:
        """Return the resource with a reference ID; search again if the last search lacks it."""
        row = self._named(reference_id)
        if row is None:
            self._search()
            row = self._named(reference_id)
        if row is None:
            return None
        self._stack.changes.track_changes(row)
        return row.resource()

    def _named(self, reference_id: Any) -> EngineResource | None:
        row = self._stack.current_rows.get(self._names.get(str(reference_id), ""))
        is_it = row is not None and row.ready and row.reference_id() == reference_id
        return row if is_it else None

    def _search(self) -> None:
        """Store resource names by reference ID; of equal IDs the first one counts."""
        self._names = {}
        for name, row in self._stack.current_rows.items():
            if row.ready:
                self._names.setdefault(str(row.reference_id()), name)

    def list(self, kind: type[base.R], physical_id: str) -> list[base.R]:
        resources, rows = [], self._stack.current_rows
        for name in self._stack.first.names_by_kind.get(kind, ()):
            row = rows.get(name)
            if row is None or row.physical_id != physical_id:
                continue
            if row.kind is kind and row.ready:
                self._stack.changes.track_changes(row)
                resources.append(row.resource())
        return resources  # type: ignore[return-value]  # mypy does not know their kind


def _explained(action: Action, exc: Exception) -> tuple[str, str]:
    """Return the type of a failure, and the stack's reason for it."""
    if isinstance(exc, StackTimedOut):
        return states.error_type(exc), events.TIMED_OUT
    if isinstance(exc, ResourceFailed):
        return RESOURCE_FAILURE, events.failed(exc.action, exc.fault)
    if isinstance(exc, ResourcesFailed):
        return RESOURCE_FAILURE, str(exc)
    kind = states.error_type(exc)
    return kind, events.failed(action, f"{kind}: {exc}")
