"""What a look at a machine costs over TLS: kept connections against a bare keep-alive loop.

The BMC is one of the lab's, in a process of its own.  The floor asks for the same document on
one connection of ``http.client`` and parses it.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from bench import harness
from bench.harness import Line
from bloomery.conf import Conf
from bloomery.drivers.redfish import access
from bloomery.lab.rack import Rack
from bloomery.lab.tls import certificate

READS = 200


def measure() -> Sequence[Line]:
    took = Line(what="one look at a machine over TLS, wall", unit="ms", at_most=8, ratio=True,
                connections=1, synchronous=None)  # fmt: skip
    cpu = Line(what="one look at a machine over TLS, CPU", unit="ms", at_most=12, ratio=True,
               connections=1, synchronous=None)  # fmt: skip
    with harness.folder() as folder:
        files = certificate(folder)
        with harness.Process(sys.executable, "-m", "bench.bmc", "lab", *files) as lab:
            info = json.loads(lab.line())
            look, bare = _ours(info), _floor(info)
            for _ in harness.rounds():
                ours, floor = _timed(look), _timed(bare)
                took.add(ours[0], floor[0])
                cpu.add(ours[1], floor[1])
    return [took, cpu]


def _timed(read: Callable[[], Any]) -> tuple[float, float]:
    """Return wall and CPU time of one read, in ms."""
    read()
    began, cpu = time.perf_counter(), time.thread_time()
    for _ in range(READS):
        read()
    took = (time.perf_counter() - began, time.thread_time() - cpu)
    return took[0] / READS * 1000, took[1] / READS * 1000


def _ours(info: dict[str, Any]) -> Callable[[], Any]:
    way = access.of(Conf())
    node = SimpleNamespace(uuid=str(uuid.uuid4()), name=None, driver="redfish")
    task: Any = SimpleNamespace(
        node=node, driver_info=info | {"redfish_verify_ca": False}, reads=None, insists=False,
        budget_s=None, assert_lease=lambda: None,
    )  # fmt: skip
    return lambda: way.read(task, lambda system: system.power_state)


def _floor(info: dict[str, Any]) -> Callable[[], Any]:
    address = urlsplit(info["redfish_address"])
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(str(address.hostname), address.port, context=context)
    pair = f"{info['redfish_username']}:{info['redfish_password']}"
    shown = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    def read() -> Any:
        connection.request("GET", info["redfish_system_id"], headers=shown)
        return json.loads(connection.getresponse().read())["PowerState"]

    return read


def _serve(*files: str) -> None:
    """Serve one machine until the parent ends us."""
    with Rack(1, tls=(files[0], files[1])) as rack:
        print(json.dumps(rack.machines[0].driver_info), flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["lab"]:
        _serve(*sys.argv[2:])
    else:
        harness.main(measure)
