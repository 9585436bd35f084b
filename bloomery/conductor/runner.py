"""The engine of steps: runs a flow, calls the interfaces, records results, and fires the event.

A flow is a list of step runs of one phase (verify, deploy, clean, ...).  The transaction that
starts the flow writes its rows.  One transaction ends a step and starts the next; the last step
ends in the transition that ends the flow.  So the rows always say where a flow stood at a crash.

    flow = runner.plan(task, deployments.DEPLOY, deployments.deploy_steps(task, arguments))
    task.process_event("deploy", callback=runner.launch, call_args=(slot, flow),
                       journal=flow.opening)

A flow has a thread only while a step runs.  Between an ``Again`` and its next attempt there is a
due time and no thread; in a wait state there is no lock either.

A silent BMC fails no resumable step at once: the attempt is repeated within the outage budget,
which begins with the first silence.  The step's row holds the end of the budget, so that a
successor grants no new one.  After an answer of the BMC a new silence has a new budget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from bloomery import clock, errors, secrets
from bloomery.conductor import failure_logs, notification_utils, states, steps, writes
from bloomery.conductor.phase import FlowFailure, Phase, Transition
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import DeferredWrite, EncodedWrite, Write
from bloomery.db import rows
from bloomery.db import steps as step_rows
from bloomery.metrics import METRICS
from bloomery.model.request import IN_LOG, Request
from bloomery.model.rules import agents
from bloomery.model.step import ABORTED, Run, Step, StepRun, internal_step
from bloomery.outcome import DONE, Again, Done, Hold, Outcome, WaitForCall

LOG = logging.getLogger(__name__)

_NO_WORKER_RETRY_S: Final = 0.5
_OUTAGE_PAUSES_S: Final = (1.0, 15.0)  # least and most between two tries of a silent BMC
_NOTHING: Final = internal_step("deploy", "nothing")
_STEP_EVENTS: Final = {Run.RUNNING: "start", Run.DONE: "end", Run.FAILED: "error"}
_PARKING: Final[dict[type, str]] = {WaitForCall: "wait", Hold: "hold"}
_CLEAN_FAMILY: Final = (State.CLEANING, State.CLEANWAIT, State.CLEANHOLD)


@dataclass(slots=True)
class Flow:
    """The in-memory position in a flow; its rows are authoritative."""

    task: TaskManager
    phase: Phase
    id: str
    runs: list[StepRun]
    at: int = 0
    future: Future[None] = field(default_factory=Future)
    result: dict[str, Any] = field(default_factory=dict)
    result_writes: list[EncodedWrite] = field(default_factory=list)

    @property
    def current(self) -> StepRun | None:
        return self.runs[self.at] if self.at < len(self.runs) else None

    @property
    def open_run(self) -> StepRun:
        """The current step of a flow that has not ended."""
        return self.runs[self.at]

    @property
    def opening(self) -> list[Write]:
        """The writes of all its rows, the first step running."""
        first = partial(step_rows.insert, encoded=step_rows.encode(self.runs))
        return [first, *self._event(self.runs[0]), *_history(self, "start")]

    @property
    def cancelled(self) -> EncodedWrite:
        """The write that ends the flow before its first step ran."""
        return lambda conn: step_rows.cancel(conn, self.id)

    def mark(self, run: StepRun, state: Run, **values: Any) -> EncodedWrite:
        """Return the write that puts one of its rows into ``state``, with the step's event."""
        run.state = state
        moves = values.keys() & {"started_at", "finished_at"}
        events = self._event(run) if moves else []

        def write(conn: sa.Connection) -> None:
            step_rows.change(conn, self.id, run.position, {"state": state} | values)
            for event in events:
                event(conn)

        return write

    def _event(self, run: StepRun) -> list[EncodedWrite]:
        """Return the event of a step that begins or ends; none for steps hidden from clients."""
        if run.step.internal:
            return []
        context, node, status = self.task.context, self.task.node, _STEP_EVENTS[Run(run.state)]
        return [notification_utils.emit_step(context, node, run, status, len(self.runs))]


