"""Clients do anything in any order: every node rests, and what was acknowledged is kept."""

from __future__ import annotations

from tests.kit.probes import fuzz_life
from tests.kit.sampling import count


def test_whatever_clients_do_nodes_rest_and_keep_what_was_acknowledged(target, seed):
    fuzz_life.run(target, seed, lives=count(15), steps=25)
