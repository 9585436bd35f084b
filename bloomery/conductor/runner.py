"""The one engine of steps: it runs a flow, calls the interfaces, records, and chooses the event.

A flow is a list of step runs of one phase (verify, deploy, clean, ...); the phase is data.  Its
rows are written in the transaction that starts it, the end of a step and the start of the next
are one transaction, and the last step ends in the very transition that ends the flow.  So whoever
finds the rows after a crash knows what was going on, and nothing has to be guessed.

    flow = runner.plan(task, deploy.PHASE, deploy.steps(task))
    task.process_event("deploy", callback=runner.launch, call_args=(slot, flow),
                       journal=[flow.opening])

A thread works on a flow only while it moves: between an ``Again`` and its turn there is a due
time and no thread; in a wait state there is not even a lock.

A BMC that does not answer fails no resumable step at once: the same turn is taken again, until
the budget is spent that began with the first silence.  Its end stands in the row of the step, so
that a conductor that takes the flow over grants no new one.  A new silence has a new budget once
the BMC has answered; that a driver waits is no answer.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from bloomery import clock, errors, secrets
from bloomery.conductor import reserved_steps, states, step_results
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager, Write
from bloomery.conductor.workers import Slot
from bloomery.db import rows, steps
from bloomery.metrics import METRICS
from bloomery.model.node import Node
from bloomery.model.step import Run, Step, StepRun, internal_step
from bloomery.outcome import DONE, Again, Done, Hold, Outcome, WaitForCall

LOG = logging.getLogger(__name__)

_NO_WORKER_RETRY_S: Final = 0.5
_OUTAGE_PAUSES_S: Final = (1.0, 15.0)  # between two tries of a BMC that is silent: least, most
_NOTHING: Final = internal_step("deploy", "nothing")
_PARKING: Final[dict[type, str]] = {WaitForCall: "wait", Hold: "hold"}
_CLEAN_FAMILY: Final = (State.CLEANING, State.CLEANWAIT, State.CLEANHOLD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """How a flow ends: the event to fire (None: the state stays), and what follows.

    ``writes`` join its transaction; ``then`` is a flow that begins with it.
    """

    event: str | None
    target_state: str | None = None
    last_error: str | None = None
    writes: Sequence[Write] = ()
    then: tuple[Phase, Sequence[Step]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What distinguishes the flows: a row of data.

    ``shows`` is the node's field that shows the step; ``own_steps`` holds the conductor's own steps
    around those of the interfaces, called with the task and the step's arguments; ``finish`` and
    ``fail`` set the node's fields and say how it moves.  ``tolerant``: a step that fails is
    recorded, and the flow goes on.  ``urgent``: a person waits for it, and learns at once that the
    BMC does not answer.  ``called``: what the history calls the flow, if it tells of it.
    """

    name: str
    own_steps: Mapping[str, Callable[..., Outcome | None]]
    finish: Callable[[TaskManager], Transition]
    fail: Callable[[TaskManager, StepRun, str], Transition]
    shows: str | None = None
    tolerant: bool = False
    urgent: bool = False
    called: Callable[[Node], str] | None = None


@dataclass(slots=True)
class Flow:
    """The in-memory position in a flow; its rows are authoritative."""

    task: TaskManager
    phase: Phase
    id: str
    runs: list[StepRun]
    at: int = 0
    future: Future[None] = field(default_factory=Future)
    step_results: list[Write] = field(default_factory=list)

    @property
    def current(self) -> StepRun | None:
        return self.runs[self.at] if self.at < len(self.runs) else None

    @property
    def standing_at(self) -> StepRun:
        """The step that it stands at, for those who know that it has not ended."""
        return self.runs[self.at]

    @property
    def opening(self) -> Write:
        """The write of all its rows, the first one running."""
        encoded = [steps.encode(run) for run in self.runs]

        def write(conn: sa.Connection) -> None:
            steps.insert(conn, encoded)
            for entry in _remembered(self, "start"):  # made when the node shows where it is
                entry(conn)

        return write

    @property
    def cancelled(self) -> Write:
        """The write that ends it before its first step ran."""
        return lambda conn: steps.cancel(conn, self.id)

    def mark(self, run: StepRun, state: Run, **values: Any) -> Write:
        """The write that puts one of its rows into ``state``."""
        run.state = state
        return lambda conn: steps.change(conn, self.id, run.position, {"state": state} | values)