def plan(task: TaskManager, phase: Phase, planned: Sequence[Step]) -> Flow:
    """Return a flow over ``planned`` at its first step; nothing is written yet."""
    flow_id = rows.ordered_uuid()
    listed = planned or [_NOTHING]  # a flow without a row would be lost with its conductor
    runs = [
        StepRun(
            flow=flow_id, node_uuid=task.node.uuid, phase=phase.name, position=at, step=step,
            conductor=task.runtime.host, lock_generation=task.node.lock_generation,
            request_id=task.context.request.request_id,
        )
        for at, step in enumerate(listed)
    ]  # fmt: skip
    flow = Flow(task, phase, flow_id, runs)
    if phase.shows:
        documents = [run.step.shown() for run in runs if not run.step.internal]
        task.node.driver_internal_info[f"{phase.name}_steps"] = documents
    runs[0].state, runs[0].started_at = Run.RUNNING, rows.now()
    _show(flow)
    return flow


def start(
    task: TaskManager,
    slot: Slot,
    phase: Phase,
    step: Step,
    *journal: Write,
    first: Sequence[Write] = (),
    before: Sequence[Step] = (),
    undo: Callable[[Exception, Flow], None] | None = None,
) -> None:
    """Begin a flow of one step that keeps the provision state.

    The error of an earlier order goes, unless it explains the state; the history has it.
    ``first``: writes before those of the flow's rows.  ``before``: steps on other nodes that must
    be done first.  ``undo`` is called if no worker starts; by default the failure is written as the
    phase's ``fail`` does.
    """
    flow = plan(task, phase, [*before, step])
    if task.node.provision_state not in states.STATES_OF_ERRORS:
        task.node.last_error = None
    task.save(*first, *flow.opening, *journal)
    task.set_spawn_error_hook(undo or _fail_unstarted, flow)
    task.spawn_after(launch, slot, flow)


def _fail_unstarted(exc: Exception, flow: Flow) -> None:
    failure = FlowFailure(run=flow.runs[-1], sentence=secrets.brief(exc), result={})
    flow.task.save(flow.cancelled, *flow.phase.fail(flow.task, failure).writes)


def load(task: TaskManager, phase: Phase, runs: list[StepRun]) -> Flow:
    """Return the flow of these rows, at its first unfinished step."""
    ended = (Run.DONE, Run.FAILED, Run.SKIPPED)
    at = next((i for i, run in enumerate(runs) if run.state not in ended), len(runs))
    return Flow(task, phase, runs[0].flow, runs, at)


def resume(
    task: TaskManager, slot: Slot, event: str, flow: Flow, args: Mapping[str, Any] | None = None
) -> None:
    """Leave the wait state by ``event`` and continue: the same step again, or the next one.

    Called for an agent or an operator; the flow takes over the lock.  ``args``: new arguments of
    the same step.
    """
    run = flow.open_run
    values: dict[str, Any] = {"deadline_at": None, "conductor": task.runtime.host}
    if args is not None:
        run.step = replace(run.step, args=dict(args))
        values["args"] = rows.dump(run.step.args)
    again = run.state == Run.WAITING and run.resume_then == "same"
    ends_here = not again and _was_aborted(flow, run)
    if again:
        task.turn = 1
    run.deadline_at = None  # that of the wait
    if again or ends_here:
        journal = [flow.mark(run, Run.RUNNING, **values)]
    else:
        now = rows.now()
        journal = [flow.mark(run, Run.DONE, finished_at=now)]
        flow.at += 1
        if flow.current is not None:
            journal.append(_begun(flow, flow.current, now))
        _show(flow)
    task.process_event(
        event,
        callback=launch_failure if ends_here else launch,
        call_args=(slot, flow, _aborted(flow, run), True) if ends_here else (slot, flow),
        target_state=kept_target(task),
        journal=journal,
    )


def kept_target(task: TaskManager) -> str | None:
    """Return the target state of manual cleaning, which stays manageable throughout; else None."""
    is_manual = task.node.target_provision_state == State.MANAGEABLE
    return State.MANAGEABLE if is_manual and task.node.provision_state in _CLEAN_FAMILY else None


def launch(slot: Slot, flow: Flow) -> Future[None]:
    """Run the flow in the reserved worker; the future ends when the flow ends or parks."""
    with slot:
        slot.spawn(run, flow)
    return flow.future


