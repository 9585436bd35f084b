"""``bloomery status check`` compares connections with the limit of the server."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bloomery.cli.service import upgrade_checks
from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.state_dir import StateDir


@pytest.mark.parametrize(("most", "result"), [(10, "success"), (100_000, "warning")])
def test_connections_are_compared_with_the_limit_of_the_server(
    db: Database, tmp_path: Path, most: int, result: str
) -> None:
    settings = dataclasses.replace(db.settings, max_pool_size=most)
    site = upgrade_checks.Site(
        settings=dataclasses.replace(Conf(), database=settings), config_files=(),
        home=StateDir(tmp_path), db=db,
    )  # fmt: skip
    checked = upgrade_checks.check_connections(site)
    assert checked.result == result
    assert f"may open {most + settings.max_overflow + 2} each" in checked.text
    assert ("lower [database]max_pool_size" in checked.text) == (result == "warning")
    assert db.pool is not None
    with db.read():
        assert (db.pool.in_use, db.pool.most) == (1, 20)
