"""One action on one resource, step by step: IN_PROGRESS, handler, checks, end.

An act belongs to its row.  It goes on when the walk that began it has failed or was superseded, and
in another process from what is stored of it.  A row becomes IN_PROGRESS, with its values, in one
turn; its handler runs in a later one, so that whatever a handler makes is known to the rows.

Whatever a kind raises becomes ``ResourceFailed``, because kinds are plug-ins.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.engine import events
from bloomery.orchestration.engine.rows import Act, Row, Stage
from bloomery.orchestration.engine.stacks import EngineStack, ResourceFailed
from bloomery.orchestration.plan.plans import CLEAN
from bloomery.orchestration.resources import base, machines, states
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.dialect import DeletionPolicy
from bloomery.outcome import DONE, Again, Done, Hold, Outcome, WaitForCall

JITTER_S: Final = 2.0
BUSY_LEAST_S: Final = 5.0  # until what was busy is asked again, twice as long each time
BUSY_MOST_S: Final = 60.0
HOLD_LOOK_S: Final = 3600.0
CREATES: Final = "creates"  # how many creations have failed
FIRST: Final = "first"  # how the first of them did
RETAIN: Final = "retain"  # what is deleted is kept by the real service
UNWANTED: Final = "unwanted"  # a later order wants something else of the resource
REPLACED: Final = "prepare_for_replace"  # what is deleted makes room for its replacement
MARK: Final = "mark"  # what is another's bears our mark while we use it
BEGAN_AT: Final = "began_at"  # when the act was opened
LEFT: Final = "adopt"  # what an abandoned stack has left of a resource


# ----------------------------------------------------------------------------------------- begin


def create(stack: EngineStack, row: Row) -> None:
    """Create, and again while the real thing is in error or in conflict."""
    _open(stack, row, Act(word=Action.CREATE, traversal=stack.traversal))
    _create(stack, row)


def _create(stack: EngineStack, row: Row) -> None:
    try:
        properties, row.record.metadata = stack.read(row)
        row.resource_with(properties).prepare_create()
        _freeze(stack, row, properties)
    except Exception as exc:  # noqa: BLE001  # whatever a function raises, the resource fails
        _fail_at_once(stack, row, exc)
        return
    row.keep(properties)
    _start(stack, row)


def update(stack: EngineStack, row: Row, *, properties: list[str], template: list[str]) -> None:
    """Update in place; ``properties`` and ``template`` name what has changed."""
    arguments = {"properties": properties, "template": template, "before": row.properties_uuid}
    _open(stack, row, Act(word=Action.UPDATE, traversal=stack.traversal, arguments=arguments))
    try:
        values, _metadata = stack.read(row)
        reason = _reason(stack, row, values, properties)
        _freeze(stack, row, values)
    except Exception as exc:  # noqa: BLE001  # see create
        _fail_at_once(stack, row, exc)
        return
    row.next_properties = values
    _start(stack, row, reason)


def _reason(stack: EngineStack, row: Row, values: Mapping[str, Any], properties: list[str]) -> str:
    """Say of a way back that it does not bring back what was on a disk."""
    if stack.action is not Action.ROLLBACK:
        return events.CHANGED
    effect = row.kind.effect_of_update(row.record.properties, values, properties)
    return effect.reason if effect.loses_data else events.CHANGED


def delete(stack: EngineStack, row: Row, *, keep: bool) -> None:
    """Delete what is there; ``keep`` forgets it, as what never had values.

    A kind that has left its mark on what is kept takes that away (``handle_retain``).
    """
    _open(stack, row, Act(word=Action.DELETE, traversal=stack.traversal, phase=CLEAN))
    _delete(stack, row, keep=keep)


def delete_first(stack: EngineStack, row: Row) -> None:
    """Delete what is to be replaced, in the place of the vertex that makes the replacement."""
    act = Act(word=Action.DELETE, traversal=stack.traversal, arguments={REPLACED: True})
    _open(stack, row, act)
    _delete(stack, row, keep=False)


def _delete(stack: EngineStack, row: Row, *, keep: bool) -> None:
    is_there = row.has_values or row.record.physical_id is not None
    if keep and is_there and hasattr(row.kind, "handle_retain"):
        assert row.act is not None
        row.act.arguments[RETAIN] = True
        _start(stack, row)
    elif keep or not row.has_values:
        _change(stack, row, Action.DELETE, Status.IN_PROGRESS)
        _complete(stack, row)
    else:
        _start(stack, row)


def adopt_external(stack: EngineStack, row: Row) -> None:
    """Take over what is there already, and look at it.

    A kind that leaves marks puts its own on it (``handle_mark``), and changes nothing else.
    """
    act = Act(word=Action.ADOPT, traversal=stack.traversal, arguments={"look": True})
    _open(stack, row, act)
    _change(stack, row, Action.ADOPT, Status.IN_PROGRESS)
    try:
        row.record.physical_id = stack.external_id(row.name)
    except Exception as exc:  # noqa: BLE001  # see create
        _fail(stack, row, exc)
        return
    if hasattr(row.kind, f"handle_{MARK}"):
        act.arguments[MARK] = True
        stack.ledger.next_turn.append(row)
    else:
        _complete(stack, row)


def adopt(stack: EngineStack, row: Row) -> None:
    """Take over what another stack has left behind; its data wait with the row, sealed."""
    arguments = {LEFT: row.record.data.pop(LEFT, {})}
    _open(stack, row, Act(word=Action.ADOPT, traversal=stack.traversal, arguments=arguments))
    row.hidden = True
    _create(stack, row)


def perform(stack: EngineStack, row: Row, word: Action) -> None:
    """Suspend, resume, check or snapshot; a kind without a handler has nothing to do."""
    act = Act(word=word, traversal=stack.traversal)
    if hasattr(row.kind, f"handle_{word.lower()}"):
        _open(stack, row, act)
        _start(stack, row)
    elif word is Action.CHECK:
        reason = events.not_supported(word, row.record.type)
        _change(stack, row, word, Status.COMPLETE, reason)
    else:
        _open(stack, row, act)
        _change(stack, row, word, Status.IN_PROGRESS)
        _complete(stack, row)


def fail(stack: EngineStack, row: Row, action: Action, exc: Exception) -> None:
    """Fail in ``action`` before anything is done."""
    _open(stack, row, Act(word=action, traversal=stack.traversal))
    _fail_at_once(stack, row, exc)


def replace(stack: EngineStack, row: Row) -> None:
    """Tell that an update needs another resource, without having asked the kind."""
    _change(stack, row, Action.UPDATE, Status.IN_PROGRESS)
    _change(stack, row, Action.UPDATE, Status.COMPLETE, events.replacement(row.name))


def _open(stack: EngineStack, row: Row, act: Act) -> None:
    row.act = act
    act.arguments[BEGAN_AT] = stack.ledger.runtime.utc().isoformat()
    if row.state_before is None:
        row.state_before = f"{row.record.action}_{row.record.status}"
    stack.open_rows[row.uuid] = row


def _freeze(stack: EngineStack, row: Row, properties: Mapping[str, Any]) -> None:
    stack.ledger.holdings.hold(row, properties)
    hidden = stack.hides or any(row.kind.secrets_in(properties))
    row.properties_uuid = stack.ledger.add_properties(properties, hidden=hidden)


def _start(stack: EngineStack, row: Row, reason: str = events.CHANGED) -> None:
    """Tell that an act has begun; its handler is called in a later turn."""
    assert row.act is not None
    _change(stack, row, row.act.word, Status.IN_PROGRESS, reason)
    stack.ledger.next_turn.append(row)


def _fail_at_once(stack: EngineStack, row: Row, exc: Exception) -> None:
    assert row.act is not None
    _change(stack, row, row.act.word, Status.IN_PROGRESS)
    _fail(stack, row, exc)


# ------------------------------------------------------------------------------------------ step


def step(stack: EngineStack, row: Row) -> None:
    """Go on with the act of a row that is due."""
    act = row.act
    assert act is not None
    row.due_at = None
    if act.stage is Stage.REST:
        _again(stack, row, act)
        return
    before = row.memory()
    try:
        resource = row.acting()
        if act.stage is Stage.BEGIN:
            act.token = _handle(stack, row, resource, act)
            act.stage = Stage.CHECK
            stack.ledger.change_row(row)
        outcome = _check(stack, row, resource, act)
    except base.UpdateReplace:
        _complete(stack, row, events.replacement(row.name), replace=True)
    except Exception as exc:  # noqa: BLE001  # kinds are plug-ins: it is a failure of theirs
        _fail(stack, row, exc)
    else:
        if isinstance(outcome, Done):
            _complete(stack, row)
            return
        _wait(stack, row, outcome)
        if row.memory() != before:
            stack.ledger.change_row(row)


def _handle(stack: EngineStack, row: Row, resource: base.Resource, act: Act) -> Any:
    resource.enter_action()
    handler = getattr(resource, f"handle_{_verb(act)}", None)
    if act.word is Action.UPDATE:
        return resource.handle_update(row.definition, *_differences(stack, row, act))
    if act.word is Action.ADOPT and LEFT in act.arguments:
        return resource.handle_adopt(act.arguments[LEFT])
    snapshot_delete = getattr(resource, "handle_snapshot_delete", None)
    if _verb(act) == "delete" and snapshot_delete is not None and _snapshots(row):
        return snapshot_delete(row.state_before)
    return handler and handler()


def _verb(act: Act) -> str:
    """The word in the names of the handler and the check of an act."""
    special = (word for word in (RETAIN, REPLACED, MARK) if act.arguments.get(word))
    return next(special, act.word.lower())


def _snapshots(row: Row) -> bool:
    return row.definition.deletion_policy is DeletionPolicy.SNAPSHOT


def _differences(stack: EngineStack, row: Row, act: Act) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make again what has changed: values of parts of the definition, and of properties."""
    values, definition = row.next_properties or {}, row.definition
    template: dict[str, Any] = {}
    for part in act.arguments["template"]:
        if part == "metadata":
            template[part] = stack.metadata(row)
        else:
            template[part] = row.policy if part == "update_policy" else getattr(definition, part)
    return template, {key: values.get(key) for key in act.arguments["properties"]}


