from __future__ import annotations

from typing import Any

import pytest

from bloomery.model import capabilities


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("x:1, boot_mode:uefi", {"x": "1", "boot_mode": "uefi"}),
        ({"boot_mode": "bios", "raid": 1}, {"boot_mode": "bios", "raid": "1"}),
        ("boot_mode:uefi,boot_mode:bios", {"boot_mode": "bios"}),
        ("boot_mode", {}),
        ({"boot_mode": None}, {}),
        ("", {}),
        (None, {}),
    ],
)
def test_capabilities_are_read_as_text_and_as_object(told: Any, read: dict[str, str]):
    assert capabilities.of({"capabilities": told}) == read


@pytest.mark.parametrize("holder", [{}, None])
def test_who_names_none_has_none(holder: dict[str, Any] | None):
    assert capabilities.of(holder) == {}


@pytest.mark.parametrize(
    ("instance", "properties", "mode"),
    [
        ({}, {}, None),
        ({}, {"capabilities": "boot_mode:uefi,raid:1"}, "uefi"),
        ({"capabilities": {"boot_mode": "bios"}}, {"capabilities": "boot_mode:uefi"}, "bios"),
        ({"capabilities": "boot_mode:nonsense"}, {}, None),
    ],
)
def test_an_instance_chooses_the_boot_mode_before_its_node(
    instance: dict[str, Any], properties: dict[str, Any], mode: str | None
):
    assert capabilities.boot_mode(instance, properties) == mode
