"""The clock of this machine waits until a moment; the clock of a simulation jumps there."""

from __future__ import annotations

import pytest

from bloomery.cli.service.template import Monotonic
from bloomery.orchestration import simulation


def test_it_waits_until_the_moment():
    clock = Monotonic()
    until_s = clock.now() + 0.05
    clock.wait(until_s)
    assert clock.now() >= until_s


def test_a_moment_that_lies_behind_is_not_waited_for():
    clock = Monotonic()
    clock.wait(clock.now() - 60)


@pytest.mark.parametrize("clock", [Monotonic(), simulation.SimulatedClock()])
def test_nobody_is_waited_for_who_could_not_come(clock):
    with pytest.raises(simulation.Stuck):
        clock.wait(None)


def test_simulated_time_jumps_and_never_goes_back():
    clock = simulation.SimulatedClock(100)
    clock.wait(160)
    clock.wait(130)
    assert clock.now() == 160


def test_a_stack_that_ran_out_of_time_says_how_to_have_more(typed, tmp_path):
    file = tmp_path / "slow.yaml"
    file.write_text(
        "heat_template_version: 2016-10-14\n"
        "resources: {a: {type: OS::Heat::Delay, properties: {min_wait: 3600}}}\n"
    )
    done = typed("run", str(file))
    assert done.exit_code == 1
    assert "CREATE_FAILED: Timed out after 60 minutes; --timeout allows for more" in done.output
    assert "CREATE_COMPLETE" in typed("run", str(file), "--timeout", "61m").output
