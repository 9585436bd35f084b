"""Power syncs of one node that has a real driver, turned by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.model.node import Node
from tests.kit.clock import HandClock
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for


class PowerWatch:
    """A manageable node, which looks have begun to read; ``options`` of [conductor].

    Timers of power sync and of its flows turn with ``clock``.
    """

    def __init__(
        self, stage: Stage, driver: str, driver_info: dict[str, Any], **options: Any
    ) -> None:
        self.stage, self.clock = stage, HandClock()
        stage.site.service.periodics.stop()
        self.node = stage.enrol(driver=driver, driver_info=driver_info)
        stage.ask(self.node, "manage")
        stage.wait_for(self.node, "manageable")
        runtime = stage.site.runtime
        conductor = dataclasses.replace(runtime.conf.conductor, **options)
        conf = dataclasses.replace(runtime.conf, conductor=conductor)
        self.runtime = dataclasses.replace(runtime, conf=conf, timers=self.clock)
        self.sync = PowerSync(self.runtime, clock=self.clock)
        self.run(2)  # by a task, which records the health; then by a look

    def run(self, times: int = 1) -> None:
        for _ in range(times):
            self.sync.run()
            self.rest()

    def rest(self) -> None:
        """Wait for the end of the look, and of what it has begun."""
        wait_for(lambda: self.sync.is_idle, "the look to end")
        self.stage.wait_until_free(self.node)

    @property
    def row(self) -> Node:
        return self.stage.site.node(self.node)
