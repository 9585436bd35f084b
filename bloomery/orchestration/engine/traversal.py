"""A traversal of a stack: the vertices of a stored graph, begun when their requirements are done.

The traversal emits the events of Heat's convergence engine.  After a failure no vertex begins, and
actions that run go on, because an action belongs to its resource.  With rollback, a traversal to
the previous template follows at once.  It waits only for resources with a running action.

The plan only orders the vertices.  The traversal decides about each resource, with the values that
its requirements now have.
"""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.engine import resource_actions
from bloomery.orchestration.engine.graphs import TraversalGraph
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.stacks import EngineStack, ResourceFailed, ResourcesFailed
from bloomery.orchestration.plan import ExistingStack, rules
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.forecast import Knowledge
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Verb
from bloomery.orchestration.properties import values
from bloomery.orchestration.resources import base, machines, states
from bloomery.orchestration.resources.states import Action, Fault, Status
from bloomery.orchestration.template.dialect import DeletionPolicy
from bloomery.orchestration.template.functions.base import Reference

HOOKS: Final = (
    "pre-create",
    "post-create",
    "pre-update",
    "post-update",
    "pre-delete",
    "post-delete",
)
MAYBE_SUSPENDED: Final = frozenset({Action.RESUME, Action.CHECK, Action.SNAPSHOT})
OVER_ROWS: Final = frozenset({Action.SUSPEND, Action.RESUME, Action.CHECK, Action.SNAPSHOT})


class ResourceActionRestricted(Exception):
    """The environment restricts the update or the replacement of a resource."""

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} is restricted for resource.")


class InvalidState(Exception):
    """The state of a resource does not allow the action."""

    wire_type = "Error"

    def __init__(self, row: EngineResource, action: Action) -> None:
        state = (row.action.value, row.status.value)
        super().__init__(f"State {state} invalid for {action.lower()}")


class ResolvedBuilder(PlanBuilder):
    """Compares one resource whose requirements are done: all references have values."""

    __slots__ = ()

    def judge(self, reference: Reference) -> Knowledge:
        return Knowledge.KNOWN


