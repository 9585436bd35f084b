"""Lines for terminals: columns, wrapped between words, numbers with nouns."""

from __future__ import annotations

import pytest

from bloomery.cli import terminal

EDGE = 44
LONG = "the BMC does not answer since noon, asked last at one"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "edge", lambda: EDGE)


@pytest.mark.usefixtures("narrow")
def test_a_long_last_column_is_wrapped_below_itself() -> None:
    heading, row = terminal.columns([("NAME", "PROBLEM"), ("web-1", LONG)])
    first, *others = row.split("\n")
    assert heading == "NAME   PROBLEM"
    assert all(len(each) <= EDGE for each in (first, *others))
    assert all(each.startswith("       ") for each in others)
    assert " ".join([first, *map(str.strip, others)]) == f"web-1  {LONG}"


@pytest.mark.usefixtures("narrow")
def test_a_line_is_wrapped_behind_its_own_indent(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.echo(f"  {LONG}")
    first, *others = capsys.readouterr().out.splitlines()
    assert (first[:3], {each[:5] for each in others}) == ("  t", {f"    {others[0][4]}"})


@pytest.mark.usefixtures("narrow")
def test_columns_without_room_are_wrapped_each() -> None:
    lines = terminal.columns([("12:00", LONG, LONG), ("12:01", "short", "end")])
    assert all(len(line) <= EDGE for line in lines), lines
    assert "short" in lines[-1]
    assert sorted(" ".join(lines).split()) == sorted(f"12:00 {LONG} {LONG} 12:01 short end".split())


def test_what_is_no_terminal_gets_whole_lines() -> None:
    assert terminal.columns([("web-1", LONG * 9)]) == [f"web-1  {LONG * 9}"]


def test_numbers_have_their_nouns() -> None:
    assert [terminal.amount(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
    assert terminal.tally("row", ["created", "refused", "created"]) == (
        "3 rows: 2 created, 1 refused"
    )
    assert terminal.tally("row", []) == "0 rows: -"
