"""Switches with a command line: what each kind is sent, and what its answers mean.

``netmiko`` is replaced by a session that answers like the switch, and keeps what it was sent.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from types import ModuleType
from typing import Any, ClassVar

import pytest

from bloomery import errors
from bloomery.drivers.switches import contract
from bloomery.drivers.switches.cli import CliDriver, commands
from bloomery.drivers.switches.contract import Lag, Layout, Port, Switch
from bloomery.drivers.switches.dialects import DIALECTS


class Session:
    """A switch that shows ``answers`` to commands that contain their keys."""

    answers: ClassVar[dict[str, str]] = {}
    sent: ClassVar[list[str]] = []
    login: ClassVar[dict[str, Any]] = {}
    fault: ClassVar[Exception | None] = None

    def __init__(self, **login: Any) -> None:
        Session.login = login
        if Session.fault is not None:
            raise Session.fault

    def send_command(self, command: str, read_timeout: float) -> str:
        if not any(word in command for word in ("show", "sonic-cfggen")):
            Session.sent.append(command)
        return next((text for key, text in Session.answers.items() if key in command), "")

    def send_config_set(self, lines: list[str], error_pattern: str, read_timeout: float) -> None:
        Session.sent.extend(lines)
        if "refused" in Session.answers and lines != ["rollback 0"]:
            raise sys.modules["netmiko"].ConfigInvalidException(Session.answers["refused"])

    def commit(self, read_timeout: float) -> None:
        Session.sent.append("commit")

    def save_config(self) -> None:
        Session.sent.append("save")

    def enable(self) -> None:
        Session.sent.append("enable")

    def disconnect(self) -> None:
        Session.sent.append("bye")


@pytest.fixture(autouse=True)
def netmiko(monkeypatch):
    module: Any = ModuleType("netmiko")
    module.ConnectHandler = Session
    module.NetmikoBaseException = type("NetmikoBaseException", (Exception,), {})
    for name in ("ConfigInvalidException", "ReadTimeout"):
        setattr(module, name, type(name, (module.NetmikoBaseException,), {}))
    for name in ("NetmikoTimeoutException", "NetmikoAuthenticationException"):
        setattr(module, name, type(name, (Exception,), {}))
    monkeypatch.setitem(sys.modules, "netmiko", module)
    Session.answers, Session.sent, Session.login, Session.fault = {}, [], {}, None
    return module


def switch(device: str, **more: Any) -> Switch:
    return Switch(name="tor-1", address="192.0.2.1", username="u", password="p",
                  device_type=device, **more)  # fmt: skip


ACCESS = Port(mode="access", native_vlan=20)
TRUNK = Port(mode="trunk", native_vlan=1, vlans=frozenset({1, 30, 31}))
BLOCK = "Current configuration:\n!\ninterface Ethernet1\n switchport mode {}\n"


def sonic(members: dict[str, str], groups: tuple[str, ...] = ()) -> dict[str, str]:
    return {
        "json PORTCHANNEL_MEMBER": json.dumps({key: {} for key in groups}),
        "json PORTCHANNEL": json.dumps({"PortChannel7": {"mtu": "9100"}}),
        "json PORT": json.dumps({"Ethernet1": {"mtu": "9100"}}),
        "json VLAN_MEMBER": json.dumps(
            {f"Vlan{vlan}|Ethernet1": {"tagging_mode": mode} for vlan, mode in members.items()}
        ),
    }


def nvue(bridge: dict[str, Any], bonds: dict[str, Any] | None = None) -> dict[str, str]:
    return {
        "bridge domain": json.dumps(bridge), "Ethernet1 link": json.dumps({"mtu": 9216}),
        "nv show interface --applied": json.dumps(bonds or {}),
    }  # fmt: skip


JUNOS = "set interfaces Ethernet1 "
UNIT = JUNOS + "unit 0 family ethernet-switching "
READINGS = [
    (
        "arista_eos", {"show": "interface Ethernet1\n   description x\n"},
        Port(mode="access", native_vlan=1),
    ),
    ("cisco_ios", {"show": BLOCK.format("access") + " switchport access vlan 20\n"}, ACCESS),
    (
        "cisco_nxos",
        {"show": BLOCK.format("trunk") + "  switchport trunk allowed vlan 1,30\n"
                 "  switchport trunk allowed vlan add 31\n  mtu 9216\n"},
        dataclasses.replace(TRUNK, mtu=9216),
    ),
    (
        "dell_os10",
        {"show": BLOCK.format("trunk") + " switchport access vlan 5\n"
                 " switchport trunk allowed vlan 30-31\n channel-group 7 mode active\n"},
        Port(mode="trunk", native_vlan=5, vlans=frozenset({30, 31}), lag="7"),
    ),
    (
        "juniper_junos",
        {"show": f"{UNIT}interface-mode access\n{UNIT}vlan members vlan20\n{JUNOS}mtu 9000\n"},
        dataclasses.replace(ACCESS, mtu=9000),
    ),
    (
        "juniper_junos",
        {"show": f"{JUNOS}native-vlan-id 1\n{UNIT}interface-mode trunk\n"
                 f"{UNIT}vlan members 1\n{UNIT}vlan members 30-31\n"},
        TRUNK,
    ),
    (
        "juniper_junos", {"show": JUNOS + "ether-options 802.3ad ae7\n"},
        Port(mode="access", lag="ae7"),
    ),
    ("sonic", sonic({"20": "untagged"}), dataclasses.replace(ACCESS, mtu=9100)),
    (
        "sonic",
        sonic({"1": "untagged", "30": "tagged", "31": "tagged"}, ("PortChannel7|Ethernet1",)),
        Port(mode="trunk", native_vlan=1, vlans=frozenset({30, 31}), mtu=9100, lag="PortChannel7"),
    ),
    ("cumulus_nvue", nvue({"access": 20}), dataclasses.replace(ACCESS, mtu=9216)),
    (
        "cumulus_nvue",
        nvue(
            {"untagged": 1, "vlan": {"30-31": {}}},
            {"bond7": {"bond": {"member": {"Ethernet1": {}}}}},
        ),
        Port(mode="trunk", native_vlan=1, vlans=frozenset({30, 31}), mtu=9216, lag="bond7"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("device", "answers", "port"), READINGS)
def test_what_a_switch_shows_is_read(device, answers, port):
    Session.answers = answers
    wanted = Layout(ports={"Ethernet1": ACCESS})
    for prefix in ("", "netmiko_"):
        shown = CliDriver().read(switch(prefix + device), wanted, timeout_s=5)
        assert shown.ports == {"Ethernet1": port}


@pytest.mark.parametrize("device", DIALECTS)
def test_a_port_that_is_not_there_is_refused_by_name(device):
    Session.answers = {"show": "% Invalid input" if device != "cumulus_nvue" else ""}
    with pytest.raises((errors.SwitchRefused, errors.SwitchUnreachable), match="switch tor-1"):
        CliDriver().read(switch(device), Layout(ports={"Ethernet1": ACCESS}), timeout_s=5)


ONE = {"Ethernet1": Port(mode="access", native_vlan=1)}
SENT = [
    ("arista_eos", ACCESS, ["vlan 20", "exit", "interface Ethernet1", "switchport mode access",
                            "switchport access vlan 20", "exit"]),
    ("cisco_ios", TRUNK, [
        "vlan 1", "exit", "vlan 30", "exit", "vlan 31", "exit", "interface Ethernet1",
        "switchport mode trunk", "switchport trunk allowed vlan 1,30-31", "exit",
        "interface Ethernet1", "switchport trunk native vlan 1", "exit",
    ]),
    ("dell_os10", Port(mode="trunk", native_vlan=5, vlans=frozenset({5, 30})), [
        "interface vlan 5", "exit", "interface vlan 30", "exit", "interface Ethernet1",
        "switchport mode trunk", "exit", "interface Ethernet1", "switchport access vlan 5", "exit",
        "interface Ethernet1", "switchport trunk allowed vlan 30", "exit",
    ]),
    ("juniper_junos", TRUNK, [
        "set vlans vlan1 vlan-id 1", "set vlans vlan30 vlan-id 30", "set vlans vlan31 vlan-id 31",
        "delete interfaces Ethernet1 unit 0 family ethernet-switching",
        "delete interfaces Ethernet1 native-vlan-id",
        "set interfaces Ethernet1 unit 0 family ethernet-switching interface-mode trunk",
        "set interfaces Ethernet1 unit 0 family ethernet-switching vlan members [ 1 30-31 ]",
        "set interfaces Ethernet1 native-vlan-id 1",
    ]),
    ("sonic", ACCESS, [
        "sudo config vlan add 20 2>/dev/null || true", "sudo config vlan member del 1 Ethernet1",
        "sudo config vlan member add -u 20 Ethernet1",
    ]),
    ("sonic", TRUNK, [
        *(f"sudo config vlan add {vlan} 2>/dev/null || true" for vlan in (1, 30, 31)),
        "sudo config vlan member add 30 Ethernet1", "sudo config vlan member add 31 Ethernet1",
    ]),
    ("cumulus_nvue", dataclasses.replace(ACCESS, mtu=9000), [
        "nv set bridge domain br_default vlan 20", "nv set interface Ethernet1 link mtu 9000",
        "nv unset interface Ethernet1 bridge domain br_default",
        "nv set interface Ethernet1 bridge domain br_default access 20", "nv config apply -y",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("device", "port", "lines"), SENT)
def test_each_kind_is_sent_its_own_commands(device, port, lines):
    wanted, shown = Layout(ports={"Ethernet1": port}), Layout(ports=ONE)
    assert commands(DIALECTS[device], wanted, shown) == lines
    plain = commands(DIALECTS[device], wanted, shown, manage_vlans=False)
    assert plain == lines[len(lines) - len(plain) :]
    assert len(plain) < len(lines)


GROUP = Layout(
    ports={"Ethernet1": Port(lag="lag7")}, lags={"lag7": Lag(carries=TRUNK, aggregation="lacp")}
)
ALONE = Layout(ports=ONE, lags={"lag7": None})


@pytest.mark.parametrize(
    ("device", "joins", "leaves"),
    [
        ("arista_eos", "channel-group 7 mode active", "no interface port-channel 7"),
        ("cisco_nxos", "channel-group 7 force mode active", "no interface port-channel 7"),
        ("juniper_junos", "set interfaces Ethernet1 ether-options 802.3ad lag7",
         "delete interfaces lag7"),
        ("sonic", "sudo config portchannel member add lag7 Ethernet1",
         "sudo config portchannel del lag7"),
        ("cumulus_nvue", "nv set interface lag7 bond member Ethernet1", "nv unset interface lag7"),
    ],
)  # fmt: skip
def test_a_lag_is_made_before_its_members_join_and_removed_after_they_left(device, joins, leaves):
    dialect = DIALECTS[device]
    lines = commands(dialect, GROUP, ALONE)
    created = dialect.create[0].format(lag="lag7", number=7, mode=dialect.modes["lacp"])
    assert lines.index(created) < lines.index(joins)
    back = Layout(ports={"Ethernet1": ACCESS}, lags={"lag7": None})
    lines = commands(dialect, back, GROUP)
    left = dialect.leave[-2 if dialect.configures and len(dialect.leave) > 1 else -1]
    assert lines.index(left.format(port="Ethernet1", old="lag7")) < lines.index(leaves)


def test_a_switch_that_shows_what_is_wanted_is_sent_nothing():
    for dialect in DIALECTS.values():
        shown = Layout(ports={"Ethernet1": ACCESS})
        assert commands(dialect, shown, shown, manage_vlans=False) == []


def test_a_lag_is_read_by_the_number_of_its_name():
    Session.answers = {
        "interface Ethernet1": BLOCK.format("trunk") + " channel-group 7 mode on\n",
        "interface port-channel 7": BLOCK.format("trunk").replace("Ethernet1", "Port-Channel7")
        + " switchport trunk allowed vlan 1,30-31\n",
    }
    shown = CliDriver().read(switch("arista_eos"), GROUP, timeout_s=5)
    assert shown.ports["Ethernet1"].lag == "lag7"
    assert contract.differences(GROUP, shown) == [
        (
            "LAG lag7 shows trunk of VLAN 1,30-31, native 1, static, and not "
            "trunk of VLAN 1,30-31, native 1, lacp"
        )
    ]


# ------------------------------------------------------------------------------------ sessions


def test_a_session_logs_in_commits_and_saves():
    Session.answers = READINGS[4][1]
    driver, wanted = CliDriver(), Layout(ports={"Ethernet1": TRUNK})
    driver.order(switch("juniper_junos", persist=True), wanted, timeout_s=5)
    assert Session.sent[-2:] == ["commit", "bye"]
    assert Session.login["device_type"] == "juniper_junos"
    Session.answers = READINGS[1][1]
    keyed = switch("cisco_ios", persist=True, enable_secret="s", key_file="/k", port=2222)
    driver.order(keyed, wanted, timeout_s=5)
    assert Session.sent[-2:] == ["save", "bye"]
    assert "enable" in Session.sent
    login = Session.login
    assert (login["port"], login["secret"], login["key_file"]) == (2222, "s", "/k")


def test_host_keys_are_checked_where_they_are_known_and_else_warned_of(tmp_path, caplog):
    file = tmp_path / "known_hosts"
    file.touch()
    for known, is_strict in (("", False), (str(file), True)):
        caplog.clear()
        device = switch("cisco_ios", known_hosts_file=known)
        CliDriver().check(device)
        assert ("switch tor-1: its SSH host key is not checked" in caplog.text) is not is_strict
        Session.answers = READINGS[1][1]
        CliDriver().read(device, Layout(ports={"Ethernet1": ACCESS}), timeout_s=5)
        login = Session.login
        assert (login["ssh_strict"], login["alt_key_file"]) == (is_strict, known)


def test_what_was_half_sent_is_undone_and_the_refusal_has_its_words(netmiko):
    Session.answers = READINGS[4][1] | {"refused": "error: vlan 30\n password hunter2 not allowed"}
    known = dataclasses.replace(switch("juniper_junos"), password="hunter2")
    with pytest.raises(errors.SwitchRefused, match="vlan 30") as refused:
        CliDriver().order(known, Layout(ports={"Ethernet1": TRUNK}), timeout_s=5)
    assert Session.sent[-2:] == ["rollback 0", "bye"]
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("NetmikoAuthenticationException", errors.SwitchRefused, "correct username, password"),
        ("NetmikoTimeoutException", errors.SwitchUnreachable, "NetmikoTimeoutException"),
        ("ReadTimeout", errors.SwitchUnreachable, "ReadTimeout"),
    ],
)
def test_a_failed_session_is_told_apart(netmiko, name, kind, words):
    Session.fault = getattr(netmiko, name)("of the library")
    with pytest.raises(kind, match=words):
        CliDriver().read(switch("cisco_ios"), Layout(ports={"Ethernet1": ACCESS}), timeout_s=5)


@pytest.mark.parametrize(
    "name", ["Ethernet1; reboot", "Ethernet1\nreload", "$(reboot)", "", "-x", "a|b"]
)
def test_a_name_that_a_shell_would_read_is_refused(name):
    with pytest.raises(errors.SwitchRefused, match="a name has letters"):
        CliDriver().order(switch("sonic"), Layout(ports={name: ACCESS}), timeout_s=5)
    assert Session.sent == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"device_type": "acme"}, "device_type acme of switch tor-1 is not known"),
        ({"device_type": "sonic", "address": "https://x"}, "no URL as its address"),
        ({"device_type": "sonic", "known_hosts_file": "/none"}, "known_hosts_file /none of switch"),
    ],
)
def test_settings_without_a_use_are_refused(values, reason):
    with pytest.raises(errors.InvalidParameterValue, match=reason):
        CliDriver().check(Switch(**{"name": "tor-1", "address": "a"} | values))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "netmiko", None)
    with pytest.raises(errors.InvalidParameterValue, match=r"pip install bloomery\[switches\]"):
        CliDriver().check(switch("sonic"))
