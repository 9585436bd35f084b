"""Queries on what hangs on a node: ports, port groups, volume connectors and targets.

Volumes are plain dictionaries, their objects decoded: they have no endpoints of their own.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from bloomery.db import records, rows
from bloomery.db.tables import VOLUME_CONNECTORS, VOLUME_TARGETS
from bloomery.model.nouns import PORT, PORTGROUP
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup

_OBJECTS = frozenset({"extra", "properties"})


def list_ports(conn: sa.Connection, node_uuid: str) -> list[Port]:
    return records.list_where(conn, PORT, node_uuid=node_uuid)


def list_portgroups(conn: sa.Connection, node_uuid: str) -> list[Portgroup]:
    return records.list_where(conn, PORTGROUP, node_uuid=node_uuid)


def list_volume_connectors(conn: sa.Connection, node_uuid: str) -> list[dict[str, Any]]:
    return _list(conn, VOLUME_CONNECTORS, node_uuid)


def list_volume_targets(conn: sa.Connection, node_uuid: str) -> list[dict[str, Any]]:
    return _list(conn, VOLUME_TARGETS, node_uuid)


def _list(conn: sa.Connection, table: sa.Table, node_uuid: str) -> list[dict[str, Any]]:
    query = sa.select(table).where(table.c.node_uuid == node_uuid).order_by(table.c.id)
    return [_decoded(row) for row in conn.execute(query).mappings()]


def _decoded(row: sa.RowMapping) -> dict[str, Any]:
    return {str(k): rows.load(v) if k in _OBJECTS else v for k, v in row.items()}
