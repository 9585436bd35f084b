"""A node moves between conductor groups while callers go on: no request fails."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.db.engine import Database
from bloomery.state_dir import StateDir
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tools.servers import free_port

pytestmark = pytest.mark.only_on("postgresql")
GROUPS = ("east", "west")
MOVES = 6
NODE = "/v1/nodes/web-1"


@pytest.fixture
def ports() -> dict[str, int]:
    """The ports of the conductors by their groups; a port is part of a conductor's name."""
    return {group: free_port() for group in GROUPS}


@pytest.fixture
def api(db: Database, tmp_path: Path, ports: dict[str, int]) -> Iterator[Served]:
    """An API, and a conductor of each group."""
    with StateDir(tmp_path / "key") as home:
        home.sealer(db)
        key = home.key
    default = {
        "rpc_transport": "json-rpc", "sealing_key_file": key,
        "enabled_hardware_types": "fake-hardware",
    }  # fmt: skip
    database = {"connection": db.url.render_as_string(hide_password=False)}
    with contextlib.ExitStack() as stack:
        for group in GROUPS:
            conductor = stack.enter_context(Served(
                tmp_path / group, role="conductor", database=database,
                DEFAULT=default | {"host": "127.0.0.1"},
                conductor={"conductor_group": group, "heartbeat_interval": 1},
                json_rpc={"host_ip": "127.0.0.1", "port": ports[group]},
            ))  # fmt: skip
            conductor.wait_until_it_prints("serves")
        served = stack.enter_context(
            Served(tmp_path / "api", role="api", DEFAULT=default, database=database)
        )
        served.wait_until_it_answers()
        yield served


class Caller(threading.Thread):
    """Validates the node and changes it, again and again."""

    def __init__(self, api: Served) -> None:
        super().__init__()
        self.api, self.ending = api, threading.Event()
        self.rounds, self.failure = 0, None

    def run(self) -> None:
        while not self.ending.is_set():
            try:
                self.api.api("GET", "/v1/nodes/validate?node=web-1")
                patch = [{"op": "add", "path": "/extra/round", "value": self.rounds}]
                self.api.api("PATCH", NODE, patch)
            except BaseException as exc:  # noqa: BLE001  the test's thread looks at it
                self.failure = exc
                return
            self.rounds += 1

    def go_on(self) -> None:
        rounds = self.rounds
        wait_for(lambda: self.failure or self.rounds > rounds + 3, "answers", timeout_s=60)
        assert self.failure is None, self.failure


def test_no_request_fails_while_a_node_changes_its_group(
    api: Served, ports: dict[str, int]
) -> None:
    fields: dict[str, Any] = {"driver": "fake-hardware", "name": "web-1"}
    api.api("POST", "/v1/nodes", fields | {"conductor_group": "west"})
    caller = Caller(api)
    caller.start()
    for number in range(MOVES):
        group = GROUPS[number % 2]
        api.api("PATCH", NODE, [{"op": "add", "path": "/conductor_group", "value": group}])
        caller.go_on()
        assert api.api("GET", NODE)["conductor"] == f"127.0.0.1:{ports[group]}"
    caller.ending.set()
    caller.join()
    assert caller.failure is None
    api.api("PUT", f"{NODE}/states/provision", {"target": "manage"})
    wait_for(lambda: api.api("GET", NODE)["provision_state"] == "manageable", "manageable")
