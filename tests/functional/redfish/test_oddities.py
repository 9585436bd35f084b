"""BMCs that answer oddly: each operation ends as its row says."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.redfish.test_faults import tool, trial
from tests.kit.machines import bmc_oddities
from tests.kit.machines.bmc_faults import Attempt
from tests.kit.machines.bmc_oddities import Oddity
from tests.kit.machines.odd_settings import ALL as ODDITIES

pytestmark = pytest.mark.timeout(300)  # a group of rows, which wait at a time
GROUP = 24
__all__ = ["tool", "trial"]  # fixtures


@pytest.fixture(scope="module")
def attempt_of(request: pytest.FixtureRequest, trial) -> Callable[[Oddity], Attempt]:
    """Run the selected rows in groups: processes that share the suite share the groups."""
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    selected = [call.params["oddity"] for call in calls if call and "oddity" in call.params]
    made: dict[str, Attempt] = {}

    def attempt(oddity: Oddity) -> Attempt:
        if oddity.id not in made:
            first = selected.index(oddity) // GROUP * GROUP
            group = selected[first : first + GROUP]
            attempts = bmc_oddities.try_all(trial, group)
            made.update((row.id, each) for row, each in zip(group, attempts, strict=True))
        return made[oddity.id]

    return attempt


@pytest.mark.sampled
@pytest.mark.parametrize("oddity", ODDITIES, ids=str)
def test_an_odd_bmc(attempt_of, oddity: Oddity) -> None:
    assert bmc_oddities.list_faults(oddity, attempt_of(oddity)) == []


def test_each_row_has_a_name_of_its_own_and_stands_on_the_page(tool) -> None:
    assert len({oddity.id for oddity in ODDITIES}) == len(ODDITIES)
    page = Path(tool.PAGE).read_text(encoding="utf-8")
    written = page[page.index(tool.ODD.splitlines()[1]) :].splitlines()
    section = tool.odd_section(ODDITIES).strip().splitlines()
    changed = list(difflib.unified_diff(written, section, n=0, lineterm=""))
    assert changed == [], "out of date: run tools/bmc_faults.py odd"
