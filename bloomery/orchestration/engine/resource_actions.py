"""One action on one resource: IN_PROGRESS, handler, checks, end.

An action belongs to its resource.  The action goes on when its traversal has failed or was
superseded, and after a crash another engine continues it from the row.  The row becomes
IN_PROGRESS in one transaction.  The handler runs in a later one, so that each object it makes has
a row already.

Each exception of a kind becomes ``ResourceFailed``, because kinds are plug-ins.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from bloomery import errors
from bloomery.model.stacks import MARKED_UNHEALTHY
from bloomery.orchestration.engine.resource import EngineResource, ResourceAction, Stage
from bloomery.orchestration.engine.stacks import EngineStack, ResourceFailed
from bloomery.orchestration.plan.plans import CLEAN, MAKE
from bloomery.orchestration.resources import base, machines, states
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.resources.machine_orders import ANOTHER, QUARANTINED, REBUILT
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.dialect import DeletionPolicy, Key
from bloomery.orchestration.template.functions import base as functions
from bloomery.outcome import DONE, Again, Done, Hold, Outcome, WaitForCall

JITTER_S: Final = 2.0
BUSY_LEAST_S: Final = 5.0  # until the check after a Busy error; doubled each time
BUSY_MOST_S: Final = 60.0
HOLD_POLL_S: Final = 3600.0
PROPERTY_ERROR: Final = "Property error"

# Keys of the arguments of an action, as they are stored.
CREATES: Final = "creates"  # how many creations have failed
FIRST: Final = "first"  # the failure of the first creation
RETAIN: Final = "retain"  # the real object stays
UNWANTED: Final = "unwanted"  # a later order wants something else of the resource
REPLACED: Final = "prepare_for_replace"  # the deletion makes room for the replacement
RETURN: Final = "return"
MARK: Final = "mark"  # an external resource gets the mark of this stack
LOOK: Final = "look"  # a check follows
BEGAN_AT: Final = "began_at"
ABANDONED: Final = "adopt"  # the data of the abandoned stack


# ----------------------------------------------------------------------------------------- begin


def create(stack: EngineStack, row: EngineResource) -> None:
    """Create a resource; retry after ResourceInError or a conflict."""
    _open(stack, row, Action.CREATE)
    _create(stack, row)


def _create(stack: EngineStack, row: EngineResource) -> None:
    try:
        properties, row.metadata = read_values(stack, row)
        row.resource_with(properties).prepare_create()
        _freeze(stack, row, properties)
    except Exception as exc:  # noqa: BLE001  # a function of a template may raise anything
        _fail_at_once(stack, row, exc)
        return
    row.keep(properties)
    _start(stack, row)


def update(
    stack: EngineStack, row: EngineResource, *, properties: list[str], template: list[str],
    returns: bool = False,
) -> None:  # fmt: skip
    """Update in place; ``properties`` and ``template`` name what has changed.

    ``returns``: a rollback takes back what the failed update did; ``handle_return`` does it, where
    the kind has one.  The event's reason warns if a rollback's update loses the data of a disk.
    """
    arguments: dict[str, Any] = {
        "properties": properties, "template": template, "before": row.properties_uuid,
    }  # fmt: skip
    if returns and hasattr(row.kind, f"handle_{RETURN}"):
        arguments[RETURN] = True
    _open(stack, row, Action.UPDATE, arguments)
    try:
        values, _metadata = read_values(stack, row)
        reason = states.CHANGED
        if stack.action is Action.ROLLBACK:
            effect = row.kind.effect_of_update(row.properties, values, properties)
            reason = effect.reason if effect.loses_data else reason
        _freeze(stack, row, values)
    except Exception as exc:  # noqa: BLE001  # see create
        _fail_at_once(stack, row, exc)
        return
    row.next_properties = values
    _start(stack, row, reason)


def delete(stack: EngineStack, row: EngineResource, *, keep: bool) -> None:
    """Delete a resource; with ``keep`` the real object stays, and ``handle_retain`` unmarks it."""
    _open(stack, row, Action.DELETE, phase=CLEAN)
    is_there = row.has_values or row.physical_id is not None
    if keep and is_there and hasattr(row.kind, "handle_retain"):
        _open_action(row).arguments[RETAIN] = True
        _start(stack, row)
    else:
        _delete(stack, row, keep=keep)


def delete_first(stack: EngineStack, row: EngineResource) -> None:
    """Delete a resource in the vertex that makes its replacement."""
    _open(stack, row, Action.DELETE, {REPLACED: True})
    _delete(stack, row)


def _delete(stack: EngineStack, row: EngineResource, *, keep: bool = False) -> None:
    """Call the handler; a resource that is kept, or never had values, is gone at once."""
    if row.has_values and not keep:
        _start(stack, row)
    else:
        _change(stack, row, Action.DELETE, Status.IN_PROGRESS)
        _complete(stack, row)


def adopt_external(stack: EngineStack, row: EngineResource) -> None:
    """Take an external resource into the stack, and check it.

    The real object does not change, except that ``handle_mark`` may put the stack's mark on it.
    """
    _open(stack, row, Action.ADOPT, {LOOK: True})
    _change(stack, row, Action.ADOPT, Status.IN_PROGRESS)
    try:
        row.physical_id = functions.resolve(row.definition.external_id, stack.view())
    except Exception as exc:  # noqa: BLE001  # see create
        _fail(stack, row, exc)
        return
    if hasattr(row.kind, f"handle_{MARK}"):
        _open_action(row).arguments[MARK] = True
        stack.schedule.due_next.append(row)
    else:
        _complete(stack, row)


def adopt(stack: EngineStack, row: EngineResource) -> None:
    """Adopt a resource of an abandoned stack; its data are in the row, sealed at rest."""
    _open(stack, row, Action.ADOPT, {ABANDONED: row.data.pop(ABANDONED, {})})
    row.has_secret = True
    _create(stack, row)


def perform(stack: EngineStack, row: EngineResource, action: Action) -> None:
    """Suspend, resume, check or snapshot; a kind without a handler has nothing to do."""
    has_handler = hasattr(row.kind, f"handle_{action.lower()}")
    if action is Action.CHECK and not has_handler:
        reason = f"{action} not supported for {row.type}"
        _change(stack, row, action, Status.COMPLETE, reason)
        return
    _open(stack, row, action)
    if has_handler:
        _start(stack, row)
    else:
        _change(stack, row, action, Status.IN_PROGRESS)
        _complete(stack, row)


def fail(stack: EngineStack, row: EngineResource, action: Action, exc: Exception) -> None:
    """Fail in ``action`` without calling the kind."""
    _open(stack, row, action)
    _fail_at_once(stack, row, exc)


def replace(stack: EngineStack, row: EngineResource) -> None:
    """Emit the events of an update that requires replacement, without calling the kind."""
    _change(stack, row, Action.UPDATE, Status.IN_PROGRESS)
    _change(stack, row, Action.UPDATE, Status.COMPLETE, states.replacement(row.name))


def _open(
    stack: EngineStack,
    row: EngineResource,
    action: Action,
    arguments: Mapping[str, Any] | None = None,
    *,
    phase: str = MAKE,
) -> None:
    began_at = stack.runtime.utc().isoformat()
    row.data.pop(MARKED_UNHEALTHY, None)
    if action is not Action.DELETE:  # the machine stays
        for key in (ANOTHER, QUARANTINED):
            row.data.pop(key, None)
    row.pending_action = ResourceAction(
        action=action,
        traversal=stack.row.traversal,
        phase=phase,
        arguments={**(arguments or {}), BEGAN_AT: began_at},
    )
    if row.state_before is None:
        row.state_before = row.state
    stack.open_rows[row.uuid] = row


def read_values(
    stack: EngineStack, row: EngineResource
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the resolved properties and metadata of a resource; store its update policy."""
    kind, definition, view = row.kind, row.definition, stack.view()
    metadata = functions.resolve(definition.metadata, view)
    if kind.ignores_properties:
        return {}, metadata

    def checked(key: Key, schemas: Mapping[str, Any], tree: Any) -> dict[str, Any]:
        try:
            reading = stack.definition.reading(row.name, schemas, tree, view)
            return reading.resolved(check=True)
        except errors.Misplaced as exc:
            path = stack.definition.path(row.name, key)
            raise exc.under(*path, error=PROPERTY_ERROR) from exc

    properties = checked(Key.PROPERTIES, kind.properties_schema, definition.properties)
    if kind.update_policy_schema:
        row.policy = checked(Key.UPDATE_POLICY, kind.update_policy_schema, definition.update_policy)
    try:  # the kind may not have known these values at validation
        row.resource_with(properties).check_properties()
    except errors.Misplaced as exc:
        raise exc.under(*stack.definition.path(row.name, Key.PROPERTIES)) from exc
    return properties, metadata


