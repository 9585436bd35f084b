"""A site speaks TLS to its database and to its broker, as the tutorial of three hosts says."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from bloomery.lab.tls import certificate
from tests.kit.servers import own
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tools import servers

pytestmark = [pytest.mark.only_on("postgresql"), pytest.mark.usefixtures("server")]
Certificate = servers.Certificate
DATABASES: dict[str, tuple[Callable[..., AbstractContextManager[servers.OwnServer]], str]] = {
    "postgresql": (
        servers.own_postgresql,
        "postgresql+psycopg://postgres@127.0.0.1:{port}/test?sslmode=verify-full&sslrootcert={ca}",
    ),
    "mariadb": (servers.own_mariadb, "mysql+pymysql://root@127.0.0.1:{port}/mysql?ssl_ca={ca}"),
}


@pytest.fixture
def theirs(tmp_path: Path) -> Certificate:
    return certificate(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path) -> str:
    """An authority that signed nothing here."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    return certificate(folder)[0]


def upgrade_database(folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    config = folder / "upgrade.conf"
    config.write_text(f"[database]\nconnection = {url}\n")
    program = "from bloomery.cli.main import main; main()"
    words = ("db", "upgrade", "--state-dir", folder / "state", "--config-file", config)
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", DATABASES)
def test_a_site_trusts_the_database_and_the_broker_that_the_authority_signed(
    tmp_path: Path, theirs: Certificate, stranger: str, kind: str
) -> None:
    server, address = DATABASES[kind]
    with contextlib.ExitStack() as until:
        database = own.start(server(theirs), until)
        broker = own.start(servers.own_rabbitmq(theirs), until)
        refused = upgrade_database(tmp_path, address.format(port=database.port, ca=stranger))
        assert refused.returncode != 0
        assert "certificate verify failed" in refused.stderr
        url = address.format(port=database.port, ca=theirs[0])
        upgraded = upgrade_database(tmp_path, url)
        assert upgraded.returncode == 0, upgraded.stderr
        options: dict[str, Any] = {
            "DEFAULT": {
                "rpc_transport": "oslo",
                "transport_url": f"rabbit://guest:guest@127.0.0.1:{broker.port}/",
            },
            "database": {"connection": url},
            "oslo_messaging_rabbit": {"ssl": "true", "ssl_ca_file": theirs[0]},
        }
        state = tmp_path / "state"
        conductor = until.enter_context(Served(state, role="conductor", **options))
        conductor.wait_until_it_prints("serves")
        api = until.enter_context(Served(state, role="api", **options))
        api.wait_until_it_answers()
        wait_for(lambda: api.api("GET", "/v1/drivers")["drivers"], "the conductor", timeout_s=60)
        node = api.api("POST", "/v1/nodes", {"driver": "fake-hardware"})
        assert node["provision_state"] == "enroll"
