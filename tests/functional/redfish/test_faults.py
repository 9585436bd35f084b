"""Every fault of a BMC in every operation, once and for ever: the page says what came of it."""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path

import pytest

from tests.kit.machines import bmc_faults
from tests.kit.sampling import EACH, count

pytestmark = pytest.mark.timeout(900)  # a thousand runs, each of which has a limit of its own
TOOL = Path(__file__).resolve().parents[3] / "tools" / "bmc_faults.py"


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    with bmc_faults.Trial(tmp_path_factory.mktemp("faults")) as made:
        yield made


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("tool_bmc_faults", TOOL)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_fault_in_every_operation(trial, tool) -> None:
    """One test: processes that share this suite would each make the runs for their part of it."""
    rows = trial.run(bmc_faults.all_cells())
    single = [row for row in rows if not row.cell.lasts]
    assert len(single) > count(300)
    assert [str(row) for row in single if row.outcome != bmc_faults.DONE] == []
    assert [str(row) for row in rows if not row.hits] == [], "the fault met no request"
    assert [(str(row), row.took_s) for row in rows if not row.is_in_time] == []
    assert [str(row) for row in rows if not row.recovers] == []
    assert any(row.cell.tls for row in rows)
    assert tool.differences_over_tls(rows) == []
    if EACH > 1:
        return  # the page of a share of them is another one
    written = tool.PAGE.read_text(encoding="utf-8").splitlines()
    changed = list(difflib.unified_diff(written, tool.page(rows).splitlines(), n=0, lineterm=""))
    assert changed == [], "out of date: run make faults"


def test_whichever_answer_is_lost_the_operation_ends_well(trial) -> None:
    rows = trial.lose_each_answer()
    assert [str(row) for row in rows if row.outcome != bmc_faults.DONE] == []
    assert sum(row.hits for row in rows) > count(100)
