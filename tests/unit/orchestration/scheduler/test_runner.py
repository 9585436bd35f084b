from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Generator
from typing import Any

import pytest

from bloomery.orchestration.scheduler import After, Simulated, TaskRunner, Timeout, Woken, Yielded

Steps = Generator[Yielded, None, None]


class Trouble(Exception):
    pass


class Story:
    """A task that writes down what becomes of it."""

    def __init__(self, *asks: Yielded, ends: Callable[[], Any] = lambda: None):
        self.told: list[Any] = []
        self.asks, self.ends = asks, ends

    def run(self) -> Steps:
        try:
            for number, ask in enumerate(self.asks):
                self.told.append(number)
                yield ask
            self.told.append("end")
            self.ends()
        except GeneratorExit:
            self.told.append("closed")
            raise


def fail() -> None:
    raise Trouble


@pytest.fixture
def clock():
    return Simulated()


def endless(asked: Yielded = None) -> Steps:
    while True:
        yield asked


# ------------------------------------------------------------------------------- start and step


def test_starting_makes_the_first_step_and_each_step_one_more(clock: Simulated):
    story = Story(None, None)
    runner = TaskRunner(story.run, clock=clock)
    assert (runner.started(), runner.done(), bool(runner)) == (False, False, True)
    runner.start()
    assert (runner.started(), runner.done(), story.told) == (True, False, [0])
    assert (runner.step(), story.told) == (False, [0, 1])
    assert (runner.step(), story.told) == (True, [0, 1, "end"])
    assert (runner.step(), bool(runner)) == (True, False)


def test_a_plain_function_is_done_by_being_called(clock: Simulated):
    told: list[tuple[int, int]] = []
    runner = TaskRunner(lambda one, two: told.append((one, two)), 1, two=2, clock=clock)
    runner.start()
    assert runner.started()
    assert runner.done()
    assert told == [(1, 2)]


def test_a_task_without_a_yield_to_reach_is_done_by_its_start(clock: Simulated):
    runner = TaskRunner(Story().run, clock=clock)
    runner.start()
    assert runner.done()


@pytest.mark.parametrize("task", [None, "boil", 7])
def test_what_cannot_be_called_is_no_task(clock: Simulated, task: Any):
    with pytest.raises(TypeError, match="something to call"):
        TaskRunner(task, clock=clock)


@pytest.mark.parametrize("before", [TaskRunner.start, TaskRunner.cancel])
def test_a_task_starts_once_and_not_after_it_was_cancelled(
    clock: Simulated, before: Callable[[TaskRunner], None]
):
    runner = TaskRunner(endless, clock=clock)
    before(runner)
    with pytest.raises(AssertionError, match="already"):
        runner.start()


@pytest.mark.parametrize("ask", [TaskRunner.step, TaskRunner.run_to_completion])
def test_what_was_not_started_cannot_be_stepped(
    clock: Simulated, ask: Callable[[TaskRunner], object]
):
    with pytest.raises(AssertionError, match="not started"):
        ask(TaskRunner(endless, clock=clock))


def test_an_error_leaves_the_step_and_the_task_is_done(clock: Simulated):
    runner = TaskRunner(Story(None, ends=fail).run, clock=clock)
    runner.start()
    with pytest.raises(Trouble):
        runner.step()
    assert runner.done()
    assert runner.step()


def test_an_error_of_the_call_leaves_the_start_and_the_task_is_done(clock: Simulated):
    runner = TaskRunner(fail, clock=clock)
    with pytest.raises(Trouble):
        runner.start()
    assert runner.done()


class Kettle:
    def boil(self) -> Steps:
        yield None

    def __str__(self) -> str:
        return "Kettle [17]"

    __call__ = boil


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (endless, "Task endless"),
        (Kettle().boil, "Task boil from Kettle [17]"),
        (Kettle(), "Task Kettle [17]"),
    ],
)
def test_a_task_is_called_by_its_function_and_owner(clock: Simulated, task: Any, name: str):
    assert str(TaskRunner(task, clock=clock)) == name


# ------------------------------------------------------------------------------ what it may yield


