"""The way from one process to three hosts, as the page shows it; hosts are folders here."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
import uuid as uuids
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "doc/guides/many-hosts.md"
TUTORIAL = ROOT / "doc/tutorials/three-hosts.md"
HEADING = "## From one process to three hosts\n"
HOSTS = ("one", "two", "three")
SHOWN = re.compile(r"```(console|ini|shell|sql)\n(.*?)```", re.DOTALL)
QUIET = (  # nine processes share the connections of a server that other tests use
    "[api]\nport = 0\n[orchestration]\nport = 0\n[conductor]\nheartbeat_interval = 1\n"
    "[database]\nmax_pool_size = 3\nmax_overflow = 3\n"
)
LOGIN = ("ann", "open sesame")
PROGRAM = "from bloomery.cli.main import main; main()"
BACKGROUND = " &"


def section() -> str:
    after = PAGE.read_text(encoding="utf-8").split(HEADING)[1]
    return re.split(r"^#+ ", after, flags=re.MULTILINE)[0]


class Hosts:
    """Three folders, each with an etc and a state, and the processes that run there."""

    def __init__(self, folder: Path, database: sa.URL, broker: str) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []
        self._replaced = {
            "postgresql+psycopg://bloomery:PASSWORD@db.example/bloomery": (
                database.render_as_string(hide_password=False)
            ),
            "rabbit://bloomery:PASSWORD@mq.example:5672/": broker,
        }
        self.printed: list[str] = []
        for host in HOSTS:
            self.path(host, "/etc/bloomery").mkdir(parents=True)
            self.path(host, "/var/lib").mkdir(parents=True)

    def path(self, host: str, path: str) -> Path:
        return self._folder / host / path.lstrip("/")

    def _here(self, host: str, text: str) -> str:
        """What a host's text means on this machine."""
        for shown, ours in self._replaced.items():
            text = text.replace(shown, ours)
        return re.sub(
            r"/(?:etc|var/lib)/bloomery", lambda path: f"{self.path(host, path[0])}", text
        )

    def configure(self, text: str) -> None:
        """Write the configuration that the page shows, and the names of hosts that share ours.

        A conductor that stops serves callers for the interval: here they read the ring soon.
        """
        for host in HOSTS:
            ours = f"[DEFAULT]\nhost = {host}\nhash_ring_reset_interval = 1\n"
            text_here = self._here(host, text).replace("[DEFAULT]\n", ours)
            self.path(host, "/etc/bloomery/bloomery.conf").write_text(f"{text_here}\n{QUIET}")

    def start_units(self, line: str) -> None:
        """Start on each host what ``systemctl enable --now`` of the page starts."""
        for host in HOSTS:
            for unit in line.split()[3:]:
                text = (ROOT / f"contrib/systemd/{unit}.service").read_text(encoding="utf-8")
                (command,) = re.findall(r"^ExecStart=/usr/local/bin/(.+)$", text, re.MULTILINE)
                self.run(f"{host}$ {command}{BACKGROUND}")

    def run(self, line: str) -> str:
        """Run one line of the page; return what it printed."""
        host, command = line.split("$ ", 1)
        if command.startswith("scp -p "):
            return self._copy(host, *command.split()[2:])
        command = self._here(host, command)
        if command.endswith(BACKGROUND):
            return self._start(command.removesuffix(BACKGROUND))
        command = command.replace("bloomery ", f"{sys.executable} -c '{PROGRAM}' ", 1)
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def _copy(self, host: str, source: str, target: str) -> str:
        there, path = target.split(":")
        if source.endswith(".conf"):
            return ""  # the names of hosts differ here: each has its own from configure()
        shutil.copy2(self.path(host, source), self.path(there, path))
        return ""

    def _start(self, command: str) -> str:
        words = shlex.split(command)[1:]
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._processes.append(process)
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return ""

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as pipe:
            self.printed.extend(pipe)

    def wait_for(self, words: str) -> re.Match[str]:
        def is_printed() -> re.Match[str] | None:
            return re.search(words, "".join(self.printed))

        try:
            return wait_for(is_printed, f"{words!r}", timeout_s=60)
        except AssertionError as late:
            late.add_note("".join(self.printed))
            raise

    def close(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def hosts(server: sa.URL, tmp_path: Path) -> Iterator[Hosts]:
    if not (broker := os.environ.get("BLOOMERY_TEST_RABBITMQ")):
        pytest.skip("BLOOMERY_TEST_RABBITMQ names no broker")
    name = f"bloomery_test_{uuids.uuid4().hex}"
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as conn:
        conn.exec_driver_sql(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
    with contextlib.closing(Hosts(tmp_path, server.set(database=name), broker)) as hosts:
        yield hosts
    with admin.connect() as conn:
        conn.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


def ask(url: str, method: str, path: str, body: Any = None) -> Any:
    login = base64.b64encode(":".join(LOGIN).encode()).decode()
    request = urllib.request.Request(
        f"{url}{path}", method=method, data=json.dumps(body).encode() if body else None,
        headers={"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "1.90",
                 "Authorization": f"Basic {login}"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def is_at_rest(url: str, node: str, state: str) -> bool:
    document = ask(url, "GET", f"/v1/nodes/{node}")
    return document["provision_state"] == state and document["reservation"] is None


def move(url: str, node: str, verb: str, state: str) -> None:
    ask(url, "PUT", f"/v1/nodes/{node}/states/provision", {"target": verb})
    wait_for(lambda: is_at_rest(url, node, state), f"{node} to be {state}", timeout_s=60)


@pytest.mark.only_on("postgresql")
@pytest.mark.timeout(300)  # six processes start, and each wait has a limit of its own
def test_one_process_becomes_three_hosts(hosts: Hosts):
    shown = SHOWN.findall(section())
    lines = [line for kind, text in shown if kind == "console" for line in text.splitlines()]
    (configuration,) = [text for kind, text in shown if kind == "ini"]
    with Served(hosts.path("one", "/var/lib/bloomery"), DEFAULT={"host": "one"}) as served:
        served.wait_until_it_answers()
        node = served.api("POST", "/v1/nodes", {
            "driver": "fake-hardware", "name": "web-1", "driver_info": {"redfish_password": "x"},
        })["uuid"]  # fmt: skip
        move(str(served.url), node, "manage", "manageable")
        hosts.run(lines[0])
        assert served.code() == 0
    hosts.configure(configuration)
    for line in lines[1:-1]:
        hosts.run(line)
    url = hosts.wait_for(r"answers at (\S+)")[1]
    for host in HOSTS:
        hosts.wait_for(rf"conductor {host} serves")
    hosts.wait_for(r"engine \S+ works on stacks")
    listed = hosts.run(lines[-1])
    assert listed.count("online") == len(HOSTS), listed
    move(url, node, "provide", "available")
    assert ask(url, "GET", f"/v1/nodes/{node}")["driver_info"] == {"redfish_password": "******"}
    others = [ask(url, "POST", "/v1/nodes", {"driver": "fake-hardware"})["uuid"] for _ in range(9)]
    for each in others:
        move(url, each, "manage", "manageable")
    serving = {ask(url, "GET", f"/v1/nodes/{each}")["conductor"] for each in [node, *others]}
    assert len(serving) > 1, "the nodes are not shared out"


@pytest.mark.only_on("postgresql")
@pytest.mark.timeout(300)  # nine processes start
def test_three_empty_machines_become_a_site(hosts: Hosts):
    shown = SHOWN.findall(TUTORIAL.read_text(encoding="utf-8"))
    lines = [line for kind, text in shown if kind == "console" for line in text.splitlines()]
    (starts,) = [line for kind, text in shown if kind == "shell"
                 for line in text.splitlines() if line.startswith("systemctl enable")]  # fmt: skip
    hosts.path("one", "/etc/bloomery/password").write_text(LOGIN[1])
    hosts.run(lines[0])
    for host in HOSTS:  # whose names and ports differ, as they share a machine
        own = hosts.path(host, "/etc/bloomery/bloomery.conf")
        written = hosts.path("one", "/etc/bloomery/bloomery.conf").read_text()
        if host != "one":
            own.write_text(f"{written}\n[DEFAULT]\nhost = {host}\n{QUIET}")
    with hosts.path("one", "/etc/bloomery/bloomery.conf").open("a") as own:
        own.write(f"\n[DEFAULT]\nhost = one\n{QUIET}")
    for line in lines[1:-2]:
        hosts.run(line)
    hosts.start_units(starts)
    for host in HOSTS:
        hosts.wait_for(rf"conductor {host} serves")
    url = hosts.wait_for(r"answers at (\S+)")[1]
    assert hosts.run(lines[-2]).count("online") == len(HOSTS)
    assert "processes (conductors, engines and one API) may open" in hosts.run(lines[-1])
    node = ask(url, "POST", "/v1/nodes", {"driver": "fake-hardware"})["uuid"]
    move(url, node, "manage", "manageable")
