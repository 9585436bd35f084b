"""A task that hands over to others by yielding them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Generator
from typing import Any, ParamSpec

from bloomery.orchestration.scheduler.wishes import Asked

P = ParamSpec("P")
Parent = Generator[Any, None, Any]  # it yields what a task may yield, and other tasks


def wrappertask(task: Callable[P, Parent]) -> Callable[P, Generator[Asked, None, Any]]:
    """Let a task yield another one, whose steps and errors become its own.

    It is ``yield from`` for those who like to read it so::

        @wrappertask
        def replace(self):
            yield self.create()
            try:
                yield self.check()
            except NotThere:
                yield self.delete()
    """

    @functools.wraps(task)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Generator[Asked, None, Any]:
        parent = task(*args, **kwargs)
        go_on: Callable[[], Any] = parent.__next__
        while True:
            try:
                wanted = go_on()
            except StopIteration as end:
                return end.value
            try:
                yield from _steps(wanted)
            except GeneratorExit:
                parent.close()
                raise
            except BaseException as exc:  # noqa: BLE001  # thrown on, into the parent
                go_on = functools.partial(parent.throw, exc)
            else:
                go_on = parent.__next__

    return wrapper


def _steps(wanted: Any) -> Generator[Asked, None, None]:
    if isinstance(wanted, types.GeneratorType):
        yield from wanted
    else:
        yield wanted
