"""The console interface console-server: a machine boots, and its serial line shows it."""

from __future__ import annotations

import dataclasses
import socket
import urllib.parse

import pytest

from bloomery.conf.drivers import Console
from bloomery.drivers import registry
from tests.functional.redfish.conftest import conf, enrol
from tests.kit.servers.stories import Stage
from tools.servers import free_port


@pytest.fixture
def make_stage(make_site):
    stages = []

    def make(**options):
        port = free_port()
        default = dataclasses.replace(
            conf().default, enabled_console_interfaces=("console-server", "no-console")
        )
        ours = dataclasses.replace(
            conf(), default=default, console=Console(port_range=f"{port}:{port + 1}", **options)
        )
        stages.append(Stage(make_site(registry=registry.load(ours))))
        return stages[-1]

    yield make
    for each in stages:
        each.site.runtime.registry.close()


@pytest.fixture
def machine(make_rack):
    return make_rack(consoles=True).machines[0]


def enable(stage, machine, **driver_info):
    node = enrol(stage, machine, **driver_info)
    stage.patch(node, console_interface="console-server")
    assert stage.api.put(f"/v1/nodes/{node}/states/console", {"enabled": True}).status == 202
    stage.wait_until_free(node)
    return node


def connect(stage, node):
    shown = stage.api.get(f"/v1/nodes/{node}/states/console").json["console_info"]
    url = urllib.parse.urlsplit(shown["url"])
    return socket.create_connection((url.hostname, url.port), 20)


def until(connection, words):
    text = b""
    while words not in text and (more := connection.recv(4096)):
        text += more
    return text


def test_a_machine_prints_its_boot_and_echoes(make_stage, machine):
    stage = make_stage(allow_local=True)
    node = enable(stage, machine)
    with connect(stage, node) as connection:
        until(connection, b"which is off")  # the line to the machine is open
        connection.sendall(b"x")  # which drops it
        machine.system.reset("On")
        text = until(connection, b"login: ")
        assert b"Bloomery lab BIOS" in text
        assert machine.mac.encode() in text
        connection.sendall(b"ab\x7f\r")
        assert until(connection, b"login: ").startswith(b"ab\b \b\r\n")
        machine.system.reset("ForceOff")


def test_a_console_server_of_this_host_needs_leave(make_stage, machine):
    stage = make_stage()
    node = enable(stage, machine)
    with connect(stage, node) as connection:
        assert b"[console]allow_local" in until(connection, b"never")


@pytest.mark.parametrize("address", ["ts-1", "ts-1:0", "ts-1:70000", "http://ts-1:80", "a@b:1", 5])
def test_a_wrong_address_is_refused_by_name(make_stage, machine, address):
    stage = make_stage(allow_local=True)
    node = enrol(stage, machine, console_server_address=address)
    stage.patch(node, console_interface="console-server")
    answer = stage.api.put(f"/v1/nodes/{node}/states/console", {"enabled": True})
    assert answer.status == 400
    assert b"console_server_address takes HOST:PORT" in answer.body
