"""What clients rely on, over REST: the tests of this folder know a URL and nothing behind it.

With BLOOMERY_TEST_HEAT=http://127.0.0.1:PORT/v1/PROJECT they run against the published Heat of
``tests/conformance/heat_server.py`` instead: a test that is red there is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kit.clients.stacks_api import StacksApi
from tests.kit.servers.orchestration import Orchestration


@pytest.fixture(scope="package")
def orchestration_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if url := os.environ.get("BLOOMERY_TEST_HEAT"):
        yield url
        return
    state = tmp_path_factory.mktemp("site") / "state"
    with Orchestration(state, enable_stack_adopt=True, enable_stack_abandon=True) as site:
        yield site.url


@pytest.fixture
def api(orchestration_url: str) -> StacksApi:
    return StacksApi(orchestration_url)
