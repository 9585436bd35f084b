"""Templates give what the published Heat gave for them, or differ for a written reason."""

from __future__ import annotations

import json

import pytest

from tests.conformance import allowed, cases, compare


@pytest.fixture(scope="module")
def asked() -> list[dict[str, object]]:
    return compare.every_case()


@pytest.fixture(scope="module")
def rows(asked):
    return list(compare.differences(asked, compare.recorded()))


def test_every_case_that_is_drawn_has_a_recorded_answer(asked):
    assert len(asked) == cases.EXPRESSIONS + cases.TEMPLATES
    assert [case["id"] for case in asked] == list(compare.recorded())


def test_nothing_differs_without_a_reason(rows):
    assert compare.judge(rows) == []


def test_both_values_and_refusals_are_compared():
    answers = list(compare.recorded().values())
    refused = [answer for answer in answers if answer["error"]]
    told = [answer for answer in answers if any("value" in o for o in answer["outputs"].values())]
    assert len(refused) > 400
    assert len(told) > 1_000


@pytest.mark.parametrize("name", ["expression-0", "template-137-none"])
def test_another_value_or_class_is_noticed(name, asked):
    (case,) = [case for case in asked if case["id"] == name]
    told = json.loads(json.dumps(compare.recorded()))
    told[name]["status"] = "CREATE_PAUSED"
    (found,) = compare.differences([case], told)
    (fault,) = [fault for fault in compare.judge([found]) if fault.startswith(name)]
    assert "CREATE_PAUSED" in fault


def test_an_allowance_that_would_have_to_grow_is_a_fault(rows):
    name = next(iter(allowed.ALLOWED))
    row = next(each for each in rows if allowed.reason(each.case, each.theirs, each.ours) == name)
    assert any(fault.startswith(f"{name}: ") for fault in compare.judge([*rows, row]))


def test_an_allowance_that_nothing_needs_is_a_fault():
    needed = [name for name, allowance in allowed.ALLOWED.items() if allowance.most]
    assert len(compare.judge([])) == len(needed)
