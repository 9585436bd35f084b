"""The help of each group of commands tells whole sentences."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bloomery.cli.main import COMMANDS, main


@pytest.mark.parametrize("name", COMMANDS)
def test_no_summary_is_cut_or_marked_up(name: str) -> None:
    help_text = CliRunner().invoke(main, [name, "--help"]).output
    assert help_text.startswith("Usage: ")
    assert [line for line in help_text.splitlines() if line.endswith("...")] in (
        [], [help_text.splitlines()[0]]
    )  # fmt: skip
    assert "`" not in help_text
