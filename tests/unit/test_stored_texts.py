"""Texts of agents and BMCs: each is bounded before it is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import flows, writes
from bloomery.conf.api import Api
from bloomery.conf.inspection import Inspector
from bloomery.drivers.base import Heartbeat
from bloomery.inspection import hooks, lldp
from bloomery.inspection.draft import Draft
from bloomery.model.node import Node
from bloomery.operations import agent_callers

LONG = "x" * 200_000
MAC = "52:54:00:00:00:0a"
NIC = {"name": "eth0", "mac_address": MAC, "ipv4_address": "192.0.2.5"}


def node() -> Node:
    return Node(uuid="n", driver="fake-hardware")


def inspected(names: str, inventory: dict[str, Any], plugin_data: dict[str, Any] | None = None):
    draft = Draft.of(node(), (), inventory, plugin_data or {})
    hooks.run(hooks.pipeline(tuple(names.split())), draft, Inspector())
    return draft.node, draft.new_ports


def agent_error() -> str:
    with pytest.raises(errors.HardwareInspectionFailure) as caught:
        inspected("ramdisk-error", {}, {"error": LONG})
    return str(caught.value)


def callback_url() -> str:
    with pytest.raises(errors.InvalidParameterValue) as caught:
        agent_callers.checked_callback_url(Api(), f"http://{LONG}.example:9999", "192.0.2.5")
    return str(caught.value)


def link() -> object:
    tlvs = [[2, "05" + LONG.encode().hex()], [5, LONG.encode().hex()]]
    nic = NIC | {"lldp": tlvs}
    return inspected("validate-interfaces ports local-link-connection", {"interfaces": [nic]})


WRITERS: dict[str, Callable[[], object]] = {
    "history, maintenance reason, step": lambda: writes.own_sentence(node(), LONG),
    "heartbeat": lambda: flows.facts(Heartbeat(callback_url="", status_message=LONG)),
    "callback URL": callback_url,
    "agent's error": agent_error,
    "architecture": lambda: inspected("architecture", {"cpu": {"architecture": LONG}}),
    "boot mode": lambda: inspected("boot-mode", {"boot": {"current_boot_mode": LONG}}),
    "RAID's serial": lambda: inspected("raid-device", {"disks": [{"serial": LONG}]}),
    "client ID": lambda: inspected(
        "validate-interfaces ports", {"interfaces": [NIC | {"client_id": LONG}]}
    ),
    "switch": link,
    "LLDP": lambda: lldp.parse([[4, LONG.encode().hex()]]),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_a_text_of_a_machine_is_bounded_before_it_is_stored(write):
    assert len(repr(write())) < 2 * errors.MAX_TEXT_IN_ROW
