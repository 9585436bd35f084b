"""Work that a request waits for without a thread: begun once, its result at the same place."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from bloomery import errors
from bloomery.model.request import Parked, Parking


def test_work_is_begun_once_and_its_result_meets_the_next_pass():
    parking, outcome, begun = Parking(), Future(), []

    def begin():
        begun.append(1)
        return outcome

    for _ in range(2):
        with pytest.raises(Parked) as parked:
            parking.result_of("ask", begin)
        assert parked.value.outcome is outcome
    outcome.set_result("pxe")
    assert parking.result_of("ask", begin) == "pxe"
    assert begun == [1]


def test_an_error_of_the_work_is_raised_as_it_is():
    parking, outcome = Parking(), Future()
    outcome.set_exception(errors.NodeNotFound(node="web-1"))
    with pytest.raises(errors.NodeNotFound):
        parking.result_of("ask", lambda: outcome)


def test_work_of_other_names_is_other_work():
    parking, one, other = Parking(), Future(), Future()
    one.set_result(1)
    other.set_result(2)
    assert parking.result_of("one", lambda: one) == 1
    assert parking.result_of("other", lambda: other) == 2