def _open_action(row: EngineResource) -> ResourceAction:
    assert row.pending_action is not None
    return row.pending_action


def _freeze(stack: EngineStack, row: EngineResource, properties: Mapping[str, Any]) -> None:
    stack.changes.stored_size.add(row, properties)
    has_secret = stack.hides or any(row.kind.secrets_in(properties))
    row.properties_uuid = stack.changes.add_properties(properties, has_secret=has_secret)


def _start(stack: EngineStack, row: EngineResource, reason: str = states.CHANGED) -> None:
    """Emit the beginning of an action; a later transaction calls the handler."""
    _change(stack, row, _open_action(row).action, Status.IN_PROGRESS, reason)
    stack.schedule.due_next.append(row)


def _fail_at_once(stack: EngineStack, row: EngineResource, exc: Exception) -> None:
    _change(stack, row, _open_action(row).action, Status.IN_PROGRESS)
    _fail(stack, row, exc)


# ------------------------------------------------------------------------------------------ step


def step(stack: EngineStack, row: EngineResource) -> None:
    """Continue the action of a resource that is due."""
    pending = _open_action(row)
    row.due_at = None
    if pending.stage is Stage.BACKOFF:  # the next attempt begins
        pending.stage, pending.token = Stage.BEGIN, None
        if pending.action is Action.CREATE and not row.has_values:
            _create(stack, row)
        else:
            _start(stack, row)
        return
    before = row.memory()
    try:
        resource = row.acting()
        if pending.stage is Stage.BEGIN:
            pending.token = _handle(stack, row, resource, pending)
            pending.stage = Stage.CHECK
            stack.changes.change_row(row)
        outcome = _check(stack, row, resource, pending)
    except base.UpdateReplace:
        _complete(stack, row, states.replacement(row.name), replace=True)
    except Exception as exc:  # noqa: BLE001  # kinds are plug-ins, and may raise anything
        _fail(stack, row, exc)
    else:
        if isinstance(outcome, Done):
            _complete(stack, row, effect=_effect_of(row, pending))
            return
        _wait(stack, row, outcome)
        if row.memory() != before:
            stack.changes.change_row(row)


