"""Readiness of a process, checked part by part within a time limit.

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
from typing import Any, Final

LOG = logging.getLogger(__name__)

WITHIN_S: Final = 2.0  # for all parts together
_Wait = Callable[[Collection[Future[Any]], float], object]


@dataclass(frozen=True, slots=True)
class _Question:
    began_at: float
    answer: Future[list[str]]


class Readiness:
    """Check each part in a thread; a part with an open check gets no second one."""

    def __init__(
        self,
        parts: Mapping[str, Callable[[], list[str]]],
        clock: Callable[[], float] = time.monotonic,
        wait: _Wait = futures.wait,
    ) -> None:
        """``parts``: by name, the function that returns what the part lacks."""
        self._parts, self._clock, self._wait = parts, clock, wait
        self._mutex = threading.Lock()
        self._questions: dict[str, _Question] = {}

    def missing(self) -> list[str]:
        """Return the missing parts within ``WITHIN_S``; a silent part is missing."""
        questions = {name: self._question(name) for name in self._parts}
        now = self._clock()
        awaited = [each for each in questions.values() if each.began_at + WITHIN_S > now]
        if awaited:
            until = max(each.began_at for each in awaited) + WITHIN_S
            self._wait([each.answer for each in awaited], until - now)
        return [
            reason for name, question in questions.items() for reason in self._read(name, question)
        ]

    def _question(self, name: str) -> _Question:
        """Return the open check of a part, or start one."""
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
        except RuntimeError as exc:  # no more threads; the next check may work
            question.answer.set_result([f"{name} could not be asked: {exc}"])
        return question

    def _ask(self, name: str, answer: Future[list[str]]) -> None:
        try:
            reasons = self._parts[name]()
        except Exception:
            LOG.exception("%s could not be asked for an unexpected reason", name)
            reasons = [f"{name} could not be asked: see the log of this service"]
        answer.set_result(reasons)

    def _read(self, name: str, question: _Question) -> list[str]:
        if question.answer.done():
            return question.answer.result()
        return [f"{name} has not answered for {self._clock() - question.began_at:.0f} s"]
