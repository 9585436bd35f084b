"""Many clients after the same names at once: each is served or refused, none meets our errors."""

from __future__ import annotations

from tests.kit.probes import fuzz_crowd
from tests.kit.sampling import count


def test_crowd_after_the_same_few_names(target, seed):
    fuzz_crowd.run(target, seed, clients=8, requests=count(100))