def plan(task: TaskManager, phase: Phase, planned: Sequence[Step]) -> Flow:
    """Return a flow over ``planned``, standing at its first step; nothing is written yet."""
    flow_id = str(uuid.uuid4())
    listed = planned or [_NOTHING]  # a flow without a row would be lost with its conductor
    runs = [_planned_run(task, phase, flow_id, at, step) for at, step in enumerate(listed)]
    flow = Flow(task, phase, flow_id, runs)
    if phase.shows:
        shown = [run.step.shown() for run in runs if not run.step.internal]
        task.node.driver_internal_info[f"{phase.name}_steps"] = shown
    runs[0].state, runs[0].started_at = Run.RUNNING, rows.now()
    _show(flow)
    return flow


def _planned_run(task: TaskManager, phase: Phase, flow_id: str, at: int, step: Step) -> StepRun:
    return StepRun(
        flow=flow_id,
        node_uuid=task.node.uuid,
        phase=phase.name,
        position=at,
        step=step,
        conductor=task.runtime.host,
        lock_generation=task.node.lock_generation,
        request_id=task.context.request.request_id,
    )


def load(task: TaskManager, phase: Phase, runs: list[StepRun]) -> Flow:
    """Return the flow that ``runs`` are the rows of, standing at the first that has not ended."""
    ended = (Run.DONE, Run.FAILED, Run.SKIPPED)
    at = next((i for i, run in enumerate(runs) if run.state not in ended), len(runs))
    return Flow(task, phase, runs[0].flow, runs, at)


def resume(task: TaskManager, slot: Slot, event: str, flow: Flow) -> None:
    """Leave the wait state by ``event`` and go on: the same step again, or the next one.

    Called by whoever was waited for (an agent, an operator); the lock goes over to the flow.
    """
    run = flow.standing_at
    again = run.state == Run.WAITING and run.resume_then == "same"
    ends_here = not again and _was_aborted(flow, run)
    if again:
        task.turn = 1
    run.deadline_at = None  # that of the wait
    writes = (
        [flow.mark(run, Run.RUNNING, deadline_at=None)]
        if again or ends_here
        else _step_on(flow, run)
    )
    task.process_event(
        event,
        callback=launch_failure if ends_here else launch,
        call_args=(slot, flow, _aborted(flow, run)) if ends_here else (slot, flow),
        target_state=kept_target(task),
        journal=writes,
    )


def _step_on(flow: Flow, run: StepRun) -> list[Write]:
    """The writes that end the step that was waited in, and begin the next one."""
    now = rows.now()
    writes = [flow.mark(run, Run.DONE, finished_at=now)]
    flow.at += 1
    if flow.current is not None:
        writes.append(flow.mark(flow.current, Run.RUNNING, started_at=now))
    _show(flow)
    return writes


def kept_target(task: TaskManager) -> str | None:
    """Manual cleaning goes back to manageable, whatever happens on the way."""
    is_manual = task.node.target_provision_state == State.MANAGEABLE
    return State.MANAGEABLE if is_manual and task.node.provision_state in _CLEAN_FAMILY else None


def launch(slot: Slot, flow: Flow) -> Future[None]:
    """Start running in the reserved worker; the future ends when the flow ends or parks."""
    slot.spawn(run, flow)
    return flow.future


def run(flow: Flow) -> None:
    """Run steps as far as it goes without waiting.  The supervisor of its thread."""
    try:
        current = flow.current
        if flow.task.turn or (current is not None and current.state == Run.AGAIN):
            flow.task.require_held()  # there was a pause, and nothing was written since
        _run_steps(flow)
    except errors.LockLost as lost:
        LOG.warning("%s", lost)
        flow.future.set_result(None)
    except BaseException as exc:  # noqa: BLE001  a supervisor: the future carries it on
        flow.future.set_exception(exc)


