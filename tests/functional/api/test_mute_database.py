"""A database that answers nobody: those who watch the service hear of it at once."""

from __future__ import annotations

import json
import threading

import pytest
import urllib3

from bloomery.http_server import readiness
from tests.kit.clients import slow_clients


@pytest.fixture
def mute(world, monkeypatch):
    """A service whose database keeps everybody waiting until the test is over."""
    over, read = threading.Event(), world.site.db.read

    def wait():
        over.wait()
        return read()

    monkeypatch.setattr(readiness, "WITHIN_S", 0.01)
    with slow_clients.serving(world.app) as serving:
        monkeypatch.setattr(world.site.db, "read", wait)
        with slow_clients.clients(serving, slow_clients.GET, slow_clients.SLOW):
            yield serving
            over.set()


def ask(serving, path):
    return urllib3.request("GET", f"{serving.url}{path}", timeout=10, retries=False)


def test_liveness_is_answered_by_the_thread_of_connections(mute):
    answer = ask(mute, "/healthz")
    assert (answer.status, answer.json()) == (200, {"alive": True})
    assert answer.headers["openstack-request-id"].startswith("req-")


def test_readiness_names_the_part_that_does_not_answer(mute):
    for _ in range(3):
        answer = ask(mute, "/readyz")
        document = json.loads(answer.data)
        assert (answer.status, document["ready"]) == (503, False)
        assert document["missing"][0].startswith("the database has not answered for")