def _check(stack: EngineStack, row: Row, resource: base.Resource, act: Act) -> Outcome:
    """Ask the check of an action how far the action is."""
    check = getattr(resource, f"check_{_verb(act)}_complete", None)
    try:
        if act.arguments.get(UNWANTED):
            resource.handle_preempt()
        progress = DONE if check is None else check(act.token)
    except machines.Queued as exc:
        row.queue = str(exc.uuid)
        progress = Again(after_s=stack.ledger.net_s(row.queue), reason=str(exc), source=row.queue)
    except machines.Busy as exc:
        rest_s = min(BUSY_LEAST_S * 2.0 ** min(row.busy, 4), BUSY_MOST_S)
        progress = Again(after_s=rest_s, reason=str(exc), source=exc.uuid or "")
    if isinstance(progress, Done | Again | WaitForCall | Hold):
        return progress
    return DONE if progress else Again(after_s=stack.ledger.runtime.poll_s, reason="")


def _wait(stack: EngineStack, row: Row, outcome: Again | WaitForCall | Hold) -> None:
    """Enter a resource whose action goes on for the next look, and show the reason."""
    ledger = stack.ledger
    source = row.uuid if isinstance(outcome, Hold) else outcome.source
    if source:
        ledger.wait(row, source)
    if isinstance(outcome, Again) and not outcome.after_s:
        ledger.change_row(row)
        ledger.next_turn.append(row)
    elif (rest_s := _rest_s(stack, row, outcome)) < math.inf:
        ledger.schedule(row, ledger.now() + rest_s)
    if not outcome.reason:
        _note_free(stack, row)
        return
    row.busy += 1
    if _explain(stack, row, outcome.reason) and isinstance(outcome, Hold):
        stack.tell(row, row.record.action, row.record.status, row.record.reason)


