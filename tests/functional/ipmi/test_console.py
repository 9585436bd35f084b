"""Serial consoles over LAN: switched on by the API, reached on a TCP port, typed into."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import urllib.parse

import pytest

from bloomery.conductor import console
from bloomery.conf.drivers import Console
from bloomery.conf.notifications import Audit
from bloomery.db import rows
from bloomery.drivers import registry
from tests.functional.ipmi.conftest import conf
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for
from tools.servers import free_port

READY = b"[SOL Session operational"


@pytest.fixture
def stage(make_site, machine, tmp_path):
    """A site that ends before the machine: the end of a session waits for its BMC."""
    port = free_port()
    ours = conf(command_retry_timeout=20)
    default = dataclasses.replace(ours.default, enabled_console_interfaces=("ipmitool-socat",))
    ours = dataclasses.replace(
        ours, default=default, console=Console(port_range=f"{port}:{port + 1}"),
        audit=Audit(file=str(tmp_path / "audit.jsonl")),
    )  # fmt: skip
    stage = Stage(make_site(registry=registry.load(ours)))
    yield stage
    interface(stage).close()


def interface(stage):
    return stage.site.runtime.registry.interfaces["console"]["ipmitool-socat"]


@pytest.fixture
def node(stage, machine):
    return stage.enrol(driver="ipmi", driver_info=machine.driver_info)


def switch(stage, node, *, on):
    answer = stage.api.put(f"/v1/nodes/{node}/states/console", {"enabled": on})
    assert answer.status == 202, answer.body
    stage.wait_until_free(node)
    return stage.show(node)


def address(stage, node):
    shown = stage.api.get(f"/v1/nodes/{node}/states/console").json
    assert shown["console_info"]["type"] == "socat"
    parts = urllib.parse.urlsplit(shown["console_info"]["url"])
    return parts.hostname, parts.port


def connect(stage, node):
    """Return a connection whose session with the BMC is open."""
    connection = socket.create_connection(address(stage, node), 20)
    assert READY in until(connection, READY)
    until(connection, b"\n")
    return connection


def until(connection, words):
    connection.settimeout(20)
    text = b""
    while words not in text and (more := connection.recv(1)):
        text += more
    return text


def started_elsewhere(stage, node, port):
    """Let the row say that another incarnation has started the console."""
    life = {"conductor": "other", "incarnation": 1}
    info = {"allocated_ipmi_terminal_port": port, "console": life}
    stage.site.set(node, driver_internal_info=rows.dump(info))


def test_a_console_leads_to_the_machine(stage, machine, node):
    assert switch(stage, node, on=True)["console_enabled"] is True
    with connect(stage, node) as connection:
        os.write(machine.console, b"login: ")
        assert until(connection, b"login: ").endswith(b"login: ")
        connection.sendall(b"root\r")
        assert os.read(machine.console, 100) == b"root\r"
        assert switch(stage, node, on=False)["console_enabled"] is False
        assert b"it is switched off" in until(connection, b"never")
    assert stage.api.get(f"/v1/nodes/{node}/states/console").json["console_info"] is None
    assert interface(stage)._terminals == {}


def test_each_connection_is_in_the_audit(stage, machine, node, tmp_path):
    switch(stage, node, on=True)
    with connect(stage, node):
        pass
    switch(stage, node, on=False)
    lines = (tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [(each["kind"], each["node"], each["address"]) for each in records] == [
        ("console_opened", node, "127.0.0.1"), ("console_closed", node, "127.0.0.1")
    ]  # fmt: skip


def test_a_connection_that_cannot_be_recorded_is_refused(stage, machine, node, tmp_path):
    switch(stage, node, on=True)
    (tmp_path / "audit.jsonl").mkdir()
    with socket.create_connection(address(stage, node), 20) as connection:
        connection.settimeout(20)
        assert connection.recv(1) == b""


@pytest.mark.parametrize("ends_by", ["user", "API"])
def test_a_connection_that_ends_leaves_no_session_at_the_bmc(stage, machine, node, ends_by):
    switch(stage, node, on=True)
    with connect(stage, node):
        if ends_by == "API":
            switch(stage, node, on=False)
    switch(stage, node, on=False)
    line = (
        "ipmitool", "-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(machine.port),
        "-U", "admin", "-P", "password", "sol", "deactivate",
    )  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, timeout=20, check=False)
    assert "already de-activated" in done.stdout + done.stderr


def test_a_session_that_dies_is_replaced_at_the_next_connection(stage, machine, node):
    switch(stage, node, on=True)
    (terminal,) = interface(stage)._terminals.values()
    with connect(stage, node) as connection:
        os.killpg(terminal._line._process.pid, signal.SIGKILL)
        assert b"[console the serial line ended]" in until(connection, b"never")
    with connect(stage, node) as connection:
        os.write(machine.console, b"again")
        assert until(connection, b"again").endswith(b"again")


def test_what_ipmitool_takes_for_its_commands_reaches_the_machine(stage, machine, node):
    """``~.`` would end the session of all, and ``~`` with Ctrl-Z stop it."""
    switch(stage, node, on=True)
    with connect(stage, node) as connection:
        for typed in (b"\r~.", b"\r~\x1a", b"\r~?"):
            connection.sendall(typed)
            read = b""
            while len(read) < len(typed):
                read += os.read(machine.console, 100)
            assert read == typed


def test_connections_share_the_session(stage, machine, node):
    """A later one sees what was written before it came, and both may type."""
    switch(stage, node, on=True)
    with connect(stage, node) as first:
        os.write(machine.console, b"\r\nlogin: ")
        until(first, b"login: ")
        with socket.create_connection(address(stage, node), 20) as second:
            until(second, b"login: ")
            second.sendall(b"root\r")
            assert os.read(machine.console, 100) == b"root\r"
        first.sendall(b"again")
        assert os.read(machine.console, 100) == b"again"


def test_a_console_is_started_again_on_its_port_after_a_restart(stage, node):
    switch(stage, node, on=True)
    before, terminal = address(stage, node), interface(stage)._terminals[node]
    started_elsewhere(stage, node, before[1])
    console.take_over_all(stage.site.runtime)
    wait_for(lambda: interface(stage)._terminals, "the console")
    stage.wait_until_free(node)
    assert address(stage, node) == before
    assert interface(stage)._terminals[node] is not terminal
    connect(stage, node).close()


def test_a_console_that_another_conductor_has_started_is_released(stage, node):
    switch(stage, node, on=True)
    terminal = interface(stage)._terminals[node]
    started_elsewhere(stage, node, terminal.port)
    stage.site.set(node, conductor_group="east")  # which another conductor serves
    console.take_over_all(stage.site.runtime)
    assert interface(stage)._terminals == {}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", terminal.port))


def test_a_second_console_finds_no_free_port(stage, machine, node):
    switch(stage, node, on=True)
    other = stage.enrol(driver="ipmi", driver_info=machine.driver_info)
    shown = switch(stage, other, on=True)
    assert shown["console_enabled"] is False
    assert "no port of 127.0.0.1 is free" in shown["last_error"]


def test_a_bmc_that_is_gone_starts_no_console(stage, machine, node):
    machine.stop()
    shown = switch(stage, node, on=True)
    assert shown["console_enabled"] is False
    assert "cannot reach the BMC" in shown["last_error"]
