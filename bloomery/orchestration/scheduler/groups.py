"""Many tasks, stepped side by side or along a graph.

A group is itself a task: it is run by a TaskRunner, and groups stand inside groups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

from bloomery.orchestration import graph
from bloomery.orchestration.scheduler.runner import Steps, Task, TaskRunner, described, next_wait
from bloomery.orchestration.scheduler.waits import After, Clock, Yielded

K = TypeVar("K", bound=Hashable)
Grace: TypeAlias = "float | Callable[[Any], float | None] | None"

# Tasks whose start takes long (a call to a BMC) are started over several turns, so that deadlines
# and messages are looked at in between.
_START_S: Final = 0.5


class PollingTaskGroup:
    """Starts all tasks in order, then steps each of them every turn until all are done.

    If one raises, the others are cancelled and it is raised.
    """

    def __init__(self, tasks: Iterable[Task], *, clock: Clock, name: str | None = None) -> None:
        self._tasks = list(tasks)
        self._clock = clock
        self.name = name or ", ".join(map(described, self._tasks))

    @classmethod
    def from_task_with_args(
        cls,
        task: Task,
        calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]],
        *,
        clock: Clock,
        name: str | None = None,
    ) -> Self:
        """One task called in several ways, each a pair (args, kwargs)."""
        tasks = [partial(task, *args, **kwargs) for args, kwargs in calls]
        return cls(tasks, clock=clock, name=name or described(task))

    def __str__(self) -> str:
        return f"PollingTaskGroup({self.name})"

    def __call__(self) -> Steps:
        runners = [TaskRunner(task, clock=self._clock) for task in self._tasks]
        try:
            for runner in runners:
                runner.start()
            while runners := [runner for runner in runners if runner]:
                yield next_wait(runners)
                for runner in runners:
                    runner.step()
        except BaseException as exc:
            _note(exc, _cancelled(runners))
            raise


class DependencyTaskGroup(Generic[K]):
    """Runs ``task(key)`` for each key of a graph, as soon as all that it requires is done.

    ``task`` by default calls the key itself.  ``reverse`` runs each key before what it requires,
    as a deletion does.  Raises graph.Cycle when the keys have no order.

    When a task raises, what has not begun never does, and what runs may run on for
    ``error_wait_time`` seconds (a number, or a function of the key; nothing or zero: it is closed
    at once).  Then the first error is raised, the others noted in it.  With
    ``aggregate_exceptions`` all goes on except what requires the failed key, and in the end an
    ExceptionGroup holds every error.
    """

    def __init__(
        self,
        dependencies: graph.Graph[K],
        task: Callable[[K], Any] | None = None,
        *,
        clock: Clock,
        reverse: bool = False,
        name: str | None = None,
        error_wait_time: Grace = None,
        aggregate_exceptions: bool = False,
    ) -> None:
        cycle = dependencies.find_cycle()
        if cycle:
            raise graph.Cycle(cycle)
        self.dependencies = dependencies
        self.task = task or _call
        self.clock = clock
        self.reverse = reverse
        self.error_wait_time = error_wait_time
        self.aggregate_exceptions = aggregate_exceptions
        self.name = name or f"({described(self.task)}) {len(dependencies)} keys"

    def __str__(self) -> str:
        return f"DependencyTaskGroup({self.name})"

    def __call__(self) -> Steps:
        return _Course(self).steps()

    def grace_s(self, key: K) -> float | None:
        wait = self.error_wait_time
        return wait(key) if callable(wait) else wait


class _Course(Generic[K]):
    """One run of a DependencyTaskGroup."""

    def __init__(self, group: DependencyTaskGroup[K]) -> None:
        self.group = group
        self.clock = group.clock
        self.walk = group.dependencies.walk(reverse=group.reverse)
        self.ready = deque(self.walk.first)
        self.running: dict[K, TaskRunner] = {}
        self.refused = False  # to begin anything more
        self.thrown: list[Exception] = []  # in from outside
        self.raised: list[Exception] = []  # by our own tasks

    def steps(self) -> Steps:
        try:
            self._begin()
            while self.running or self.ready:
                try:
                    yield self._next_wait()
                except Exception as exc:  # noqa: BLE001  # told when those with grace have ended
                    self.thrown.append(exc)
                    self._cancel()
                self._turn()
                self._begin()
        except BaseException as exc:  # a time-out, or the end of everything: no grace
            _note(exc, _cancelled(self.running.values()))
            raise
        self._tell()

    def _next_wait(self) -> Yielded:
        return After(0) if self.ready else next_wait(self.running.values())

    def _turn(self) -> None:
        """Step everything that runs, once."""
        for key, runner in list(self.running.items()):
            self._try(key, runner, runner.step)
            if runner.done():
                self.running.pop(key, None)

    def _begin(self) -> None:
        """Start what is ready, and what becomes so by tasks that are done at once."""
        until = self.clock.now() + _START_S
        while self.ready and self.clock.now() <= until:
            key = self.ready.popleft()
            runner = TaskRunner(self.group.task, key, clock=self.clock)
            self._try(key, runner, runner.start)
            if runner:
                self.running[key] = runner

    def _try(self, key: K, runner: TaskRunner, advance: Callable[[], object]) -> None:
        if not runner:
            return  # cancelled since the turn began
        try:
            advance()
        except Exception as exc:  # noqa: BLE001  # told at the end
            self._fail(exc)
        else:
            if not runner and not self.refused:
                self.ready.extend(self.walk.finish(key))

    # ------------------------------------------------------------------------------- when it fails

    def _fail(self, exc: Exception) -> None:
        """Note an error; what requires the failed key never becomes ready."""
        self.raised.append(exc)
        if not (self.group.aggregate_exceptions or self.refused):  # once: a thousand may fail
            self._cancel()

    def _cancel(self) -> None:
        """Begin nothing more, and let what runs end within its grace."""
        self.refused = True
        self.ready.clear()
        for key, runner in self.running.items():
            try:
                runner.cancel(self.group.grace_s(key))
            except Exception as exc:  # noqa: BLE001  # raised while it was closed; told at the end
                self.raised.append(exc)

    def _tell(self) -> None:
        failed = [*self.raised, *self.thrown]
        if not failed:
            return
        if self.group.aggregate_exceptions:
            raise ExceptionGroup(f"{self.group} failed", failed)
        first = self.thrown[-1] if self.thrown else self.raised[0]
        _note(first, [exc for exc in failed if exc is not first])
        raise first


def _call(key: Any) -> Any:
    """The default task of a key that can be called."""
    return key()


def _cancelled(runners: Iterable[TaskRunner]) -> list[Exception]:
    """Close them all, without grace; return what some of them raised at that."""
    failed = []
    for runner in runners:
        try:
            runner.cancel()
        except Exception as exc:  # noqa: BLE001  # the others are to be closed as well
            failed.append(exc)
    return failed


def _note(exc: BaseException, others: Iterable[Exception]) -> None:
    """Write what cannot be raised as well beside what is."""
    for other in others:
        exc.add_note(f"besides: {other!r}")
