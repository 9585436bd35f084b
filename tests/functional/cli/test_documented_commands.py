"""The commands of stacks that the pages show: each does what the page says, in the page's order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.cli.conftest import Run
from tests.invariants.test_docs import ROOT, words_after

ASKS = ("up", "down")


@pytest.mark.parametrize(
    "page", ["README.md", "doc/tutorials/first-stack.md", "doc/guides/stacks.md"]
)
def test_documented_commands_of_stacks_work(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)  # a command may write files
    seen = []
    for words in words_after(Path(ROOT / page), "bloomery"):
        if words[0] != "stack" or not {"hello", "list"}.intersection(words):
            continue  # named in passing
        line = [word for word in words if word != "--follow"]
        if words[1] in ASKS:
            line.append("--yes")
        result = run(" ".join(line))
        assert result.exit_code == 0, (line, result.output)
        seen.append(words[1])
    assert {"up", "plan", "why", "events", "down"} <= set(seen)
    if "hello" in run("stack list").output:
        assert run("stack down hello --yes").exit_code == 0
