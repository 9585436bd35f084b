"""A whole service whose descriptors are few, and clients that want them all."""

from __future__ import annotations

import contextlib
import http.client
import resource
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from bloomery.http_server import server

FEW = 160
CROWD = 400
SERVE = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from bloomery.cli.main import main
main()
"""


@pytest.fixture
def started(tmp_path):
    """Start a service that may have so many descriptors; return where it answers, and its log."""
    with contextlib.ExitStack() as stack:

        def start(soft, hard):
            log = tmp_path / "log"
            program = [sys.executable, "-c", SERVE.format(soft=soft, hard=hard)]
            child = subprocess.Popen(
                [*program, "serve", "--state-dir", str(tmp_path / "state"), "--port", "0"],
                stdout=subprocess.PIPE,
                stderr=stack.enter_context(log.open("wb")),
            )
            stack.callback(child.communicate, timeout=30)
            stack.callback(child.terminate)
            url = urlsplit(child.stdout.readline().decode().split(" answers at ")[1].split()[0])
            return child.pid, (url.hostname, url.port), log

        yield start


def status(address):
    connection = http.client.HTTPConnection(*address, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", "/v1/nodes")
        return connection.getresponse().status


def cpu_s(pid):
    return time.clock_gettime((~pid << 3) | 2)


@pytest.mark.parametrize("sent", [b"", b"POST /v1/nodes HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_crowd_is_borne_and_forgotten(started, sent):
    pid, address, log = started(FEW, FEW)
    with contextlib.ExitStack() as crowd:
        for _ in range(CROWD):
            client = crowd.enter_context(socket.create_connection(address, timeout=20))
            with contextlib.suppress(OSError):  # it may have had to make room
                client.sendall(sent)
        assert status(address) == 200
    assert status(address) == 200
    before = cpu_s(pid)
    for _ in range(20):
        assert status(address) == 200
    assert cpu_s(pid) - before < 1  # of some 20 ms; at full load it would be all the time there is
    assert len(log.read_bytes().splitlines()) <= 2


def test_the_soft_limit_is_raised(started):
    pid, address, _ = started(64, 1000)
    assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (1000, 1000)
    with contextlib.ExitStack() as crowd:
        for _ in range(200):
            crowd.enter_context(socket.create_connection(address, timeout=20))
        assert status(address) == 200


@pytest.mark.parametrize(("soft", "most"), [(160, 88), (1024, 736), (65536, 10_000)])
def test_some_descriptors_are_left_to_database_and_bmcs(monkeypatch, soft, most):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert server.most_connections() == most
