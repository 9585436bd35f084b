"""An engine is killed before and after each commit of a stack of machines; another one ends it.

Whatever the kill: each verb was ordered of each node as often as without it, nothing was made
twice, and nothing is left over.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.stacks.machine_kills import FLOWS, begun, check, run


@pytest.mark.sampled
@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize(
    "every", [3, pytest.param(1, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_machines_end_the_same_and_are_ordered_nothing_twice(
    every: int, name: str, tmp_path: Path
) -> None:
    start = begun(FLOWS[name], tmp_path)
    check(FLOWS[name], start, tmp_path, every)
    start.db.close()


@pytest.mark.parametrize("name", ["delete", "delete software"])
def test_nothing_of_a_stack_that_was_deleted_is_left(name: str, tmp_path: Path) -> None:
    end, _ = run(FLOWS[name], begun(FLOWS[name], tmp_path))
    assert not any(end["records"].values())
    assert not any(end["software"].values())
    assert end["nodes"] == {
        ("available", "power off", False, None, False, False, False, False, False): 2
    }
