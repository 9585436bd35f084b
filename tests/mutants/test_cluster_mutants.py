"""Each safeguard of a cluster is switched off in turn, and a seed, or a flow, notices.

Both pass with everything on (``tests/cluster/test_seeds.py``); they end with
the first fault.
"""

from __future__ import annotations

import pytest

from tests.cluster import runs

SEEDS = ("seeds", "1-40")
MUTE = ("deaths", "--mute", "--verb", "active", "--every", "3")
OFF = {
    "guard": SEEDS,  # whoever writes under a lock just writes
    "incarnation": SEEDS,  # who was buried goes on as if nothing had happened
    "own-only": SEEDS,  # whoever starts frees everybody's nodes
    "burial": SEEDS,  # nobody frees what a dead conductor held
    "journal": SEEDS,  # flows leave no rows
    "lease": MUTE,  # who sent no heartbeat for long goes on with its orders to BMCs
}


@pytest.mark.parametrize("safeguard", OFF)
def test_it_is_noticed_that_a_safeguard_is_off(safeguard: str) -> None:
    findings = runs.findings("--off", safeguard, "--until-fault", *OFF[safeguard])
    assert findings[-1]["faults"], f"nobody misses {safeguard}"
