"""A stack that lives in memory: its rows, its state, and its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.plan.template_side import NOTHING, Nothing
from bloomery.orchestration.resources import base, states
from bloomery.orchestration.resources.children import Children
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.simulation import events, resource_actions, results
from bloomery.orchestration.simulation.rows import Row
from bloomery.orchestration.simulation.simulation import Simulation
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.dialect import Key
from bloomery.orchestration.template.functions import base as functions

PROPERTY_ERROR: Final = "Property error"


class StackTimedOut(Exception):
    """The time of the stack's action is over."""


class SimulatedStack:
    """One stack of a tree.  ``template``: that of now, NOTHING once it was rolled back to nothing.

    ``stacks``: the root and all below it that are there, by id.
    """

    def __init__(
        self,
        stack: Stack,
        simulation: Simulation,
        stacks: dict[str, SimulatedStack],
        *,
        name: str,
        id: str,  # noqa: A002  as Heat's API calls it
    ) -> None:
        self.template: Stack | Nothing = NOTHING
        self.first = stack
        self.environment = stack.definition.environment  # of the last template
        self.simulation = simulation
        self.name, self.id = name, id
        self.depth = stack.depth
        self.children: Children | None = None  # set by who can make some
        self.timeout_s = stack.timeout_s
        self.action, self.status, self.reason = Action.CREATE, Status.IN_PROGRESS, ""
        self.failure: results.Error | None = None  # the first one since the last user's action
        self.rows: dict[str, Row] = {}  # who stands for each name
        self.current_rows: dict[str, Row] = {}  # those of the present template
        self.leftovers: dict[str, list[Row]] = {}  # replaced, and still there
        self.deadline_s = 0.0
        self.stacks = stacks
        stacks[id] = self

    # ------------------------------------------------------------------------------------ states

    def begin(self, action: Action) -> None:
        self.failure = None
        self.deadline_s = self.simulation.clock.now() + self.timeout_s
        self.set_state(action, Status.IN_PROGRESS, events.started(action))

    def fail(self, exc: Exception) -> None:
        """Tell of a failure, if it is the first one of the present action."""
        if self.status is not Status.IN_PROGRESS:
            return
        kind, reason = _explained(self.action, exc)
        reason = self.simulation.redaction.masked(reason)
        self.failure = results.Error(type=kind, message=reason)
        self.set_state(self.action, Status.FAILED, reason)

    def set_state(self, action: Action, status: Status, reason: str) -> None:
        self.action, self.status, self.reason = action, status, reason
        self._event(self.name, events.STACK_TYPE, self.id, action, status, reason)

    def tell(self, row: Row, action: Action, status: Status, reason: str) -> None:
        """Tell of one of its resources."""
        record = row.record
        self._event(record.name, record.type, record.physical_id, action, status, reason)

    def _event(
        self,
        resource: str,
        kind: str,
        physical_id: str | None,
        action: Action,
        status: Status,
        reason: str,
    ) -> None:
        self.simulation.tell(
            events.Event(
                at_s=self.simulation.clock.now(),
                stack=self.name,
                stack_id=self.id,
                depth=self.depth,
                resource=resource,
                type=kind,
                physical_id=physical_id,
                action=action,
                status=status,
                reason=reason,
            )
        )

    def hooked(self, name: str, action: Action, hook: str) -> bool:
        """Whether a hook of the environment stands here in the stack's present action."""
        return self.action is action and hook in self.environment.hooks(name)

    # -------------------------------------------------------------------------------------- rows

    def turn_to(self, new: Stack | Nothing) -> None:
        """Turn to another template: each of its resources has a row from now on."""
        self.template = new
        if isinstance(new, Stack):
            self.environment = new.definition.environment
            self.simulation.redaction |= new.definition.redaction
        for name in new.definitions:
            if name not in self.rows:
                self.rows[name] = self._row(name)
        self.current_rows = {name: self.rows[name] for name in new.definitions}

    def _row(self, name: str) -> Row:
        assert isinstance(self.template, Stack)
        definition = self.template.definitions[name]
        record = base.Record(name=name, type=definition.type, uuid=self.simulation.new_id())
        return Row(record, definition, self.template.kind(name), self._context())

    def _context(self) -> base.ResourceContext:
        return base.ResourceContext(
            stack_name=self.name,
            stack_id=self.id,
            utc=self.simulation.utc,
            random=self.simulation.random,
            timeout_s=self.timeout_s,
            children=self.children,
            software=self.simulation.software,
            limits=self.first.definition.limits,
        )

    def find(self, record: base.Record | None) -> Row | None:
        """The row of a record, if it is still there."""
        if record is None:
            return None
        definition = [self.rows.get(record.name), *self.leftovers.get(record.name, ())]
        return next((row for row in definition if row is not None and row.record is record), None)

    def supersede(self, row: Row) -> None:
        """Let a new row stand for the name; the old one is left over."""
        self.leftovers.setdefault(row.name, []).append(row)
        self._put(self._row(row.name))

    def take_back(self, name: str, record: base.Record) -> None:
        """Let a left-over row stand for the name again, if ``record`` is of one."""
        kept = self.leftovers.get(name, [])
        row = next((row for row in kept if row.record is record), None)
        if row is not None:
            kept.remove(row)
            if name in self.rows:
                kept.append(self.rows[name])
            self._put(row)

    def _put(self, row: Row) -> None:
        self.rows[row.name] = self.current_rows[row.name] = row

    def drop(self, row: Row) -> None:
        kept = self.leftovers.get(row.name, [])
        if row in kept:
            kept.remove(row)
        if self.rows.get(row.name) is row:
            del self.rows[row.name]
        self.current_rows.pop(row.name, None) if self.current_rows.get(row.name) is row else None

    # ------------------------------------------------------------------------------------ values

    def read(self, name: str) -> resource_actions.Values:
        """Read properties, update policy and metadata of a resource as they now are."""
        assert isinstance(self.template, Stack)
        kind, definition = self.template.kind(name), self.template.definitions[name]
        metadata = functions.resolve(
            definition.metadata, self.template.definition.view(self.current_rows)
        )
        if kind.ignores_properties:
            return {}, {}, metadata
        properties = self._checked(
            name, Key.PROPERTIES, kind.properties_schema, definition.properties
        )
        policy: Mapping[str, Any] = {}
        if kind.update_policy_schema:
            schemas, tree = kind.update_policy_schema, definition.update_policy
            policy = self._checked(name, Key.UPDATE_POLICY, schemas, tree)
        self.rows[name].policy = policy
        self._validated(name, properties, policy)
        return properties, policy, metadata

    def _checked(
        self, name: str, key: Key, schemas: Mapping[str, Any], tree: Any
    ) -> dict[str, Any]:
        assert isinstance(self.template, Stack)
        view = self.template.definition.view(self.current_rows)
        try:
            return self.template.reading(name, schemas, tree, view).resolved(check=True)
        except errors.Misplaced as exc:
            raise exc.under(*self.template.path(name, key), error=PROPERTY_ERROR) from exc

    def _validated(
        self, name: str, properties: Mapping[str, Any], policy: Mapping[str, Any]
    ) -> None:
        """Ask the kind, which may not have known these values at validation."""
        assert isinstance(self.template, Stack)
        try:
            self.rows[name].resource_with(properties, policy).validate()
        except errors.Misplaced as exc:
            raise exc.under(*self.template.path(name, Key.PROPERTIES)) from exc

    def external_id(self, name: str) -> Any:
        assert isinstance(self.template, Stack)
        view = self.template.definition.view(self.current_rows)
        return functions.resolve(self.template.definitions[name].external_id, view)

    def output(self, name: str) -> Any:
        """The value of one output; raises its fault."""
        assert isinstance(self.template, Stack)
        definition = self.template.definition.outputs[name]
        if not definition.enabled:
            return None
        return functions.resolve(definition.value, self.template.definition.view(self.current_rows))

    def output_names(self) -> list[str]:
        return list(self.template.definition.outputs) if isinstance(self.template, Stack) else []


RESOURCE_FAILURE: Final = errors.ResourceFailure.__name__


def _explained(action: Action, exc: Exception) -> tuple[str, str]:
    """The type of a failure, and the reason that the stack gives for it."""
    if isinstance(exc, StackTimedOut):
        return states.error_type(exc), events.TIMED_OUT
    if isinstance(exc, resource_actions.ResourceFailed):
        return RESOURCE_FAILURE, events.failed(exc.action, exc.fault)
    kind = states.error_type(exc)
    return kind, events.failed(action, f"{kind}: {exc}")
