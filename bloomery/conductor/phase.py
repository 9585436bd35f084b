"""The kinds of flows, as data for the runner.

    DEPLOY = Phase(name="deploy", own_steps={"prepare": _prepare}, finish=_finish, fail=_fail)

``finish`` and ``fail`` return a Transition; only the runner fires its event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bloomery.conductor import writes as node_writes
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import Write
from bloomery.model.node import Node
from bloomery.model.step import Step, StepRun
from bloomery.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """The end of a flow: the event to fire (None keeps the state).

    ``writes`` join its transaction; ``then`` is a flow that begins with it.
    """

    event: str | None
    target_state: str | None = None
    last_error: str | None = None
    writes: Sequence[Write] = ()
    then: tuple[Phase, Sequence[Step]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFailure:
    """A failed flow: the step, the sentence, and the results of its earlier steps.

    ``aborted``: an operator asked for the abort, and nothing is broken.  ``may_pass``: the cause
    may pass, and each step that began may be repeated.
    """

    run: StepRun
    sentence: str
    result: Mapping[str, Any]
    aborted: bool = False
    may_pass: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One kind of flow.

    ``shows``: the node's field that shows the current step.  ``own_steps``: the conductor's steps,
    called with the task and the step's arguments.  ``finish`` (with the joined results of the steps
    that ran in this process) and ``fail`` set the node's fields and return the transition.
    ``tolerant``: a failed step is recorded, and the flow continues.  ``urgent``: a user waits, so
    that a silent BMC fails the flow at once.  ``history_name``: the flow's name in the history, if
    it is recorded.
    """

    name: str
    own_steps: Mapping[str, Callable[..., Outcome | None]]
    finish: Callable[[TaskManager, Mapping[str, Any]], Transition]
    fail: Callable[[TaskManager, FlowFailure], Transition]
    shows: str | None = None
    tolerant: bool = False
    urgent: bool = False
    history_name: Callable[[Node], str] | None = None


def ends_with(event: str | None) -> Callable[[TaskManager, Mapping[str, Any]], Transition]:
    """Return a ``finish`` that only fires ``event``, or keeps the provision state."""
    return lambda _task, _result: Transition(event=event)


def records_failure(event_type: str) -> Callable[[TaskManager, FlowFailure], Transition]:
    """Return a ``fail`` that only writes last_error and a history entry of ``event_type``."""

    def fail(task: TaskManager, failure: FlowFailure) -> Transition:
        entry = node_writes.failure_entry(task.context, task.node, failure.sentence, event_type)
        return Transition(event=None, writes=[entry])

    return fail
