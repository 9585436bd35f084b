"""A traversal of a stack: its stored graph walked, each vertex ruled upon when its turn comes.

It goes as in Heat's convergence engine, with the same events: a failure is told at once, nothing
more begins, and what had begun goes on, because acts belong to rows.  With rollback a traversal
back follows at once; it waits for a row that is still acted upon, and for that row alone.

The plan was a forecast, made before any value was there.  Here each resource is ruled upon with the
values that its requirements now have; what was foreseen as uncertain turns out one way or another.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.engine import acts, events
from bloomery.orchestration.engine.graphs import TraversalGraph, Vertex, sweeps
from bloomery.orchestration.engine.rows import Row
from bloomery.orchestration.engine.stacks import EngineStack, ResourceFailed, ResourcesFailed
from bloomery.orchestration.plan import Present, rules
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.forecast import Knowledge
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Verb
from bloomery.orchestration.plan.template_side import TemplateSide
from bloomery.orchestration.properties import values
from bloomery.orchestration.resources import base, machines
from bloomery.orchestration.resources.states import Action, Fault, Status
from bloomery.orchestration.stack import Stack
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
LOOKED_AT: Final = frozenset({Action.RESUME, Action.CHECK, Action.SNAPSHOT})  # maybe suspended
OVER_ROWS: Final = frozenset({Action.SUSPEND, Action.RESUME, Action.CHECK, Action.SNAPSHOT})


class ResourceActionRestricted(Exception):
    """The environment forbids what the update would do."""

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} is restricted for resource.")


class InvalidState(Exception):
    """A resource cannot be suspended or resumed in the state that it is in."""

    wire_type = "Error"

    def __init__(self, row: Row, action: Action) -> None:
        state = (row.record.action.value, row.record.status.value)
        super().__init__(f"State {state} invalid for {action.lower()}")


class ResolvedBuilder(PlanBuilder):
    """A draft for one resource whose turn has come: all that it refers to is known by now."""

    __slots__ = ()

    def judge(self, reference: Reference) -> Knowledge:
        return Knowledge.KNOWN


class Walk:
    """One traversal over the rows of one stack.

    ``ended``: called once, with the walk's failure or None, when nothing of it is left to do.
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
        self.left = graph.graph.walk()
        self.ready = deque(self.left.first)
        self.running: dict[str, Key] = {}  # by row: whose act serves a vertex
        self.blocked: dict[str, Key] = {}  # by row: whose act is of an earlier traversal
        self.paused: dict[str, tuple[Key, str]] = {}  # by row: at which hook
        self.passed: set[tuple[str, str]] = set()  # rows and hooks
        self.failures: list[str] = []
        self._builders: dict[str, ResolvedBuilder] = {}
        self._extra: dict[Key, Vertex] = {}
        self._moving = False

    @property
    def extra(self) -> Mapping[str, Any]:
        return self.graph.extra

    def graph_document(self) -> dict[str, Any]:
        return self.graph.document()

    # --------------------------------------------------------------------------------- its course

    def resume(self) -> None:
        """Find the place where another process was: what is done, what acts, what is paused.

        Vertices whose rows act are bound to them here: an act may end before the walk goes on.
        """
        implied = self._implied()
        ready, self.ready = self.ready, deque()
        while ready:
            key = ready.popleft()
            row = self._row(key)
            if key in implied or self._is_done(key):
                ready.extend(self.left.finish(key))
            elif row is not None and row.act is not None and not self._is_refused(row):
                self._wait_for(key, row)
            elif row is not None and (hook := self._flag(row)) is not None:
                self.paused[row.uuid] = (key, hook)
            else:
                self.ready.append(key)

    def _implied(self) -> set[Key]:
        """Return what must have been done before what is: rows that stayed are not written."""
        todo = [key for key in self.graph.vertices if self._was_entered(key)]
        implied = set[Key]()
        while todo:
            for need in self.graph.graph.requires(todo.pop()):
                if need not in implied:
                    implied.add(need)
                    todo.append(need)
        return implied

    def _was_entered(self, key: Key) -> bool:
        row = self._row(key)
        if row is None:
            return False
        if row.act is not None:
            return row.act.traversal == self.stack.traversal and row.act.phase == key.phase
        return key.phase == MAKE and row.traversal == self.stack.traversal

    def _is_done(self, key: Key) -> bool:
        row = self._row(key)
        if key.phase == CLEAN:
            return row is None
        if row is None or row.act is not None or self._flag(row) is not None:
            return False
        return row.traversal == self.stack.traversal

    def advance(self) -> None:
        """Begin whatever nothing stands before; end the walk when nothing is left."""
        if self._moving:
            return
        self._moving = True
        try:
            while self.ready and self.stack.walk is self:
                self._enter(self.ready.popleft())
        finally:
            self._moving = False
        if self.stack.walk is self and not (self.running or self.blocked or self.paused):
            self._sweep()

    def _sweep(self) -> None:
        """Clean what was replaced against the forecast, one after the other; then it is over."""
        rows = [row for rows in self.stack.leftovers.values() for row in rows]
        if rows and self.graph.action not in OVER_ROWS:
            self._extra = sweeps(rows[-1:])
            self.ready.extend(self._extra)
            self.advance()
        elif self.failures:
            self.ended(self.stack, ResourcesFailed("; ".join(self.failures)))
        else:
            self.ended(self.stack, None)

    def act_ended(self, row: Row, failure: Exception | None) -> None:
        """Go on where the act of a row has ended."""
        if (key := self.blocked.pop(row.uuid, None)) is not None:
            self.ready.append(key)
        elif (key := self.running.pop(row.uuid, None)) is not None:
            self._go_on(key, row, failure)
        self.advance()

    def _go_on(self, key: Key, row: Row, failure: Exception | None) -> None:
        if isinstance(failure, base.UpdateReplace):
            self._guard(lambda: self._replace(key, row, self.stack.read(row)[0]))
        elif failure is not None:
            self._fail(key, row, failure)
        elif self.graph.action in OVER_ROWS:
            self._finish(key, row)
        elif key.phase == CLEAN:
            self._cleaned(key, row)
        elif row.record.action is Action.DELETE:  # it stood in the way of its replacement
            self._guard(lambda: self._make(key, row))
        else:
            self._made(key, row)

    def _fail(self, key: Key, row: Row | None, failure: Exception) -> None:
        if self.graph.action is Action.CHECK and isinstance(failure, ResourceFailed):
            self.failures.append(events.failed(failure.action, failure.fault))
            self._finish(key, row)
        else:
            self.ended(self.stack, failure)

    def _finish(self, key: Key, row: Row | None) -> None:
        """Take a vertex off the graph; its row names the traversal that has finished it."""
        if row is not None:
            row.traversal = self.stack.traversal
        if key not in self._extra:
            self.ready.extend(self.left.finish(key))

    def _enter(self, key: Key) -> None:
        row = self._row(key)
        if row is not None and row.act is not None:
            self._wait_for(key, row)
        elif row is not None and (hook := self._flag(row)) is not None:
            self.paused[row.uuid] = (key, hook)
        else:
            self._guard(lambda: self._do(key, row))

    def _do(self, key: Key, row: Row | None) -> None:
        if self.graph.action in OVER_ROWS:
            self._perform(key, row)
        elif key.phase == CLEAN and row is not None:
            self._clean(key, row, keep=self._vertex(key).keep)
        elif key.phase == CLEAN:
            self._finish(key, None)
        else:
            self._make(key, row)

    def _wait_for(self, key: Key, row: Row) -> None:
        """Let an act end: ours, if it was begun before a crash, or one of an earlier traversal."""
        assert row.act is not None
        if self._is_refused(row):
            self._refuse(row, Action.SUSPEND, InvalidState(row, Action.SUSPEND))
        elif row.act.traversal == self.stack.traversal and row.act.phase == key.phase:
            self.running[row.uuid] = key
        else:
            self.blocked[row.uuid] = key
            if row.kind.preemptible and self._is_futile(key, row):
                acts.preempt(self.stack, row)

    def _is_futile(self, key: Key, row: Row) -> bool:
        """Whether what an act of an earlier traversal leads to is of no use to this one."""
        new = self.stack.template.definitions.get(row.name)
        if row.act is None or row.act.word is Action.DELETE:
            return False
        if key.phase == CLEAN or new is None or new.type != row.definition.type:
            return True
        try:
            builder = self._builder(row)
            after = builder.new.properties(row.name, builder.after)
        except errors.Failure:
            return False  # it is told of when the row's turn has come
        if row.kind.always_updated and _files(builder.old) != _files(builder.new):
            return True
        before = row.acting().properties
        changed = values.differences(row.kind.properties_schema, before, after).changed
        same, find_node = row.kind.is_same_thing, builder.present.find_node
        names = [n for n, value in changed.items() if not same(row.record, n, value, find_node)]
        return row.kind.preempted_by(before, after, names)

    def _is_refused(self, row: Row) -> bool:
        """Whether what is at work in a row is of an earlier traversal, for which none waits."""
        old = row.act is not None and row.act.traversal != self.stack.traversal
        return old and self.graph.action is Action.SUSPEND

    def _guard(self, step: Callable[[], None]) -> None:
        """Let whatever goes wrong in a step be a failure of this stack."""
        try:
            step()
        except Exception as exc:  # noqa: BLE001  # kinds and functions may raise anything
            if self.stack.walk is self:
                self.ended(self.stack, exc)

    def _vertex(self, key: Key) -> Vertex:
        return self._extra.get(key) or self.graph.vertices[key]

    def _row(self, key: Key) -> Row | None:
        if key.phase == CLEAN:
            return self.stack.find(self._vertex(key).row, key.name)
        return self.stack.rows.get(key.name)

    def _begun(self, key: Key, row: Row, begin: Callable[[], None]) -> None:
        """Begin an act that serves a vertex."""
        self.running[row.uuid] = key
        begin()

    # -------------------------------------------------------------------------------------- make

    def _make(self, key: Key, row: Row | None) -> None:
        if row is None:
            row = self.stack.new_row(key.name)
            self.stack.add(row)
        elif row.gone and row.record.action is Action.DELETE:
            row = self.stack.succeed(row)  # deleted first, or by the traversal before
        if row.gone:
            self._create(key, row)
        elif not self._pauses(key, row, Action.UPDATE, "pre-update"):
            self._rule(key, row)

    def _rule(self, key: Key, row: Row) -> None:
        builder = self._builder(row)
        builder.records[row.name] = row.record
        try:
            candidate = rules.Candidate(builder, row.name)
            decision = rules.look(candidate, row.resource()) if self.stack.converges else None
            self._follow(key, row, candidate, decision or rules.judge(candidate))
        except errors.Failure as exc:
            failure = exc
            self._begun(key, row, lambda: acts.fail(self.stack, row, Action.UPDATE, failure))

    def _builder(self, row: Row) -> ResolvedBuilder:
        """What a row is compared in: it stands as the template says that it was made by."""
        if row.template_uuid not in self._builders:
            new, _uuid = self.stack.target()
            live = self.stack.current_rows
            find_node = functools.partial(machines.find_node, self.stack.context().machines)
            present = Present(records={}, live=live, below=self._below, find_node=find_node)
            builder = ResolvedBuilder(old=row.definitions, new=new, present=present)
            self._builders[row.template_uuid] = builder
        return self._builders[row.template_uuid]

    def _below(self, name: str) -> Present | None:
        """What exists of the stack that a resource stands for."""
        ident = self.stack.rows[name].record.physical_id
        child = self.stack.stacks.get(ident or "")
        if child is None:
            return None
        return Present(records={name: row.record for name, row in child.current_rows.items()})

    def _follow(
        self, key: Key, row: Row, candidate: rules.Candidate, decision: rules.Decision
    ) -> None:
        word = rules.RESTRICTED.get(decision.verb)
        if word is not None and word in self.stack.template.restricted(row.name):
            self._refuse(row, Action.UPDATE, ResourceActionRestricted(word), tell=True)
        elif decision.verb is Verb.REFUSE:
            feature = f"Update of {row.name} ({decision.reason})"
            exc = errors.NotSupported(feature=feature)
            self._begun(key, row, lambda: acts.fail(self.stack, row, Action.UPDATE, exc))
        elif decision.verb is Verb.REPLACE:
            if row.record.status is not Status.FAILED and candidate.same_kind:
                acts.replace(self.stack, row)
            change = candidate.examined
            self._replace(key, row, change.after if change and candidate.same_kind else {})
        elif decision.verb is Verb.UPDATE or candidate.kind.always_updated:
            self._update(key, row, candidate)
        else:
            self._leave(key, row)

    def _leave(self, key: Key, row: Row) -> None:
        """Finish a row that stays as it is; it is not written, unless something has changed."""
        hooked = any(uuid == row.uuid for uuid, _hook in self.passed)
        if row.record.status is Status.FAILED:
            row.record.status = Status.COMPLETE
            hooked = True
        self._finish(key, row)
        if hooked:
            self.stack.ledger.change_row(row)

    def _refuse(self, row: Row, action: Action, exc: Exception, *, tell: bool = False) -> None:
        """Fail at a resource to which nothing is done."""
        if tell:
            self.stack.tell(row, action, Status.FAILED, str(exc))
        self.ended(self.stack, self._refusal(row, action, exc))

    def _refusal(self, row: Row, action: Action, exc: Exception) -> ResourceFailed:
        masked = self.stack.ledger.redaction.masked
        kind = getattr(exc, "wire_type", None) or type(exc).__name__
        return ResourceFailed(action, Fault(kind, f"resources.{row.name}", masked(str(exc))), exc)

    def _update(self, key: Key, row: Row, candidate: rules.Candidate) -> None:
        change = candidate.change
        self._turn(row)
        self._begun(
            key,
            row,
            lambda: acts.update(
                self.stack,
                row,
                properties=list(change.properties),
                template=list(change.template),
            ),
        )

    def _create(self, key: Key, row: Row) -> None:
        self._turn(row)
        row.record.type = row.definition.type
        if self._pauses(key, row, Action.CREATE, "pre-create"):
            return
        if row.definition.external_id is not None:
            self._begun(key, row, lambda: acts.adopt_external(self.stack, row))
        elif self.stack.action is Action.ADOPT:
            self._begun(key, row, lambda: acts.adopt(self.stack, row))
        else:
            self._begun(key, row, lambda: acts.create(self.stack, row))

    def _replace(self, key: Key, row: Row, after: Mapping[str, Any]) -> None:
        """Create another row; the old one goes later, or first where its kind says so."""
        retained = row.definition.deletion_policy is not DeletionPolicy.DELETE
        if after and not retained and row.kind.deletes_first(row.record.properties, after):
            self._begun(key, row, lambda: acts.delete_first(self.stack, row))
        else:
            self._create(key, self.stack.replace(row))

    def _turn(self, row: Row) -> None:
        """Let a row be of the template of this traversal."""
        row.context = self.stack.context()
        before = () if row.gone else row.requires  # until the act has ended it needs them, too
        row.requires = tuple(dict.fromkeys((*self.stack.required(row.name), *before)))
        row.hidden = row.hidden or self.stack.hides
        row.turn_to(*self.stack.target())

    def _made(self, key: Key, row: Row) -> None:
        action = Action.UPDATE if row.record.action is Action.UPDATE else Action.CREATE
        if not self._pauses(key, row, action, f"post-{action.lower()}"):
            self._finish(key, row)
            self.stack.ledger.change_row(row)

    # ------------------------------------------------------------------------------------- clean

    def _clean(self, key: Key, row: Row, *, keep: bool) -> None:
        if self.stack.rows.get(row.name) is row and row.name in self.stack.template.definitions:
            self._finish(key, None)  # it was to be replaced, and was not
        elif row.gone:
            self._cleaned(key, row)
        elif not self._pauses(key, row, Action.DELETE, "pre-delete"):
            keep = keep or bool(self.graph.extra.get("abandon"))
            self._begun(key, row, lambda: acts.delete(self.stack, row, keep=keep))

    def _cleaned(self, key: Key, row: Row) -> None:
        deleted = row.record.action is Action.DELETE
        if not (deleted and self._pauses(key, row, Action.DELETE, "post-delete")):
            self.stack.drop(row)
            self._finish(key, None)

    # ------------------------------------------------------- suspend, resume, check, snapshot

    def _perform(self, key: Key, row: Row | None) -> None:
        action = self.graph.action
        if row is None:
            self._finish(key, None)
        elif not _allows(row, action):
            self._fail(key, row, self._refusal(row, action, InvalidState(row, action)))
        else:
            self._begun(key, row, lambda: acts.perform(self.stack, row, action))
            if row.act is None and self.running.pop(row.uuid, None) is not None:
                self._finish(key, row)  # its kind has nothing to do

    # ------------------------------------------------------------------------------------- hooks

    def _flag(self, row: Row) -> str | None:
        """The hook at which a row is paused."""
        return next((hook for hook in HOOKS if row.record.data.get(hook) is True), None)

    def _pauses(self, key: Key, row: Row, action: Action, hook: str) -> bool:
        """Stop at a hook, if one stands here and was not cleared before."""
        stack = self.stack
        if (row.uuid, hook) in self.passed or not stack.hooked(row.name, action, hook):
            return False
        stack.tell(row, row.record.action, row.record.status, events.paused(action, hook))
        if not stack.ledger.runtime.waits_for_hooks:
            stack.tell(row, row.record.action, row.record.status, events.cleared(hook))
            return False
        row.record.data[hook] = True
        stack.ledger.change_row(row)
        self.paused[row.uuid] = (key, hook)
        return True

    def unset(self, row: Row, hook: str) -> None:
        """Go on behind a hook that was cleared."""
        key, paused_at = self.paused.get(row.uuid, (None, None))
        if key is None or paused_at != hook:
            return
        del self.paused[row.uuid]
        self.passed.add((row.uuid, hook))
        if hook == "post-delete":
            self._cleaned(key, row)
        elif hook.startswith("post-"):
            self._made(key, row)
        else:
            self.ready.append(key)
        self.advance()


def _files(side: TemplateSide) -> Mapping[str, Any]:
    """Return the files of a template, in which those of stacks below are."""
    return side.definition.template.files if isinstance(side, Stack) else {}


def _allows(row: Row, action: Action) -> bool:
    """Whether the action may begin in the state that a resource is in.

    As in Heat; but what was looked at while it was suspended can be resumed.
    """
    record = row.record
    if action is Action.SUSPEND:
        again = record.action is Action.SUSPEND and record.status is Status.FAILED
        complete = record.status is Status.COMPLETE and not row.gone
        return complete or again
    if action is Action.RESUME:
        suspended = (record.action, record.status) == (Action.SUSPEND, Status.COMPLETE)
        return suspended or record.action in LOOKED_AT
    return action is not Action.CHECK or not row.gone  # what was never made is not as it should be
