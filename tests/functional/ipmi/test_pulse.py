"""The pulse looks at ipmi_sim's BMCs; it leaves to tasks, and to ipmitool, what has changed."""

from __future__ import annotations

import pytest

from bloomery.drivers.ipmi import tool
from tests.kit.machines.power_watch import PowerWatch


class Watch(PowerWatch):
    """``commands``: ipmitool's since the node was watched."""

    def __init__(self, stage, machine, monkeypatch, *, is_forced=True):
        super().__init__(
            stage, "ipmi", machine.driver_info, force_power_state_during_sync=is_forced
        )
        self.machine, self.commands, run = machine, [], tool.run

        def recorded(own, arguments, **more):
            self.commands.append(" ".join(arguments))
            return run(own, arguments, **more)

        monkeypatch.setattr(tool, "run", recorded)


@pytest.fixture
def watch(stage, machine, monkeypatch):
    return Watch(stage, machine, monkeypatch)


def test_a_machine_that_is_as_recorded_needs_no_ipmitool(watch):
    earlier = len(watch.machine.calls)
    watch.run(3)
    assert watch.machine.calls[earlier:] == ["get power"] * 3
    assert watch.commands == []


def test_the_row_follows_a_pressed_power_button(stage, machine, monkeypatch):
    watch = Watch(stage, machine, monkeypatch, is_forced=False)
    for kind, state in (("On", "power on"), ("ForceOff", "power off")):
        watch.machine.reset(kind)
        watch.run()
        assert watch.row.power_state == state
    assert set(watch.commands) == {"power status"}


def test_a_bmc_that_hangs_is_a_suspect_until_it_answers_a_look(watch):
    watch.machine.pause()
    watch.run()
    assert (watch.sync.suspects(), watch.row.maintenance) == (1, False)
    watch.machine.resume()
    while watch.clock.is_armed:
        watch.clock.turn_to_next()
        watch.rest()
    watch.run()
    assert (watch.sync.suspects(), watch.row.maintenance) == (0, False)
    assert watch.commands == []
