"""Each safeguard of a cluster is switched off in turn, and a seed notices.

The seeds pass with everything on (``tests/cluster/test_seeds.py``); they end with the first fault.
"""

from __future__ import annotations

import pytest

from tests.cluster import runs

SEEDS = "1-40"
NOTICED = {
    "guard": "",  # whoever writes under a lock just writes: it shows in one way or another
    "incarnation": " was sent after ",  # who was buried goes on as if nothing had happened
    "own-only": "buried",  # whoever starts frees everybody's nodes
    "burial": "at the end",  # nobody frees what a dead conductor held
    "journal": "a flow was lost",  # flows leave no rows
}


@pytest.mark.parametrize(("safeguard", "fault"), NOTICED.items())
def test_a_seed_notices_that_a_safeguard_is_off(safeguard: str, fault: str) -> None:
    findings = runs.findings("--off", safeguard, "--until-fault", "seeds", SEEDS)
    faults = findings[-1]["faults"]
    assert faults, f"nobody misses {safeguard}"
    assert any(fault in line for line in faults), faults
