"""The sealing key is replaced while the service answers, and the command is killed once."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
import sqlalchemy as sa

from bloomery.db.engine import Database
from bloomery.db.rows import load
from bloomery.db.sealed_values import COLUMNS
from bloomery.db.tables import NODES
from bloomery.secrets import Sealer
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for

NODES_BEFORE = 250  # three batches
COMMAND = (sys.executable, "-c", "from bloomery.cli.main import main; main()", "keys", "rotate")


class Clients:
    """Clients of a service: one enrols nodes, one changes passwords, until they are stopped."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.passwords: dict[str, str] = {}
        self.failures: list[BaseException] = []
        self.rounds = 0
        self._stopping = threading.Event()
        acts = (self._enrol, self._change)
        self._threads = [threading.Thread(target=self._run, args=[act]) for act in acts]

    def enrol(self, password: str) -> str:
        body = {"driver": "fake-hardware", "driver_info": {"a_password": password}}
        node = self._served.api("POST", "/v1/nodes", body)["uuid"]
        self.passwords[node] = password
        return node

    def _enrol(self, number: int) -> None:
        node = self.enrol(f"hunter2-{number}")
        assert self._served.api("GET", f"/v1/nodes/{node}")["driver_info"]["a_password"] == "******"

    def _change(self, number: int) -> None:
        node = list(self.passwords)[number % NODES_BEFORE]
        value = f"changed-{number}"
        patch = [{"op": "replace", "path": "/driver_info/a_password", "value": value}]
        self._served.api("PATCH", f"/v1/nodes/{node}", patch)
        self.passwords[node] = value

    def _run(self, act: Any) -> None:
        try:
            for number in itertools.count():
                if self._stopping.wait(0.02):
                    return
                act(number)
                self.rounds += 1
        except BaseException as exc:  # noqa: BLE001  the test's thread looks at it
            self.failures.append(exc)

    def go_on(self) -> None:
        """Wait until requests have been answered from now on."""
        rounds = self.rounds
        wait_for(lambda: self.failures or self.rounds > rounds + 4, "answers")

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    options = {"DEFAULT": {"enabled_hardware_types": "fake-hardware"}}
    with Served(tmp_path / "state", **options) as served:
        served.wait_until_it_answers()
        yield served


def key_ids(path: Path) -> list[str]:
    return [Sealer(key).key_id for key in path.read_bytes().split()]


def test_no_request_fails_while_the_key_is_replaced(served: Served, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (old,) = key_ids(state / "keys" / "secrets.key")
    clients = Clients(served)
    for number in range(NODES_BEFORE):
        clients.enrol(f"hunter2-{number}")
    command = [*COMMAND, "--state-dir", str(state), "--settle", "1"]
    with clients:
        clients.go_on()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as rotation:
            assert rotation.stdout is not None
            assert f"values of key {old} are sealed anew" in rotation.stdout.readline()
            rotation.kill()
        assert key_ids(state / "keys" / "secrets.key")[1] == old
        clients.go_on()
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        clients.go_on()
    assert clients.failures == []
    require_new_key(state, old, clients.passwords)


def require_new_key(state: Path, old: str, passwords: dict[str, str]) -> None:
    """Assert that the new key alone is there, and that it opens each password."""
    (key,) = (state / "keys" / "secrets.key").read_bytes().split()
    sealer = Sealer(key)
    database = Database(f"sqlite:///{state / 'bloomery.sqlite'}")
    with database.read() as conn:
        rows = conn.execute(sa.select(NODES.c.uuid, NODES.c.driver_info)).all()
        texts = [row for table, c in COLUMNS.items() for row in conn.execute(sa.select(*c))]
    database.close()
    opened = {row.uuid: sealer.open(load(row.driver_info))["a_password"] for row in rows}
    assert opened == passwords
    assert old not in repr(texts)
