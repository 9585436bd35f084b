"""A stack while an engine works on it: its state, its rows, and its values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.orchestration.engine import events
from bloomery.orchestration.engine.ledger import Ledger
from bloomery.orchestration.engine.rows import EngineResource
from bloomery.orchestration.plan.template_side import Nothing
from bloomery.orchestration.resources import base, states
from bloomery.orchestration.resources.children import Children
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.dialect import Key
from bloomery.orchestration.template.functions import base as functions

PROPERTY_ERROR: Final = "Property error"
RESOURCE_FAILURE: Final = errors.ResourceFailure.__name__
Values = tuple[Mapping[str, Any], Mapping[str, Any]]  # properties, metadata


class StackTimedOut(Exception):
    """The time of the stack's action is over."""


class ResourceFailed(Exception):
    """An action on a resource failed; ``fault`` says how, as the stack will tell it."""

    def __init__(self, action: Action, fault: states.Fault | str, cause: Exception) -> None:
        super().__init__(str(fault))
        self.action = action
        self.fault = fault
        self.cause = cause


class ResourcesFailed(Exception):
    """Several resources failed in an action that goes on in spite of it."""


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """Those resources of a stack that a traversal is about, as a template of their own.

    ``names``: of these resources, those included that go and are in no template any more.
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
    """One stack of a tree.  ``template``: that of now, NOTHING in the walk of its end.

    ``stacks``: the root and all below it that are there, by id.
    """

    def __init__(
        self,
        row: model.Stack,
        template: Stack,
        ledger: Ledger,
        stacks: dict[str, EngineStack],
        children_of: Callable[[EngineStack], Children],
    ) -> None:
        self.row = row
        self.first = template
        self.template: Stack | Nothing = template
        self.part: TemplatePart | None = None  # None: the present traversal is about all resources
        self.superseded: str | None = None  # the template before that of the last such part
        self.ledger = ledger
        self.stacks = stacks
        self.children = children_of(self)
        self.timeout_s = template.timeout_s
        self.failure: tuple[str, str] | None = None  # type and text of the traversal's first
        self.rows: dict[str, EngineResource] = {}  # who stands for each name
        self.leftovers: dict[str, list[EngineResource]] = {}  # replaced, and still there
        self.current_rows: dict[str, EngineResource] = {}  # those of the present template
        self.open_traversal: OpenTraversal | None = None
        self.open_rows: dict[str, EngineResource] = {}  # whose acts have not ended
        self._context: base.ResourceContext | None = None
        stacks[row.uuid] = self

    @property
    def id(self) -> str:
        return self.row.uuid

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def depth(self) -> int:
        return self.row.depth

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
        """Whether the present update compares with what is really there, here and below."""
        return self.open_traversal is not None and bool(self.open_traversal.extra.get("converge"))

    def value(self) -> model.Stack:
        """Return the stack as it is stored."""
        traversal = self.open_traversal
        graph = None if traversal is None else traversal.graph_document()
        return replace(self.row, graph=graph, open=self.open)

    def change(self, **columns: Any) -> None:
        """Write the stack with the next turn, with other values in ``columns``."""
        if columns:
            self.row = replace(self.row, **columns)
        self.ledger.change_stack(self)

    # ------------------------------------------------------------------------------------ states

    def begin(self, action: Action) -> None:
        """Begin another traversal, tell of it, and give it its time."""
        self.change(traversal=self.traversal + 1)
        self.announce(action)

    def announce(self, action: Action) -> None:
        """Tell of a traversal that begins, and give it its time."""
        self.failure = None
        self.set_state(action, Status.IN_PROGRESS, events.started(action))
        self.change(deadline_at=self.ledger.runtime.utc() + timedelta(seconds=self.timeout_s))
        self.watch_deadline()

    def watch_deadline(self) -> None:
        if self.row.deadline_at is not None:
            self.ledger.schedule_deadline(self.id, self.row.deadline_at)

    @property
    def late(self) -> bool:
        deadline_at: datetime | None = self.row.deadline_at
        return deadline_at is not None and self.ledger.runtime.utc() >= deadline_at

    def accept(self, row: model.Stack) -> None:
        """Go on from the row with which an order was accepted; it has been told of already."""
        self.row, self.failure = row, None
        if row.deadline_at is None and self.status is Status.IN_PROGRESS:
            after = timedelta(seconds=self.timeout_s)
            self.row = replace(row, deadline_at=self.ledger.runtime.utc() + after)
        self.watch_deadline()
        self.change()

    def fail(self, exc: Exception) -> None:
        """Tell of a failure, if it is the first one of the present action."""
        if self.status is not Status.IN_PROGRESS:
            return
        kind, reason = _explained(self.action, exc)
        reason = self.ledger.redaction.masked(reason)
        self.failure = (kind, reason)
        self.set_state(self.action, Status.FAILED, reason)

    def set_state(self, action: Action, status: Status, reason: str) -> None:
        self.change(action=action.value, status=status.value, reason=reason)
        self._event(self.name, events.STACK_TYPE, self.id, action, status, reason)
        if status is not Status.IN_PROGRESS:
            self.ledger.wake(self.id)

    def tell(self, row: EngineResource, action: str, status: Status, reason: str) -> None:
        """Tell of one of its resources."""
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
        self.ledger.tell(
            stack_uuid=self.id,
            action=str(action),
            status=str(status),
            name=resource,
            type=kind,
            physical_id=physical_id,
            reason=reason,
            properties_uuid=properties_uuid,
        )

    def hooked(self, name: str, action: Action, hook: str) -> bool:
        """Whether a hook of the environment stands here in the stack's present action."""
        return self.action is action and hook in self.environment_hooks(name)

    def environment_hooks(self, name: str) -> frozenset[str]:
        return self.first.definition.environment.hooks(name)

    # -------------------------------------------------------------------------------------- rows

    def turn_to(self, new: Stack | Nothing, part: TemplatePart | None = None) -> None:
        """Turn to another template: each of its resources has a row from now on."""
        self.template, self.part, self._context = new, part, None
        if isinstance(new, Stack):
            self.first = new
            self.timeout_s = new.timeout_s
            self.ledger.redaction |= new.definition.redaction
        for name in new.definitions:
            if name not in self.rows:
                self.add(self.new_row(name))
        self.current_rows = {name: self.rows[name] for name in new.definitions}

    def keep_template(self) -> None:
        """Stay with the template whose end has failed, as whoever loads the stack does."""
        self.template, self.part, rows = self.first, None, self.rows
        self.current_rows = {n: rows[n] for n in self.first.definitions if n in rows}

    def target(self) -> tuple[Stack, str]:
        """Return what a resource is of that is made or changed now, and the id of that template."""
        if self.part is not None:
            return self.part.stack, self.part.template_uuid
        return self._stack(), self.row.template_uuid

    def new_row(self, name: str, replaces: str | None = None) -> EngineResource:
        definitions, template_uuid = self.target()
        runtime, definition = self.ledger.runtime, definitions.definitions[name]
        row = EngineResource(
            uuid=runtime.new_id(),
            name=name,
            type=definition.type,
            context=self.context(),
            definitions=definitions,
            template_uuid=template_uuid,
            stack_uuid=self.id,
            root_uuid=self.row.root_uuid,
            created_at=runtime.utc(),
            replaces=replaces,
            requires=self.required(name),
            hidden=self.hides,
        )
        self.ledger.change_row(row)
        return row

    def required(self, name: str) -> tuple[str, ...]:
        if name not in self.template.definitions:
            return ()
        return tuple(dict.fromkeys(self.template.required(name)))

    def context(self) -> base.ResourceContext:
        """What resources may know; one object for all of a traversal."""
        context = self._context
        if context is None or context.timeout_s != self.timeout_s:
            context = self._context = self._new_context()
        return context

    def _new_context(self) -> base.ResourceContext:
        runtime = self.ledger.runtime
        return runtime.resource_context(
            self.row, timeout_s=self.timeout_s, children=self.children, siblings=Neighbours(self),
            engines=runtime.engines(), limits=self.first.definition.limits,
        )  # fmt: skip

    def add(self, row: EngineResource) -> None:
        """Let a row stand for its name."""
        row.stands = True
        self.rows[row.name] = row
        if row.name in self.template.definitions:
            self.current_rows[row.name] = row

    def leave(self, row: EngineResource) -> None:
        """Keep a row that stands for its name no more."""
        row.stands = False
        self.leftovers.setdefault(row.name, []).append(row)
        self.ledger.change_row(row)

    def all_rows(self) -> list[EngineResource]:
        return [*self.rows.values(), *(row for rows in self.leftovers.values() for row in rows)]

    def find(self, uuid: str | None, name: str) -> EngineResource | None:
        """The row ``uuid`` of a name, if it is still there."""
        rows = [self.rows.get(name), *self.leftovers.get(name, ())]
        return next((row for row in rows if row is not None and row.uuid == uuid), None)

    def replace(self, row: EngineResource) -> EngineResource:
        """Let a new row stand for the name; the old one is left over."""
        self.leave(row)
        new = self.new_row(row.name, replaces=row.uuid)
        self.add(new)
        return new

    def succeed(self, row: EngineResource) -> EngineResource:
        """Let a new row stand for the name of one that was deleted.

        ``returns``: the walk goes back to what was before the row that was deleted.
        """
        failed = self.row.previous_template_uuid if self.action is Action.ROLLBACK else None
        known = row.resource().data_for_replacement(returns=row.template_uuid == failed)
        self.drop(row)
        new = self.new_row(row.name)
        new.data.update(known)
        self.add(new)
        return new

    def take_back(self, row: EngineResource) -> None:
        """Let a left-over row stand for its name again."""
        self.leftovers[row.name].remove(row)
        if row.name in self.rows:
            self.leave(self.rows[row.name])
        self.add(row)
        self.ledger.change_row(row)

    def drop(self, row: EngineResource) -> None:
        """Forget a row, behind which nothing is any more."""
        kept = self.leftovers.get(row.name, [])
        if row in kept:
            kept.remove(row)
        if not kept:
            self.leftovers.pop(row.name, None)
        for table in (self.rows, self.current_rows):
            if table.get(row.name) is row:
                del table[row.name]
        self.ledger.holdings.release(row)
        self.ledger.remove_row(row)

    # ------------------------------------------------------------------------------------ values

    def read(self, row: EngineResource) -> Values:
        """Read properties and metadata of a resource as they now are; its policy is kept."""
        template, name = self._stack(), row.name
        kind, definition = row.kind, row.definition
        metadata = functions.resolve(definition.metadata, self._view())
        if kind.ignores_properties:
            return {}, metadata
        properties = self._checked(
            name, Key.PROPERTIES, kind.properties_schema, definition.properties
        )
        if kind.update_policy_schema:
            schemas, tree = kind.update_policy_schema, definition.update_policy
            row.policy = self._checked(name, Key.UPDATE_POLICY, schemas, tree)
        try:  # the kind may not have known these values at validation
            row.resource_with(properties).validate()
        except errors.Misplaced as exc:
            raise exc.under(*template.path(name, Key.PROPERTIES)) from exc
        return properties, metadata

    def metadata(self, row: EngineResource) -> Any:
        return functions.resolve(row.definition.metadata, self._view())

    def _checked(
        self, name: str, key: Key, schemas: Mapping[str, Any], tree: Any
    ) -> dict[str, Any]:
        template = self._stack()
        try:
            return template.reading(name, schemas, tree, self._view()).resolved(check=True)
        except errors.Misplaced as exc:
            raise exc.under(*template.path(name, key), error=PROPERTY_ERROR) from exc

    def _stack(self) -> Stack:
        assert isinstance(self.template, Stack)
        return self.template

    def _view(self) -> Any:
        return self._stack().definition.view(self.current_rows)

    @property
    def hides(self) -> bool:
        """Whether a value of a hidden parameter may be anywhere in it."""
        above = self.stacks.get(self.row.owner_uuid or "")
        return bool(self.first.hidden) or (above is not None and above.hides)

    def external_id(self, name: str) -> Any:
        return functions.resolve(self._stack().definitions[name].external_id, self._view())

    def output(self, name: str) -> Any:
        """The value of one output; raises its fault."""
        definition = self._stack().definition.outputs[name]
        return functions.resolve(definition.value, self._view()) if definition.enabled else None

    def output_names(self) -> Sequence[str]:
        return list(self.template.definition.outputs) if isinstance(self.template, Stack) else []


