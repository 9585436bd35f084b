"""Names, UUIDs and MAC addresses."""

from __future__ import annotations

import uuid as uuids

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomery import errors
from bloomery.model.rules import idents


@given(st.uuids())
def test_every_common_spelling_of_a_uuid_counts(value):
    for spelt in (str(value), str(value).upper(), value.hex):
        assert idents.is_uuid(spelt)
        with pytest.raises(errors.InvalidName):
            idents.check_node_name(spelt)


@pytest.mark.parametrize(
    "value", [None, 5, "", "x", [], f"urn:uuid:{uuids.UUID(int=1)}", "x" * 10_000]
)
def test_other_things_are_no_uuid(value):
    assert not idents.is_uuid(value)


@given(st.text(max_size=300))
def test_name_is_ascii_and_short(text):
    try:
        idents.check_node_name(text)
    except errors.InvalidName:
        return
    assert text.isascii()
    assert 0 < len(text) <= 255


@given(st.text(max_size=300))
def test_host_names_are_names(text):
    try:
        idents.check_node_name(text, host_name=True)
    except errors.InvalidName:
        return
    idents.check_node_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "52-54-00-12-34-56", "525400123456", "52:54:00:12:34", "", None, "52:54:00:12:34:5g",
        "00:00:00:00:00:00", "FF:ff:FF:ff:FF:ff",
    ],
)  # fmt: skip
def test_mac_has_colons(text):
    with pytest.raises(errors.InvalidMAC):
        idents.mac(text)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        pytest.param("52-54-00-AB-34-56", "52:54:00:ab:34:56", id="dashes"),
        pytest.param("525400AB3456", "52:54:00:ab:34:56", id="bare-digits"),
        pytest.param(" 52:54:00:AB:34:56 ", "52:54:00:ab:34:56", id="spaces-around"),
        pytest.param("52:54:0:ab:34:6", "52:54:00:ab:34:06", id="short-groups"),
        pytest.param("00:00:00:00:00:00", None, id="zero"),
        pytest.param("ff-ff-ff-ff-ff-ff", None, id="broadcast"),
        pytest.param("04:3f:72:03:00:9c:5a:10", None, id="guid-of-infiniband"),
        pytest.param("0x043f7203009c5a10", None, id="guid-of-digits"),
        pytest.param("N/A", None, id="words"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="null"),
        pytest.param(42, None, id="number"),
    ],
)
def test_an_address_of_hardware_is_folded(text, folded):
    assert idents.folded_mac(text) == folded
