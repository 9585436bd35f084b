from __future__ import annotations

import dataclasses
import threading

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.drivers import Console
from bloomery.drivers import registry, terminal
from bloomery.drivers.ipmi import console
from bloomery.drivers.ipmi.console import IpmitoolSocat
from tests.kit.machines.driver_task import FakeTask
from tests.unit.drivers.ipmi.conftest import LEAST


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(console.shutil, "which", lambda program: f"/usr/bin/{program}")
    return lambda **options: IpmitoolSocat(dataclasses.replace(Conf(), console=Console(**options)))


def test_a_console_needs_a_port(make):
    with pytest.raises(errors.MissingParameterValue, match="ipmi_terminal_port is missing"):
        make().validate(FakeTask(LEAST))
    make().validate(FakeTask(LEAST | {"ipmi_terminal_port": 10000}))
    make(port_range="10000:10010").validate(FakeTask(LEAST))


def test_a_console_needs_ipmi_2(make):
    old = {"ipmi_address": "h", "ipmi_protocol_version": "1.5", "ipmi_terminal_port": 10000}
    with pytest.raises(errors.InvalidParameterValue, match=r"must be 2\.0 for serial over LAN"):
        make().validate(FakeTask(old))


@pytest.mark.parametrize("text", ["10000", "b:c", "20:10", "0:10", "1:99999", "10:10"])
def test_a_wrong_range_keeps_us_from_starting(make, text):
    with pytest.raises(errors.CannotStart, match=r"\[console\]: option port_range"):
        make(port_range=text)


def test_a_missing_socat_keeps_us_from_starting(monkeypatch):
    monkeypatch.setattr(console.shutil, "which", lambda program: None)
    with pytest.raises(errors.CannotStart, match="install the package socat"):
        IpmitoolSocat(Conf())


def test_a_node_of_redfish_uses_its_own_host_and_login():
    info = console._info(
        {"redfish_address": "https://bmc-1:8443", "redfish_username": "admin",
         "redfish_password": "secret", "ipmi_cipher_suite": 17}
    )  # fmt: skip
    assert (info.address, info.username, info.password) == ("bmc-1", "admin", "secret")
    assert info.cipher_suite == 17


def test_the_last_port_of_a_node_comes_first(make):
    made = make(port_range="10:14")
    assert made._free(None, 12) == [12, 10, 11, 13]
    assert made._free(None, None) == [10, 11, 12, 13]
    assert made._free(99, 12) == [99]


def test_the_address_of_a_console_is_shown(make):
    task = FakeTask(LEAST | {"ipmi_terminal_port": 10000})
    assert make().get_console(task) == {"type": "socat", "url": "tcp://127.0.0.1:10000"}
    shown = make(socat_address="::1").get_console(task)
    assert shown["url"] == "tcp://[::1]:10000"


def test_a_port_that_is_taken_is_refused():
    taken = terminal.listen("127.0.0.1", [0])
    with taken, pytest.raises(errors.NoFreeIPMITerminalPorts):
        terminal.listen("127.0.0.1", [taken.getsockname()[1]])


def test_no_console_waits_for_the_end_of_another(make):
    """Each terminal here ends only when all have been asked to."""

    class Terminal:
        def __init__(self):
            self.begins = threading.Event()

        def begin_stop(self):
            self.begins.set()

        def stop(self):
            assert all(each.begins.is_set() for each in terminals.values())

    terminals = {"one": Terminal(), "two": Terminal()}
    consoles = make()
    consoles._terminals |= terminals
    consoles.close()
    assert not consoles._terminals
    assert terminals["two"].begins.is_set()


@pytest.mark.parametrize("name", ["ipmitool-shellinabox", "redfish-graphical"])
def test_other_consoles_of_ironic_are_left_out_with_advice(name, caplog):
    default = Default(enabled_console_interfaces=(name, "no-console"))
    loaded = registry.load(dataclasses.replace(Conf(), default=default))
    assert list(loaded.interfaces["console"]) == ["no-console"]
    assert f"{name} (use ipmitool-socat)" in caplog.text
    words = f"enabled console interfaces: no-console; Bloomery does not have {name}: use ipmitool"
    with pytest.raises(errors.InterfaceNotFoundInEntrypoint, match=words):
        loaded.check("fake-hardware", "console", name, "web-1")
