"""Actions of stacks: create, update, delete, roll back, suspend and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery.model import stacks as model
from bloomery.orchestration.engine import definitions, graphs, resource_actions, stack_values
from bloomery.orchestration.engine.definitions import Library
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.stacks import EngineStack, StackTimedOut, TemplatePart
from bloomery.orchestration.engine.traversal import HOOKS, OVER_ROWS, Traversal
from bloomery.orchestration.plan.plans import Verb
from bloomery.orchestration.resources import states
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.stack.template_side import NOTHING, Nothing, TemplateSide

ROLLED_BACK: Final = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.RESTORE})


@dataclass(frozen=True, slots=True)
class StackActions:
    """Begins and ends the traversals of the stacks of one tree."""

    library: Library

    def definition(self, stack: EngineStack, template_uuid: str) -> Stack:
        parent = stack.stacks.get(stack.row.owner_uuid or "")
        return self.library.stack(
            stack.row,
            template_uuid,
            timeout_s=stack.timeout_s,
            parent=None if parent is None else parent.definition,
            facade=facade_of(stack.row, stack.stacks),
        )

    # ------------------------------------------------------------------------------------- begin

    def create(self, stack: EngineStack, **extra: Any) -> None:
        self.converge_stack(stack, NOTHING, stack.definition, **extra)

    def adopt(self, stack: EngineStack, data: Mapping[str, Any]) -> None:
        """Create resources from the data of an abandoned stack, which their rows keep sealed."""
        stack.set_template(stack.definition)
        for name, entry in (data.get("resources") or {}).items():
            if (row := stack.rows.get(name)) is not None:
                row.data[resource_actions.ABANDONED] = dict(entry)
                row.redacted.add(resource_actions.ABANDONED)
        self.create(stack)

    def update(self, stack: EngineStack, part: TemplatePart | None = None, **extra: Any) -> None:
        """Begin the traversal from the previous template of a stack to the current one.

        ``part``: the resources that differ; the others are skipped.  After a crash, another engine
        reads the whole template and finds in the graph which vertices remain.
        """
        row = stack.row
        new = self.definition(stack, row.template_uuid)
        previous = row.previous_template_uuid
        old = NOTHING if previous is None else self.definition(stack, previous)
        self.converge_stack(stack, old, new, part, **extra)

    def delete(self, stack: EngineStack, **extra: Any) -> None:
        """Delete a stack; actions that run are aborted."""
        self.stop(stack, states.CANCELLED_BY_USER)
        self.converge_stack(stack, stack.definition, NOTHING, **extra)

    def stack_task(self, stack: EngineStack, **extra: Any) -> None:
        """Suspend, resume, check or snapshot the resources of a stack."""
        self._supersede(stack)
        if self._is_admitted(stack):
            self._begin(stack, graphs.over_rows(stack, stack.action, extra=extra))

    def roll_back(self, stack: EngineStack) -> None:
        """Traverse back to the previous template; a stack without one becomes empty."""
        failed, target = stack.row.template_uuid, stack.row.previous_template_uuid
        if target is None:
            target = stack.runtime.new_id()
            empty = definitions.empty_template(target, self.library.templates[failed])
            stack.changes.add_template(empty)
            self.library.add(empty)
        failure = stack.failure
        stack.change(template_uuid=target, previous_template_uuid=failed)
        stack.begin(Action.ROLLBACK)
        self.update(stack)
        stack.failure = failure

    def converge_stack(
        self,
        stack: EngineStack,
        old: TemplateSide,
        new: Stack | Nothing,
        part: TemplatePart | None = None,
        **extra: Any,
    ) -> None:
        """Begin the traversal from one template to another, over the rows of the stack."""
        self._supersede(stack)
        if not self._is_admitted(stack):
            return
        try:
            stack.set_template(new, part)
            graph = graphs.planned(stack, stack.action, old, new, extra=extra)
        except Exception as exc:  # noqa: BLE001  # plug-ins and functions may raise anything
            self.ended(stack, exc)
            return
        for key, vertex in graph.vertices.items():
            row = stack.find_row(vertex.row, key.name)
            if vertex.verb == Verb.TAKE_BACK and row is not None and not row.is_current:
                stack.take_back(row)
        self._begin(stack, graph)

    def _is_admitted(self, stack: EngineStack) -> bool:
        """Call the plug-ins; an exception of one fails the action before it begins."""
        try:
            stack.runtime.plugins.begin(stack.value())
        except Exception as exc:  # noqa: BLE001  # plug-ins may raise anything
            self.ended(stack, exc, begun=False)
            return False
        return True

    def _begin(self, stack: EngineStack, graph: graphs.TraversalGraph) -> None:
        stack.open_traversal = traversal = Traversal(stack, graph, self.ended)
        stack.change()
        traversal.advance()

    def resume(self, stack: EngineStack) -> None:
        """Resume the stored traversal of a loaded stack, if there is one."""
        if stack.row.graph is None:
            return
        graph = graphs.TraversalGraph.of(stack.row.graph)
        if graph.action is Action.DELETE:
            stack.set_template(NOTHING)
        stack.open_traversal = traversal = Traversal(stack, graph, self.ended)
        traversal.resume()

    # ---------------------------------------------------------------------------------------- end

    def ended(self, stack: EngineStack, failure: Exception | None, *, begun: bool = True) -> None:
        """End a traversal as complete or failed; begin the rollback that the stack asks for."""
        snapshot = _snapshot_of(stack)
        stack.open_traversal = None
        action = stack.action
        if failure is not None:
            self._clear_hooks(stack)
            if action is Action.DELETE:
                stack.keep_template()
            rolls_back = stack.status is Status.IN_PROGRESS and action in ROLLED_BACK
            stack.fail(failure)
            if begun:
                stack.runtime.plugins.end(stack.value(), failed=True)
            self._end_snapshot(stack, snapshot, stack.status, stack.reason)
            if rolls_back and not stack.row.disable_rollback:
                self.roll_back(stack)
            return
        if action is Action.DELETE:
            for row in stack.list_rows():
                stack.drop(row)
            stack.stacks.pop(stack.id, None)
            stack.change(deleted_at=stack.runtime.utc())
        elif action not in OVER_ROWS:
            stack.change(previous_template_uuid=None)
        stack.change(deadline_at=None)
        reason = f"Stack {action} completed successfully"
        kinds = [row.kind for row in stack.current_rows.values()]
        if action is Action.CHECK and not all(hasattr(kind, "handle_check") for kind in kinds):
            reason = f"{reason}. '{action}' not fully supported (see resources)"
        stack.set_state(action, Status.COMPLETE, reason)
        stack.runtime.plugins.end(stack.value(), failed=False)
        self._end_snapshot(stack, snapshot, stack.status, stack.reason)

    def time_out(self, stack: EngineStack) -> None:
        """Abort the actions of a stack that has timed out, and set the stack to FAILED."""
        for row in list(stack.open_rows.values()):
            resource_actions.abort(stack, row)
        if stack.open_traversal is not None:
            self.ended(stack, StackTimedOut())

    def stop(self, stack: EngineStack, why: str) -> None:
        """Abort the actions of a stack; the state of the stack stays."""
        self._supersede(stack)
        for row in list(stack.open_rows.values()):
            resource_actions.abort(stack, row, why)

    def cancel(self, stack: EngineStack) -> None:
        """Set a stack to FAILED at once; running actions go on, and pauses end."""
        self._supersede(stack)
        for row in list(stack.open_rows.values()):
            resource_actions.end_pauses(stack, row)
        if stack.status is Status.IN_PROGRESS:
            stack.set_state(stack.action, Status.FAILED, states.cancelled(stack.action))
            stack.runtime.plugins.end(stack.value(), failed=True)

    def _supersede(self, stack: EngineStack) -> None:
        """End the previous traversal and its hooks; running actions go on."""
        if stack.open_traversal is not None:
            cancelled = states.cancelled(Action.SNAPSHOT)
            self._end_snapshot(stack, _snapshot_of(stack), Status.FAILED, cancelled)
            stack.open_traversal = None
            self._clear_hooks(stack)

    @staticmethod
    def _clear_hooks(stack: EngineStack) -> None:
        for row in stack.list_rows():
            for hook in [hook for hook in HOOKS if row.data.get(hook) is True]:
                clear_hook(stack, row, hook)

    def _end_snapshot(
        self, stack: EngineStack, uuid: str | None, status: Status, reason: str
    ) -> None:
        if uuid is not None:
            snapshot = model.Snapshot(
                uuid=uuid,
                stack_uuid=stack.id,
                status=status.value,
                reason=reason,
                data=data_of(stack, self.library),
            )
            stack.changes.add_snapshot(snapshot)


def _snapshot_of(stack: EngineStack) -> str | None:
    """Return the snapshot that the open traversal makes."""
    return None if stack.open_traversal is None else stack.open_traversal.extra.get("snapshot")


def clear_hook(stack: EngineStack, row: EngineResource, hook: str) -> None:
    row.data.pop(hook, None)
    stack.changes.change_row(row)
    stack.emit_event(row, row.action, row.status, states.hook_cleared(hook))


def facade_of(row: model.Stack, stacks: Mapping[str, EngineStack]) -> stack_values.RowFacade | None:
    """Return the resource of the parent stack that owns a nested stack."""
    parent = stacks.get(row.owner_uuid or "")
    if parent is None or row.owner_resource is None:
        return None
    current = parent.rows.get(row.owner_resource)
    rows = (current, *parent.leftovers.get(row.owner_resource, ()))
    owner = next((each for each in rows if each and each.physical_id == row.uuid), current)
    return None if owner is None else stack_values.RowFacade(lambda: owner)


def data_of(stack: EngineStack, library: Library) -> dict[str, Any]:
    """Return the adopt data of a stack and its child stacks."""
    entries = {}
    for name, row in stack.current_rows.items():
        child = stack.stacks.get(row.physical_id or "")
        nested = {} if child is None else data_of(child, library)
        entries[name] = stack_values.resource_adopt_data(row, nested)
    return stack_values.stack_adopt_data(
        stack.row, library.templates[stack.row.template_uuid], entries
    )
