"""Interfaces of a node that a patch takes away or that a new driver brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomery.db import nodes
from tests.kit.servers.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site(tmp_path / "site.sqlite")
    yield found
    found.close()


def _interface(site: Site, uuid: str) -> str | None:
    with site.db.read() as conn:
        return nodes.get(conn, uuid).boot_interface


@pytest.mark.parametrize(
    "op",
    [
        {"op": "replace", "path": "/boot_interface", "value": None},
        {"op": "remove", "path": "/boot_interface"},
    ],
)
def test_an_interface_that_is_taken_away_becomes_the_default(site: Site, op: dict) -> None:
    node = site.enrol()
    site.order("update_node", node, [op], False)
    assert _interface(site, node) == "fake"
