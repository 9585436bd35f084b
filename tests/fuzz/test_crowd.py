"""Many clients after the same names at once: as in the invariants, for longer."""

from __future__ import annotations

import pytest

from tests.kit.probes import fuzz_crowd

pytestmark = pytest.mark.timeout(600)


def test_crowd_after_the_same_few_names(target, seed):
    fuzz_crowd.run(target, seed, clients=12, requests=2_000)
