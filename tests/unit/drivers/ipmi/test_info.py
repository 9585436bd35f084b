from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.drivers.ipmi import info

LEAST = {"ipmi_address": "bmc-7.example.org"}
SINGLE = {"ipmi_bridging": "single", "ipmi_target_channel": 0, "ipmi_target_address": "0x24"}
DUAL = SINGLE | {
    "ipmi_bridging": "dual", "ipmi_transit_channel": "1", "ipmi_transit_address": 0x52,
}  # fmt: skip


def read(**said):
    return info.parse(LEAST | said)


@pytest.mark.parametrize("nothing", [{}, {"ipmi_username": "", "ipmi_port": None}])
def test_an_address_is_enough(nothing):
    assert read(**nothing) == info.Info(
        address="bmc-7.example.org", username=None, password="", port=None,
        priv_level="ADMINISTRATOR", interface="lanplus",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "said", "field", "meant"),
    [
        ("ipmi_address", "fd00::7", "address", "fd00::7"),
        ("ipmi_address", "10.0.0.7", "address", "10.0.0.7"),
        ("ipmi_username", "admin", "username", "admin"),
        ("ipmi_password", " p w ", "password", " p w "),
        ("ipmi_port", "6230", "port", 6230),
        ("ipmi_port", 65535, "port", 65535),
        ("ipmi_priv_level", "operator", "priv_level", "OPERATOR"),
        ("ipmi_protocol_version", "1.5", "interface", "lan"),
        ("ipmi_protocol_version", 2.0, "interface", "lanplus"),
        ("ipmi_cipher_suite", "17", "cipher_suite", 17),
        ("ipmi_cipher_suite", 0, "cipher_suite", 0),
        ("ipmi_hex_kg_key", "AAff00", "kg_key", b"\xaa\xff"),
        ("ipmi_hex_kg_key", "aB" * 20, "kg_key", b"\xab" * 20),
        ("ipmi_local_address", "0x20", "local_address", "0x20"),
        ("ipmi_terminal_port", 7000, "terminal_port", 7000),
        ("ipmi_force_boot_device", "yes", "force_boot_device", True),
        ("ipmi_disable_boot_timeout", "False", "disable_boot_timeout", False),
    ],
)
def test_what_is_said_is_read(key, said, field, meant):
    assert getattr(read(**{key: said}), field) == meant


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("ipmi_address", "-H evil"),
        ("ipmi_address", "two words"),
        ("ipmi_address", 7),
        ("ipmi_username", "seventeen letters"),
        ("ipmi_username", ["admin"]),
        ("ipmi_password", 12345),
        ("ipmi_password", "pa55\nword"),
        ("ipmi_password", "x" * 21),
        ("ipmi_port", 0),
        ("ipmi_port", 65536),
        ("ipmi_port", "ipmi"),
        ("ipmi_port", True),
        ("ipmi_priv_level", "ROOT"),
        ("ipmi_protocol_version", "3.0"),
        ("ipmi_cipher_suite", "best"),
        ("ipmi_cipher_suite", -1),
        ("ipmi_hex_kg_key", "abc"),
        ("ipmi_hex_kg_key", "no hex"),
        ("ipmi_hex_kg_key", "aa" * 21),
        ("ipmi_hex_kg_key", "aa00bb"),
        ("ipmi_bridging", "triple"),
        ("ipmi_local_address", "0x100"),
        ("ipmi_terminal_port", 70000),
        ("ipmi_force_boot_device", "perhaps"),
        ("ipmi_disable_boot_timeout", 7),
    ],
)
def test_wrong_values_are_refused_by_key_and_not_repeated(key, said):
    with pytest.raises(errors.InvalidParameterValue, match=f"driver_info/{key} must be") as caught:
        read(**{key: said})
    assert not isinstance(caught.value, errors.MissingParameterValue)
    assert "pa55" not in str(caught.value)


def test_no_address_is_missing():
    with pytest.raises(errors.MissingParameterValue, match="driver_info/ipmi_address"):
        info.parse({})


@pytest.mark.parametrize(
    ("said", "key"), [(d, k) for d in (SINGLE, DUAL) for k in d if k != "ipmi_bridging"]
)
def test_bridging_names_what_it_misses(said, key):
    with pytest.raises(errors.MissingParameterValue, match=f"{key}: ipmi_bridging is"):
        read(**{name: value for name, value in said.items() if name != key})


def test_single_bridging_leaves_the_transit_out():
    bridged = read(**(DUAL | {"ipmi_bridging": "single"}))
    assert (bridged.target_address, bridged.transit_address) == ("0x24", None)


def test_protocol_1_5_has_no_cipher_suites_and_shorter_passwords():
    for wrong in ({"ipmi_cipher_suite": 3}, {"ipmi_password": "x" * 17}):
        with pytest.raises(errors.InvalidParameterValue):
            read(ipmi_protocol_version="1.5", **wrong)


def test_secrets_do_not_show():
    shown = repr(read(ipmi_password="pa55word", ipmi_hex_kg_key="c0ffee"))
    assert "pa55word" not in shown
    assert "c0ffee" not in shown


def test_every_key_is_described():
    assert all(text.endswith(".") for text in info.PROPERTIES.values())
    assert [k for k, text in info.PROPERTIES.items() if text.startswith("Required.")] == [
        "ipmi_address"
    ]


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({"ipmi_address": "h"}, "h:623"),
        ({"ipmi_address": "::1", "ipmi_port": 7}, "[::1]:7"),
    ],
)
def test_a_bmc_is_told_by_address_and_port(said, key):
    assert info.parse(said).key == key
