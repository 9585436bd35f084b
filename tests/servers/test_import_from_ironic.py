"""The database of an Ironic on PostgreSQL and MariaDB: read as by its API, and never written."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from bloomery.cli.imports import database
from bloomery.db.engine import Database
from tests.kit.servers import ironic_tables


def test_values_are_read_as_the_api_shows_them(fresh: Database, tmp_path: Path) -> None:
    engine = sa.create_engine(fresh.url)
    ironic_tables.make(engine, is_online=True, beats=True)
    engine.dispose()
    config = ironic_tables.write_config(tmp_path / "ironic.conf", fresh.url)
    with database.opened(config) as conn:
        old = database.read(conn, None)
        node = old.nodes[ironic_tables.NODE]
        (port,) = old.records["port"].values()
        (template,) = old.records["deploy template"].values()
        (book,) = old.records["runbook"].values()
        past = old.past(ironic_tables.NODE)
        with pytest.raises(sa.exc.DBAPIError, match=r"(?i)read.only"):
            conn.exec_driver_sql("DELETE FROM nodes")
        conn.rollback()
        assert old.living() == ["old-1"]
    assert (node["protected"], node["maintenance"], node["traits"]) == (
        True,
        False,
        ["CUSTOM_FAST"],
    )
    assert node["driver_info"] == {"fake_password": ironic_tables.SECRET}
    assert (port["pxe_enabled"], port["node_uuid"]) == (False, ironic_tables.NODE)
    assert template["steps"][0]["priority"] == 5
    assert book["disable_ramdisk"] is True
    assert past["history"][0]["created_at"] == "2026-01-02T03:04:05"
    assert past["inspected"] == {"inventory": {"disks": []}, "plugin_data": {}}


@pytest.mark.parametrize(
    "conductor", [{"is_online": True}, {"beats": True}], ids=["silent", "stopped"]
)
def test_silent_and_stopped_conductors_do_not_live(
    fresh: Database, tmp_path: Path, conductor: dict[str, bool]
) -> None:
    engine = sa.create_engine(fresh.url)
    ironic_tables.make(engine, **conductor)
    engine.dispose()
    config = ironic_tables.write_config(tmp_path / "ironic.conf", fresh.url)
    with database.opened(config) as conn:
        assert database.read(conn, None).living() == []