class Neighbours:
    """The resources of one stack as one of them may ask for them (``base.Siblings``)."""

    __slots__ = ("_names", "_stack")

    def __init__(self, stack: EngineStack) -> None:
        self._stack = stack
        self._names: dict[str, str] = {}  # by reference id, as they were at the last search

    def find(self, reference_id: Any) -> base.Resource | None:
        """Go through all resources where the names of the last search do not tell."""
        row = self._named(reference_id)
        if row is None:
            self._search()
            row = self._named(reference_id)
        if row is None:
            return None
        self._stack.ledger.lend(row)
        return row.resource()

    def _named(self, reference_id: Any) -> EngineResource | None:
        row = self._stack.current_rows.get(self._names.get(str(reference_id), ""))
        is_it = row is not None and row.ready and row.reference_id() == reference_id
        return row if is_it else None

    def _search(self) -> None:
        """Note what each resource is called; the first one counts where two are called alike."""
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
                self._stack.ledger.lend(row)
                resources.append(row.resource())
        return resources  # type: ignore[return-value]  # mypy does not see that kind is theirs


def _explained(action: Action, exc: Exception) -> tuple[str, str]:
    """The type of a failure, and the reason that the stack gives for it."""
    if isinstance(exc, StackTimedOut):
        return states.error_type(exc), events.TIMED_OUT
    if isinstance(exc, ResourceFailed):
        return RESOURCE_FAILURE, events.failed(exc.action, exc.fault)
    if isinstance(exc, ResourcesFailed):
        return RESOURCE_FAILURE, str(exc)
    kind = states.error_type(exc)
    return kind, events.failed(action, f"{kind}: {exc}")
