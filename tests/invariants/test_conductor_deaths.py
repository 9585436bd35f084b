"""A conductor dies after each commit of what a stack orders; the engine lives on and ends it.

Whatever the death: each verb was ordered of each machine as often as without it, and nothing is
left over or was made twice.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.stacks.conductor_deaths import FLOWS, check, live, make_floor, script

OF_ONE = ("deploy", "rebuild")  # at each commit, with every run


@pytest.mark.parametrize("name", OF_ONE)
def test_an_instance_ends_the_same_wherever_its_conductor_dies(name: str, tmp_path: Path) -> None:
    check(FLOWS[name], tmp_path)


@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name in FLOWS if name not in OF_ONE])
@pytest.mark.parametrize(
    "every", [3, pytest.param(1, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_machines_end_the_same_wherever_a_conductor_dies(
    every: int, name: str, tmp_path: Path
) -> None:
    check(FLOWS[name], tmp_path, every)


def test_a_deployment_that_cannot_be_repeated_is_ordered_of_another_machine(
    tmp_path: Path,
) -> None:
    """The conductor dies in a step that may be done once only: the next attempt is elsewhere."""
    flow, again = FLOWS["deploy"], 0
    _, commits = live(flow, make_floor(tmp_path / "calm.sqlite", flow))
    for number in range(commits):
        floor = make_floor(tmp_path / f"{number}.sqlite", flow, script=script(resumable=False))
        end, _ = live(flow, floor, number)
        assert (end["stack"], end["allocations"]) == ("CREATE_COMPLETE", ["active"]), number
        states = sorted((state, bool(instance)) for state, _, instance, *_ in end["nodes"])
        assert states == [("active", True), ("available", False)], number
        assert end["orders"]["deploy"] <= 2, number
        again += end["orders"]["deploy"] == 2
    assert again >= 1