def _rest_s(stack: EngineStack, row: Row, outcome: Again | WaitForCall | Hold) -> float:
    """Return in how many seconds a resource is looked at, even if nothing calls.

    The stacks and the other resources of a tree call without fail.  What is elsewhere calls by
    events, which may be lost: it is looked at now and then.
    """
    if isinstance(outcome, Again):
        return outcome.after_s
    if isinstance(outcome, Hold):
        return HOLD_LOOK_S
    rest_s, source = outcome.timeout_s or math.inf, outcome.source
    is_inside = source in stack.stacks or _is_sibling(stack, row, source)
    return rest_s if is_inside else min(stack.ledger.net_s(source), rest_s)


def _is_sibling(stack: EngineStack, row: Row, uuid: str) -> bool:
    return uuid != row.uuid and any(each.uuid == uuid for each in stack.rows.values())


def _note_free(stack: EngineStack, row: Row) -> None:
    """Take back the reason why a resource waited; the next one of its queue may go on."""
    _leave_queue(stack, row)
    if row.busy:
        row.busy = 0
        _explain(stack, row, events.CHANGED)


def _leave_queue(stack: EngineStack, row: Row) -> None:
    queue, row.queue = row.queue, None
    if queue is not None:
        stack.ledger.wake(queue)


def _explain(stack: EngineStack, row: Row, reason: str) -> bool:
    """Change the reason of a resource, without an event; False: it is this one already."""
    reason = stack.ledger.redaction.masked(reason)
    if row.record.reason == reason:
        return False
    row.record.reason = reason
    stack.ledger.change_row(row)
    return True