def run(flow: Flow) -> None:
    """Run steps until the flow ends or waits; the supervisor of its thread."""
    _name_in_log(flow)
    try:
        current = flow.current
        if flow.task.turn or (current is not None and current.state == Run.AGAIN):
            flow.task.require_held()  # the lock may have been lost during the pause
            if awaits_successor(flow):
                _hand_over(flow, flow.open_run)
                return
        _run_steps(flow)
    except errors.LockLost as lost:
        LOG.warning("node %s: %s: %s", flow.task.node_id, flow.phase.name, lost)
        flow.future.set_result(None)
    except BaseException as exc:  # noqa: BLE001  a supervisor: the future carries it on
        flow.future.set_exception(exc)


def _name_in_log(flow: Flow) -> None:
    """Log under the request that started the flow."""
    request = flow.task.context.request
    first = flow.runs[0].request_id if flow.runs else None
    IN_LOG.set(request if first in (None, request.request_id) else Request(request_id=first))


def _run_steps(flow: Flow) -> None:
    task, phase = flow.task, flow.phase
    while (run := flow.current) is not None:
        try:
            with METRICS.timer(f"step:{phase.name}:{run.step.interface}"):
                outcome = _execute(flow, run)
        except (errors.LockLost, errors.DatabaseBusy):
            raise
        except Exception as exc:  # noqa: BLE001  whatever a driver raises fails its step
            if _postpone(flow, run, exc):
                return
            if not isinstance(exc, errors.Failure):
                name, trace = run.step.name, secrets.trace(exc)
                LOG.log(logging.ERROR, "node %s: step %s broke\n%s", task.node.uuid, name, trace)
            sentence = _sentence(flow, run, exc)
            if not phase.tolerant or run.step.internal:
                _fail(flow, run, sentence, may_pass=getattr(exc, "may_pass", False))
                return
            # Both are written with the start of the next step, or the end of the flow.
            failed = flow.mark(run, Run.FAILED, finished_at=rows.now(), error=sentence)
            flow.result_writes += [failed, writes.history_entry(
                task.context, task.node, sentence, event_type=phase.name, failed=True
            )]  # fmt: skip
            outcome = DONE
        if not isinstance(outcome, Done):
            _park(flow, run, outcome)
            return
        if _was_aborted(flow, run):
            _fail(flow, run, _aborted(flow, run), aborted=True)
            return
        task.log("%s step %s ends", phase.name, run.step.name)
        flow.result |= outcome.result
        flow.result_writes += steps.store_result(task, outcome.result)
        if flow.at + 1 == len(flow.runs):
            break
        # One transaction ends the step and starts the next.
        now = rows.now()
        closing = [] if run.state == Run.FAILED else [flow.mark(run, Run.DONE, finished_at=now)]
        closing += _take_result_writes(flow)
        flow.at, task.turn = flow.at + 1, 0
        _show(flow)
        if task.runtime.has_successor(task.node):
            _hand_over(flow, flow.open_run, closing)
            return
        task.save(*closing, _begun(flow, flow.open_run, now))
    _finish(flow)


def _execute(flow: Flow, run: StepRun) -> Outcome:
    """Run one attempt; hardware reads are cached during it."""
    task, step = flow.task, run.step
    task.reads = {}
    if not task.turn:
        task.log("%s step %s begins", flow.phase.name, step.name)
    try:
        if step == _NOTHING:
            return DONE
        if step.internal and step.child is None:
            return flow.phase.own_steps[step.step](task, **step.args) or DONE
        opened = replace(step, args=task.runtime.sealer.open(step.args)) if step.args else step
        if step.argsinfo is not None:  # servicing checks arguments only here
            steps.check_args(opened, opened.args)
        if step.child is not None:
            return steps.run_on_child(task, opened)
        if step.step in steps.RESERVED:
            return steps.RESERVED[step.step](task, **opened.args)
        return task.driver.interface(step.interface).run_step(task, opened)
    finally:
        task.reads, task.insists = None, False


def _begun(flow: Flow, run: StepRun, now: datetime) -> EncodedWrite:
    return flow.mark(run, Run.RUNNING, started_at=now, conductor=flow.task.runtime.host)


def _take_result_writes(flow: Flow) -> list[EncodedWrite]:
    taken, flow.result_writes = flow.result_writes, []
    return taken


