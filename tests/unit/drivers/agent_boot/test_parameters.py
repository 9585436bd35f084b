"""The command line of an agent's kernel."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.drivers.agent_boot import parameters
from bloomery.model.port import Port
from tests.kit.machines.driver_task import FakeTask

DEFAULT = "nofb vga=normal"


def line(default: str = DEFAULT, driver: Any = None, instance: Any = None, **params: str) -> str:
    task = FakeTask({} if driver is None else {parameters.KEY: driver})
    task.node.instance_info = {} if instance is None else {parameters.KEY: instance}
    return parameters.command_line(task, default, params)


def test_the_node_says_more_than_the_option_and_the_service_speaks_last() -> None:
    assert line(a="1") == "nofb vga=normal a=1"
    assert line(driver="quiet", a="1") == "quiet a=1"
    assert line(driver="%default% quiet") == "nofb vga=normal quiet"
    assert line(driver="quiet", instance="debug  %default%") == "debug nofb vga=normal"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("a\x07", "ASCII"), ("ä=1", "ASCII"), ("a='b'", "ASCII"), ("a=\\n", "ASCII"),
        ('a="b', "pairs"), (7, "a string"), ("a" * 2048, "too long"),
    ],
    ids=str,
)  # fmt: skip
def test_what_boot_loaders_would_change_is_refused(said: Any, reason: str) -> None:
    with pytest.raises(errors.InvalidParameterValue, match=reason):
        line(driver=said)


def test_no_line_of_a_configuration_can_be_added() -> None:
    assert "\n" not in line(driver="quiet\nlabel mine\n kernel /other")


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("a b=1", "'a' 'b=1'"),
        ('a="b c" d', "'a=b c' 'd'"),
        ("a=$root;reboot {x}", "'a=$root;reboot' '{x}'"),
        ("", ""),
    ],
)
def test_grub_sees_words_and_nothing_to_act_on(said: str, quoted: str) -> None:
    assert parameters.quoted_for_grub(said) == quoted


def port(address: str, *, pxe_enabled: bool = True) -> Port:
    return Port(uuid=address, address=address, node_uuid="x", pxe_enabled=pxe_enabled)


A, B = "52:54:00:00:00:0a", "52:54:00:00:00:0b"


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ([], {}),
        ([port(A)], {"BOOTIF": "01-52-54-00-00-00-0a"}),
        ([port(A), port(B, pxe_enabled=False)], {"BOOTIF": "01-52-54-00-00-00-0a"}),
        ([port(A), port(B)], {}),
    ],
    ids=["none", "one", "one of two", "two"],
)
def test_the_only_port_that_boots_is_named(ports: list[Port], expected: dict[str, str]) -> None:
    task = FakeTask({})
    task.ports = ports
    assert parameters.boot_interface(task) == expected
