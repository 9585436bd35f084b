"""GET, POST and PATCH of one node: CPU of the server per request."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import bare, harness
from bench.harness import Client, Line

GETS = 600
WRITES = 200

Ask = Callable[[Client, int], object]
Peer = harness.Server | bare.Bare


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One kind of request; ``ask`` gets a client and a number that never comes again."""

    line: Line
    ask: Ask
    count: int

    def measure(self, server: harness.Server, floor: bare.Bare) -> None:
        connections = self.line.connections or 1
        self.line.add(
            _per_request_ms(server, self.ask, self.count, connections),
            _per_request_ms(floor, self.ask, self.count, connections),
        )


_NUMBERS = itertools.count(1)


def _per_request_ms(peer: Peer, ask: Ask, count: int, connections: int) -> float:
    clients = [peer.client() for _ in range(connections)]
    for client in clients:
        ask(client, next(_NUMBERS))
    before = peer.cpu_s()
    _ask_all(clients, ask, count)
    took_s = peer.cpu_s() - before
    for client in clients:
        client.close()
    return took_s * 1000 / count


def _ask_all(clients: Sequence[Client], ask: Ask, count: int) -> None:
    """Send so many requests over all clients, each in a thread of its own."""

    def work(client: Client) -> None:
        for _ in range(count // len(clients)):
            ask(client, next(_NUMBERS))

    if len(clients) == 1:
        work(clients[0])
        return
    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _node(number: int) -> dict[str, object]:
    return {
        "driver": "fake-hardware",
        "name": f"node-{number}",
        "driver_info": {"redfish_address": "https://10.0.0.1", "redfish_password": "secret"},
        "properties": {"cpu_arch": "x86_64", "memory_mb": 65536},
        "extra": {"rack": "7"},
    }


def _subjects(path: str) -> list[Subject]:
    def get(client: Client, number: int) -> object:
        return client.ask("GET", path)

    def post(client: Client, number: int) -> object:
        return client.ask("POST", "/v1/nodes", _node(number))

    def patch(client: Client, number: int) -> object:
        return client.ask("PATCH", path, [{"op": "add", "path": "/extra/n", "value": number}])

    said = (
        ("GET one node", get, GETS, 2.5, 1),
        ("GET one node, at once", get, GETS, 3, 8),
        ("POST a node", post, WRITES, 3, 1),
        ("PATCH a node", patch, WRITES, 4.5, 1),
    )
    return [
        Subject(
            line=Line(what=what, unit="ms", at_most=at_most, ratio=True, connections=connections),
            ask=ask,
            count=count,
        )
        for what, ask, count, at_most, connections in said
    ]


def measure() -> Sequence[Line]:
    with (
        harness.folder() as folder,
        harness.Server(folder / "home") as server,
        bare.Bare(folder) as floor,
    ):
        made = json.loads(server.client().ask("POST", "/v1/nodes", _node(0)))
        subjects = _subjects(f"/v1/nodes/{made['uuid']}")
        for _ in harness.rounds():
            for subject in subjects:
                subject.measure(server, floor)
    return [subject.line for subject in subjects]


if __name__ == "__main__":
    harness.main(measure)