def _was_aborted(flow: Flow, run: StepRun) -> bool:
    document = getattr(flow.task.node, flow.phase.shows) if flow.phase.shows else {}
    return not run.step.internal and bool(document.get("abort_after"))


def _aborted(flow: Flow, run: StepRun) -> str:
    return f"{ABORTED} after step {run.step.name}"


def _show(flow: Flow) -> None:
    """Write the current step into the node's fields for clients; the runner never reads them."""
    run, phase, node = flow.current, flow.phase, flow.task.node
    if phase.shows is None or run is None or run.step.internal:
        return
    setattr(node, phase.shows, run.step.shown())
    own_before = sum(1 for other in flow.runs[: flow.at] if other.step.internal)
    node.driver_internal_info[f"{phase.name}_step_index"] = flow.at - own_before


def _finish(flow: Flow) -> None:
    """End a flow after its last step, or begin the flow that follows."""
    run = flow.runs[-1] if flow.runs else None
    closing = []
    if run is not None and run.state != Run.FAILED:
        closing = [flow.mark(run, Run.DONE, finished_at=rows.now())]
    history = writes.encoded(_history(flow, "end"))  # before its fields are cleared
    clear_step_fields(flow)
    transition = flow.phase.finish(flow.task, flow.result)
    _end(flow, transition, [*closing, *_take_result_writes(flow), *history])


def _history(flow: Flow, end: str) -> list[DeferredWrite]:
    """Return the history entry of the "start" or the "end" of a flow, where it is recorded."""
    task, name_of = flow.task, flow.phase.history_name
    if name_of is None or not task.runtime.conf.conductor.record_step_flows_in_history:
        return []
    steps_run = [run.step for run in flow.runs if not run.step.internal]
    if not steps_run:
        return []
    names = ", ".join(
        step.name + (f" {rows.dump(secrets.mask(step.args))}" if step.args else "")
        for step in steps_run
    )

    def encode() -> EncodedWrite:
        name = name_of(task.node)
        title = name.replace("_", " ")
        text = {
            "start": f"Starting {title} with the steps {names}",
            "end": f"{title.title()} completed successfully with the steps {names}",
        }[end]
        if task.runtime.conf.conductor.log_step_flows_to_syslog:
            LOG.info("node %s: %s", task.node.uuid, text)
        return writes.history_entry(task.context, task.node, text, event_type=f"{name}_{end}")

    return [DeferredWrite(encode)]


def _fail(
    flow: Flow, run: StepRun, sentence: str, *, aborted: bool = False, may_pass: bool = False
) -> None:
    flow.task.log("%s: %s", flow.phase.name, sentence, level=logging.ERROR)
    clear_step_fields(flow)
    failure = FlowFailure(
        run=run, sentence=sentence, result=flow.result, aborted=aborted,
        may_pass=may_pass and all(begun.step.resumable for begun in flow.runs[: flow.at + 1]),
    )  # fmt: skip
    transition = flow.phase.fail(flow.task, failure)
    failed = flow.mark(run, Run.FAILED, finished_at=rows.now(), error=sentence)
    closing = [failed, lambda conn: step_rows.skip_rest(conn, flow.id)]
    # A verification fails by its check of the BMC: then the BMC's log cannot be read either.
    has_failed = not aborted and run.step.child is None and not flow.phase.tolerant
    _end(flow, transition, closing, has_failed=has_failed)


def launch_failure(
    slot: Slot, flow: Flow, sentence: str, aborted: bool = False, may_pass: bool = False
) -> Future[None]:
    """Fail a flow in the reserved worker; ``aborted``, ``may_pass``: see FlowFailure."""
    slot.spawn(fail_now, flow, sentence, aborted, may_pass)
    return flow.future


def fail_now(flow: Flow, sentence: str, aborted: bool = False, may_pass: bool = False) -> None:
    """Fail a flow (interrupted, timed out) at its current step."""
    run = flow.open_run
    _name_in_log(flow)
    try:
        _fail(flow, run, sentence, aborted=aborted, may_pass=may_pass)
    except errors.LockLost as lost:
        LOG.warning("node %s: %s: %s", flow.task.node_id, flow.phase.name, lost)
        flow.future.set_result(None)
    except BaseException as exc:  # noqa: BLE001  a supervisor: the future carries it on
        flow.future.set_exception(exc)


