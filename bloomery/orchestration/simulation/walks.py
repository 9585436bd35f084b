"""A stack's actions as tasks: a plan walked, each vertex compared again when its turn comes.

It goes as in Heat's convergence engine, with the same events: a failure is told at once while what
had begun goes on; with rollback a traversal back follows; a stack whose creation was rolled back
stays, empty.

The plan is a forecast, made before any value was there.  Here each resource is ruled upon with the
values that its requirements now have; what was foreseen as uncertain turns out one way or another.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.orchestration import plan as plans
from bloomery.orchestration.plan import Plan, Present, rules
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.changes import Change
from bloomery.orchestration.plan.forecast import Knowledge
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Action, Key, Verb
from bloomery.orchestration.plan.template_side import NOTHING, Nothing, TemplateSide
from bloomery.orchestration.resources import base, states
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.scheduler import DependencyTaskGroup, TaskRunner, Timeout
from bloomery.orchestration.scheduler.runner import Steps
from bloomery.orchestration.simulation import events, resource_actions
from bloomery.orchestration.simulation.rows import Row
from bloomery.orchestration.simulation.stacks import SimulatedStack, StackTimedOut
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.functions.base import Reference

FOR_EVER_S: Final = float(10**9)  # siblings of a failed resource are let finish


class ResourceActionRestricted(Exception):
    """The environment forbids what the update would do."""

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} is restricted for resource.")


Template: TypeAlias = Stack | Nothing


def create(stack: SimulatedStack, *, rollback: bool = False) -> Steps:
    yield from _traverse(stack, states.Action.CREATE, NOTHING, stack.first)
    if rollback and stack.status is Status.FAILED:
        yield from _roll_back(stack, NOTHING)


def update(stack: SimulatedStack, new: Stack, *, rollback: bool = False) -> Steps:
    old = stack.template
    yield from _traverse(stack, states.Action.UPDATE, old, new)
    if rollback and stack.status is Status.FAILED:
        yield from _roll_back(stack, old)


def delete(stack: SimulatedStack) -> Steps:
    yield from _traverse(stack, states.Action.DELETE, stack.template, NOTHING)
    if stack.status is Status.COMPLETE:
        stack.stacks.pop(stack.id, None)


def _roll_back(stack: SimulatedStack, previous: Template) -> Steps:
    failure = stack.failure
    yield from _traverse(stack, states.Action.ROLLBACK, stack.template, previous)
    stack.failure = failure


def _traverse(stack: SimulatedStack, action: states.Action, old: Template, new: Template) -> Steps:
    stack.begin(action)
    try:
        stack.turn_to(new)
        yield from Walk(stack, _plan(stack, action, old, new), old, new).steps()
    except GeneratorExit:
        if stack.status is Status.IN_PROGRESS:
            stack.set_state(action, Status.FAILED, events.cancelled(action))
        raise
    except Exception as exc:  # noqa: BLE001  # whatever it is, it is this stack's failure
        stack.fail(exc)
    else:
        stack.set_state(action, Status.COMPLETE, events.completed(action))


def _plan(stack: SimulatedStack, action: states.Action, old: Template, new: Template) -> Plan:
    present = Present(
        records={name: row.record for name, row in stack.rows.items()},
        leftovers={name: [row.record for row in rows] for name, rows in stack.leftovers.items()},
        live={name: row for name, row in stack.rows.items() if row.ready},
    )
    if action is states.Action.ROLLBACK:
        return plans.rollback(old, new, present)
    return plans.plan(old, new, present)


class ResolvedBuilder(PlanBuilder):
    """A draft for one resource whose turn has come: all that it refers to is known by now."""

    __slots__ = ()

    def judge(self, reference: Reference) -> Knowledge:
        return Knowledge.KNOWN


class Walk:
    """One plan over the rows of one stack."""

    def __init__(
        self, stack: SimulatedStack, plan: Plan, old: TemplateSide, new: TemplateSide
    ) -> None:
        self.stack = stack
        self.plan = plan
        self.new = new
        records = {name: row.record for name, row in stack.rows.items()}
        present = Present(records=records, live=stack.current_rows)
        self.builder = ResolvedBuilder(old=old, new=new, present=present, records=dict(records))

    def steps(self) -> Steps:
        """Walk to the end, or raise the first failure when all that had begun has ended."""
        group = DependencyTaskGroup(
            self.plan.own(),
            self._vertex,
            clock=self.stack.simulation.clock,
            error_wait_time=FOR_EVER_S,
        )
        yield from group()
        for row in reversed([row for rows in self.stack.leftovers.values() for row in rows]):
            yield from self._clean(row, keep=False)  # replaced against the forecast

    def _vertex(self, key: Key) -> Steps:
        """Tell the stack of a failure at once; others that run are let finish."""
        action = self.plan.actions[key]
        try:
            if key.phase == MAKE:
                yield from self._make(key.name, action)
            elif key.phase == CLEAN and (row := self.stack.find(action.record)) is not None:
                yield from self._clean(row, keep=action.verb is Verb.KEEP)
        except Exception as exc:  # told first, then it ends the walk
            self.stack.fail(exc)
            raise

    # ------------------------------------------------------------------------------------- make

    def _make(self, name: str, action: Action) -> Steps:
        if action.record is not None:
            self.stack.take_back(name, action.record)
        row = self.stack.rows[name]
        if row.gone:
            yield from self._create(name)
            return
        self.builder.records[name] = row.record
        yield from self._announce_hook(row, states.Action.UPDATE, "pre-update")
        try:
            candidate = rules.Candidate(self.builder, name)
            decision = self._decide(candidate)
        except errors.Failure as exc:
            yield from self._act(row, "fail", states.Action.UPDATE, exc)
        else:
            yield from self._follow(row, candidate, decision)

    def _decide(self, candidate: rules.Candidate) -> rules.Decision:
        """What becomes of the resource, whatever the environment says to it."""
        return next(message for rule in rules.RULES if (message := rule(candidate)) is not None)

    def _follow(self, row: Row, candidate: rules.Candidate, decision: rules.Decision) -> Steps:
        word = rules.RESTRICTED.get(decision.verb)
        if word is not None and word in self.new.restricted(row.name):
            self._refuse(row, ResourceActionRestricted(word))
        elif decision.verb is Verb.REFUSE:
            feature = f"Update of {row.name} ({decision.reason})"
            yield from self._act(
                row, "fail", states.Action.UPDATE, errors.NotSupported(feature=feature)
            )
        elif decision.verb is Verb.REPLACE:
            yield from self._replace(row, silently=self._is_silent(row, candidate))
        elif decision.verb is Verb.UPDATE or candidate.kind.always_updated:
            yield from self._update(row, candidate.change)
        elif row.record.status is Status.FAILED:
            row.record.status = Status.COMPLETE

    def _refuse(self, row: Row, exc: Exception) -> None:
        fault = self.stack.simulation.fault_of(row.name, exc)
        message = self.stack.simulation.redaction.masked(str(exc))
        self.stack.tell(row, states.Action.UPDATE, Status.FAILED, message)
        raise resource_actions.ResourceFailed(states.Action.UPDATE, fault, exc)

    def _is_silent(self, row: Row, candidate: rules.Candidate) -> bool:
        """Whether Heat replaces it without having tried to update it."""
        return row.record.status is Status.FAILED or not candidate.same_kind

    def _update(self, row: Row, change: Change) -> Steps:
        name = row.name
        row.definition, row.kind = self.new.definitions[name], self.new.kind(name)
        try:
            yield from self._act(
                row,
                "update",
                lambda: self.stack.read(name),
                row.definition,
                {part: one.after for part, one in change.template.items()},
                {key: one.after for key, one in change.properties.items()},
            )
        except base.UpdateReplace:
            yield from self._replace(row, silently=True)
        else:
            yield from self._announce_hook(row, states.Action.UPDATE, "post-update")

    def _replace(self, row: Row, *, silently: bool) -> Steps:
        """Make a new one; the old one stays until all that use it have turned to the new one."""
        if not silently:
            with contextlib.suppress(base.UpdateReplace):
                yield from self._act(row, "update", dict, None, {}, {}, replace=True)
        self.stack.supersede(row)
        yield from self._create(row.name)

    def _create(self, name: str) -> Steps:
        row = self.stack.rows[name]
        row.definition, row.kind = self.new.definitions[name], self.new.kind(name)
        row.record.type = row.definition.type
        yield from self._announce_hook(row, states.Action.CREATE, "pre-create")
        if row.definition.external_id is not None:
            yield from self._act(row, "adopt", lambda: self.stack.external_id(name))
        else:
            yield from self._act(row, "create", lambda: self.stack.read(name))
        yield from self._announce_hook(row, states.Action.CREATE, "post-create")

    # ------------------------------------------------------------------------------------ clean

    def _clean(self, row: Row, *, keep: bool) -> Steps:
        if self.stack.rows.get(row.name) is row and row.name in self.new.definitions:
            return  # it was to be replaced, and was not
        if not row.gone:
            yield from self._announce_hook(row, states.Action.DELETE, "pre-delete")
            yield from self._act(row, "delete", keep=keep)
            yield from self._announce_hook(row, states.Action.DELETE, "post-delete")
        self.stack.drop(row)

    # -------------------------------------------------------------------------------------- how

    def _act(self, row: Row, act: str, *args: Any, **kwargs: Any) -> Steps:
        """Let an actor act, as long as the stack has time."""
        left_s = self.stack.deadline_s - self.stack.simulation.clock.now()
        actions = resource_actions.ResourceActions(row, self.stack.simulation, self.stack.tell)
        runner = TaskRunner(
            getattr(actions, act), *args, clock=self.stack.simulation.clock, **kwargs
        )
        try:
            yield from runner.as_task(timeout=left_s)
        except Timeout as exc:
            raise StackTimedOut from exc

    def _announce_hook(self, row: Row, action: states.Action, hook: str) -> Steps:
        """Tell of a hook and go on: nobody is there who could clear it."""
        if self.stack.hooked(row.name, action, hook):
            record = row.record
            for reason in (events.paused(action, hook), events.cleared(hook)):
                self.stack.tell(row, record.action, record.status, reason)
        yield from ()