def _again(stack: EngineStack, row: Row, act: Act) -> None:
    """Begin once more what has failed; the rest is over."""
    act.stage, act.token = Stage.BEGIN, None
    if act.word is Action.CREATE and not row.has_values:
        _create(stack, row)
    else:
        _start(stack, row)


# ------------------------------------------------------------------------------------------- end


def _complete(
    stack: EngineStack, row: Row, reason: str = events.CHANGED, *, replace: bool = False
) -> None:
    act = row.act
    assert act is not None
    if act.word is Action.UPDATE and not replace:
        _take_over(stack, row, act)
    elif act.word is Action.UPDATE:
        row.properties_uuid, row.next_properties = act.arguments["before"], None
    elif act.word is Action.DELETE:
        stack.ledger.holdings.release(row)
    if CREATES in act.arguments and act.word is Action.DELETE:
        _change(stack, row, act.word, Status.COMPLETE, reason)
        act.word = Action.CREATE
        _rest(stack, row, act.arguments[CREATES])
        return
    if act.arguments.get("look"):
        _change(stack, row, act.word, Status.COMPLETE, reason)
        _look(stack, row)
        return
    _close(stack, row)
    _change(stack, row, act.word, Status.COMPLETE, reason)
    _end(stack, row, base.UpdateReplace() if replace else None)


def _take_over(stack: EngineStack, row: Row, act: Act) -> None:
    """Let the record have what the update has brought."""
    row.record.type = row.definition.type
    row.requires = tuple(dict.fromkeys(row.definitions.required(row.name)))
    if "metadata" in act.arguments["template"]:
        with contextlib.suppress(errors.Failure):  # a later traversal may have other resources
            row.record.metadata = stack.metadata(row)
    row.keep(row.next_properties or {})
    row.updated_at = stack.ledger.runtime.utc()


def _look(stack: EngineStack, row: Row) -> None:
    """Check what was taken over, if its kind can."""
    act = row.act
    _close(stack, row)
    assert act is not None
    perform(stack, row, Action.CHECK)
    if row.act is None:
        _end(stack, row, None)