@pytest.mark.parametrize(
    ("asked", "advanced"),
    [
        (3, [0, 0, 1, 1, 1, 2, 2, 2]),
        (2, [0, 1, 1, 2, 2, 3, 3, 4]),
        (1, [1, 2, 3, 4, 5, 6, 7, 8]),
        (0, [1, 2, 3, 4, 5, 6, 7, 8]),
        (-4, [1, 2, 3, 4, 5, 6, 7, 8]),
        (None, [1, 2, 3, 4, 5, 6, 7, 8]),
        (After(0), [1, 2, 3, 4, 5, 6, 7, 8]),
        (After(3), [0, 0, 1, 1, 1, 2, 2, 2]),
        (After(2.5), [0, 0, 1, 1, 1, 2, 2, 2]),
        (After(100), [0, 0, 0, 0, 0, 0, 0, 0]),
        (Woken(lambda: True), [1, 2, 3, 4, 5, 6, 7, 8]),
        (Woken(lambda: False), [0, 0, 0, 0, 0, 0, 0, 0]),
        (Woken(lambda: False, timeout_s=4), [0, 0, 0, 1, 1, 1, 1, 2]),
    ],
)
def test_a_task_is_advanced_when_it_wants_to_be(
    clock: Simulated, asked: Yielded, advanced: list[int]
):
    story = Story(*[asked] * 9)
    runner = TaskRunner(story.run, clock=clock)
    runner.start()
    seen = []
    for second in range(1, 9):
        clock.wait(second)
        runner.step()
        seen.append(story.told[-1])
    assert seen == advanced


def test_waiting_costs_turns_only_when_there_is_something_to_do(clock: Simulated):
    turns = []
    runner = TaskRunner(Story(After(3600), None, After(60), Woken(lambda: clock.now() > 5000)).run,
                        clock=clock)  # fmt: skip
    clock.call_at(4000, lambda: None)
    clock.call_at(6000, lambda: None)
    runner.call(progress_callback=lambda: turns.append(clock.now()))
    assert turns == [3600, 3601, 3661, 4000, 6000]


# --------------------------------------------------------------------------------- to the end


def test_between_two_steps_there_is_a_pause(clock: Simulated):
    runner = TaskRunner(Story(None, None, None).run, clock=clock)
    runner.start()
    runner.run_to_completion(wait_time=5)
    assert (runner.done(), clock.now()) == (True, 10)


@pytest.mark.parametrize(("wait_time", "ended_at"), [(5, 10), (1, 2), (0, 0), (None, 0)])
def test_a_call_pauses_after_the_second_step(
    clock: Simulated, wait_time: float | None, ended_at: float
):
    TaskRunner(Story(None, None, None).run, clock=clock).call(wait_time)
    assert clock.now() == ended_at


def test_without_a_pause_a_wish_is_still_waited_for(clock: Simulated):
    TaskRunner(Story(None, After(7)).run, clock=clock).call(None)
    assert clock.now() == 7


def test_callbacks_are_called_between_steps_and_at_the_end(clock: Simulated):
    story = Story(None, None)
    TaskRunner(story.run, clock=clock).call(
        progress_callback=lambda: story.told.append("between"),
        post_func=lambda: story.told.append("after"),
    )
    assert story.told == [0, "between", 1, "between", "end", "after"]


def test_what_the_callback_raises_is_thrown_into_the_task(clock: Simulated):
    told = []

    def task() -> Steps:
        try:
            yield None
        except Trouble:
            told.append("caught")
            yield None
        told.append("end")

    def between() -> None:
        if not told:
            raise Trouble

    TaskRunner(task, clock=clock).call(
        progress_callback=between, post_func=lambda: told.append("after")
    )
    assert told == ["caught", "end", "after"]


def test_what_the_task_does_not_catch_reaches_the_caller_and_nothing_is_done_after(
    clock: Simulated,
):
    story = Story(None, None)
    runner = TaskRunner(story.run, clock=clock)
    with pytest.raises(Trouble):
        runner.call(progress_callback=fail, post_func=lambda: story.told.append("after"))
    assert runner.done()
    assert story.told == [0]


