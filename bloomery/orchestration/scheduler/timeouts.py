"""What happens when a task's time is up."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any


class Timeout(BaseException):
    """A task's time is up: it is thrown into the task at the next step.

    It derives from BaseException, so that an ordinary ``except Exception`` of a plug-in does not
    swallow it.  A task that catches it may tidy up, and end or raise; if it yields on, it is
    closed, and nobody is told.
    """

    def __init__(self, task: object, at: float) -> None:
        super().__init__(f"{task} Timed out")
        self.at = at

    def earlier_than(self, other: Timeout | None) -> bool:
        """Whether this one strikes first; having no deadline strikes last."""
        return other is None or self.at < other.at

    def expired(self, now: float) -> bool:
        return now >= self.at

    def trigger(self, generator: Generator[Any, Any, Any]) -> None:
        """End the task, now.  Whatever it raises instead goes to who stepped it."""
        try:
            generator.throw(self)
        except StopIteration:
            return
        generator.close()


class TimedCancel(Timeout):
    """The grace that a cancelled task was given is over: it is closed without a word."""

    def trigger(self, generator: Generator[Any, Any, Any]) -> None:
        generator.close()
