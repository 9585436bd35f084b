"""A whole cluster, seed by seed, each in a process of its own: see ``cluster`` and ``story``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster import runs

BLOCK = 40


def require_no_fault(findings: list[dict[str, Any]]) -> None:
    broken = [finding for finding in findings if finding["faults"]]
    told = "\n".join(f"{one['name']}: {one['faults']}" for one in broken)
    assert not broken, (
        f"{len(broken)} of {len(findings)} went wrong; PYTHONHASHSEED=0 python -m "
        f"tests.cluster.run --trace 400 seeds NUMBER shows how\n{told}"
    )


@pytest.mark.parametrize("block", range(5))
def test_a_cluster_keeps_its_promises(block: int, seed: int) -> None:
    first = seed * 1000 + block * BLOCK
    findings = runs.findings("seeds", f"{first}-{first + BLOCK - 1}")
    require_no_fault(findings)
    assert sum(finding["acknowledged"] for finding in findings) > 5 * BLOCK
    assert sum(finding["bmc_writes"] for finding in findings) > 10 * BLOCK


@pytest.mark.long
@pytest.mark.parametrize("block", range(40))
def test_a_cluster_keeps_its_promises_at_length(block: int, seed: int) -> None:
    first = seed * 10_000 + 1000 + block * BLOCK
    require_no_fault(runs.findings("seeds", f"{first}-{first + BLOCK - 1}"))


def test_a_seed_replays_exactly(seed: int) -> None:
    once, again = runs.findings("seeds", f"{seed}"), runs.findings("seeds", f"{seed}")
    assert once == again
    assert once[0]["steps"] > 500


def test_a_peer_ends_what_a_conductor_began_wherever_it_dies(seed: int) -> None:
    """Each flow, and death at each fourth point of it; the seed says which ones."""
    require_no_fault(runs.findings("deaths", "--every", "4", "--first", f"{1 + seed % 4}"))


@pytest.mark.long
def test_a_peer_ends_what_a_conductor_began_at_every_point() -> None:
    require_no_fault(runs.findings("deaths"))


def test_a_conductor_that_goes_mute_sends_nothing_that_meets_the_orders_of_its_heir(
    seed: int,
) -> None:
    """At each twelfth point of a deployment signs of life are lost, and BMCs are slow."""
    arguments = ("--mute", "--verb", "active", "--every", "12", "--first", f"{1 + seed % 12}")
    require_no_fault(runs.findings("deaths", *arguments))


@pytest.mark.long
def test_a_conductor_that_goes_mute_at_any_point_of_any_flow_harms_nobody() -> None:
    require_no_fault(runs.findings("deaths", "--mute"))