def _handle(
    stack: EngineStack, row: EngineResource, resource: base.Resource, pending: ResourceAction
) -> Any:
    """Call handle_create, handle_update, handle_delete, … and return its token."""
    resource.enter_action()
    handler = getattr(resource, f"handle_{_verb(pending)}", None)
    if pending.action is Action.UPDATE and _verb(pending) != RETURN:
        new = row.next_properties or {}
        template: dict[str, Any] = {}
        for part in pending.arguments["template"]:
            if part == "metadata":
                template[part] = functions.resolve(row.definition.metadata, stack.view())
            elif part == "update_policy":
                template[part] = row.policy
            else:
                template[part] = getattr(row.definition, part)
        properties = {key: new.get(key) for key in pending.arguments["properties"]}
        return resource.handle_update(row.definition, template, properties)
    if pending.action is Action.ADOPT and ABANDONED in pending.arguments:
        return resource.handle_adopt(pending.arguments[ABANDONED])
    if _verb(pending) == "delete" and row.definition.deletion_policy is DeletionPolicy.SNAPSHOT:
        snapshot_delete = getattr(resource, "handle_snapshot_delete", None)
        if snapshot_delete is not None:
            return snapshot_delete(row.state_before)
    return handler and handler()


def _verb(pending: ResourceAction) -> str:
    """Return the verb in the names of the handler and of the check."""
    special = (verb for verb in (RETAIN, REPLACED, MARK, RETURN) if pending.arguments.get(verb))
    return next(special, pending.action.lower())


def _check(
    stack: EngineStack, row: EngineResource, resource: base.Resource, pending: ResourceAction
) -> Outcome:
    """Call the check of an action; return its outcome."""
    check = getattr(resource, f"check_{_verb(pending)}_complete", None)
    try:
        if pending.arguments.get(UNWANTED):
            resource.handle_preempt()
        progress = DONE if check is None else check(pending.token)
    except machines.Queued as exc:
        row.queue = str(exc.uuid)
        progress = Again(
            after_s=stack.schedule.poll_after_s(row.queue), reason=str(exc), source=row.queue
        )
    except machines.Busy as exc:
        rest_s = min(BUSY_LEAST_S * 2.0 ** min(row.busy, 4), BUSY_MOST_S)
        progress = Again(after_s=rest_s, reason=str(exc), source=exc.uuid or "")
    if isinstance(progress, Outcome):
        return progress
    return DONE if progress else Again(after_s=stack.runtime.poll_s, reason="")


