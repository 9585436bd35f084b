"""What a long run says each minute: tests/kit/progress.py."""

from __future__ import annotations

import types
from typing import Any

import pytest

from tests.kit import progress


def report(test: str, when: str = "call", outcome: str = "passed") -> Any:
    passed = outcome == "passed"
    return types.SimpleNamespace(nodeid=f"tests/{test}", when=when, outcome=outcome, passed=passed)


def test_each_minute_says_what_has_passed_in_which_room(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    reporter: Any = types.SimpleNamespace(ensure_newline=lambda: None, write_line=lines.append)
    now = 1000.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    of_run = progress.Progress(reporter)
    for when in ("setup", "call", "teardown"):
        of_run.pytest_runtest_logreport(report("unit/db/test_nodes.py::test_a", when))
    of_run.pytest_runtest_logreport(report("unit/test_b.py::test_b", "setup", "failed"))
    assert lines == []
    now += 60.0
    of_run.pytest_runtest_logreport(report("functional/test_c.py::test_c"))
    assert lines == ["after 1 min: 1 passed in unit, 1 failed in unit, 1 passed in functional"]
    of_run.pytest_runtest_logreport(report("unit/test_d.py::test_d"))
    assert len(lines) == 1
