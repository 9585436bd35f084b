"""Many clients at once, all after the same few names, addresses and UUIDs.

    fuzz_crowd.run(target, seed, clients=8, requests=150)

What one of them creates another deletes in the same moment; nobody may be told of an error of
ours, and in the end nothing is held.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable
from typing import Any

from tests.kit.probes import fuzzing, probes

NODES = [str(uuid.uuid5(uuid.NAMESPACE_OID, f"node {n}")) for n in range(3)]
PORTS = [str(uuid.uuid5(uuid.NAMESPACE_OID, f"port {n}")) for n in range(3)]
NAMES = ["crowd-1", "crowd-2", None]
MACS = ["52:54:00:cc:00:01", "52:54:00:cc:00:02"]
VERBS = ["manage", "provide", "active", "deleted", "inspect", "abort", "rebuild", "adopt"]
Request = tuple[str, str, Any]  # method, path, body


def _change(path: str, value: Any) -> list[Any]:
    return [{"op": "add", "path": path, "value": value}]


def _created(lots: random.Random) -> Request:
    name, instance = lots.choice(NAMES), lots.choice([None, NODES[0]])
    body = {"uuid": lots.choice(NODES), "driver": "fake-hardware", "name": name}
    return "POST", "/v1/nodes", body | ({"instance_uuid": instance} if instance else {})


def _port(lots: random.Random) -> Request:
    said = {"node_uuid": lots.choice(NODES), "address": lots.choice(MACS)}
    return "POST", "/v1/ports", said | {"uuid": lots.choice(PORTS)}


def _node(lots: random.Random) -> str:
    return f"/v1/nodes/{lots.choice(NODES)}"


REQUESTS: list[Callable[[random.Random], Request]] = [
    _created,
    _created,
    _port,
    _port,
    lambda lots: ("DELETE", _node(lots), None),
    lambda lots: ("DELETE", f"/v1/ports/{lots.choice(PORTS)}", None),
    lambda lots: ("PATCH", _node(lots), _change("/name", lots.choice(NAMES))),
    lambda lots: ("PATCH", _node(lots), _change("/instance_uuid", lots.choice(NODES))),
    lambda lots: ("PATCH", _node(lots), _change("/parent_node", lots.choice(NODES))),
    lambda lots: ("PATCH", _node(lots), _change("/extra/a", lots.random())),
    lambda lots: (
        "PATCH",
        f"/v1/ports/{lots.choice(PORTS)}",
        _change("/address", lots.choice(MACS)),
    ),
    lambda lots: (
        "PATCH",
        f"/v1/ports/{lots.choice(PORTS)}",
        _change("/node_uuid", lots.choice(NODES)),
    ),
    lambda lots: (
        "PUT",
        f"{_node(lots)}/traits",
        {"traits": lots.sample(["CUSTOM_A", "HW_GPU"], 1)},
    ),
    lambda lots: ("PUT", f"{_node(lots)}/traits/CUSTOM_A", None),
    lambda lots: ("DELETE", f"{_node(lots)}/traits/CUSTOM_A", None),
    lambda lots: ("DELETE", f"{_node(lots)}/traits", None),
    lambda lots: ("PUT", f"{_node(lots)}/states/provision", {"target": lots.choice(VERBS)}),
    lambda lots: ("PUT", f"{_node(lots)}/states/power", {"target": "rebooting"}),
    lambda lots: ("PUT", f"{_node(lots)}/maintenance", {"reason": "crowd"}),
    lambda lots: ("DELETE", f"{_node(lots)}/maintenance", None),
    lambda lots: ("POST", f"{_node(lots)}/vifs", {"id": "vif-1"}),
    lambda lots: ("DELETE", f"{_node(lots)}/vifs/vif-1", None),
    lambda lots: ("PUT", f"{_node(lots)}/management/boot_device", {"boot_device": "pxe"}),
    lambda lots: (
        "PUT",
        f"{_node(lots)}/states/console",
        {"enabled": lots.choice([True, False])},
    ),
    lambda lots: ("GET", f"{_node(lots)}/states/console", None),
    lambda lots: ("GET", _node(lots), None),
    lambda lots: ("GET", f"{_node(lots)}/states", None),
    lambda lots: ("GET", f"{_node(lots)}/validate", None),
    lambda lots: ("GET", f"{_node(lots)}/history?detail=true", None),
    lambda lots: ("GET", "/v1/nodes/detail?limit=2", None),
    lambda lots: ("GET", "/v1/ports/detail", None),
    lambda lots: ("GET", f"/ext{_node(lots)}/why", None),
]


def run(target: fuzzing.Target, seed: int, clients: int, requests: int) -> None:
    """Let so many clients send so many requests each."""
    wrong: list[str] = []

    def client(number: int) -> None:
        lots = random.Random(f"{seed} client {number}")
        for _ in range(requests):
            method, path, body = lots.choice(REQUESTS)(lots)
            try:
                answer = target.api.ask(method, path, body)
                target.told[answer.status] += 1
                fuzzing.check(answer, method)
            except Exception as exc:  # noqa: BLE001  whatever it is, it is wrong
                wrong.append(f"{method} {path} {body}: {exc!r}")

    probes.run_all([threading.Thread(target=client, args=(n,)) for n in range(clients)])
    assert wrong == []
