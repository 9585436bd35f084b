"""Parts of a process, asked within a time limit: is it ready, what do its gauges say?

readiness = Readiness({"the database": missing})
readiness.missing()             # ["the database has not answered for 2 s"]
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

LOG = logging.getLogger(__name__)

WITHIN_S: Final = 2.0  # for all parts together
_Wait = Callable[[Collection[Future[Any]], float], object]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What a part answered, or the reason why it did not."""

    value: T | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Question(Generic[T]):
    began_at: float
    answer: Future[Answer[T]]


class Questions(Generic[T]):
    """Ask each part in a thread; a part with an open question gets no second one."""

    def __init__(
        self,
        parts: Mapping[str, Callable[[], T]],
        clock: Callable[[], float] = time.monotonic,
        wait: _Wait = futures.wait,
    ) -> None:
        self._parts, self._clock, self._wait = parts, clock, wait
        self._mutex = threading.Lock()
        self._questions: dict[str, _Question[T]] = {}

    def ask(self) -> dict[str, Answer[T]]:
        """Return the answer of each part within ``WITHIN_S``."""
        questions = {name: self._question(name) for name in self._parts}
        now = self._clock()
        awaited = [each for each in questions.values() if each.began_at + WITHIN_S > now]
        if awaited:
            until = max(each.began_at for each in awaited) + WITHIN_S
            self._wait([each.answer for each in awaited], until - now)
        answers = {}
        for name, question in questions.items():
            if question.answer.done():
                answers[name] = question.answer.result()
            else:
                silent_s = self._clock() - question.began_at
                problem = f"{name} has not answered for {silent_s:.0f} s"
                answers[name] = Answer(problem=problem)
        return answers

    def _question(self, name: str) -> _Question[T]:
        """Return the open question of a part, or a new one."""
        with self._mutex:
            question = self._questions.get(name)
            if question is not None and not question.answer.done():
                return question
            question = self._questions[name] = _Question(self._clock(), Future())
        asking = threading.Thread(
            target=self._ask, args=(name, question.answer), name="ready", daemon=True
        )
        try:
            asking.start()
        except RuntimeError as exc:  # no more threads; the next question may work
            question.answer.set_result(Answer(problem=f"{name} could not be asked: {exc}"))
        return question

    def _ask(self, name: str, answer: Future[Answer[T]]) -> None:
        try:
            answer.set_result(Answer(self._parts[name]()))
        except Exception:
            LOG.exception("%s could not be asked for an unexpected reason", name)
            answer.set_result(
                Answer(problem=f"{name} could not be asked: see the log of this service")
            )


class Readiness(Questions[list[str]]):
    """``parts``: by name, the function that returns what the part lacks."""

    def missing(self) -> list[str]:
        """Return the missing parts within ``WITHIN_S``; a silent part is missing."""
        reasons = ([each.problem] if each.value is None else each.value
                   for each in self.ask().values())  # fmt: skip
        return [reason for of_part in reasons for reason in of_part]