def _end(
    flow: Flow, transition: Transition, closing: Sequence[Write], *, has_failed: bool = False
) -> None:
    """End a flow in one transaction, and begin the flow that follows.

    ``has_failed``: the BMC's log may say why.
    """
    task = flow.task
    following = None if transition.then is None else plan(task, *transition.then)
    journal = [*closing, *transition.writes, *(following.opening if following else ())]
    release = following is None
    if transition.event is None:
        task.save(*journal, release=release)
    else:
        task.process_event(
            transition.event, target_state=transition.target_state,
            last_error=transition.last_error, journal=journal, release=release,
        )  # fmt: skip
    if has_failed:
        failure_logs.read_soon(task, flow.runs[0].started_at or rows.now())
    if following is None:
        flow.future.set_result(None)
        return
    flow.phase, flow.id, flow.runs, flow.at = following.phase, following.id, following.runs, 0
    flow.result = {}
    task.turn = 0
    _run_steps(flow)


def clear_step_fields(flow: Flow) -> None:
    """Clear the node's fields that show the steps."""
    phase, node = flow.phase, flow.task.node
    if phase.shows is not None:
        setattr(node, phase.shows, {})
        for key in (f"{phase.name}_steps", f"{phase.name}_step_index"):
            node.driver_internal_info.pop(key, None)


# -------------------------------------------------------------------------------- not yet done


def _park(flow: Flow, run: StepRun, outcome: Outcome) -> None:
    """Leave the step until its next attempt, an agent's call or an operator's order.

    ``Again`` keeps the lock and frees the thread; the row stores the due time and the reason.
    """
    event, info = _PARKING.get(type(outcome)), flow.task.node.driver_internal_info
    state = flow.task.node.provision_state
    if event is not None and not states.allows(state, event):
        _fail(flow, run, f"Node {flow.task.node.uuid}: nothing can {event} in state {state}")
        return
    match outcome:
        case Again():
            was = run.deadline_at
            if was is not None and _has_answered(flow, _silent_since(flow, was)):
                run.deadline_at = None
            _put_off(flow, run, outcome, changed=was != run.deadline_at)
            flow.task.turn += 1
        case WaitForCall():
            limit_s = outcome.timeout_s
            waiting = flow.mark(
                run, Run.WAITING, reason=outcome.reason + agents.retry_note(info),
                resume_then=outcome.then,
                deadline_at=rows.now() + timedelta(seconds=limit_s) if limit_s else None,
            )  # fmt: skip
            _leave(flow, "wait", [waiting], agents.boot_awaited_since(info))
        case Hold():
            _leave(flow, "hold", [flow.mark(run, Run.HELD, reason=outcome.reason)])


def _silent_since(flow: Flow, ends: datetime) -> datetime:
    return ends - timedelta(seconds=flow.task.runtime.conf.conductor.bmc_outage_budget)


def _has_answered(flow: Flow, since: datetime) -> bool:
    """Return whether the node's BMC has answered since; an invalid driver_info has no BMC."""
    try:
        task = flow.task.child or flow.task
        return task.driver.power.has_answered(task, since)
    except errors.Failure:
        return False


def _put_off(flow: Flow, run: StepRun, again: Again, *, changed: bool) -> None:
    if run.step.resumable and flow.task.runtime.has_successor(flow.task.node):
        _hand_over(flow, run)
        return
    due = rows.now() + timedelta(seconds=again.after_s)
    if changed or run.state != Run.AGAIN or run.reason != again.reason:
        run.reason = again.reason
        values = {"due_at": due, "reason": again.reason, "deadline_at": run.deadline_at}
        flow.task.save(flow.mark(run, Run.AGAIN, **values))
    flow.task.runtime.timers.after(again.after_s, start_attempt, flow)


def awaits_successor(flow: Flow) -> bool:
    """Return whether the flow pauses at a step that a successor may repeat."""
    run = flow.current
    pauses = run is not None and run.state == Run.AGAIN and run.step.resumable
    return pauses and flow.task.runtime.has_successor(flow.task.node)