def _wait(stack: EngineStack, row: EngineResource, outcome: Again | WaitForCall | Hold) -> None:
    """Schedule the next check of an action that is not done, and show the reason.

    Stacks of the tree and resources of the same stack wake the check for certain.  Events of other
    objects may be lost, so that these objects are polled.
    """
    changes, schedule = stack.changes, stack.schedule
    source = row.uuid if isinstance(outcome, Hold) else outcome.source
    if source:
        schedule.wait(row, source)
    if isinstance(outcome, Again):
        rest_s = outcome.after_s
    elif isinstance(outcome, Hold):
        rest_s = HOLD_POLL_S
    else:
        rest_s = outcome.timeout_s or math.inf
        is_sibling = source != row.uuid and any(each.uuid == source for each in stack.rows.values())
        if source not in stack.stacks and not is_sibling:
            rest_s = min(schedule.poll_after_s(source), rest_s)
    if not rest_s and isinstance(outcome, Again):
        changes.change_row(row)
        schedule.due_next.append(row)
    elif rest_s < math.inf:
        schedule.step_at(row, schedule.now() + rest_s)
    if not outcome.reason:
        _leave_queue(stack, row)
        if row.busy:
            row.busy = 0
            _explain(stack, row, states.CHANGED)
        return
    row.busy += 1
    emits = isinstance(outcome, Hold) or (isinstance(outcome, Again) and outcome.emits)
    if _explain(stack, row, outcome.reason) and emits:
        stack.emit_event(row, row.action, row.status, row.reason)


def _leave_queue(stack: EngineStack, row: EngineResource) -> None:
    """Wake the next resource of the queue in which a resource waited."""
    queue, row.queue = row.queue, None
    if queue is not None:
        stack.schedule.wake(queue)


def _explain(stack: EngineStack, row: EngineResource, reason: str) -> bool:
    """Change the reason of a resource without an event; return whether it has changed."""
    reason = stack.changes.redaction.masked(reason)
    if row.reason == reason:
        return False
    row.reason = reason
    stack.changes.change_row(row)
    return True


# ------------------------------------------------------------------------------------------- end


def _effect_of(row: EngineResource, pending: ResourceAction) -> Effect:
    """Return what an action that has ended has done to the machine of a resource."""
    verb, effect = _verb(pending), NO_EFFECT
    with contextlib.suppress(Exception):  # kinds are plug-ins; a revision then counts no effect
        if verb == "update":
            names = pending.arguments["properties"]
            if row.data.get(REBUILT):
                return row.kind.effect_of_repair(row.properties)
            effect = row.kind.effect_of_update(row.properties, row.next_properties or {}, names)
        elif verb in ("delete", REPLACED) and row.physical_id is not None:
            effect = row.kind.effect_of_delete(row.properties)
    return effect


def _complete(
    stack: EngineStack,
    row: EngineResource,
    reason: str = states.CHANGED,
    *,
    replace: bool = False,
    effect: Effect = NO_EFFECT,
) -> None:
    pending = _open_action(row)
    if pending.action is Action.UPDATE and not replace:
        row.type = row.definition.type
        row.requires = tuple(row.definitions.required(row.name))
        if "metadata" in pending.arguments["template"]:
            with contextlib.suppress(errors.Failure):  # a later traversal may have other resources
                row.metadata = functions.resolve(row.definition.metadata, stack.view())
        row.keep(row.next_properties or {})
        row.updated_at = stack.runtime.utc()
    elif pending.action is Action.UPDATE:
        row.properties_uuid, row.next_properties = pending.arguments["before"], None
    elif pending.action is Action.DELETE:
        stack.changes.stored_size.remove(row)
    if CREATES in pending.arguments and pending.action is Action.DELETE:
        _change(stack, row, pending.action, Status.COMPLETE, reason, effect)
        pending.action = Action.CREATE
        _back_off(stack, row, pending.arguments[CREATES])
        return
    if pending.arguments.get(LOOK):  # an external resource is checked, if its kind has a check
        _change(stack, row, pending.action, Status.COMPLETE, reason)
        _close(stack, row)
        perform(stack, row, Action.CHECK)
        if row.pending_action is None:
            _end(stack, row, None)
        return
    _close(stack, row)
    _change(stack, row, pending.action, Status.COMPLETE, reason, effect)
    _end(stack, row, base.UpdateReplace() if replace else None)


