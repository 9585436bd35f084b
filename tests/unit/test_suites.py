"""The runner of suites: tools/suites.py."""

from __future__ import annotations

import contextlib
import importlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    yield importlib.import_module("suites")
    for name in ("suites", "servers"):
        monkeypatch.delitem(sys.modules, name)


@contextlib.contextmanager
def no_server(suites: ModuleType) -> Iterator[None]:
    raise suites.ServerMissing("there is no qemu")
    yield


@pytest.mark.parametrize(("ci", "result"), [("", "skipped"), ("true", "failed")])
@pytest.mark.parametrize("column", ["needs", "uses"])
def test_a_suite_without_its_server_is_skipped_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, suites: ModuleType, ci: str, result: str, column: str
) -> None:
    monkeypatch.setattr(suites, "SERVERS", {"qemu": lambda: no_server(suites)})
    suite = suites.Suite("vm", suites.When.NIGHTLY, "true", 60, **{column: ("qemu",)})
    with suites.Servers() as servers:
        session = suites.Session(runner=suites.Runner(), env={"CI": ci}, width=0, servers=servers)
        report = session.run(suite)
    if (ci, column) == ("", "uses"):
        assert report.result == "passed"
    else:
        assert (report.result, report.detail) == (result, "there is no qemu")


def test_a_server_is_started_once(monkeypatch: pytest.MonkeyPatch, suites: ModuleType) -> None:
    changes = []

    @contextlib.contextmanager
    def server() -> Iterator[str]:
        changes.append("started")
        yield "a server"
        changes.append("stopped")

    monkeypatch.setattr(suites, "SERVERS", {"postgresql": server})
    with suites.Servers() as servers:
        assert [servers.get("postgresql") for _ in range(3)] == ["a server"] * 3
        assert changes == ["started"]
    assert changes == ["started", "stopped"]


def names(suites: ModuleType, *argv: str) -> list[str]:
    args, _ = suites.parse(argv)
    return [suite.name for suite in suites.chosen(args, args.seed)]


def test_each_suite_runs_at_each_change_or_nightly(suites: ModuleType) -> None:
    change, nightly = names(suites), names(suites, "--nightly")
    assert change == ["tests", "lint", "types", "floors"]
    assert change + nightly == [suite.name for suite in suites.SUITES]


def test_ci_adds_each_of_those_in_turn(suites: ModuleType) -> None:
    in_turn = [suite.name for suite in suites.SUITES if suite.when is suites.When.IN_TURN]
    assert len(in_turn) > 5
    assert {
        tuple(names(suites, "--in-turn", "--seed", str(seed))) for seed in range(len(in_turn))
    } == {(*names(suites), name) for name in in_turn}


def test_what_is_tested_at_each_change_exists_and_is_tested_whole_nightly(
    suites: ModuleType,
) -> None:
    def rooms(names: list[str]) -> set[str]:
        commands = [suite.command for suite in suites.SUITES if suite.name in names]
        words = [word for command in commands for word in shlex.split(command)]
        return {word for word in words if word.startswith("tests/")}

    of_change = rooms(["tests"])
    assert all((ROOT / room).exists() for room in of_change)
    nightly = rooms(names(suites, "--nightly"))
    assert {"/".join(room.split("/")[:2]) for room in of_change} <= nightly
