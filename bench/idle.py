"""What 10,000 nodes cost that nobody asks about: at rest, and in a power sync."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from bench import harness, inside, population
from bench.harness import Line, Server
from bloomery.conductor.periodics.power_sync import PowerSync

WINDOW_S = 8.0
SYNC_S = 120  # the usual interval, which the cost of one pass is spread over


def measure() -> Sequence[Line]:
    idle = Line(what=f"idle with {population.MANY:,} nodes", unit="%", at_most=1,
                note=f"windows of {WINDOW_S:g} s")  # fmt: skip
    sync = Line(
        what=f"power sync of {population.MANY:,} nodes each {SYNC_S} s", unit="%", at_most=8
    )
    with harness.folder() as folder:
        home = population.make(folder / "home")
        with Server(home) as resting:
            resting.client().ask("GET", "/v1/nodes?limit=1")
            with harness.copy_of(home) as other:
                for _ in harness.rounds():
                    sync.add(_pass_s(other) * 100 / SYNC_S)
                    idle.add(_share(resting))
    return idle, sync


def _share(server: Server) -> float:
    """Return percent of a core over a window."""
    before = server.cpu_s()
    time.sleep(WINDOW_S)
    return (server.cpu_s() - before) * 100 / WINDOW_S


def _pass_s(home: Path) -> float:
    """Return the CPU of one power sync that does not pace itself."""
    with inside.conductor(home) as runtime:
        unpaced = dataclasses.replace(runtime.conf.conductor, sync_power_state_interval=1)
        conf = dataclasses.replace(runtime.conf, conductor=unpaced)
        sync = PowerSync(dataclasses.replace(runtime, conf=conf))
        before = time.process_time()
        sync.run()
        harness.until(lambda: sync.is_idle, "the looks to end")
        return time.process_time() - before


if __name__ == "__main__":
    harness.main(measure)
