"""What ipmitool 1.8.19 printed, and what we read in it."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.drivers.bmc.meanings import Meaning
from bloomery.drivers.ipmi import management, tool, vendor
from bloomery.model.node import Node

BOOT = """\
Boot parameter version: 1
Boot parameter 5 is valid/unlocked
Boot parameter data: {data}
 Boot Flags :
   - Boot Flag Invalid
"""
MC = """\
Device ID                 : 32
Manufacturer ID           : {id}
Manufacturer Name         : {name}
Product ID                : 256 (0x0100)
"""


@pytest.mark.parametrize(
    ("data", "device", "persistent"),
    [
        ("0004000000", "pxe", False),
        ("c008000000", "disk", True),
        ("a00c000000", "safe", False),
        ("e014000000", "cdrom", True),
        ("8018000000", "bios", False),
        ("e024000000", "disk", True),
        ("a020000000", "cdrom", False),
        ("0000000000", None, False),
        ("a03c000000", None, False),
        ("E004", "pxe", True),
    ],
)
def test_boot_device(data, device, persistent):
    read = management.parse_boot_device(BOOT.format(data=data))
    assert read == {"boot_device": device, "persistent": persistent}


@pytest.mark.parametrize(
    ("data", "mode"),
    [("e008000000", "uefi"), ("a008000000", "uefi"), ("8004000000", "bios"), ("c004000000", "bios"),
     ("0000000000", None), ("2004000000", None)],
)  # fmt: skip
def test_a_boot_mode_counts_where_the_flags_are_valid(data, mode):
    assert management.parse_boot_mode(BOOT.format(data=data)) == mode


@pytest.mark.parametrize(
    ("persistent", "uefi", "command"),
    [
        (True, True, "raw 0x00 0x08 0x05 0xe0 0x04 0x00 0x00 0x00"),
        (False, True, "raw 0x00 0x08 0x05 0xa0 0x04 0x00 0x00 0x00"),
        (True, False, "chassis bootdev pxe options=persistent"),
        (False, False, "chassis bootdev pxe"),
    ],
)
def test_a_boot_device_is_sent_with_the_boot_mode(persistent, uefi, command):
    words = management.boot_device_command("pxe", persistent=persistent, uefi=uefi, vendor=None)
    assert " ".join(words) == command


def test_a_boot_mode_that_cannot_be_read():
    assert management.parse_boot_mode("no answer") is None


@pytest.mark.parametrize(
    ("number", "name", "read"),
    [
        ("10876", "Supermicro", "supermicro"),
        ("10876", "Unknown (0x2A7C)", "supermicro"),
        ("674", "Dell Inc.", "dell"),
        ("4753", "MontaVista Software, Inc.", "montavista software, inc."),
        ("99999", "Unknown (0x1869F)", None),
        ("99999", "", None),
    ],
)
def test_vendor(number, name, read):
    assert management.parse_vendor(MC.format(id=number, name=name)) == read


def test_a_bmc_without_a_vendor():
    assert management.parse_vendor("") is None


@pytest.mark.parametrize(
    ("instance", "properties", "boot_mode", "uefi"),
    [
        ({}, {}, None, True),
        ({}, {}, "bios", False),
        ({}, {"capabilities": "boot_mode:bios,a:b"}, "uefi", False),
        ({}, {"capabilities": "a:b, boot_mode:uefi"}, "bios", True),
        ({"capabilities": {"boot_mode": "bios"}}, {"capabilities": "boot_mode:uefi"}, None, False),
        ({"capabilities": None}, {"capabilities": "nonsense"}, None, True),
        ({}, {"capabilities": "boot_mode:UEFI"}, None, True),
        ({}, {"capabilities": "boot_mode:UEFI"}, "bios", False),
    ],
)
def test_boot_mode(instance, properties, boot_mode, uefi):
    node = Node(
        uuid="u", driver="ipmi", instance_info=instance, properties=properties, boot_mode=boot_mode,
    )  # fmt: skip
    assert management.is_uefi(node) is uefi


@pytest.mark.parametrize("said", ["0x06 0x01", "6 1", "0X06  0xff 255"])
def test_raw_bytes(said):
    assert vendor.parse_bytes(said) == said.split()


@pytest.mark.parametrize("said", ["", "0x06", "0x06 0x100", "6 256", "6 1;reboot", "-v 1", None, 6])
def test_wrong_raw_bytes(said):
    with pytest.raises(errors.InvalidParameterValue, match="raw_bytes must be"):
        vendor.parse_bytes(said)


@pytest.mark.parametrize(
    ("text", "meaning", "put_off", "suite"),
    [
        ("RAKP 2 HMAC is invalid", Meaning.LOGIN, False, False),
        ("RAKP 2 message indicates an error : unauthorized name", Meaning.LOGIN, False, False),
        ("Set Session Privilege Level to ADMINISTRATOR failed", Meaning.RIGHT, False, False),
        ("Chassis Power Control failed: Insufficient privilege level", Meaning.RIGHT, False, False),
        ("RAW command (rsp=0xc1): Invalid command", Meaning.UNSUPPORTED, False, False),
        ("session response message : no matching cipher suite", Meaning.REFUSED, False, True),
        ("Unsupported cipher suite ID : 99", Meaning.REFUSED, False, True),
        (
            "session response message : insufficient resources for session",
            Meaning.FULL,
            True,
            False,
        ),
        ("Set Chassis Power Control to Up/On failed: Node busy", Meaning.BUSY, True, False),
        ("Get Chassis Power Status failed: Timeout", None, True, False),
        ("Error: Unable to establish IPMI v2 / RMCP+ session", None, False, False),
        ("no answer", None, False, False),
    ],
)
def test_each_message_has_its_meaning(text, meaning, put_off, suite):
    assert tool.meaning(text) is meaning
    assert tool.is_put_off(text) is put_off
    assert tool.is_about_suite(text) is suite


def test_what_the_operator_calls_retryable_is_no_refusal():
    assert tool.meaning("failed: Invalid command", ("Invalid command",)) is None
    assert tool.is_put_off("strange words", ("strange",))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("RAKP 2 HMAC is invalid", "ipmi_password (or ipmi_hex_kg_key) is wrong: RAKP 2"),
        ("unauthorized name", "ipmi_username is unknown to it: un"),
        ("Unsupported cipher suite ID : 99", "it does not take this ipmi_cipher_suite: Un"),
        ("failed: Invalid command", "failed: Invalid command"),
    ],
)
def test_a_refusal_says_what_to_change(text, told):
    assert tool.sentence(text, text).startswith(told)
