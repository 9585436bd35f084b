"""The pulse looks at ipmi_sim's BMCs; it leaves to tasks, and to ipmitool, what has changed."""

from __future__ import annotations

import dataclasses

import pytest

from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.drivers.ipmi import tool
from tests.kit.clock import HandClock
from tests.kit.waiting import wait_for


class Watch:
    """Power syncs of one node, which a look has begun to read; ``commands``: ipmitool's since."""

    def __init__(self, stage, machine, monkeypatch, *, is_forced=True):
        self.stage, self.machine, self.clock = stage, machine, HandClock()
        stage.site.service.periodics.stop()
        self.node = stage.enrol(driver="ipmi", driver_info=machine.driver_info)
        stage.ask(self.node, "manage")
        stage.wait_for(self.node, "manageable")
        runtime = stage.site.runtime
        conductor = dataclasses.replace(
            runtime.conf.conductor, force_power_state_during_sync=is_forced
        )
        conf = dataclasses.replace(runtime.conf, conductor=conductor)
        self.sync = PowerSync(
            dataclasses.replace(runtime, conf=conf, timers=self.clock), clock=self.clock
        )
        self.run(2)
        self.commands, run = [], tool.run

        def recorded(own, arguments, **more):
            self.commands.append(" ".join(arguments))
            return run(own, arguments, **more)

        monkeypatch.setattr(tool, "run", recorded)

    def run(self, times=1):
        for _ in range(times):
            self.sync.run()
            self.rest()

    def rest(self):
        wait_for(lambda: self.sync.is_idle, "the look to end")
        self.stage.wait_until_free(self.node)

    @property
    def row(self):
        return self.stage.site.node(self.node)


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
