"""The history tells of flows: when they began, with which steps, and that they ended well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery import errors
from tests.kit.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path / "site.sqlite", disallowed_deployment_boot_modes=("bios",))
    yield found
    found.close()


def _told(site: Site, node: str) -> list[str]:
    return [e["event_type"] for e in site.history(node) if e["event_type"] != "transition"]


def _available(site: Site) -> str:
    node = site.enrol()
    site.provision(node, "manage")
    site.wait_for_state(node, "manageable")
    site.provision(node, "provide")
    site.wait_for_state(node, "available")
    return node


def test_cleaning_and_deploying_are_told_with_start_and_end(site: Site) -> None:
    node = _available(site)
    site.provision(node, "active")
    site.wait_for_state(node, "active")
    assert _told(site, node) == [
        "automated_cleaning_start",
        "automated_cleaning_end",
        "deployment_start",
        "deployment_end",
    ]
    assert any("'step': 'deploy'" in entry["event"] for entry in site.history(node))


def test_a_boot_mode_that_the_operator_forbids_is_not_deployed(site: Site) -> None:
    node = _available(site)
    patch = [{"op": "add", "path": "/properties/capabilities", "value": "a:b,boot_mode:bios"}]
    site.order("update_node", node, patch, False)
    with pytest.raises(errors.BootModeNotAllowed):
        site.provision(node, "active")