def _fail(stack: EngineStack, row: Row, exc: Exception) -> None:
    """Tell that an act has failed; a conflict is tried again, anything else is final."""
    act = row.act
    assert act is not None
    fault = states.fault_of(row.name, exc)
    masked = stack.ledger.redaction.masked
    fault = dataclasses.replace(fault, path=masked(fault.path), message=masked(fault.message))
    if act.word is Action.UPDATE:
        row.properties_uuid, row.next_properties = act.arguments.get("before"), None
    _change(stack, row, act.word, Status.FAILED, str(fault))
    failure = ResourceFailed(act.word, fault, exc)
    retries = stack.ledger.runtime.retries
    if act.word is Action.CREATE and _passing(exc):
        act.arguments.setdefault(FIRST, str(fault))
        failed = act.arguments[CREATES] = act.arguments.get(CREATES, 0) + 1
        if failed <= retries:
            act.word, act.stage, act.token = Action.DELETE, Stage.BEGIN, None
            _delete(stack, row, keep=False)
            return
        failure = ResourceFailed(Action.CREATE, act.arguments[FIRST], exc)
    elif act.word is Action.DELETE and isinstance(exc, errors.Conflict):
        row.attempt += 1
        if row.attempt <= retries:
            _rest(stack, row, row.attempt)
            return
    _close(stack, row)
    _end(stack, row, failure)


def _rest(stack: EngineStack, row: Row, failed: int) -> None:
    """Wait before the next attempt, longer each time."""
    assert row.act is not None
    ledger = stack.ledger
    row.act.stage = Stage.REST
    rest_s = 2.0**failed + ledger.runtime.random() * JITTER_S
    row.due_at = ledger.runtime.utc() + timedelta(seconds=rest_s)
    ledger.schedule(row, ledger.now() + rest_s)
    ledger.change_row(row)


def preempt(stack: EngineStack, row: Row) -> None:
    """Let an act that leads to what nobody wants any more end sooner, if its kind can."""
    assert row.act is not None
    row.act.arguments[UNWANTED] = True
    stack.ledger.change_row(row)
    if row.act.stage is Stage.CHECK:
        stack.ledger.schedule(row, stack.ledger.now())


def abort(stack: EngineStack, row: Row, why: str | None = None) -> None:
    """End an act from outside: its kind is told, and the resource is FAILED.

    ``why`` None: the time of the stack is over.
    """
    act = row.act
    assert act is not None
    if act.stage is Stage.CHECK:
        _cancel(row, act)
    if act.word is Action.UPDATE:
        row.properties_uuid, row.next_properties = act.arguments.get("before"), None
    if act.stage is not Stage.REST:
        reason = events.aborted(act.word, why or f"Task {_described(stack, row, act)} Timed out")
        _close(stack, row)
        _change(stack, row, act.word, Status.FAILED, reason)
    else:
        _close(stack, row)


def _cancel(row: Row, act: Act) -> None:
    """Tell a kind to give up; whatever it raises, the act is over."""
    try:
        cancel = getattr(row.acting(), f"handle_{act.word.lower()}_cancel", None)
        if cancel is not None:
            cancel(act.token)
    except Exception:  # noqa: BLE001  # kinds are plug-ins; the row tells that it was aborted
        return


def _described(stack: EngineStack, row: Row, act: Act) -> str:
    kind = row.kind.__name__
    return f'{act.word.lower()} from {kind} "{row.name}" Stack "{stack.name}" [{stack.id}]'


def _close(stack: EngineStack, row: Row) -> None:
    row.act = row.state_before = row.due_at = None
    row.attempt = row.busy = 0
    stack.open_rows.pop(row.uuid, None)
    stack.ledger.forget(row)
    _leave_queue(stack, row)
    stack.ledger.change_row(row)


def _end(stack: EngineStack, row: Row, failure: Exception | None) -> None:
    if stack.walk is not None:
        stack.walk.act_ended(row, failure)


def _change(
    stack: EngineStack, row: Row, action: Action, status: Status, reason: str = events.CHANGED
) -> None:
    record = row.record
    record.action, record.status, record.reason = action, status, reason
    stack.ledger.change_row(row)
    stack.tell(row, action, status, reason)


def _passing(cause: Exception) -> bool:
    """Whether another attempt may go better."""
    return isinstance(cause, base.ResourceInError | errors.Conflict)
