"""Several processes of the API behind one port: our workers, those of gunicorn and of uWSGI."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from bloomery.db.engine import Database
from tests.conformance.ironic import compare, ours, script, stories
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tools.servers import free_port

pytestmark = pytest.mark.only_on("postgresql")
ANSWERED = re.compile(rb'bloomery_api_requests_total{method="GET",status="200"} (\S+)')
REQUESTS = 20
ROOT = Path(__file__).parents[2]


def groups(db: Database) -> dict[str, dict[str, Any]]:
    """The configuration of an API on this database."""
    return {
        "DEFAULT": {"rpc_transport": "json-rpc"},
        "database": {"connection": db.url.render_as_string(hide_password=False)},
    }


@pytest.fixture
def workers(db: Database, tmp_path: Path) -> Iterator[Served]:
    stacks = ["--orchestration-port", str(free_port())]
    options = {"role": "api", "port": free_port(), "more": ["--workers", "2", *stacks]}
    with Served(tmp_path / "state", **options, **groups(db)) as served:
        served.wait_until_it_answers()
        yield served


def children(pid: int) -> set[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for each in listed for child in each.read_text().split()}


def get(url: str, path: str) -> tuple[Any, bytes]:
    with urllib.request.urlopen(f"{url}{path}", timeout=30) as answer:
        return answer.headers, answer.read()


def test_workers_share_port_and_metrics_and_are_replaced(workers: Served) -> None:
    url, both = str(workers.url), children(workers.pid)
    assert len(both) == 2
    assert len(list(Path(f"/proc/{workers.pid}/task").iterdir())) == 1, "so that it may fork again"
    for _ in range(REQUESTS):
        get(url, "/v1/nodes")
    counted = ANSWERED.search(get(url, "/metrics")[1])
    assert counted is not None
    assert float(counted[1]) >= REQUESTS, "each worker shows the requests of all of them"
    victim = min(both)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: len(children(workers.pid) - {victim}) == 2, "another worker", timeout_s=60)
    workers.send(signal.SIGTERM)
    assert workers.code() == 0


def test_a_second_site_on_the_port_is_refused(
    workers: Served, db: Database, tmp_path: Path
) -> None:
    port = int(str(workers.url).rpartition(":")[2])
    with Served(
        tmp_path / "other", role="api", port=port, more=["--workers", "2"], **groups(db)
    ) as second:
        assert second.code() == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in "".join(second.complaints)


def test_any_free_port_cannot_be_shared(db: Database, tmp_path: Path) -> None:
    with Served(tmp_path / "state", role="api", more=["--workers", "2"], **groups(db)) as served:
        assert served.code() == 1
    assert "name --port and --orchestration-port" in "".join(served.complaints)


def test_workers_that_cannot_start_end_their_parent(server: sa.URL, tmp_path: Path) -> None:
    missing = server.set(database="bloomery_is_not_there").render_as_string(hide_password=False)
    with Served(
        tmp_path / "state", role="api", port=free_port(),
        more=["--workers", "2", "--orchestration-port", str(free_port())],
        DEFAULT={"rpc_transport": "json-rpc"}, database={"connection": missing},
    ) as served:  # fmt: skip
        assert served.code() == 1
    assert "cannot start: a worker ended; its error is above" in "".join(served.complaints)


WSGI_SERVERS = {
    "gunicorn": "--workers 2 --threads 4 --bind {address} {module}:application",
    "uwsgi": "--http {address} --module {module}:application --master --processes 2"
    " --threads 4 --lazy-apps --need-app --die-on-term --disable-logging",
}


@contextlib.contextmanager
def served(name: str, module: str, folder: Path, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the URL of a WSGI server with two processes."""
    config, port = folder / "conf", free_port()
    config.write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
            for group, values in options.items()
        )
    )
    env = os.environ | {
        "BLOOMERY_CONFIG_FILE": str(config), "BLOOMERY_STATE_DIR": str(folder / "state"),
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    words = WSGI_SERVERS[name].format(address=f"127.0.0.1:{port}", module=module).split()
    process = subprocess.Popen([Path(sys.executable).with_name(name), *words], env=env)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return bool(get(url, "/v1/nodes")[1])
        except OSError:
            return False

    try:
        wait_for(answers, "the server", timeout_s=120)
        yield url
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("name", WSGI_SERVERS)
def test_a_wsgi_server_serves_both_apis(name: str, db: Database, tmp_path: Path) -> None:
    with served(name, "bloomery.cmd.wsgi", tmp_path, groups(db)) as url:
        headers, body = get(url, "/v1/nodes")
        assert body == b'{"nodes":[]}'
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert get(url, "/ext/v1/orchestration/v1/admin/stacks")[1] == b'{"stacks":[]}'
        assert get(url, "/ui/")[0]["Content-Type"].startswith("text/html")
        stream = {"Accept": "text/event-stream"}
        with pytest.raises(urllib.error.HTTPError, match="406"):
            urllib.request.urlopen(urllib.request.Request(f"{url}/ext/v1/events", headers=stream))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", WSGI_SERVERS)
def test_a_wsgi_server_answers_as_the_published_ironic(
    name: str, db: Database, tmp_path: Path
) -> None:
    """Every eighth story of the conformance suite, some 1,400 requests."""
    port = free_port()
    host, options = f"localhost:{port}", groups(db)
    enabled = {kind: ",".join(names) for kind, names in ours.ENABLED.items()}
    options["DEFAULT"] |= {"host": "localhost", "enabled_hardware_types": "fake-hardware"} | enabled
    sample = stories.draw(compare.SEED)[::8]
    with (
        Served(
            tmp_path / "state", role="conductor", **options,
            conductor={"sync_power_state_interval": 0, "check_provision_state_interval": 0},
            json_rpc={"host_ip": "127.0.0.1", "port": port},
        ) as conductor,
        served(name, "tests.conformance.ironic.wsgi", tmp_path, options) as url,
    ):  # fmt: skip
        conductor.wait_until_it_prints("serves")
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        answers = json.dumps(compare.ask(address, [asking(story, host) for story in sample]))
    answers = json.loads(answers.replace(host, "localhost").replace(quote(host), "localhost"))
    rows = compare.comparisons(sample, compare.recorded(), answers)
    faults = compare.judge(list(rows), counts=False)
    assert faults == [], "\n".join(faults)


def asking(story: script.Story, conductor: str) -> script.Story:
    """Return the story with this name of its conductor."""
    return dataclasses.replace(story, calls=[
        dataclasses.replace(call, path=call.path.replace("localhost", conductor))
        for call in story.calls
    ])  # fmt: skip
