"""The kinds of flows: how they differ, and how each of them ends; the runner gets a Phase.

DEPLOY = Phase(name="deploy", own_steps={"prepare": _prepare}, finish=_finish, fail=_fail)

``finish`` and ``fail`` return a Transition; the runner alone fires its event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import Write
from bloomery.model.node import Node
from bloomery.model.step import Step, StepRun
from bloomery.outcome import Outcome


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
class FlowFailure:
    """Why a flow ends early: at which step, in which words, and what its steps returned so far.

    ``aborted``: somebody asked for it, and nothing is broken.
    """

    run: StepRun
    sentence: str
    result: Mapping[str, Any]
    aborted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One kind of flow, as a row of data.

    ``shows`` is the node's field that shows the step; ``own_steps`` holds the conductor's own
    steps around those of the interfaces, called with the task and the step's arguments;
    ``finish`` (with the joined results of the steps that ran in this process) and ``fail`` set
    the node's fields and say how it moves.  ``tolerant``: a step that fails is recorded, and the
    flow goes on.  ``urgent``: a person waits for it, and learns at once that the BMC does not
    answer.  ``history_name``: what the history calls the flow, if it tells of it.
    """

    name: str
    own_steps: Mapping[str, Callable[..., Outcome | None]]
    finish: Callable[[TaskManager, Mapping[str, Any]], Transition]
    fail: Callable[[TaskManager, FlowFailure], Transition]
    shows: str | None = None
    tolerant: bool = False
    urgent: bool = False
    history_name: Callable[[Node], str] | None = None
