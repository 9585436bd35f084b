"""What Heat's own tests may fail here."""

from __future__ import annotations

from pathlib import Path

from tests.conformance import heat_suite

OK, FAILED = {"outcome": "ok", "reason": ""}, {"outcome": "failed", "reason": "x"}


def test_only_named_tests_have_an_excuse():
    name = "heat_integrationtests.functional.test_template_resource.ValidateFacadeTest."
    assert heat_suite.excuse(f"{name}test_missing_param") == heat_suite.SENTENCE
    assert heat_suite.excuse(f"{name}test_other") is None


def test_what_is_skipped_or_failed_has_not_passed():
    outcomes = {"a": OK, "b": FAILED, "c": {"outcome": "skipped", "reason": ""}}
    assert heat_suite.passed(outcomes) == {"a"}


def test_each_excuse_is_told_among_the_differences():
    page = Path("doc/reference/differences.md").read_text(encoding="utf-8")
    told = {
        heat_suite.SENTENCE: "Sentences of faults in templates",
        heat_suite.NO_TYPE: "Types of services that are not there",
    }
    assert all(told[why] in page for why in heat_suite.ALLOWED.values())
