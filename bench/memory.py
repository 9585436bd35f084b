"""Resident memory of the server: fresh, with many nodes looked at, and with many lists at once.

Also that of API processes that share a port: what they share with each other counts once.
"""

from __future__ import annotations

import importlib.metadata
import threading
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa

from bench import event_relay, harness, many_conductors, population
from bench.harness import Client, Line, Server
from tools import servers

AT_ONCE = 8
HEAVY_ROUNDS = 2  # walks 10,000 nodes ten times
DETAIL = "/v1/nodes/detail?limit=1000"
_WORKERS = 2
_CONNECTIONS = 40  # so many that the kernel gives each worker some
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
    shared = _line(f"memory of bloomery api --workers {_WORKERS}, PSS", 135)
    shared.synchronous = None
    with servers.postgresql() as server:
        for _ in harness.rounds():
            shared.add(_workers_mib(sa.make_url(server.env["BLOOMERY_TEST_POSTGRESQL"])))
    return [*fresh.values(), walked, crowded, shared]


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


def _workers_mib(url: sa.URL) -> float:
    """Ask each worker of each API for a list; return the memory of the parent and the workers."""
    ports = [servers.free_port(), servers.free_port()]
    arguments = ["--port", str(ports[0]), "--orchestration-port", str(ports[1])]
    with harness.folder() as folder, event_relay.database(url) as db:
        options = many_conductors.shared_options(db, folder)
        arguments += ["--workers", str(_WORKERS)]
        with many_conductors.Role("api", folder, options, *arguments) as api:
            api.ready()
            for path, port in (("/v1/nodes", ports[0]), ("/v1/admin/stacks", ports[1])):
                for _ in range(_CONNECTIONS):
                    client = Client(port)
                    client.ask("GET", path)
                    client.close()
            return harness.pss_mib(api.pid)


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
