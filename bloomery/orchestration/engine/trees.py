"""A tree of stacks: a root and its child stacks, stepped by the engine that holds the stack lock.

    tree = StackTree.load(store.load(root_uuid), runtime)
    while not tree.is_idle:
        store.write(root_uuid, tree.turn())  # whole or not at all
        wait(until=tree.due_at())
        tree.take(store.list_orders(root_uuid, after_id))

``turn`` steps due resources without waiting, and returns the changes for the caller to write.  No
transaction is open while handlers run.  An engine that has lost the lock drops the tree at once.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.orchestration.engine import orders, resource_actions
from bloomery.orchestration.engine.changes import TreeChanges
from bloomery.orchestration.engine.children import EngineChildren
from bloomery.orchestration.engine.definitions import Library
from bloomery.orchestration.engine.event_sinks import Declarations
from bloomery.orchestration.engine.resource import EngineResource, Stage
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.engine.schedule import Schedule
from bloomery.orchestration.engine.stack_actions import StackActions, facade_of
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.resources import states
from bloomery.orchestration.resources.states import Action

TURN_S: Final = 0.5  # seconds; handlers that are due after them run in the next turn
MINUTE_S: Final = 60.0


class StackTree:
    """A tree for one thread at a time.  ``stacks``: all existing ones, by UUID."""

    def __init__(self, root_uuid: str, runtime: EngineRuntime, library: Library) -> None:
        self.root_uuid = root_uuid
        self.runtime = runtime
        self.changes = TreeChanges(runtime, root_uuid)
        self.schedule = Schedule(runtime, self.changes)
        self.actions = StackActions(library)
        self.stacks: dict[str, EngineStack] = {}
        self._orders: list[model.Order] = []
        self._accepted: dict[str, model.Stack] = {}
        self._sinks: dict[str, tuple[model.Stack, Declarations]] = {}
        self._has_sinks = bool(runtime.sinks)
        self._loaded: list[EngineStack] = []  # to be advanced after the pending actions

    @classmethod
    def load(
        cls, tree: model.Tree, runtime: EngineRuntime, library: Library | None = None
    ) -> StackTree:
        """Continue a stored tree; ``tree.orders`` wait for the first turn."""
        root_uuid = tree.stacks[0].root_uuid
        loaded = cls(root_uuid, runtime, library or Library(runtime, tree.templates))
        resources: dict[str, list[model.StoredResource]] = {}
        for each in tree.resources:
            resources.setdefault(each.stack_uuid, []).append(each)
        live = [each for each in tree.stacks if each.deleted_at is None]
        for stack_row in sorted(live, key=lambda each: each.depth):
            minutes = stack_row.timeout_mins
            parent = loaded.stacks.get(stack_row.owner_uuid or "")
            template = loaded.actions.library.stack(
                stack_row,
                stack_row.template_uuid,
                timeout_s=runtime.timeout_s if minutes is None else minutes * MINUTE_S,
                parent=None if parent is None else parent.definition,
                facade=facade_of(stack_row, loaded.stacks),
            )
            stack = EngineStack(
                stack_row,
                template,
                loaded.schedule,
                loaded.stacks,
                lambda stack: EngineChildren(stack, loaded.actions),
            )
            loaded.changes.redaction |= template.definition.redaction
            for value in resources.get(stack_row.uuid, ()):
                loaded._add_row(stack, value, tree.properties)
            names = stack.template.definitions
            stack.current_rows = {n: stack.rows[n] for n in names if n in stack.rows}
        for stack in list(loaded.stacks.values()):
            loaded._recover(stack)
        loaded.take(tree)
        return loaded

    def _add_row(
        self,
        stack: EngineStack,
        value: model.StoredResource,
        properties: Mapping[str, model.Properties],
    ) -> None:
        """Add a stored resource; values of a pending update become its ``next_properties``."""
        definitions = self.actions.definition(stack, value.template_uuid)
        row = EngineResource(context=stack.context(), definitions=definitions, **value.columns())
        row.properties = frozen = _data(properties, value.properties_uuid)
        if row.pending_action is not None and row.pending_action.action is Action.UPDATE:
            row.properties = _data(properties, row.previous_properties_uuid)
            row.next_properties = frozen
        with contextlib.suppress(errors.Failure):  # limits that were lowered since then
            self.changes.stored_size.count(row, frozen)
        if row.is_current:
            stack.rows[row.name] = row
        else:
            stack.leftovers.setdefault(row.name, []).append(row)

    def _recover(self, stack: EngineStack) -> None:
        """Schedule pending actions, and resume the traversal before any of them may end."""
        if stack.row.open:
            stack.watch_deadline()
        for row in stack.list_rows():
            if row.pending_action is not None:
                stack.open_rows[row.uuid] = row
                is_idle = row.pending_action.stage is Stage.BACKOFF and row.due_at is not None
                at_s = self.schedule.clock_s(row.due_at) if is_idle and row.due_at else None
                self.schedule.step_at(row, self.runtime.clock() if at_s is None else at_s)
        self.actions.resume(stack)
        if stack.open_traversal is not None:
            self._loaded.append(stack)

    # -------------------------------------------------------------------------------------- turns

    def take(self, accepted: model.Tree) -> None:
        """Take the orders of ``accepted``, with the stacks they name as they are stored now."""
        ids = {each.id for each in self._orders}
        self._orders += [each for each in accepted.orders if each.id not in ids]
        uuids = {each.stack_uuid for each in accepted.orders}
        self._accepted |= {each.uuid: each for each in accepted.stacks if each.uuid in uuids}
        for template in accepted.templates.values():
            if template.uuid not in self.actions.library.templates:
                self.actions.library.add(template)

    def turn(self) -> model.Turn:
        """Take the orders, step what is due, and return all changes since the last turn.

        The traversal that an order supersedes begins nothing more, although actions have ended.  A
        signal finds the actions at work that were interrupted before.
        """
        schedule = self.schedule
        self._note_sinks()
        now_s = self.runtime.clock()
        until_s = now_s + TURN_S
        begun, schedule.due_next = schedule.due_next, []
        for row in begun:
            if row.pending_action is not None and row.pending_action.stage is not Stage.BACKOFF:
                schedule.step_at(row, now_s)
        new_orders, self._orders = self._orders, []
        accepted, self._accepted = self._accepted, {}
        signals = [each for each in new_orders if each.kind is model.OrderKind.SIGNAL]
        others = [each for each in new_orders if each.kind is not model.OrderKind.SIGNAL]
        orders.apply(self.actions, self.stacks, others, accepted)
        if signals:
            self._step(until_s)
            orders.apply(self.actions, self.stacks, signals, accepted)
        for order in new_orders:
            self.changes.take_order(order.id)
        loaded, self._loaded = self._loaded, []
        for stack in loaded:
            if stack.open_traversal is not None:
                stack.open_traversal.advance()
        self._wake_tracked()
        self._step(until_s)
        for stack in list(self.stacks.values()):
            if stack.open != stack.row.open:
                stack.change(open=stack.open)
                if not stack.open:
                    stack.change(deadline_at=None)
        self._note_sinks()
        return self.changes.collect(is_idle=self.is_idle)

    def _step(self, until_s: float) -> None:
        """Step due resources in order of time until ``until_s``, and time out late stacks."""
        schedule = self.schedule
        while self.runtime.clock() <= until_s and (what := schedule.pop_due()) is not None:
            if isinstance(what, EngineResource):
                stack = self.stacks.get(what.stack_uuid)
                if stack is not None and what.pending_action is not None:
                    schedule.interrupt_wait(what)
                    resource_actions.step(stack, what)
                    schedule.settle_wait(what)
                    self._wake_tracked()
            elif (stack := self.stacks.get(what)) is not None and stack.open:
                deadline_at = stack.row.deadline_at
                if deadline_at is not None and self.runtime.utc() >= deadline_at:
                    self.actions.time_out(stack)
                elif deadline_at is not None:  # it was moved after it was scheduled
                    self.schedule.set_deadline(stack.id, deadline_at)

    def _wake_tracked(self) -> None:
        """Wake rows that wait for a resource which another resource's kind has changed."""
        for row in self.changes.take_tracked():
            self.schedule.wake(row.uuid)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to do until the next order."""
        return not (self._orders or any(each.open for each in self.stacks.values()))

    def due_at(self) -> float | None:
        """Return the clock time of the next turn; None: when the tree is woken."""
        if self.schedule.due_next or self._orders or self._loaded:
            return self.runtime.clock()
        return self.schedule.next_due()

    def cancel(self) -> None:
        """Abort all running actions, and set each stack that is in progress to FAILED."""
        for stack in list(self.stacks.values()):
            self.actions.stop(stack, states.CANCELLED_BY_USER)
            self.actions.cancel(stack)

    def written(self, turn: model.Turn) -> None:
        """Send the stored events of a turn to the sinks of their stacks."""
        for uuid, events_of in itertools.groupby(turn.events, lambda event: event.stack_uuid):
            if (declared := self._sinks.get(uuid)) is not None:
                self.runtime.sinks.send(*declared, events_of)

    def _note_sinks(self) -> None:
        """Record the sinks of each stack; a stack that a turn deletes is gone after it."""
        if self._has_sinks:
            for stack in self.stacks.values():
                environment = stack.definition.definition.environment
                self._sinks[stack.id] = stack.row, environment.all_sinks()

    # -------------------------------------------------------------------------------------- wakes

    def waits(self) -> Collection[str]:
        """Return the UUIDs and queues that its resources wait for."""
        return self.schedule.waits()

    def wake(self, uuid: str | None) -> None:
        """Step in the next turn the rows that wait for ``uuid``; None: all that wait."""
        if uuid is None:
            self.schedule.wake_all()
        else:
            self.schedule.wake(uuid)


def _data(properties: Mapping[str, model.Properties], uuid: str | None) -> Mapping[str, Any]:
    return properties[uuid].data if uuid is not None else {}
