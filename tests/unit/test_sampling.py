"""The share of the cases of exhaustive tests: tests/kit/sampling.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import sampling

ROOT = Path(__file__).parents[2]
TABLE = """
import pytest

@pytest.mark.sampled
@pytest.mark.parametrize("case", range(20))
def test_sampled(case):
    pass

@pytest.mark.sampled
@pytest.mark.parametrize("case", range(3))
def test_few(case):
    pass

@pytest.mark.parametrize("case", range(20))
def test_whole(case):
    pass
"""


@pytest.mark.parametrize(
    ("cases", "each"), [(100, 8), (8, 8), (7, 8), (3, 8), (1, 8), (0, 8), (9, 1)]
)
def test_shares_of_all_seeds_are_all_cases_and_none_is_empty(cases: int, each: int) -> None:
    shares = [sampling.some(range(cases), each, seed) for seed in range(each)]
    assert {case for share in shares for case in share} == set(range(cases))
    assert all(shares) or not cases
    assert all(len(share) <= cases // each + 1 for share in shares)


def test_tables_that_are_marked_thin_out(tmp_path: Path) -> None:
    file = tmp_path / "test_drawn_up.py"
    file.write_text(TABLE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.kit.sampling", str(file)]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml")], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"BLOOMERY_SAMPLE": "8", "BLOOMERY_SEED": "2"}, check=False,
    )  # fmt: skip
    assert f"{3 + 1 + 20} passed, {17 + 2} deselected" in done.stdout, done.stdout
