"""A whole service in this process, on a state dir of its own and a free port."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest

from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.state_dir import StateDir
from tests.kit.clients.openstack_command import LONGEST_PAUSE_S
from tests.kit.servers import databases
from tests.kit.servers.orchestration import Orchestration

PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients that poll pause for a tenth of a second where they would for seconds."""
    pause = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: pause(min(seconds, LONGEST_PAUSE_S)))


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The clouds.yaml of a running service; clients find it through the environment."""
    conf = Conf(
        api=Api(port=0),
        conductor=Conductor(workers_pool_size=20, graceful_shutdown_timeout=5),
        database=databases.settings(tmp_path),
    )
    with StateDir(tmp_path / "state") as home, Service(conf, home):
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(home.clouds))
        monkeypatch.setenv("OS_CLOUD", "bloomery")
        yield home.clouds


@pytest.fixture(scope="module")
def orchestration_env(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The variables that lead a client to the stacks of a running service.

    A module of clients says in ``LOGIN`` how they log in: one way each, as no answer depends on it.

    With BLOOMERY_TEST_HEAT these are of the published Heat: a test that is red there is wrong.
    """
    if url := os.environ.get("BLOOMERY_TEST_HEAT"):
        yield {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": url}
        return
    folder = tmp_path_factory.mktemp("site")
    users = folder / "htpasswd"
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    users.write_text(f"ann:{hashed}\n")
    login = {
        "noauth": {"OS_AUTH_TYPE": "none"},
        "http_basic": {
            "OS_AUTH_TYPE": "http_basic",
            "OS_USERNAME": "ann",
            "OS_PASSWORD": PASSWORD,
        },
    }[request.module.LOGIN]
    default = Default(auth_strategy=request.module.LOGIN, http_basic_auth_user_file=str(users))
    options = {"enable_stack_adopt": True, "enable_stack_abandon": True}
    with Orchestration(folder / "state", default=default, **options) as site:
        yield {"OS_ENDPOINT": site.url, **login}
