"""What 10,000 nodes cost that nobody asks about: at rest, and in a power sync."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from bench import harness, population
from bench.harness import Line, Server

WINDOW_S = 8.0
SYNC_S = 120  # the usual interval, which the cost of one pass is spread over
_FIRST_S = 2
_QUIET_S = 0.5


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
                    idle.add(_resting_share(resting))
    return idle, sync


def _resting_share(server: Server) -> float:
    """Return percent of a core over a window."""
    before = server.cpu_s()
    time.sleep(WINDOW_S)
    return (server.cpu_s() - before) * 100 / WINDOW_S


def _pass_s(home: Path) -> float:
    """Return the CPU of one power sync: that of a fresh server from its rest to its next rest."""
    with Server(home, {"conductor/sync_power_state_interval": _FIRST_S}) as server:
        before = server.cpu_s()
        harness.until(lambda: server.cpu_s() - before > 0.2, "the power sync")
        harness.until(lambda: _rests(server), "the end of the power sync")
        return server.cpu_s() - before


def _rests(server: Server) -> bool:
    before = server.cpu_s()
    time.sleep(_QUIET_S)
    return server.cpu_s() - before < 0.02


if __name__ == "__main__":
    harness.main(measure)
