"""What counts as worse than Ironic."""

from __future__ import annotations

import json

from tests.conformance.clients import suites

OK, FAILED = {"outcome": "ok"}, {"outcome": "failed"}


def test_what_works_there_must_work_here():
    theirs = {"a": "ok", "b": "ok", "c": "failed"}
    assert suites.worse({"a": OK, "b": FAILED, "c": FAILED}, theirs) == ["b"]


def test_what_did_not_run_here_does_not_work():
    assert suites.worse({}, {"a": "ok"}) == ["a"]


def test_the_record_holds_both_suites():
    record = json.loads(suites.RECORD.read_text())
    assert {name: len(tests) > 90 for name, tests in record.items()} == dict.fromkeys(
        suites.SUITES, True
    )
