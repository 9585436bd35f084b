"""Clients do anything in any order: as in the invariants, with more lives, and longer ones."""

from __future__ import annotations

import pytest

from tests.kit.probes import fuzz_life

pytestmark = pytest.mark.timeout(600)


def test_whatever_clients_do_nodes_rest_and_keep_what_was_acknowledged(target, seed):
    fuzz_life.run(target, seed, lives=80, steps=50)
