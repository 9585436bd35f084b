"""A task that hands over to others by yielding them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Generator
from typing import Any, ParamSpec

from bloomery.orchestration.scheduler.waits import Yielded

P = ParamSpec("P")
Parent = Generator[Any, None, Any]  # it yields what a task may yield, and other tasks


def wrappertask(task: Callable[P, Parent]) -> Callable[P, Generator[Yielded, None, Any]]:
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
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Generator[Yielded, None, Any]:
        parent = task(*args, **kwargs)
        go_on: Callable[[], Any] = parent.__next__
        while True:
            try:
                yielded = go_on()
            except StopIteration as end:
                return end.value
            try:
                yield from _steps(yielded)
            except GeneratorExit:
                parent.close()
                raise
            except BaseException as exc:  # noqa: BLE001  # thrown on, into the parent
                go_on = functools.partial(parent.throw, exc)
            else:
                go_on = parent.__next__

    return wrapper


def _steps(yielded: Any) -> Generator[Yielded, None, None]:
    if isinstance(yielded, types.GeneratorType):
        yield from yielded
    else:
        yield yielded
