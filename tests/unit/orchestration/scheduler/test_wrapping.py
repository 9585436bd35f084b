from __future__ import annotations

import pytest

from bloomery.orchestration.scheduler import After, Simulated, TaskRunner, wrappertask


class Trouble(Exception):
    pass


def child(told, *asks):
    try:
        for ask in asks:
            told.append(ask)
            yield ask
    except GeneratorExit:
        told.append("closed")
        raise


def test_a_yielded_task_takes_its_steps_in_place():
    told = []

    @wrappertask
    def parent():
        told.append("before")
        yield child(told, 1, None)
        yield 3
        yield child(told, After(2))
        told.append("after")
        return "answer"

    steps = parent()
    assert [next(steps) for _ in range(4)] == [1, None, 3, After(2)]
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == "answer"
    assert told == ["before", 1, None, After(2), "after"]
    assert parent.__name__ == "parent"


def failing():
    yield None
    raise Trouble


def test_an_error_of_the_child_is_the_parents_to_catch():
    told = []

    @wrappertask
    def parent():
        try:
            yield failing()
        except Trouble:
            told.append("caught")
        yield child(told, "more")

    assert list(parent()) == [None, "more"]
    assert told == ["caught", "more"]


def test_an_error_that_the_parent_does_not_catch_goes_on():
    @wrappertask
    def parent():
        yield failing()

    with pytest.raises(Trouble):
        list(parent())


def test_what_is_thrown_reaches_the_child_first():
    told = []

    def listening():
        try:
            yield None
        except Trouble:
            told.append("child")
            raise

    @wrappertask
    def parent():
        try:
            yield listening()
        except Trouble:
            told.append("parent")
        yield "on"

    steps = parent()
    next(steps)
    assert steps.throw(Trouble()) == "on"
    assert told == ["child", "parent"]


def test_closing_closes_child_and_parent():
    told = []

    @wrappertask
    def parent():
        try:
            yield child(told, 1)
        finally:
            told.append("parent")

    steps = parent()
    next(steps)
    steps.close()
    assert told == [1, "closed", "parent"]


def test_wrappers_nest_and_run_like_any_task():
    clock, told = Simulated(), []

    @wrappertask
    def inner():
        yield child(told, After(5))

    @wrappertask
    def outer():
        yield inner()
        yield inner()

    TaskRunner(outer, clock=clock).call()
    assert clock.now() == 10
