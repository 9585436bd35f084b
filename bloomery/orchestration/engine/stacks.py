"""A stack while an engine works on it: its state, and the table of its resources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Protocol

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.schedule import Schedule
from bloomery.orchestration.engine.stack_values import ReadableStack, StackSiblings
from bloomery.orchestration.resources import base, machine_orders, states
from bloomery.orchestration.resources.children import Children
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect, Impact
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.stack.template_side import Nothing

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


class EngineStack(ReadableStack):
    """One stack of a tree: its state, and the table of its resources.

    ``definition``  of the current template, or of the last one while the stack is deleted
    ``template``    the same; NOTHING while the stack is deleted
    ``stacks``      all existing stacks of the tree, by UUID
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
        self.definition = template
        self.template: Stack | Nothing = template
        self.partial: TemplatePart | None = None  # None: the traversal concerns all resources
        self.replaced_template_uuid: str | None = None  # by the last partial update
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
        self.changes.change_stack(self.row.uuid, self.value)

    # ------------------------------------------------------------------------------------ states

    def begin(self, action: Action, *, is_first: bool = False) -> None:
        """Begin a traversal: number it unless it is the first, emit its event, set its deadline."""
        if not is_first:
            self.change(traversal=self.row.traversal + 1)
        self.failure = None
        self.set_state(action, Status.IN_PROGRESS, states.started(action))
        self.change(deadline_at=self.runtime.utc() + timedelta(seconds=self.timeout_s))
        self.watch_deadline()

    def watch_deadline(self) -> None:
        if self.row.deadline_at is not None:
            self.schedule.set_deadline(self.row.uuid, self.row.deadline_at)

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
        kind = states.error_type(exc)
        reason = states.failed(self.action, f"{kind}: {exc}")
        if isinstance(exc, StackTimedOut):
            reason = "Timed out"
        elif isinstance(exc, ResourceFailed):
            kind, reason = RESOURCE_FAILURE, states.failed(exc.action, exc.fault)
        elif isinstance(exc, ResourcesFailed):
            kind, reason = RESOURCE_FAILURE, str(exc)
        reason = self.changes.redaction.masked(reason)
        self.failure = (kind, reason)
        self.set_state(self.action, Status.FAILED, reason)

    def set_state(self, action: Action, status: Status, reason: str) -> None:
        self.change(action=action.value, status=status.value, reason=reason)
        self._event(self.row.name, states.STACK_TYPE, self.row.uuid, action, status, reason)
        if status is not Status.IN_PROGRESS:
            self.schedule.wake(self.row.uuid)

    def emit_event(
        self,
        row: EngineResource,
        action: str,
        status: Status,
        reason: str,
        effect: Effect = NO_EFFECT,
    ) -> None:
        """Emit an event of one of its resources.  ``effect``: of the action that has ended."""
        impact = None if effect.impact is Impact.PATCH else effect.impact.value
        self._event(
            row.name,
            row.type,
            row.physical_id,
            action,
            status,
            reason,
            properties_uuid=row.properties_uuid,
            impact=impact,
            loses_data=effect.loses_data,
        )

    def _event(
        self,
        resource: str,
        kind: str,
        physical_id: str | None,
        action: str,
        status: Status,
        reason: str,
        **more: Any,
    ) -> None:
        self.changes.emit_event(
            stack_uuid=self.row.uuid,
            action=str(action),
            status=str(status),
            name=resource,
            type=kind,
            physical_id=physical_id,
            reason=reason,
            stack_name=self.row.name,
            project=self.row.project,
            **more,
        )

    def context(self) -> base.ResourceContext:
        """Return the context of the stack's resources: one object for all of a traversal."""
        if self._context is None or self._context.timeout_s != self.timeout_s:
            self._context = self.runtime.resource_context(
                self.row, timeout_s=self.timeout_s, children=self.children,
                siblings=StackSiblings(self), engines=self.runtime.engines(),
                limits=self.definition.definition.limits,
            )  # fmt: skip
        return self._context

    @property
    def hides(self) -> bool:
        """Whether the stack or a parent has hidden parameters, whose values may be anywhere."""
        parent = self.stacks.get(self.row.owner_uuid or "")
        return bool(self.definition.hidden) or (parent is not None and parent.hides)

    # --------------------------------------------------------------------------------- resources

    def resources(self) -> Mapping[str, EngineResource]:
        return self.current_rows

    def track_changes(self, resource: EngineResource) -> None:
        self.changes.track_changes(resource)

    @property
    def target(self) -> tuple[Stack, str]:
        """The definition, and the template's UUID, that new and updated resources belong to."""
        if self.partial is not None:
            return self.partial.stack, self.partial.template_uuid
        return self.definition, self.row.template_uuid

    def set_template(self, new: Stack | Nothing, partial: TemplatePart | None = None) -> None:
        """Switch to another template, and add the missing rows of its resources."""
        self.template, self.partial, self._context = new, partial, None
        if isinstance(new, Stack):
            self.definition = new
            self.timeout_s = new.timeout_s
            self.changes.redaction |= new.definition.redaction
        for name in new.definitions:
            if name not in self.rows:
                self.add(self.new_row(name))
        self.current_rows = {name: self.rows[name] for name in new.definitions}

    def keep_template(self) -> None:
        """Keep the template whose deletion failed, so that the loaded stack matches its rows."""
        self.template, self.partial = self.definition, None
        names = self.definition.definitions
        self.current_rows = {name: self.rows[name] for name in names if name in self.rows}

    def required(self, name: str) -> tuple[str, ...]:
        """Return the resources that a resource of the current template requires."""
        return tuple(self.template.required(name)) if name in self.template.definitions else ()

    def new_row(self, name: str, replaces_uuid: str | None = None) -> EngineResource:
        definition, template_uuid = self.target
        row = EngineResource(
            uuid=self.runtime.new_id(),
            name=name,
            type=definition.definitions[name].type,
            context=self.context(),
            definitions=definition,
            template_uuid=template_uuid,
            stack_uuid=self.row.uuid,
            root_uuid=self.row.root_uuid,
            created_at=self.runtime.utc(),
            replaces_uuid=replaces_uuid,
            requires=self.required(name),
            has_secret=self.hides,
        )
        self.changes.change_row(row)
        return row

    def add(self, row: EngineResource) -> None:
        """Make a row the current one of its name; the one before is left over."""
        before = self.rows.get(row.name)
        if before is not None and before is not row:
            before.is_current = False
            self.leftovers.setdefault(row.name, []).append(before)
            self.changes.change_row(before)
        row.is_current = True
        self.rows[row.name] = row
        if row.name in self.template.definitions:
            self.current_rows[row.name] = row

    def list_rows(self) -> list[EngineResource]:
        return [*self.rows.values(), *(row for rows in self.leftovers.values() for row in rows)]

    def find_row(self, uuid: str | None, name: str) -> EngineResource | None:
        """Return the row ``uuid`` of a name, if it still exists."""
        rows = [self.rows.get(name), *self.leftovers.get(name, ())]
        return next((row for row in rows if row is not None and row.uuid == uuid), None)

    def replace(self, row: EngineResource) -> EngineResource:
        """Make a new row the current one; the old one is left over."""
        successor = self.new_row(row.name, replaces_uuid=row.uuid)
        self.add(successor)
        return successor

    def replace_deleted(self, row: EngineResource) -> EngineResource:
        """Make a new row the current one, after the old one was deleted."""
        data = row.resource().data_for_replacement(returns=self.returns(row))
        self.drop(row)
        successor = self.new_row(row.name)
        successor.data.update(data)
        self.add(successor)
        return successor

    def returns(self, row: EngineResource) -> bool:
        """Tell whether a rollback takes a row back that the failed template made or changed."""
        return self.action is Action.ROLLBACK and row.template_uuid == (
            self.row.previous_template_uuid
        )

    def take_back(self, row: EngineResource) -> None:
        """Make a left-over row the current one again."""
        self.leftovers[row.name].remove(row)
        machine_orders.clear(row)  # its machine stays in service
        self.add(row)
        self.changes.change_row(row)

    def drop(self, row: EngineResource) -> None:
        """Remove the row of a resource that is gone."""
        kept = self.leftovers.get(row.name, [])
        if row in kept:
            kept.remove(row)
        if not kept:
            self.leftovers.pop(row.name, None)
        for table in (self.rows, self.current_rows):
            if table.get(row.name) is row:
                del table[row.name]
        self.schedule.forget(row)
        self.changes.remove_row(row)