def test_a_task_may_end_on_what_is_thrown(clock: Simulated):
    def task() -> Steps:
        try:
            yield None
        except Trouble:
            return

    runner = TaskRunner(task, clock=clock)
    runner.call(progress_callback=fail)
    assert runner.done()


def test_a_callback_may_cancel_the_task_and_raise(clock: Simulated):
    story = Story(None, None)
    runner = TaskRunner(story.run, clock=clock)

    def give_up() -> None:
        runner.cancel()
        raise Trouble

    with pytest.raises(Trouble):
        runner.call(progress_callback=give_up)
    assert story.told == [0, "closed"]


class Breaking(Simulated):
    def wait(self, until_s: float | None) -> None:
        raise KeyboardInterrupt


def test_whoever_breaks_off_the_wait_closes_the_task():
    story = Story(After(5))
    with pytest.raises(KeyboardInterrupt):
        TaskRunner(story.run, clock=Breaking()).call()
    assert story.told == [0, "closed"]


def test_runners_nest_and_say_what_they_wait_for(clock: Simulated):
    def outer() -> Steps:
        yield from TaskRunner(Story(After(10), None, 2).run, clock=clock).as_task()
        yield After(100)

    TaskRunner(outer, clock=clock).call()
    assert clock.now() == 10 + 1 + 2 + 100


def test_a_nested_deadline_ends_the_wait(clock: Simulated):
    def outer() -> Steps:
        with pytest.raises(Timeout):
            yield from TaskRunner(Story(After(1000)).run, clock=clock).as_task(timeout=30)

    TaskRunner(outer, clock=clock).call(timeout=60)
    assert clock.now() == 30


@pytest.mark.parametrize(("first", "then", "ends_at"), [(50, 20, 20), (20, 50, 20), (None, 7, 7)])
def test_a_started_task_takes_only_an_earlier_deadline(
    clock: Simulated, first: float | None, then: float, ends_at: float
):
    runner = TaskRunner(endless, After(1000), clock=clock)
    runner.start(timeout=first)
    steps = runner.as_task(timeout=then)
    next(steps)
    clock.wait(runner.due_at())
    with pytest.raises(Timeout):
        next(steps)
    assert clock.now() == ends_at


def test_closing_the_outer_closes_the_inner(clock: Simulated):
    story = Story(None)
    steps = TaskRunner(story.run, clock=clock).as_task()
    next(steps)
    steps.close()
    assert story.told == [0, "closed"]


def test_a_runner_that_is_done_is_an_empty_task(clock: Simulated):
    runner = TaskRunner(lambda: None, clock=clock)
    runner.start()
    told: list[str] = []
    assert list(runner.as_task(post_func=lambda: told.append("after"))) == []
    assert told == ["after"]


# ------------------------------------------------------------------------------------- time is up


def test_time_out_is_no_ordinary_exception():
    assert not issubclass(Timeout, Exception)


def test_a_plain_endless_task_meets_its_time_out(clock: Simulated):
    runner = TaskRunner(endless, clock=clock)
    runner.start(timeout=5)
    clock.wait(4.9)
    assert not runner.step()
    clock.wait(5)
    with pytest.raises(Timeout, match="Task endless Timed out"):
        runner.step()
    assert runner.done()


def test_plug_ins_that_swallow_everything_ordinary_do_not_swallow_it(clock: Simulated):
    def task() -> Steps:
        while True:
            with contextlib.suppress(Exception):
                yield None

    with pytest.raises(Timeout):
        TaskRunner(task, clock=clock).call(timeout=5)
    assert clock.now() == 5


def swallows_and_yields_on() -> Steps:
    try:
        yield None
    except Timeout:
        yield None


def swallows_and_ends() -> Steps:
    try:
        yield None
    except Timeout:
        return


def converts() -> Steps:
    try:
        yield None
    except Timeout as exc:
        raise Trouble from exc


@pytest.mark.parametrize("task", [swallows_and_yields_on, swallows_and_ends])
def test_a_task_that_swallows_its_time_out_is_done_and_nobody_is_told(
    clock: Simulated, task: Callable[[], Steps]
):
    runner = TaskRunner(task, clock=clock)
    runner.start(timeout=0.5)
    clock.wait(1)
    assert runner.step()


