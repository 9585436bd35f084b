"""Each safeguard of a cluster is switched off in turn, and a seed notices.

The seeds pass with everything on (``tests/cluster/test_seeds.py``); they end with the first fault.
"""

from __future__ import annotations

import pytest

from tests.cluster import runs

SEEDS = "1-40"
OFF = (
    "guard",  # whoever writes under a lock just writes
    "incarnation",  # who was buried goes on as if nothing had happened
    "own-only",  # whoever starts frees everybody's nodes
    "burial",  # nobody frees what a dead conductor held
    "journal",  # flows leave no rows
)


@pytest.mark.parametrize("safeguard", OFF)
def test_a_seed_notices_that_a_safeguard_is_off(safeguard: str) -> None:
    findings = runs.findings("--off", safeguard, "--until-fault", "seeds", SEEDS)
    assert findings[-1]["faults"], f"nobody misses {safeguard}"