def _hand_over(flow: Flow, run: StepRun, closing: Sequence[Write] = ()) -> None:
    """Release the node at step ``run``, which the successor begins or repeats."""
    reason = f"conductor {flow.task.runtime.host} stops; another one goes on"
    values = {"conductor": None, "reason": reason, "deadline_at": run.deadline_at}
    flow.task.save(*closing, flow.mark(run, Run.AGAIN, **values), release=True)
    flow.future.set_result(None)


def _postpone(flow: Flow, run: StepRun, exc: Exception) -> bool:
    """Postpone the attempt because the BMC is silent; return whether the step may wait."""
    budget_s = flow.task.runtime.conf.conductor.bmc_outage_budget
    if not isinstance(exc, errors.BmcUnreachable) or not run.step.resumable:
        return False
    if isinstance(exc, errors.BmcQueueTimeout):  # the BMC is busy, not silent
        again = Again(after_s=exc.facts["retry_after_s"], reason=secrets.brief(exc))
        _put_off(flow, run, again, changed=False)
        return True
    if flow.phase.urgent or not budget_s:
        return False
    now = clock.now()
    ends = run.deadline_at or now + timedelta(seconds=budget_s)
    left_s = (ends - now).total_seconds()
    after_s = exc.facts.get("retry_after_s")  # the BMC's own pause
    if after_s is None:  # else one that grows with the length of the silence
        least_s, most_s = _OUTAGE_PAUSES_S
        after_s = min(max((budget_s - left_s) / 2, least_s), most_s)
    if left_s <= 0 or (isinstance(exc, errors.BmcLeftAlone) and after_s > left_s):
        return False
    why = secrets.brief(errors.Failure(reason=exc.facts.get("cause") or exc.facts["reason"]))
    match exc:
        case errors.SwitchUnreachable() | errors.SwitchLeftAlone():
            trouble = f"switch {exc.facts['switch']} does not answer"
        case errors.BmcLoginLeftAlone():
            trouble = "the BMC refuses the login"
        case errors.BmcBusy():
            trouble = "the BMC is busy"
        case errors.BmcUnreadable():
            trouble = "the BMC cannot be read"
        case _:
            trouble = "the BMC does not answer"
    reason = f"{trouble}: {why}; it is asked again until {ends:%H:%M:%S} UTC"
    was, run.deadline_at = run.deadline_at, ends
    again = Again(after_s=min(after_s, left_s), reason=reason)
    LOG.warning("node %s: step %s waits: %s", flow.task.node.uuid, run.step.name, reason)
    _put_off(flow, run, again, changed=was is None)
    return True


def start_attempt(flow: Flow) -> None:
    """Run the next attempt as soon as a worker is free."""
    runtime, uuid = flow.task.runtime, flow.task.node.uuid
    try:
        runtime.workers.spawn(run, flow)
    except errors.NoFreeConductorWorker:
        runtime.workers.missing_since.setdefault(uuid, rows.now())
        runtime.timers.after(_NO_WORKER_RETRY_S, start_attempt, flow)
    else:
        runtime.workers.missing_since.pop(uuid, None)


def _leave(
    flow: Flow, event: str, journal: Sequence[Write], waits_since: datetime | None = None
) -> None:
    task = flow.task
    task.process_event(
        event, target_state=kept_target(task), journal=journal, release=True,
        waits_since=waits_since,
    )  # fmt: skip
    flow.future.set_result(None)


# -------------------------------------------------------------------------------------- errors


def _sentence(flow: Flow, run: StepRun, exc: Exception) -> str:
    """Return the error: the cause first, then the step, because tables cut long texts."""
    own = run.step.internal and run.step.child is None
    what = flow.phase.name if own else f"{flow.phase.name} step {run.step.name}"
    if run.step.child:
        what += f" on {'other' if run.step.internal else 'child'} node {run.step.child}"
    silence = ""
    if isinstance(exc, errors.BmcUnreachable) and run.deadline_at is not None:
        lasted_s = (clock.now() - _silent_since(flow, run.deadline_at)).total_seconds()
        silence = f"; that was borne for {max(lasted_s, 0):.0f} s"
    node = flow.task.node
    fact, label = writes.own_sentence(node, errors.brief(exc)), writes.label(node)
    return f"{fact}{silence} ({what if label in fact else f'{what} of {label}'})"