def test_a_task_that_yields_on_after_its_time_out_is_closed_there(clock: Simulated):
    told = []

    def task() -> Steps:
        try:
            yield from swallows_and_yields_on()
        finally:
            told.append("closed")

    runner = TaskRunner(task, clock=clock)
    runner.start(timeout=0.5)
    clock.wait(1)
    runner.step()
    assert told == ["closed"]


def test_a_task_that_converts_its_time_out_tells_the_other_error(clock: Simulated):
    runner = TaskRunner(converts, clock=clock)
    runner.start(timeout=0.5)
    clock.wait(1)
    with pytest.raises(Trouble):
        runner.step()
    assert runner.done()


@pytest.mark.parametrize("asked", [9, After(900), Woken(lambda: False)])
def test_who_waits_for_something_else_is_timed_out_all_the_same(clock: Simulated, asked: Yielded):
    with pytest.raises(Timeout):
        TaskRunner(endless, asked, clock=clock).call(timeout=5)
    assert clock.now() == 5


def test_time_can_be_up_before_the_first_step(clock: Simulated):
    with pytest.raises(Timeout):
        TaskRunner(endless, clock=clock).start(timeout=0)


def test_deadlines_know_which_is_earlier():
    early, late = Timeout("a", 1), Timeout("b", 2)
    assert early.earlier_than(late)
    assert early.earlier_than(None)
    assert not late.earlier_than(early)
    assert not early.earlier_than(early)


# --------------------------------------------------------------------------------------- cancel


@pytest.mark.parametrize("grace", [None, 0, 10])
def test_what_never_started_is_cancelled_at_once(clock: Simulated, grace: float | None):
    story = Story(None)
    runner = TaskRunner(story.run, clock=clock)
    runner.cancel(grace)
    assert (runner.started(), runner.done(), runner.step(), story.told) == (False, True, True, [])


@pytest.mark.parametrize("grace", [None, 0])
def test_without_grace_a_task_is_closed(clock: Simulated, grace: float | None):
    story = Story(None, None)
    runner = TaskRunner(story.run, clock=clock)
    runner.start()
    runner.cancel(grace)
    assert (runner.done(), story.told) == (True, [0, "closed"])
    runner.cancel()
    assert story.told == [0, "closed"]


@pytest.mark.parametrize("asked", [None, 100, After(100)])
def test_with_grace_a_task_runs_on_and_is_then_closed(clock: Simulated, asked: Yielded):
    story = Story(*[asked] * 50)
    runner = TaskRunner(story.run, clock=clock)
    runner.start()
    runner.cancel(grace_period=10)
    assert not runner.step()
    runner.run_to_completion()
    assert (runner.done(), story.told[-1], clock.now()) == (True, "closed", 10)


def test_a_task_may_end_within_its_grace(clock: Simulated):
    story = Story(None, None)
    runner = TaskRunner(story.run, clock=clock)
    runner.start()
    runner.cancel(grace_period=10)
    runner.run_to_completion()
    assert story.told == [0, 1, "end"]


@pytest.mark.parametrize(
    ("timeout", "graces", "ends"),
    [(5, [10], "time-out at 5"), (20, [10], "closed at 10"), (None, [30, 10, 20], "closed at 10")],
)
def test_grace_only_ever_shortens_the_time(
    clock: Simulated, timeout: float | None, graces: list[float], ends: str
):
    runner = TaskRunner(endless, clock=clock)
    runner.start(timeout)
    for grace in graces:
        runner.cancel(grace)
    try:
        runner.run_to_completion()
    except Timeout:
        assert ends == f"time-out at {clock.now():g}"
    else:
        assert ends == f"closed at {clock.now():g}"


def test_any_object_that_knows_when_it_is_due_is_a_wish(clock: Simulated):
    wish = types.SimpleNamespace(due_at=lambda asked_at: asked_at + 3)
    TaskRunner(Story(wish).run, clock=clock).call()
    assert clock.now() == 3
