"""A whole service in this process, on a state dir of its own and a free port."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.state_dir import StateDir


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The clouds.yaml of a running service; clients find it through the environment."""
    conf = Conf(
        api=Api(port=0), conductor=Conductor(workers_pool_size=20, graceful_shutdown_timeout=5)
    )
    with StateDir(tmp_path / "state") as home, Service(conf, home):
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(home.clouds))
        monkeypatch.setenv("OS_CLOUD", "bloomery")
        yield home.clouds


@pytest.fixture(scope="module")
def orchestration_env() -> Iterator[dict[str, str]]:
    """The variables that lead a client to the stacks of a running service.

    With BLOOMERY_TEST_HEAT these are of the published Heat: a test that is red there is wrong.
    """
    if url := os.environ.get("BLOOMERY_TEST_HEAT"):
        yield {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": url}
        return
    pytest.skip("no service yet")
