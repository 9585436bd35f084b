"""Run published suites of tests, and print each outcome as a line of JSON.

    python child.py openstack.tests.functional.baremetal [WORD ...]

Runs inside the environment of the published packages, so it imports nothing of ours.  ``WORD``:
only tests whose names have each of them.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import unittest
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO


class Outcomes(unittest.TestResult):
    """Prints outcomes as they come: ok, skipped, or failed with the last lines of its trace."""

    def __init__(self, report: TextIO) -> None:
        super().__init__()
        self.report = report

    def _print(self, test: Any, outcome: str, reason: str = "") -> None:
        line = {"test": test.id(), "outcome": outcome, "reason": reason[-500:]}
        self.report.write(json.dumps(line) + "\n")
        self.report.flush()

    def addSuccess(self, test: Any) -> None:  # noqa: N802  unittest's name
        self._print(test, "ok")

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802  unittest's name
        self._print(test, "skipped", reason)

    def addExpectedFailure(self, test: Any, _err: Any) -> None:  # noqa: N802  unittest's name
        self._print(test, "ok")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802  unittest's name
        self._print(test, "failed", "it was expected to fail")

    def addError(self, test: Any, err: Any, details: Any = None) -> None:  # noqa: N802  unittest's name
        reason = f"{err[0].__name__}: {err[1]}" if err else _text(details)
        self._print(test, "failed", reason.strip())

    addFailure = addError  # noqa: N815  unittest's name


def _text(details: Any) -> str:
    """Return what testtools has to say of a failure."""
    traceback = (details or {}).get("traceback")
    return traceback.as_text() if traceback is not None else str(details)


def tests_of(package: str) -> unittest.TestSuite:
    folder = Path(importlib.import_module(package).__path__[0])
    top = folder.parents[package.count(".")]
    return unittest.TestLoader().discover(str(folder), top_level_dir=str(top))


def chosen(suite: unittest.TestSuite, words: Sequence[str]) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, words)
        elif all(word in test.id() for word in words):
            yield test


def main() -> None:
    warnings.simplefilter("ignore")
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the tests print is not ours
    package, *words = sys.argv[1:]
    unittest.TestSuite(chosen(tests_of(package), words)).run(Outcomes(report))


if __name__ == "__main__":
    main()
