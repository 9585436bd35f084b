"""One task: started once, stepped until it is done."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, ParamSpec, TypeAlias

from bloomery.orchestration.scheduler.waits import (
    NEVER,
    NOW,
    Clock,
    TimedCancel,
    Timeout,
    Wait,
    Yielded,
)

Task: TypeAlias = Callable[..., Any]  # what it returns is stepped if it is a generator
Steps: TypeAlias = Generator[Yielded, None, None]
Callback: TypeAlias = Callable[[], object]

WAIT_S: Final = 1.0


class TaskRunner:
    """Runs ``task(*args, **kwargs)`` step by step; true while steps remain."""

    __slots__ = (
        "_asked_at",
        "_call",
        "_deadline",
        "_done",
        "_generator",
        "_skips",
        "_started",
        "_wait",
        "clock",
    )

    def __init__(self, task: Task, *args: Any, clock: Clock, **kwargs: Any) -> None:
        if not callable(task):
            raise TypeError(f"cannot run {task!r}: a task is something to call")
        self.clock = clock
        self._call = (task, args, kwargs)
        self._started = self._done = False
        self._deadline: Timeout | None = None
        self._generator: Generator[Yielded, None, Any] | None = None
        self._wait: Wait | None = None
        self._asked_at = 0.0
        self._skips = 0

    def __str__(self) -> str:
        return f"Task {described(self._call[0])}"

    def started(self) -> bool:
        return self._started

    def done(self) -> bool:
        return self._done

    def __bool__(self) -> bool:
        return not self._done

    # ----------------------------------------------------------------------------------- by hand

    def start(self, timeout: float | None = None) -> None:
        """Call the task and make its first step; once, and not after it was cancelled."""
        assert not self._started, f"{self} was already started"
        assert not self._done, f"{self} was already cancelled"
        self._started = self._done = True  # until the call has returned something to step
        self._limit(timeout)
        task, args, kwargs = self._call
        generator = task(*args, **kwargs)
        if isinstance(generator, types.GeneratorType):
            self._generator, self._done = generator, False
            self.step()

    def step(self) -> bool:
        """Advance the task if it wants to be; return whether it is done.

        A deadline is looked at first, so that a task which waits for something else meets it too.
        """
        if self._done:
            return True
        assert self._started, f"{self} was not started"
        if self._deadline is not None and self._deadline.expired(self.clock.now()):
            self._end(self._deadline)
        elif self._skips:
            self._skips -= 1
        elif self._wait is None or self._wait.due_at(self._asked_at) <= self.clock.now():
            self._advance()
        return self._done

    def cancel(self, grace_period: float | None = None) -> None:
        """Close the task: at once, or if it runs when ``grace_period`` seconds are over.

        A task that has less time left anyway keeps its deadline.
        """
        if self._done:
            return
        if self._generator is None or not grace_period:
            self._done = True
            if self._generator is not None:
                self._generator.close()
            return
        self._set_deadline(TimedCancel(self, self.clock.now() + grace_period))

    def due_at(self) -> float | None:
        """Tell from when a step is worth while; None stands for the next turn, whenever it is."""
        until = NEVER if self._deadline is None else self._deadline.at
        if self._wait is not None:
            return min(until, self._wait.due_at(self._asked_at))
        return None

    # ---------------------------------------------------------------------------------- to the end

    def run_to_completion(
        self, wait_time: float | None = WAIT_S, progress_callback: Callback | None = None
    ) -> None:
        """Step what was started until it is done.

        ``wait_time``: seconds between two turns of a task that says no better; None for no pause.
        """
        assert self._started, f"{self} was not started"
        with contextlib.closing(self.as_task(progress_callback=progress_callback)) as steps:
            for _next_wait in steps:
                self._pause(wait_time)

    def call(
        self,
        wait_time: float | None = WAIT_S,
        timeout: float | None = None,
        progress_callback: Callback | None = None,
        post_func: Callback | None = None,
    ) -> None:
        """Start and run; see ``as_task``.  The second step follows the first without a pause."""
        pause_s = None
        with contextlib.closing(self.as_task(timeout, progress_callback, post_func)) as steps:
            for _next_wait in steps:
                self._pause(pause_s)
                pause_s = wait_time

    def as_task(
        self,
        timeout: float | None = None,
        progress_callback: Callback | None = None,
        post_func: Callback | None = None,
    ) -> Steps:
        """Run inside another task: ``yield from runner.as_task()``.

        The callback is called before each further step.  What it raises, and what is thrown in
        from outside, is thrown into the task, which may go on; ``post_func`` is called when it has
        ended well.  Of a runner that was started before, ``timeout`` can only hasten the end.
        """
        if self._started:
            self._limit(timeout)
            self.step()
        else:
            self.start(timeout)
        while not self._done:
            yield from self._between(progress_callback)
        if post_func is not None:
            post_func()

    def _between(self, progress_callback: Callback | None) -> Steps:
        """Hand control back once, then make one step or throw what came instead."""
        try:
            yield next_wait((self,))
            if progress_callback is not None:
                progress_callback()
        except GeneratorExit:
            self.cancel()
            raise
        except BaseException as exc:  # noqa: BLE001  # thrown on, into the task
            self._throw(exc)
        else:
            self.step()

    def _pause(self, wait_time: float | None) -> None:
        due = self.due_at()
        if due is None:
            if not wait_time:
                return
            due = self.clock.now() + wait_time
            if self._deadline is not None:
                due = min(due, self._deadline.at)
        if due > self.clock.now():
            self.clock.wait(None if due == NEVER else due)

    # -------------------------------------------------------------------------------- the generator

    def _advance(self) -> None:
        assert self._generator is not None
        self._done = True  # unless it yields
        try:
            yielded = next(self._generator)
        except StopIteration:
            return
        self._note(yielded)

    def _throw(self, exc: BaseException) -> None:
        """Throw into the task; it may raise, end or yield on."""
        if self._done:  # the callback that raised has cancelled it before
            raise exc
        assert self._generator is not None
        self._done = True
        try:
            yielded = self._generator.throw(exc)
        except StopIteration:
            return
        self._note(yielded)

    def _end(self, deadline: Timeout) -> None:
        assert self._generator is not None
        self._done = True
        deadline.trigger(self._generator)

    def _note(self, next_wait: Yielded) -> None:
        """Keep what the task yielded, which says that it is not done."""
        self._done = False
        if next_wait is None or isinstance(next_wait, int):
            self._wait = None
            self._skips = max((next_wait or 1) - 1, 0)
        else:
            self._wait, self._skips = next_wait, 0
            self._asked_at = self.clock.now()

    def _limit(self, timeout: float | None) -> None:
        if timeout is not None:
            self._set_deadline(Timeout(self, self.clock.now() + timeout))

    def _set_deadline(self, deadline: Timeout) -> None:
        if deadline.earlier_than(self._deadline):
            self._deadline = deadline


class Earliest:
    """A wish for the first of several runners that is due."""

    __slots__ = ("_runners",)

    def __init__(self, runners: Sequence[TaskRunner]) -> None:
        self._runners = runners

    def due_at(self, asked_at: float) -> float:
        dues = (runner.due_at() for runner in self._runners)
        return min((NOW if due is None else due for due in dues), default=NOW)


def next_wait(runners: Iterable[TaskRunner]) -> Yielded:
    """What one who steps these runners yields in turn: the next turn, if any of them wants it."""
    waiting = []
    for runner in runners:
        if runner.due_at() is None:
            return None
        waiting.append(runner)
    return Earliest(waiting)


def described(task: object) -> str:
    """Name a task for messages: its function, with the owner of a method."""
    if isinstance(task, types.MethodType):
        return f"{task.__name__} from {task.__self__}"
    if isinstance(task, types.FunctionType):
        return task.__name__
    return str(task)


# --------------------------------------------------------------------------- tasks inside tasks

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
