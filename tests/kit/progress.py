"""Say each minute how many tests have passed, room by room."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

import pytest

EVERY_S: Final = 60.0


class Progress:
    """Of a whole run: with several processes it hears of the tests of all of them."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._began = self._printed = time.monotonic()
        self._results: Counter[tuple[str, str]] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self._results[report.nodeid.split("/")[1], report.outcome] += 1
        if time.monotonic() - self._printed >= EVERY_S:
            self._printed = time.monotonic()
            self._reporter.ensure_newline()
            self._reporter.write_line(self.text(self._printed - self._began))

    def text(self, spent_s: float) -> str:
        rooms = (f"{count} {result} in {room}" for (room, result), count in self._results.items())
        return f"after {spent_s / 60:.0f} min: {', '.join(rooms)}"


def pytest_configure(config: pytest.Config) -> None:
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(Progress(reporter), "progress of tests")
