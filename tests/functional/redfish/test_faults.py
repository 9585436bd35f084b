"""One bad answer, wherever it comes in an operation, fails nothing."""

from __future__ import annotations

import pytest

from tests.kit import bmc_faults


@pytest.fixture
def trial(tmp_path):
    with bmc_faults.Trial(tmp_path) as made:
        yield made


def test_a_single_fault_fails_nothing(trial) -> None:
    rows = trial.run(bmc_faults.single_cells())
    assert len(rows) > 80
    assert [str(row) for row in rows if row.outcome != bmc_faults.DONE] == []