def _run_steps(flow: Flow) -> None:
    while (run := flow.current) is not None:
        try:
            with METRICS.timer(f"step:{flow.phase.name}:{run.step.interface}"):
                outcome = _execute(flow, run)
        except errors.LockLost:
            raise
        except Exception as exc:  # noqa: BLE001  whatever a driver raises fails its step
            if _borne(flow, run, exc):
                return
            _log_unexpected(flow, run, exc)
            if not _tolerated(flow, run, exc):
                _fail(flow, run, _sentence(flow, run, exc))
                return
            outcome = DONE
        if not isinstance(outcome, Done):
            _park(flow, run, outcome)
            return
        if _was_aborted(flow, run):
            _fail(flow, run, _aborted(flow, run))
            return
        flow.step_results += step_results.writes(flow.task, outcome.result)
        if flow.at + 1 == len(flow.runs):
            break
        _advance(flow, run)
    _finish(flow)


def _execute(flow: Flow, run: StepRun) -> Outcome:
    """Take one turn; what is read of the hardware in it is read once."""
    flow.task.reads = {}
    try:
        return _called(flow, run)
    finally:
        flow.task.reads, flow.task.insists = None, False


def _called(flow: Flow, run: StepRun) -> Outcome:
    task, step = flow.task, run.step
    if step == _NOTHING:
        return DONE
    if step.internal:
        return flow.phase.own_steps[step.step](task, **step.args) or DONE
    opened = replace(step, args=task.runtime.sealer.open(step.args)) if step.args else step
    if step.step in reserved_steps.TABLE:
        return reserved_steps.TABLE[step.step](task, **opened.args)
    return task.driver.interface(step.interface).run_step(task, opened)


def _advance(flow: Flow, run: StepRun) -> None:
    """The end of a step and the start of the next: one transaction."""
    now = rows.now()
    ended = flow.mark(run, Run.DONE, finished_at=now) if run.state != Run.FAILED else None
    flow.at += 1
    flow.task.turn = 0
    following = flow.runs[flow.at]
    begun = flow.mark(following, Run.RUNNING, started_at=now, conductor=flow.task.runtime.host)
    _show(flow)
    flow.task.save(*([ended] if ended else []), begun, *_found(flow))


def _found(flow: Flow) -> list[Write]:
    """The writes of what the step that ends has found; they go with its end."""
    found, flow.step_results = flow.step_results, []
    return found


def _was_aborted(flow: Flow, run: StepRun) -> bool:
    """Tell whether somebody asked to stop once this step is over."""
    shown = getattr(flow.task.node, flow.phase.shows) if flow.phase.shows else {}
    return not run.step.internal and bool(shown.get("abort_after"))


def _aborted(flow: Flow, run: StepRun) -> str:
    """Say that a step was the last one because somebody asked to stop; nothing is broken."""
    flow.task.notes["aborted"] = True
    return f"Node {flow.task.node.uuid}: aborted on request after step {run.step.name}"


def _show(flow: Flow) -> None:
    """Write the current step where clients look for it; nothing reads it back."""
    run, phase, node = flow.current, flow.phase, flow.task.node
    if phase.shows is None or run is None or run.step.internal:
        return
    setattr(node, phase.shows, run.step.shown())
    own_before = sum(1 for other in flow.runs[: flow.at] if other.step.internal)
    node.driver_internal_info[f"{phase.name}_step_index"] = flow.at - own_before


def _finish(flow: Flow) -> None:
    """The last step is done: end the flow, or go over into the one that follows."""
    run = flow.runs[-1] if flow.runs else None
    closing = []
    if run is not None and run.state != Run.FAILED:
        closing = [flow.mark(run, Run.DONE, finished_at=rows.now())]
    remembered = _remembered(flow, "end")
    clear_step_fields(flow)
    _end(flow, flow.phase.finish(flow.task), [*closing, *_found(flow), *remembered])


def _remembered(flow: Flow, what: str) -> list[Write]:
    """The history entry that tells of the start or the end of a flow, if it is to be told."""
    task, called = flow.task, flow.phase.called
    if called is None or not task.runtime.conf.conductor.record_step_flows_in_history:
        return []
    listed = secrets.mask([run.step.shown() for run in flow.runs if not run.step.internal])
    name = called(task.node)
    plain = name.replace("_", " ")
    text = {
        "start": f"Starting {plain} with steps={listed}",
        "end": f"{plain.capitalize()} completed successfully with steps={listed}",
    }[what]
    return [task.remember(text, event_type=f"{name}_{what}")] if listed else []


