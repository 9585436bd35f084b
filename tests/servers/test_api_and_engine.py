"""Stacks by an API and an engine that are processes of their own and share a database alone.

An API commits orders and signals; the engine's tail of event rows finds them.  No call goes between
the two, so that every transport of calls to conductors is as good as another for stacks.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.db.engine import Database
from tests.kit.clients.stacks_api import StacksApi
from tests.kit.servers.engines import EngineProcess
from tests.kit.servers.served import Served

WAITING = {
    "handle": {"type": "OS::Heat::WaitConditionHandle"},
    "wait": {
        "type": "OS::Heat::WaitCondition",
        "properties": {"handle": {"get_resource": "handle"}, "timeout": 600},
    },
    "after": {
        "type": "OS::Heat::Value",
        "properties": {"value": {"get_attr": ["wait", "data"]}},
    },
}


@pytest.fixture
def stacks(db: Database, tmp_path: Path) -> Iterator[StacksApi]:
    """The API of stacks of a process that has no engine, which another one is."""
    state = tmp_path / "state"
    options: dict[str, Any] = {
        "DEFAULT": {"host": "host-a", "rpc_transport": "json-rpc"},
        "database": {"connection": db.url.render_as_string(hide_password=False)},
    }
    with Served(state, role="api", **options) as api:
        api.wait_until_it_answers()
        engine = EngineProcess(state, **options)
        yield StacksApi(f"{api.orchestration_url}/v1/default")
        assert engine.kill(signal.SIGTERM) == 0
        api.send(signal.SIGTERM)
        assert api.code() == 0


def test_orders_and_signals_reach_an_engine_elsewhere(stacks: StacksApi):
    path = stacks.begin({"heat_template_version": "2021-04-16", "resources": WAITING}, "web")
    stacks.wait_resource(path, "wait", "CREATE_IN_PROGRESS")
    told = {"id": "one", "status": "SUCCESS", "data": "hello", "reason": "it is up"}
    assert stacks.ask("POST", f"{path}/resources/handle/signal", told).status == 200
    stacks.settle(path, "CREATE_COMPLETE")
    assert stacks.resource(path, "after")["attributes"]["value"] == '{"one": "hello"}'
    assert "SIGNAL_COMPLETE" in " ".join(stacks.events(path, "handle"))
    stacks.delete(path)
