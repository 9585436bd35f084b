"""A stack that lives in memory: its rows, its state, and its actions as tasks.

It behaves as Heat's convergence engine does, and tells the same events: a failure is told at once
while what had begun goes on; with rollback a traversal back follows; a stack whose creation was
rolled back stays, empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration import plan
from bloomery.orchestration.plan.template_side import NOTHING, Nothing, TemplateSide
from bloomery.orchestration.resources import base, states
from bloomery.orchestration.resources.children import Children
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.scheduler.runner import Steps
from bloomery.orchestration.simulation import events, resource_actions, results
from bloomery.orchestration.simulation.rows import Row
from bloomery.orchestration.simulation.simulation import Simulation
from bloomery.orchestration.simulation.walks import StackTimedOut, Walk
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.dialect import Key
from bloomery.orchestration.template.functions import base as functions

PROPERTY_ERROR: Final = "Property error"


class SimulatedStack:
    """One stack.  ``template``: its template now, NOTHING once it was rolled back to nothing."""

    def __init__(
        self,
        stack: Stack,
        simulation: Simulation,
        *,
        name: str,
        id: str,  # noqa: A002  as Heat's API calls it
        children: Children | None = None,
        timeout_s: float = 3600,
    ) -> None:
        self.template: Stack | Nothing = NOTHING
        self.first = stack
        self.environment = stack.definition.environment  # of the last template
        self.simulation = simulation
        self.name, self.id = name, id
        self.depth = stack.depth
        self.children = children
        self.timeout_s = timeout_s
        self.action, self.status, self.reason = Action.CREATE, Status.IN_PROGRESS, ""
        self.failure: results.Error | None = None  # the first one since the last user's action
        self.rows: dict[str, Row] = {}  # who stands for each name
        self.seen: dict[str, Row] = {}  # those of the present template
        self.leftovers: dict[str, list[Row]] = {}  # replaced, and still there
        self.deadline_s = 0.0
        simulation.stacks[id] = self

    # ---------------------------------------------------------------------------------- actions

    def create(self, *, rollback: bool = False) -> Steps:
        yield from self._walked(Action.CREATE, NOTHING, self.first)
        if rollback and self.status is Status.FAILED:
            yield from self._rolled_back(NOTHING)

    def update(self, new: Stack, *, rollback: bool = False) -> Steps:
        old = self.template
        yield from self._walked(Action.UPDATE, old, new)
        if rollback and self.status is Status.FAILED:
            yield from self._rolled_back(old)

    def delete(self) -> Steps:
        yield from self._walked(Action.DELETE, self.template, NOTHING)
        if self.status is Status.COMPLETE:
            self.simulation.stacks.pop(self.id, None)

    def _rolled_back(self, previous: Stack | Nothing) -> Steps:
        failure = self.failure
        yield from self._walked(Action.ROLLBACK, self.template, previous)
        self.failure = failure

    def _walked(self, action: Action, old: Stack | Nothing, new: Stack | Nothing) -> Steps:
        self.failure = None
        self.deadline_s = self.simulation.clock.now() + self.timeout_s
        self._set_state(action, Status.IN_PROGRESS, events.started(action))
        try:
            self._take(new)
            planned = self._planned(action, old, new)
            yield from Walk(self, planned, old, new).steps()
        except GeneratorExit:
            if self.status is Status.IN_PROGRESS:
                self._set_state(action, Status.FAILED, events.cancelled(action))
            raise
        except Exception as exc:  # noqa: BLE001  # whatever it is, it is this stack's failure
            self.fail(exc)
        else:
            self._set_state(action, Status.COMPLETE, events.completed(action))

    def _planned(self, action: Action, old: TemplateSide, new: TemplateSide) -> plan.Plan:
        present = plan.Present(
            records={name: row.record for name, row in self.rows.items()},
            leftovers={name: [row.record for row in rows] for name, rows in self.leftovers.items()},
            live={name: row for name, row in self.rows.items() if row.ready},
        )
        if action is Action.ROLLBACK:
            return plan.rollback(old, new, present)
        return plan.plan(old, new, present)

    # ------------------------------------------------------------------------------------ states

    def fail(self, exc: Exception) -> None:
        """Tell of a failure, if it is the first one of the present action."""
        if self.status is not Status.IN_PROGRESS:
            return
        kind, reason = _explained(self.action, exc)
        reason = self.simulation.redaction.masked(reason)
        self.failure = results.Error(type=kind, message=reason)
        self._set_state(self.action, Status.FAILED, reason)

    def _set_state(self, action: Action, status: Status, reason: str) -> None:
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

    def _take(self, new: Stack | Nothing) -> None:
        """Turn to another template: each of its resources has a row from now on."""
        self.template = new
        if isinstance(new, Stack):
            self.environment = new.definition.environment
            self.simulation.redaction |= new.definition.redaction
        for name in new.definitions:
            if name not in self.rows:
                self.rows[name] = self._row(name)
        self.seen = {name: self.rows[name] for name in new.definitions}

    def _row(self, name: str) -> Row:
        assert isinstance(self.template, Stack)
        definition = self.template.definitions[name]
        record = base.Record(name=name, type=definition.type, uuid=self.simulation.new_id())
        return Row(record, definition, self.template.kind(name), self._context())

    def _context(self) -> base.ResourceContext:
        return base.ResourceContext(
            stack_name=self.name,
            stack_id=self.id,
            clock=self.simulation.clock.now,
            random=self.simulation.random,
            timeout_s=self.timeout_s,
            children=self.children,
            limits=self.first.definition.limits,
        )

    def find(self, record: base.Record | None) -> Row | None:
        """The row of a record, if it is still there."""
        if record is None:
            return None
        found = [self.rows.get(record.name), *self.leftovers.get(record.name, ())]
        return next((row for row in found if row is not None and row.record is record), None)

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
        self.rows[row.name] = self.seen[row.name] = row

    def drop(self, row: Row) -> None:
        kept = self.leftovers.get(row.name, [])
        if row in kept:
            kept.remove(row)
        if self.rows.get(row.name) is row:
            del self.rows[row.name]
        self.seen.pop(row.name, None) if self.seen.get(row.name) is row else None

    # ------------------------------------------------------------------------------------ values

    def read(self, name: str) -> resource_actions.Values:
        """Read properties, update policy and metadata of a resource as they now are."""
        assert isinstance(self.template, Stack)
        kind, found = self.template.kind(name), self.template.definitions[name]
        metadata = functions.resolve(found.metadata, self.template.definition.view(self.seen))
        if kind.ignores_properties:
            return {}, {}, metadata
        properties = self._checked(name, Key.PROPERTIES, kind.properties_schema, found.properties)
        policy: Mapping[str, Any] = {}
        if kind.update_policy_schema:
            schemas, tree = kind.update_policy_schema, found.update_policy
            policy = self._checked(name, Key.UPDATE_POLICY, schemas, tree)
        self.rows[name].policy = policy
        self._validated(name, properties, policy)
        return properties, policy, metadata

    def _checked(
        self, name: str, key: Key, schemas: Mapping[str, Any], tree: Any
    ) -> dict[str, Any]:
        assert isinstance(self.template, Stack)
        view = self.template.definition.view(self.seen)
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
            self.rows[name].made(properties, policy).validate()
        except errors.Misplaced as exc:
            raise exc.under(*self.template.path(name, Key.PROPERTIES)) from exc

    def external_id(self, name: str) -> Any:
        assert isinstance(self.template, Stack)
        view = self.template.definition.view(self.seen)
        return functions.resolve(self.template.definitions[name].external_id, view)

    def output(self, name: str) -> Any:
        """The value of one output; raises its fault."""
        assert isinstance(self.template, Stack)
        found = self.template.definition.outputs[name]
        if not found.enabled:
            return None
        return functions.resolve(found.value, self.template.definition.view(self.seen))

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