def _fail(flow: Flow, run: StepRun, sentence: str) -> None:
    LOG.error("node %s: %s", flow.task.node.uuid, sentence)
    clear_step_fields(flow)
    transition = flow.phase.fail(flow.task, run, sentence)
    failed = flow.mark(run, Run.FAILED, finished_at=rows.now(), error=sentence)
    _end(flow, transition, [failed, lambda conn: steps.skip_rest(conn, flow.id)])


def launch_failure(slot: Slot, flow: Flow, sentence: str) -> Future[None]:
    """End in the reserved worker a flow that cannot go on."""
    slot.spawn(fail_now, flow, sentence)
    return flow.future


def fail_now(flow: Flow, sentence: str) -> None:
    """End a flow that cannot go on (interrupted, timed out) at its current step."""
    run = flow.standing_at
    try:
        _fail(flow, run, sentence)
    except errors.LockLost as lost:
        LOG.warning("%s", lost)
        flow.future.set_result(None)
    except BaseException as exc:  # noqa: BLE001  a supervisor: the future carries it on
        flow.future.set_exception(exc)


def _end(flow: Flow, transition: Transition, closing: list[Write]) -> None:
    task = flow.task
    following = None if transition.then is None else plan(task, *transition.then)
    journal = [*closing, *transition.writes, *([following.opening] if following else [])]
    release = following is None
    if transition.event is None:
        task.save(*journal, release=release)
    else:
        task.process_event(
            transition.event, target_state=transition.target_state,
            last_error=transition.last_error, journal=journal, release=release,
        )  # fmt: skip
    if following is None:
        flow.future.set_result(None)
        return
    flow.phase, flow.id, flow.runs, flow.at = following.phase, following.id, following.runs, 0
    task.turn = 0
    _run_steps(flow)


def clear_step_fields(flow: Flow) -> None:
    """Take away what the wire fields said of the steps."""
    phase, node = flow.phase, flow.task.node
    if phase.shows is not None:
        setattr(node, phase.shows, {})
        for key in (f"{phase.name}_steps", f"{phase.name}_step_index"):
            node.driver_internal_info.pop(key, None)


# -------------------------------------------------------------------------------- not yet done


def _park(flow: Flow, run: StepRun, outcome: Outcome) -> None:
    event = _PARKING.get(type(outcome))
    state = flow.task.node.provision_state
    if event is not None and not states.allows(state, event):
        _fail(flow, run, f"Node {flow.task.node.uuid}: nothing can {event} in state {state}")
        return
    match outcome:
        case Again():
            _wait_for_turn(flow, run, outcome)
        case WaitForCall():
            _leave(flow, "wait", [_waiting(flow, run, outcome)])
        case Hold():
            _leave(flow, "hold", [flow.mark(run, Run.HELD, reason=outcome.reason)])


def _wait_for_turn(flow: Flow, run: StepRun, outcome: Again) -> None:
    """Keep the lock, let the thread go; the row says until when and why."""
    was = run.deadline_at
    if was is not None and _has_answered(flow, _silent_since(flow, was)):
        run.deadline_at = None
    _put_off(flow, run, outcome, changed=was != run.deadline_at)
    flow.task.turn += 1


def _silent_since(flow: Flow, ends: datetime) -> datetime:
    return ends - timedelta(seconds=flow.task.runtime.conf.conductor.bmc_outage_budget)


def _has_answered(flow: Flow, since: datetime) -> bool:
    """Tell whether the node's BMC has answered since; one that cannot be named has not."""
    try:
        return flow.task.driver.power.has_answered(flow.task, since)
    except errors.Failure:
        return False


def _put_off(flow: Flow, run: StepRun, again: Again, *, changed: bool) -> None:
    due = rows.now() + timedelta(seconds=again.after_s)
    if changed or run.state != Run.AGAIN or run.reason != again.reason:
        run.reason = again.reason
        values = {"due_at": due, "reason": again.reason, "deadline_at": run.deadline_at}
        flow.task.save(flow.mark(run, Run.AGAIN, **values))
    flow.task.runtime.timers.after(again.after_s, take_turn, flow)


