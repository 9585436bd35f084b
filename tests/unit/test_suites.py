"""The runner of suites: tools/suites.py."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TOOLS = str(Path(__file__).parents[2] / "tools")


@pytest.mark.parametrize(
    ("ci", "optional", "result"),
    [
        ("", False, "skipped"), ("", True, "skipped"),
        ("true", False, "failed"), ("true", True, "skipped"),
    ],
)  # fmt: skip
def test_a_suite_without_what_it_needs_is_named(
    monkeypatch: pytest.MonkeyPatch, ci: str, optional: bool, result: str
) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    suites, servers = (importlib.import_module(name) for name in ("suites", "servers"))

    @contextlib.contextmanager
    def nothing() -> Iterator[None]:
        raise servers.ServerMissing("there is no qemu")
        yield

    monkeypatch.setattr(suites, "SERVERS", {"qemu": nothing})
    session = suites.Session(runner=suites.Runner(), env={"CI": ci}, width=0)
    report = session.run(suites.Suite("vm", "true", 1, needs=("qemu",), optional=optional))
    assert (report.result, report.detail) == (result, "there is no qemu")
    for name in ("suites", "servers"):
        monkeypatch.delitem(sys.modules, name)
