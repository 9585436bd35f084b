"""What is typed at a console: the escape of ssh, in pieces of any size."""

from __future__ import annotations

import pytest

from bloomery.cli.console import Escape

CASES = {  # typed: what the machine gets, and whether the session ends, help is asked for
    b"root\r": (b"root\r", False, False),
    b"~.": (b"", True, False),
    b"ls\r~.x": (b"ls\r", True, False),
    b"ls\n~.": (b"ls\n", True, False),
    b"a~.": (b"a~.", False, False),
    b"~~.": (b"~.", False, False),
    b"~~\r~.": (b"~\r", True, False),
    b"~?": (b"", False, True),
    b"~?~.": (b"", True, True),
    b"~x\r": (b"~x\r", False, False),
    b"~\r~.": (b"~\r", True, False),
    b"~/bin~.": (b"~/bin~.", False, False),
}


@pytest.mark.parametrize("size", [1, 2, 99])
@pytest.mark.parametrize("typed", CASES)
def test_the_escape_is_found_at_the_begin_of_a_line(typed, size):
    escape, sent = Escape(), b""
    for start in range(0, len(typed), size):
        if not escape.has_ended:
            sent += escape.filter(typed[start : start + size])
    assert (sent, escape.has_ended, escape.asks_help) == CASES[typed]
