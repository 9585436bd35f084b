"""The console interface redfish-ssh: the program ssh, and an SSH server beside the lab's BMC."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import threading

import asyncssh
import pytest

from bloomery import errors
from bloomery.conf.drivers import Console
from bloomery.drivers import registry
from bloomery.drivers.redfish import console
from tests.functional.redfish.conftest import conf, enrol
from tests.functional.redfish.test_serial_console import connect, until
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for
from tools.servers import free_port

pytestmark = pytest.mark.skipif(not shutil.which("ssh"), reason="needs the program ssh")


class SshBmc:
    """An SSH server with one user; what is typed comes back in capitals.

    ``logins``: the passwords that were tried; ``commands``: what sessions asked for, and the kind
    of their terminal.
    """

    def __init__(self, password="password", *, is_interactive=False):
        self.password, self.is_interactive = password, is_interactive
        self.logins, self.commands, self.connections, self.sessions = [], [], [], 0
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(self._listen(), self.loop).result(20)
        self.port = self.server.sockets[0].getsockname()[1]

    async def _listen(self):
        bmc = self

        class Logins(asyncssh.SSHServer):
            def connection_made(self, conn):
                bmc.connections.append(conn)

            def begin_auth(self, username):
                return True

            def password_auth_supported(self):
                return not bmc.is_interactive

            def kbdint_auth_supported(self):
                return bmc.is_interactive

            def get_kbdint_challenge(self, username, lang, submethods):
                return "", "", "", [("Password: ", False)]

            def validate_kbdint_response(self, username, responses):
                return self.validate_password(username, responses[0])

            def validate_password(self, username, password):
                bmc.logins.append((username, password))
                return (username, password) == ("admin", bmc.password)

        async def serve(process):
            bmc.sessions += 1
            bmc.commands.append((process.command, bool(process.term_type)))
            process.stdout.write(b"openbmc login: ")
            try:
                while typed := await process.stdin.read(100):
                    process.stdout.write(typed.upper())
            except (asyncssh.Error, OSError):
                pass
            finally:
                bmc.sessions -= 1
                process.close()

        return await asyncssh.create_server(
            Logins, "127.0.0.1", 0, server_host_keys=[self.key], process_factory=serve,
            encoding=None, line_editor=False,
        )  # fmt: skip

    def known_host(self, key=None):
        public = (key or self.key).export_public_key().decode()
        return f"[127.0.0.1]:{self.port} {public}"

    def close(self):
        async def end():
            self.server.close()
            await self.server.wait_closed()
            for connection in self.connections:
                connection.abort()
                await connection.wait_closed()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self.loop).result(20)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def make_bmc():
    bmcs = []

    def make(**options):
        bmcs.append(SshBmc(**options))
        return bmcs[-1]

    yield make
    for each in bmcs:
        each.close()


@pytest.fixture
def known_hosts(tmp_path):
    (tmp_path / "known hosts").touch()
    return tmp_path / "known hosts"


@pytest.fixture
def make_stage(make_site, known_hosts):
    stages = []

    def make(**options):
        port = free_port()
        interfaces = ("redfish-ssh", "no-console")
        default = dataclasses.replace(conf().default, enabled_console_interfaces=interfaces)
        own = Console(port_range=f"{port}:{port + 1}", ssh_known_hosts=str(known_hosts), **options)
        ours = dataclasses.replace(conf(), default=default, console=own)
        stages.append(Stage(make_site(registry=registry.load(ours))))
        return stages[-1]

    yield make
    for each in stages:
        each.site.runtime.registry.close()


def enable(stage, machine, bmc=None, **ssh):
    """Enable the console; ``ssh``: what the BMC shows of it, beside the port."""
    if bmc is not None:
        document = {"SerialConsole": {"SSH": {"ServiceEnabled": True, "Port": bmc.port} | ssh}}
        machine.bmc.faults.add(kind="shows", document=document, path="/Systems/[^/]+$", times=-1)
    node = enrol(stage, machine)
    stage.patch(node, console_interface="redfish-ssh")
    stage.api.put(f"/v1/nodes/{node}/states/console", {"enabled": True})
    stage.wait_until_free(node)
    return node


@pytest.mark.parametrize("is_interactive", [False, True], ids=["password", "keyboard-interactive"])
def test_a_console_leads_to_the_bmcs_ssh(
    make_stage, machine, make_bmc, known_hosts, is_interactive
):
    bmc = make_bmc(is_interactive=is_interactive)
    known_hosts.write_text(bmc.known_host())
    stage = make_stage()
    node = enable(stage, machine, bmc)
    with connect(stage, node) as connection:
        assert b"openbmc login: " in until(connection, b"login: ")
        connection.sendall(b"~.\xff~Broot\r")  # no escape of ssh ends or breaks it
        until(connection, b"~.\xff~BROOT\r")
        assert bmc.commands == [(None, True)]
    wait_for(lambda: not bmc.sessions, "the session to end with its last connection")
    assert bmc.logins == [("admin", "password")]


def test_the_command_that_the_bmc_names_is_asked_for(make_stage, machine, make_bmc, known_hosts):
    bmc = make_bmc()
    known_hosts.write_text(bmc.known_host())
    stage = make_stage()
    shared = {"SharedWithManagerCLI": True, "ConsoleEntryCommand": "console com2"}
    with connect(stage, enable(stage, machine, bmc, **shared)) as connection:
        until(connection, b"login: ")
    assert bmc.commands == [("console com2", True)]


@pytest.mark.parametrize("policy", ["strict", "accept-new"])
@pytest.mark.parametrize("known", ["nothing", "another key"])
def test_host_keys_are_checked(make_stage, machine, make_bmc, known_hosts, policy, known):
    bmc = make_bmc()
    if known == "another key":
        known_hosts.write_text(bmc.known_host(asyncssh.generate_private_key("ssh-ed25519")))
    before = known_hosts.read_text()
    stage = make_stage(ssh_host_keys=policy)
    is_taken = (policy, known) == ("accept-new", "nothing")
    with connect(stage, enable(stage, machine, bmc)) as connection:
        text = until(connection, b"login: " if is_taken else b"never")
    assert (b"Host key verification failed" in text) is not is_taken
    assert (bmc.logins == []) is not is_taken, "no password goes to a stranger"
    assert (known_hosts.read_text() == before) is not is_taken
    if is_taken:
        assert known_hosts.read_text().split() == bmc.known_host().split()[:3]


def test_a_password_that_is_refused_is_told_and_tried_once(
    make_stage, machine, make_bmc, known_hosts, monkeypatch, caplog
):
    lines, popen = [], console.subprocess.Popen
    monkeypatch.setattr(
        console.subprocess, "Popen",
        lambda line, **more: (lines.append((line, more["env"])), popen(line, **more))[1],
    )  # fmt: skip
    bmc = make_bmc(password="of a colleague")
    known_hosts.write_text(bmc.known_host())
    stage = make_stage()
    with connect(stage, enable(stage, machine, bmc)) as connection:
        text = until(connection, b"never")
    assert b"Permission denied" in text
    assert b"[console the serial line ended]" in text
    assert bmc.logins == [("admin", "password")]
    (line, env) = lines[0]
    assert "password" not in line
    assert "password" not in env.values()
    assert "password" not in caplog.text.split()


@pytest.mark.parametrize(
    ("ssh", "error"),
    [
        (None, "shows no serial console by SSH for its system; choose console interface ipmitool"),
        ({"ServiceEnabled": False}, "is switched off; switch it on at the BMC"),
        ({"Port": "x"}, "shows 'x' as the port"),
        ({"Port": 70000}, "shows '70000' as the port"),
        ({"ConsoleEntryCommand": 7}, "an unusable ConsoleEntryCommand"),
        ({"ConsoleEntryCommand": "a\nb"}, "an unusable ConsoleEntryCommand"),
        ({"SharedWithManagerCLI": True}, "leads to its command line, and the BMC names no command"),
    ],
)
def test_a_bmc_without_such_a_console_is_refused_by_name(
    make_stage, machine, make_bmc, known_hosts, ssh, error
):
    stage = make_stage()
    node = enable(stage, machine, None if ssh is None else make_bmc(), **(ssh or {}))
    shown = stage.show(node)
    assert error in shown["last_error"]
    assert shown["console_enabled"] is False


@pytest.mark.parametrize("name", ["", "missing", 'with "quotes"', "%h"])
def test_the_service_does_not_start_without_known_hosts(make_stage, known_hosts, name):
    default = dataclasses.replace(conf().default, enabled_console_interfaces=("redfish-ssh",))
    path = str(known_hosts.parent / name) if name else ""
    if name in ('with "quotes"', "%h"):
        (known_hosts.parent / name).touch()
    ours = dataclasses.replace(conf(), default=default, console=Console(ssh_known_hosts=path))
    with pytest.raises(errors.CannotStart, match="ssh_known_hosts must name a file"):
        registry.load(ours)