class Traversal:
    """One traversal over the rows of one stack.

    ``ended``: called once at the end, with the failure or None.
    ``running``: vertices by the resource whose action serves them.
    ``waiting``: vertices by the resource that still has an action of an earlier traversal.
    ``paused``: vertices and hooks by the resource that waits at the hook.
    ``visited``: resources and hooks that were cleared.
    """

    def __init__(
        self,
        stack: EngineStack,
        graph: TraversalGraph,
        ended: Callable[[EngineStack, Exception | None], None],
    ) -> None:
        self.stack = stack
        self.graph = graph
        self.ended = ended
        self.remaining = graph.graph.walk()
        self.ready = deque(self.remaining.first)
        self.running: dict[str, Key] = {}
        self.waiting: dict[str, Key] = {}
        self.paused: dict[str, tuple[Key, str]] = {}
        self.visited: set[tuple[str, str]] = set()
        self.failures: list[str] = []
        self._builders: dict[str, ResolvedBuilder] = {}
        self._is_advancing = False

    @property
    def extra(self) -> Mapping[str, Any]:
        return self.graph.extra

    def graph_document(self) -> dict[str, Any]:
        return self.graph.document()

    # ------------------------------------------------------------------------------------ advance

    def resume(self) -> None:
        """Find from the rows which vertices are done, run, or are paused, after a crash.

        Vertices are bound to running actions here, because an action may end before ``advance``.
        """
        begun, implied = [], set[Key]()
        for key in self.graph.vertices:
            row = self._row(key)
            if row is not None and (
                self._serves(row, key)
                if row.pending_action is not None
                else key.phase == MAKE and row.traversal == self.stack.row.traversal
            ):
                begun.append(key)
        while begun:  # their requirements are done, even if the rows of those are unchanged
            new = [need for need in self.graph.graph.requires(begun.pop()) if need not in implied]
            implied.update(new)
            begun += new
        ready, self.ready = self.ready, deque()
        while ready:
            key = ready.popleft()
            row = self._row(key)
            if key in implied or self._is_done(key):
                ready.extend(self.remaining.finish(key))
            elif row is not None and row.pending_action is not None and not self._is_refused(row):
                self._wait_for(key, row)
            elif row is not None and (hook := _pending_hook(row)) is not None:
                self.paused[row.uuid] = (key, hook)
            else:
                self.ready.append(key)

    def _serves(self, row: EngineResource, key: Key) -> bool:
        """Tell whether the running action of a resource was begun for the vertex ``key``."""
        pending, number = row.pending_action, self.stack.row.traversal
        return pending is not None and (pending.traversal, pending.phase) == (number, key.phase)

    def _is_done(self, key: Key) -> bool:
        row = self._row(key)
        if key.phase == CLEAN:
            return row is None
        if row is None or row.pending_action is not None or _pending_hook(row) is not None:
            return False
        return row.traversal == self.stack.row.traversal

    def advance(self) -> None:
        """Begin each vertex whose requirements are done; end the traversal after the last one."""
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self.ready and self.stack.open_traversal is self:
                self._begin(self.ready.popleft())
        finally:
            self._is_advancing = False
        if self.stack.open_traversal is self and not (self.running or self.waiting or self.paused):
            failed = "; ".join(self.failures)
            self.ended(self.stack, ResourcesFailed(failed) if failed else None)

    def _begin(self, key: Key) -> None:
        """Begin a vertex, unless its resource has a running action or is paused at a hook."""
        row, action = self._row(key), self.graph.action
        if row is not None and row.pending_action is not None:
            self._wait_for(key, row)
            return
        if row is not None and (hook := _pending_hook(row)) is not None:
            self.paused[row.uuid] = (key, hook)
            return
        with self._failing_stack():
            if action not in OVER_ROWS:
                begin = self._clean if key.phase == CLEAN else self._make
                begin(key, row)
            elif row is None:
                self._finish(key, None)
            elif not _allows(row, action):
                self._fail(key, row, self._refusal(row, action, InvalidState(row, action)))
            else:
                self.running[row.uuid] = key
                resource_actions.perform(self.stack, row, action)
                if row.pending_action is None and self.running.pop(row.uuid, None) is not None:
                    self._finish(key, row)  # the kind has no handler

    @contextlib.contextmanager
    def _failing_stack(self) -> Iterator[None]:
        """Let an exception fail the stack."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001  # kinds and functions may raise anything
            if self.stack.open_traversal is self:
                self.ended(self.stack, exc)

    def action_ended(self, row: EngineResource, failure: Exception | None) -> None:
        """Go on with the vertex of a resource whose action has ended."""
        if (key := self.waiting.pop(row.uuid, None)) is not None:
            self.ready.append(key)
        elif (key := self.running.pop(row.uuid, None)) is not None:
            if isinstance(failure, base.UpdateReplace):
                with self._failing_stack():
                    self._replace(key, row, resource_actions.read_values(self.stack, row)[0])
            elif failure is not None:
                self._fail(key, row, failure)
            elif self.graph.action in OVER_ROWS:
                self._finish(key, row)
            elif key.phase == CLEAN:
                self._cleaned(key, row)
            elif row.action is Action.DELETE:  # deleted before its replacement is made
                with self._failing_stack():
                    self._make(key, row)
            else:
                self._complete_make(key, row)
        self.advance()

    def _fail(self, key: Key, row: EngineResource | None, failure: Exception) -> None:
        if self.graph.action is Action.CHECK and isinstance(failure, ResourceFailed):
            self.failures.append(states.failed(failure.action, failure.fault))
            self._finish(key, row)
        else:
            self.ended(self.stack, failure)

    def _finish(self, key: Key, row: EngineResource | None) -> None:
        """Take a vertex off the graph; the row names the traversal that finished the resource."""
        if row is not None:
            row.traversal = self.stack.row.traversal
        self.ready.extend(self.remaining.finish(key))

    def _wait_for(self, key: Key, row: EngineResource) -> None:
        """Wait for a running action: of this traversal before a crash, or of an earlier one."""
        if self._is_refused(row):
            invalid = InvalidState(row, Action.SUSPEND)
            self.ended(self.stack, self._refusal(row, Action.SUSPEND, invalid))
        elif self._serves(row, key):
            self.running[row.uuid] = key
        else:
            self.waiting[row.uuid] = key
            if row.kind.preemptible and self._is_futile(key, row):
                resource_actions.preempt(self.stack, row)
            else:
                resource_actions.end_pauses(self.stack, row)

    def _is_futile(self, key: Key, row: EngineResource) -> bool:
        """Tell whether the result of an earlier traversal's action is useless to this one."""
        new = self.stack.template.definitions.get(row.name)
        if row.pending_action is None or row.pending_action.action is Action.DELETE:
            return False
        if key.phase == CLEAN or new is None or new.type != row.definition.type:
            return True
        try:
            builder = self._builder(row)
            after = builder.new.properties(row.name, builder.after)
        except errors.Failure:
            return False  # the fault is reported when the vertex begins
        if row.kind.always_updated and rules.files_of(builder.old) != rules.files_of(builder.new):
            return True
        before = row.acting().properties
        changed = values.differences(row.kind.properties_schema, before, after).changed
        same, find_node = row.kind.names_same_object, builder.existing.find_node
        names = [n for n, value in changed.items() if not same(row, n, value, find_node)]
        return row.kind.preempted_by(before, after, names)

    def _is_refused(self, row: EngineResource) -> bool:
        """Tell whether a suspend meets an action of an earlier traversal, and fails at once."""
        pending, number = row.pending_action, self.stack.row.traversal
        is_old = pending is not None and pending.traversal != number
        return is_old and self.graph.action is Action.SUSPEND

    def _refusal(self, row: EngineResource, action: Action, exc: Exception) -> ResourceFailed:
        """Return the failure of a resource whose kind was not called."""
        masked = self.stack.changes.redaction.masked
        kind = getattr(exc, "wire_type", None) or type(exc).__name__
        return ResourceFailed(action, Fault(kind, f"resources.{row.name}", masked(str(exc))), exc)

    def _row(self, key: Key) -> EngineResource | None:
        if key.phase == CLEAN:
            return self.stack.find_row(self.graph.vertices[key].row, key.name)
        return self.stack.rows.get(key.name)

    # -------------------------------------------------------------------------------------- make

    def _make(self, key: Key, row: EngineResource | None) -> None:
        """Bring a resource to its definition, with the values that its requirements have.

        A resource that exists is updated, replaced, refused or left, by the first rule (rules.py).
        """
        if row is None:
            row = self.stack.new_row(key.name)
            self.stack.add(row)
        elif row.has_no_object and row.action is Action.DELETE:
            row = self.stack.replace_deleted(row)  # deleted first, or by an earlier traversal
        if row.has_no_object:
            self._create(key, row)
            return
        if self._pauses(key, row, Action.UPDATE, "pre-update"):
            return
        stack = self.stack
        try:
            builder = self._builder(row)
            builder.records[row.name] = row
            candidate = rules.Candidate(builder, row.name)
            decision = rules.compare_live(candidate, row.resource()) if stack.converges else None
            decision = decision or rules.judge(candidate)
            action = rules.RESTRICTED.get(decision.verb)
            if action is not None and action in stack.template.restricted(row.name):
                exc = ResourceActionRestricted(action)
                stack.emit_event(row, Action.UPDATE, Status.FAILED, str(exc))
                self.ended(stack, self._refusal(row, Action.UPDATE, exc))
            elif decision.verb is Verb.REFUSE:
                raise errors.NotSupported(feature=f"Update of {row.name} ({decision.reason})")
            elif decision.verb is Verb.REPLACE:
                if row.status is not Status.FAILED and candidate.same_kind:
                    resource_actions.replace(stack, row)
                self._replace(key, row, candidate.change.after if candidate.same_kind else {})
            elif decision.verb is Verb.UPDATE or candidate.kind.always_updated:
                properties, template = [*candidate.change.properties], [*candidate.change.template]
                returns = stack.returns(row)
                self._retarget(row)
                self.running[row.uuid] = key
                resource_actions.update(
                    stack, row, properties=properties, template=template, returns=returns
                )
            else:
                self._finish(key, row)
                if row.status is Status.FAILED or any(uuid == row.uuid for uuid, _ in self.visited):
                    row.status = Status.COMPLETE
                    stack.changes.change_row(row)  # unchanged rows are not written
        except errors.Failure as exc:
            self.running[row.uuid] = key
            resource_actions.fail(stack, row, Action.UPDATE, exc)

    def _builder(self, row: EngineResource) -> ResolvedBuilder:
        """Return the builder that compares the template of a resource with the new one."""
        if row.template_uuid not in self._builders:
            stack = self.stack

            def child_of(record: base.ResourceState) -> ExistingStack | None:
                child = stack.stacks.get(record.physical_id or "")
                return None if child is None else ExistingStack(records=child.current_rows)

            find_node = functools.partial(machines.find_node, stack.context().machines)
            existing = ExistingStack(
                records={}, live=stack.current_rows, child=child_of, find_node=find_node
            )
            builder = ResolvedBuilder(old=row.definitions, new=stack.target[0], existing=existing)
            self._builders[row.template_uuid] = builder
        return self._builders[row.template_uuid]

    def _create(self, key: Key, row: EngineResource) -> None:
        self._retarget(row)
        row.type = row.definition.type
        if self._pauses(key, row, Action.CREATE, "pre-create"):
            return
        self.running[row.uuid] = key
        if row.definition.external_id is not None:
            resource_actions.adopt_external(self.stack, row)
        elif self.stack.action is Action.ADOPT:
            resource_actions.adopt(self.stack, row)
        else:
            resource_actions.create(self.stack, row)

    def _replace(self, key: Key, row: EngineResource, after: Mapping[str, Any]) -> None:
        """Create another resource; the kind decides whether the old one is deleted first."""
        needs_snapshot = row.definition.deletion_policy is DeletionPolicy.SNAPSHOT
        stays = self.graph.vertices[key].keep or needs_snapshot
        if after and not stays and row.kind.deletes_first(row.properties, after):
            self.running[row.uuid] = key
            resource_actions.delete_first(self.stack, row)
        else:
            self._create(key, self.stack.replace(row))

    def _retarget(self, row: EngineResource) -> None:
        """Switch a resource to the template of this traversal."""
        row.context = self.stack.context()
        before = () if row.has_no_object else row.requires  # needed until the action has ended
        row.requires = tuple(dict.fromkeys((*self.stack.required(row.name), *before)))
        row.has_secret = row.has_secret or self.stack.hides
        row.set_template(*self.stack.target)

    def _complete_make(self, key: Key, row: EngineResource) -> None:
        action = Action.UPDATE if row.action is Action.UPDATE else Action.CREATE
        if not self._pauses(key, row, action, f"post-{action.lower()}"):
            self._finish(key, row)
            self.stack.changes.change_row(row)

    # ------------------------------------------------------------------------------------- clean

    def _clean(self, key: Key, row: EngineResource | None) -> None:
        """Delete a row that the template does not have, or that was replaced."""
        stack = self.stack
        if row is None or (stack.current_rows.get(row.name) is row):
            self._finish(key, None)
        elif row.has_no_object:
            self._cleaned(key, row)
        elif not self._pauses(key, row, Action.DELETE, "pre-delete"):
            keep = self.graph.vertices[key].keep or bool(self.graph.extra.get("abandon"))
            self.running[row.uuid] = key
            resource_actions.delete(stack, row, keep=keep)

    def _cleaned(self, key: Key, row: EngineResource) -> None:
        deleted = row.action is Action.DELETE
        if not (deleted and self._pauses(key, row, Action.DELETE, "post-delete")):
            self.stack.drop(row)
            self._finish(key, None)

    # ------------------------------------------------------------------------------------- hooks

    def _pauses(self, key: Key, row: EngineResource, action: Action, hook: str) -> bool:
        """Stop at a hook of the environment that was not cleared before."""
        stack = self.stack
        if stack.action is not action or (row.uuid, hook) in self.visited:
            return False
        if hook not in stack.definition.definition.environment.registry.hooks(row.name):
            return False
        stack.emit_event(
            row, row.action, row.status, f"{action} paused until Hook {hook} is cleared"
        )
        if not stack.runtime.waits_for_hooks:
            stack.emit_event(row, row.action, row.status, states.hook_cleared(hook))
            return False
        row.data[hook] = True
        stack.changes.change_row(row)
        self.paused[row.uuid] = (key, hook)
        return True

    def unset(self, row: EngineResource, hook: str) -> None:
        """Go on after a hook was cleared."""
        key, paused_at = self.paused.get(row.uuid, (None, None))
        if key is None or paused_at != hook:
            return
        del self.paused[row.uuid]
        self.visited.add((row.uuid, hook))
        if hook == "post-delete":
            self._cleaned(key, row)
        elif hook.startswith("post-"):
            self._complete_make(key, row)
        else:
            self.ready.append(key)
        self.advance()


def _pending_hook(row: EngineResource) -> str | None:
    """Return the hook at which a resource is paused."""
    return next((hook for hook in HOOKS if row.data.get(hook) is True), None)


def _allows(row: EngineResource, action: Action) -> bool:
    """Tell whether the state of a resource allows an action, as in Heat.

    Unlike in Heat, a suspended resource can be resumed after a check or a snapshot.
    """
    if action is Action.SUSPEND:
        again = row.action is Action.SUSPEND and row.status is Status.FAILED
        complete = row.status is Status.COMPLETE and not row.has_no_object
        return complete or again
    if action is Action.RESUME:
        suspended = (row.action, row.status) == (Action.SUSPEND, Status.COMPLETE)
        return suspended or row.action in MAYBE_SUSPENDED
    return action is not Action.CHECK or not row.has_no_object
