"""Resident memory of the server: fresh, with many nodes looked at, and with many lists at once."""

from __future__ import annotations

import importlib.metadata
import threading
from collections.abc import Sequence
from pathlib import Path

from bench import harness, population
from bench.harness import Line, Server

AT_ONCE = 8
HEAVY_ROUNDS = 2  # walks 10,000 nodes ten times
DETAIL = "/v1/nodes/detail?limit=1000"
_SYNC_S = 15  # a pass is over long before the next one
_PASS_S = 240
_QUIET_S = 0.5
_SYNCED_S = 2.5  # of CPU that the start and a pass take together, at least


def measure() -> Sequence[Line]:
    fresh = {types: _line(f"memory after the first GET, {name}", most)
             for types, name, most in _kinds()}  # fmt: skip
    walked = _line("memory after a detail list and a power sync", 110)
    crowded = _line(f"memory after {AT_ONCE} detail lists at once", 140)
    with harness.folder() as folder:
        home = population.make(folder / "home")
        for number in harness.rounds():
            for types, line in fresh.items():
                line.add(_fresh_mib(home, types))
            if number < HEAVY_ROUNDS:
                _load(home, walked, crowded)
    return [*fresh.values(), walked, crowded]


def _line(what: str, at_most: float) -> Line:
    return Line(what=what, unit="MiB", at_most=at_most)


def _kinds() -> list[tuple[str, str, float]]:
    """Enabled hardware types, what to call them, and how much they may take."""
    found = [("fake-hardware", "fake", 85.0)]
    if importlib.metadata.entry_points(group="bloomery.hardware.types", name="redfish"):
        found.append(("fake-hardware,redfish", "with Redfish", 95.0))
    return found


def _fresh_mib(home: Path, types: str) -> float:
    with Server(home, {"DEFAULT/enabled_hardware_types": types}) as server:
        server.client().ask("GET", "/v1/nodes?limit=1")
        return server.rss_mib()


def _load(home: Path, walked: Line, crowded: Line) -> None:
    """One power sync and one list, then lists at once, in the same life of a server."""
    with Server(home, {"conductor/sync_power_state_interval": _SYNC_S}) as server:
        harness.until(lambda: _has_synced(server), "a power sync", timeout_s=_PASS_S)
        _walk(server)
        walked.add(server.rss_mib())
        threads = [threading.Thread(target=_walk, args=(server,)) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        crowded.add(server.rss_mib())


def _has_synced(server: Server) -> bool:
    """Is a pass over?  It takes seconds of CPU; after it there is a pause without any."""
    before = server.cpu_s()
    threading.Event().wait(_QUIET_S)
    return before > _SYNCED_S and server.cpu_s() - before < 0.02


def _walk(server: Server) -> None:
    """Read 10,000 nodes in pages, and keep nothing."""
    client, marker = server.client(), ""
    for _ in range(population.MANY // 1000):
        said = client.ask("GET", DETAIL + marker)
        marker = "&marker=" + said.rpartition(b"marker=")[2][:36].decode()
    client.close()


if __name__ == "__main__":
    harness.main(measure)
