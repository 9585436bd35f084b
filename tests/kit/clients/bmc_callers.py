"""Clients of a whole service over its wire, each call on a connection of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.state_dir import StateDir
from tests.fakes.client import NEWEST
from tests.kit.servers import databases

VERSION = {"X-OpenStack-Ironic-API-Version": NEWEST, "Content-Type": "application/json"}


class Caller:
    """Clients of a running service."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(*self.service.api.address[:2], timeout=60)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, VERSION | headers)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read()
        finally:
            connection.close()

    def enrol(self, driver_info: dict[str, Any], driver: str = "redfish") -> str:
        node = {"driver": driver, "driver_info": driver_info}
        status, _, said = self.ask("POST", "/v1/nodes", node)
        assert status == 201, said
        return str(json.loads(said)["uuid"])

    def boot_device(self, node: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        return self.ask("GET", f"/v1/nodes/{node}/management/boot_device", **headers)

    def is_free(self, node: str) -> bool:
        return json.loads(self.ask("GET", f"/v1/nodes/{node}")[2])["reservation"] is None


def boot_devices_are_set_at_once(caller: Caller, nodes: Sequence[str]) -> None:
    """All callers come together; each is answered, under a request id of its own."""
    order = {"boot_device": "pxe", "persistent": False}

    def set_device(node: str) -> tuple[int, dict[str, str], bytes]:
        return caller.ask("PUT", f"/v1/nodes/{node}/management/boot_device", order)

    with ThreadPoolExecutor(len(nodes)) as pool:
        answers = list(pool.map(set_device, nodes))
    assert [status for status, _, _ in answers] == [204] * len(nodes)
    assert len({headers["openstack-request-id"] for _, headers, _ in answers}) == len(nodes)


@contextlib.contextmanager
def serving(folder: Path, settings: Conf) -> Iterator[Caller]:
    """Run a service, as ``bloomery serve`` does."""
    settings = dataclasses.replace(settings, database=databases.settings(folder))
    with StateDir(folder / "state") as home, Service(settings, home) as service:
        yield Caller(service)