def _borne(flow: Flow, run: StepRun, exc: Exception) -> bool:
    """Put the same turn off because a BMC is silent; False where that is not to be borne."""
    budget_s = flow.task.runtime.conf.conductor.bmc_outage_budget
    if not isinstance(exc, errors.BmcUnreachable) or not run.step.resumable:
        return False
    if flow.phase.urgent or not budget_s:
        return False
    now = clock.now()
    ends = run.deadline_at or now + timedelta(seconds=budget_s)
    left_s = (ends - now).total_seconds()
    after_s = _outage_pause_s(exc, budget_s - left_s)
    if left_s <= 0 or ("retry_after_s" in exc.facts and after_s > left_s):
        return False
    why = secrets.brief(errors.Failure(reason=exc.facts.get("cause") or exc.facts["reason"]))
    reason = f"the BMC does not answer: {why}; it is asked again until {ends:%H:%M:%S} UTC"
    was, run.deadline_at = run.deadline_at, ends
    again = Again(after_s=min(after_s, left_s), reason=reason)
    LOG.warning("node %s: step %s waits: %s", flow.task.node.uuid, run.step.name, reason)
    _put_off(flow, run, again, changed=was is None)
    return True


def _outage_pause_s(exc: errors.BmcUnreachable, since_s: float) -> float:
    """As long as the BMC is left alone anyway, else longer with the length of the silence."""
    least_s, most_s = _OUTAGE_PAUSES_S
    told: float | None = exc.facts.get("retry_after_s")
    return min(max(since_s / 2, least_s), most_s) if told is None else told


def take_turn(flow: Flow) -> None:
    """Go on in a worker as soon as one is free."""
    runtime = flow.task.runtime
    try:
        runtime.workers.spawn(run, flow)
    except errors.NoFreeConductorWorker:
        runtime.timers.after(_NO_WORKER_RETRY_S, take_turn, flow)


def _waiting(flow: Flow, run: StepRun, outcome: WaitForCall) -> Write:
    limit_s = outcome.timeout_s
    deadline = rows.now() + timedelta(seconds=limit_s) if limit_s else None
    return flow.mark(
        run, Run.WAITING, reason=outcome.reason, resume_then=outcome.then, deadline_at=deadline,
    )  # fmt: skip


def _leave(flow: Flow, event: str, journal: list[Write]) -> None:
    """Go into the wait or hold state; the lock ends, the rows remember."""
    task = flow.task
    task.process_event(event, target_state=kept_target(task), journal=journal, release=True)
    flow.future.set_result(None)


# -------------------------------------------------------------------------------------- errors


def _tolerated(flow: Flow, run: StepRun, exc: Exception) -> bool:
    """In a tolerant phase record the failed step of an interface, and go on."""
    if not flow.phase.tolerant or run.step.internal:
        return False
    sentence = _sentence(flow, run, exc)
    entry = flow.task.remember(sentence, event_type=flow.phase.name, failed=True)
    failed = flow.mark(run, Run.FAILED, finished_at=rows.now(), error=sentence)
    flow.step_results += [failed, entry]  # written with the start of what follows, or with the end
    return True


def _sentence(flow: Flow, run: StepRun, exc: Exception) -> str:
    what = flow.phase.name if run.step.internal else f"{flow.phase.name} step {run.step.name}"
    borne = ""
    if isinstance(exc, errors.BmcUnreachable) and run.deadline_at is not None:
        lasted_s = (clock.now() - _silent_since(flow, run.deadline_at)).total_seconds()
        borne = f"; that was borne for {max(lasted_s, 0):.0f} s"
    return f"Node {flow.task.node.uuid} failed {what}: {secrets.brief(exc)}{borne}"


def _log_unexpected(flow: Flow, run: StepRun, exc: Exception) -> None:
    if not isinstance(exc, errors.Failure):
        name, told = run.step.name, secrets.trace(exc)
        LOG.error("node %s: step %s broke\n%s", flow.task.node.uuid, name, told)
