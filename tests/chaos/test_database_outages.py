"""A PostgreSQL server that is refused, mute or slow: what a service answers meanwhile, and after.

``tests/functional/api/test_outages.py`` asks the same of faults in place of a server.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import urllib3

from tests.chaos.site import POSTGRESQL, empty_database
from tests.kit.probes import outage_probes
from tests.kit.servers.served import Served
from tests.kit.servers.tcp_proxy import Cut, TcpProxy
from tests.kit.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
SLOW_S: Final = 0.02  # for each request to the server
GET: Final = b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    if POSTGRESQL not in os.environ:
        pytest.skip(f"{POSTGRESQL} names no server")
    with contextlib.ExitStack() as until:
        url = until.enter_context(empty_database(os.environ[POSTGRESQL]))
        proxy = TcpProxy((url.host or "127.0.0.1", url.port or 5432))
        proxy.url = url.set(host=proxy.host, port=proxy.port)  # type: ignore[attr-defined]
        yield until.enter_context(proxy)


@contextlib.contextmanager
def outage(proxy: TcpProxy, kind: str) -> Iterator[None]:
    over = threading.Event()

    def delay(_data: bytes) -> Cut:
        over.wait(SLOW_S if kind == "slow" else None)
        return Cut.NOT

    if kind == "refused":
        proxy.is_open = False
        proxy.cut()
    else:
        proxy.on_request = delay
    try:
        yield
    finally:
        over.set()
        proxy.is_open, proxy.on_request = True, lambda _data: Cut.NOT


def is_ready(url: str) -> bool:
    return urllib3.request("GET", f"{url}/readyz", timeout=30, retries=False).status == 200


@pytest.mark.parametrize("kind", outage_probes.OUTAGES)
def test_each_outage_is_answered_in_time(tmp_path: Path, proxy: TcpProxy, kind: str) -> None:
    connection = proxy.url.render_as_string(hide_password=False)  # type: ignore[attr-defined]
    database = {"connection": connection, "statement_timeout": 5, "pool_timeout": 5}
    with Served(tmp_path / "state", database=database) as served:
        served.wait_until_it_answers()
        url = served.url or ""
        wait_for(lambda: is_ready(url), "it to be ready", timeout_s=60)
        with outage(proxy, kind), contextlib.ExitStack() as crowd:
            host, port = url.removeprefix("http://").split(":")
            for _ in range(outage_probes.CROWD):
                client = crowd.enter_context(socket.create_connection((host, int(port))))
                client.sendall(GET)
            wrong = outage_probes.wrong_answers(url, kind, most_s=15.0, queued_s=240.0)
        assert wrong == []
        wait_for(lambda: is_ready(url), "it to be ready again", timeout_s=120)
        served.send(signal.SIGTERM)