def _fail(stack: EngineStack, row: EngineResource, exc: Exception) -> None:
    """Emit the failure of an action; retry a creation or a deletion that may yet succeed."""
    pending = _open_action(row)
    fault = states.fault_of(row.name, exc)
    masked = stack.changes.redaction.masked
    fault = dataclasses.replace(fault, path=masked(fault.path), message=masked(fault.message))
    if pending.action is Action.UPDATE:
        row.properties_uuid, row.next_properties = pending.arguments.get("before"), None
    _change(stack, row, pending.action, Status.FAILED, str(fault))
    failure = ResourceFailed(pending.action, fault, exc)
    retries = stack.runtime.retries
    if pending.action is Action.CREATE and isinstance(exc, base.ResourceInError | errors.Conflict):
        pending.arguments.setdefault(FIRST, str(fault))
        failed = pending.arguments[CREATES] = pending.arguments.get(CREATES, 0) + 1
        if failed <= retries:
            pending.action, pending.stage, pending.token = Action.DELETE, Stage.BEGIN, None
            _delete(stack, row, keep=False)
            return
        failure = ResourceFailed(Action.CREATE, pending.arguments[FIRST], exc)
    elif pending.action is Action.DELETE and isinstance(exc, errors.Conflict):
        row.attempt += 1
        if row.attempt <= retries:
            _back_off(stack, row, row.attempt)
            return
    _close(stack, row)
    _end(stack, row, failure)


def _back_off(stack: EngineStack, row: EngineResource, failed: int) -> None:
    """Wait before the next attempt, longer each time."""
    changes, schedule, runtime = stack.changes, stack.schedule, stack.runtime
    _open_action(row).stage = Stage.BACKOFF
    rest_s = 2.0**failed + runtime.random() * JITTER_S
    row.due_at = runtime.utc() + timedelta(seconds=rest_s)
    schedule.step_at(row, schedule.now() + rest_s)
    changes.change_row(row)


def preempt(stack: EngineStack, row: EngineResource) -> None:
    """Ask the kind to end an action early, because a later order wants something else.

    The kind is asked before any other step, so that a child stack begins nothing more.
    """
    pending = _open_action(row)
    pending.arguments[UNWANTED] = True
    stack.changes.change_row(row)
    if pending.stage is Stage.CHECK:
        stack.schedule.step_at(row, -math.inf)


def end_pauses(stack: EngineStack, row: EngineResource) -> None:
    """Preempt an action that waits for a user's signal, also in the child stacks of the row."""
    if row.pending_action is not None and row.kind.is_held(row.data):
        preempt(stack, row)
    child = stack.stacks.get(str(row.physical_id))
    if child is not None:
        for each in list(child.open_rows.values()):
            end_pauses(child, each)


def abort(stack: EngineStack, row: EngineResource, why: str | None = None) -> None:
    """Abort an action: call the kind's cancel handler, and set the resource to FAILED.

    ``why`` None: the stack has timed out, and the reason of the wait is kept.
    """
    pending = _open_action(row)
    if pending.stage is Stage.CHECK:
        with contextlib.suppress(Exception):  # the action ends even if the handler raises
            cancel = getattr(row.acting(), f"handle_{pending.action.lower()}_cancel", None)
            if cancel is not None:
                cancel(pending.token)
    if pending.action is Action.UPDATE:
        row.properties_uuid, row.next_properties = pending.arguments.get("before"), None
    if pending.stage is not Stage.BACKOFF:
        task = f'{pending.action.lower()} from {row.kind.__name__} "{row.name}"'
        waited = "" if why or row.reason == states.CHANGED else f": {row.reason}"
        why = why or f'Task {task} Stack "{stack.name}" [{stack.id}] Timed out'
        reason = f"{pending.action} aborted ({why}){waited}"
        _close(stack, row)
        _change(stack, row, pending.action, Status.FAILED, reason)
    else:
        _close(stack, row)


def _close(stack: EngineStack, row: EngineResource) -> None:
    row.pending_action = row.state_before = row.due_at = None
    row.data.pop(REBUILT, None)
    row.attempt = row.busy = 0
    stack.open_rows.pop(row.uuid, None)
    stack.schedule.forget(row)
    _leave_queue(stack, row)
    stack.changes.change_row(row)


def _end(stack: EngineStack, row: EngineResource, failure: Exception | None) -> None:
    if stack.open_traversal is not None:
        stack.open_traversal.action_ended(row, failure)


def _change(
    stack: EngineStack,
    row: EngineResource,
    action: Action,
    status: Status,
    reason: str = states.CHANGED,
    effect: Effect = NO_EFFECT,
) -> None:
    row.action, row.status, row.reason = action, status, reason
    stack.changes.change_row(row)
    stack.emit_event(row, action, status, reason, effect)
