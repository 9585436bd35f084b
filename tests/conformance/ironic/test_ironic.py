"""The REST API answers as the published Ironic did, or differs for a written reason."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from tests.conformance.ironic import allowed, compare, ours, plain, stories, story_document
from tests.conformance.ironic.exchange import Reply
from tests.conformance.ironic.script import NEWEST
from tests.kit.sampling import EACH, some

pytestmark = pytest.mark.timeout(400)  # two thousand requests, asked once by each process of tests


@pytest.fixture(scope="module")
def told():
    return stories.draw(compare.SEED)


@pytest.fixture(scope="module")
def rows(told):
    with ours.running() as address:
        answers = compare.ask(address, some(told))
    return list(compare.comparisons(some(told), compare.recorded(), answers))


def test_every_request_that_is_drawn_has_a_recorded_answer(told):
    recorded = compare.recorded()
    assert [story.name for story in told] == list(recorded)
    assert [len(story.calls) for story in told] == [len(recorded[s.name]) for s in told]


def test_nothing_differs_without_a_reason(rows):
    assert compare.judge(rows, counts=EACH == 1) == []


def test_successes_errors_and_old_versions_are_compared(told):
    answers = [answer for story in compare.recorded().values() for answer in story]
    errors = [answer for answer in answers if "error" in answer]
    old = [call for story in told for call in story.calls if call.version != f"1.{NEWEST}"]
    assert len(answers) / 3 < len(errors) < len(answers)
    assert len(old) > len(answers) / 5


def test_nobody_elses_sentences_are_recorded():
    text = json.dumps(compare.recorded())
    assert "could not be found" not in text
    assert "faultstring" not in text


def test_every_operation_of_the_document_is_asked(told):
    calls = {(call.method, call.path.partition("?")[0]) for story in told for call in story.calls}
    for operation in story_document.operations():
        path = re.compile(re.sub(r"{\w+}", "[^/]+", operation.path))
        asked = (each for method, each in calls if method == operation.method)
        assert any(path.fullmatch(each) for each in asked), operation.name


def test_two_thousand_requests_are_drawn_from_the_document_always_the_same():
    drawn = [script.story() for script in story_document.draw(compare.SEED)]
    assert sum(len(story.calls) for story in drawn) >= 2000
    assert drawn == [script.story() for script in story_document.draw(compare.SEED)]
    assert drawn != [script.story() for script in story_document.draw(compare.SEED + 1)]


def test_another_answer_is_noticed(rows):
    row = dataclasses.replace(rows[0].call, path="/v1/nodes")
    other = rows[0]._replace(call=row, place="status", theirs=200, ours=202)
    assert any("202" in fault for fault in compare.judge([*rows, other]))


def test_an_allowance_that_would_have_to_grow_is_a_fault(rows):
    faults = compare.judge([*rows, *rows[:1] * 1000])
    assert any(fault.startswith(f"{allowed.reason(rows[0])}: ") for fault in faults)


def test_one_more_reason_is_a_fault(rows, monkeypatch):
    more = {**allowed.ALLOWED, "one more": allowed.Allowance("", 0, lambda _row: False)}
    monkeypatch.setattr(allowed, "ALLOWED", more)
    assert f"{len(more)} reasons, {allowed.MOST_REASONS} are allowed" in compare.judge(rows)


def test_an_allowance_that_nothing_needs_is_a_fault():
    assert len(compare.judge([])) == len(allowed.ALLOWED)


def test_ids_of_the_client_stay_and_those_of_the_server_are_counted():
    tokens = plain.Tokens("http://a:1")
    mine, theirs = ("12345678-1234-4234-8234-1234567890a" + digit for digit in "bc")
    tokens.keep(mine)
    body = json.dumps({"uuid": mine, "href": f"http://a:1/v1/{theirs}", "again": theirs})
    answer = plain.answer(Reply(200, {}, body.encode()), tokens)
    assert answer["body"] == {"uuid": mine, "href": "<url>/v1/<id 1>", "again": "<id 1>"}


def test_an_allowance_that_could_shrink_is_a_fault(rows):
    faults = compare.judge(rows[1:])
    assert any(fault.startswith(f"{allowed.reason(rows[0])}: ") for fault in faults)
