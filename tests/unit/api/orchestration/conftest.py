"""The orchestration API in front of an engine that says what a test wants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from bloomery.api.orchestration import app
from bloomery.conf import Conf
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from tests.fakes.client import Answer, Client
from tests.fakes.stack_operations import STACK, FakeStackOperations

BASE = "/v1/p1"
S = f"{BASE}/stacks/{STACK.name}/{STACK.uuid}"
URL = f"http://localhost{S}"


@dataclass
class World:
    """``api``: a client; ``engine``: the fake behind it."""

    engine: FakeStackOperations = field(default_factory=FakeStackOperations)
    conf: Conf = field(default_factory=Conf)
    policies: Any = None
    logins: Any = None

    @property
    def api(self) -> Client:
        services = Services(
            db=None, rpc=None, conf=self.conf, policies=self.policies or Policies(self.conf)
        )  # fmt: skip
        return Client(app.make_app(services, self.engine, self.logins), version=None)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def engine(world: World) -> FakeStackOperations:
    return world.engine


@pytest.fixture
def api(world: World) -> Client:
    return world.api


def fault(answer: Answer) -> tuple[int, str]:
    """Return status and type of an error in Heat's form."""
    document = answer.json
    assert set(document) == {"code", "title", "explanation", "error"}
    assert document["code"] == answer.status
    assert document["error"]["traceback"] is None
    return answer.status, document["error"]["type"]
