"""Queries on what hangs on a node beside its ports: port groups, volume connectors and targets.

Plain dictionaries, their objects decoded: values of their own come with their endpoints.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import PORTGROUPS, VOLUME_CONNECTORS, VOLUME_TARGETS

_OBJECTS = frozenset({"extra", "internal_info", "properties"})


def list_portgroups(conn: sa.Connection, node_uuid: str) -> list[dict[str, Any]]:
    return _list(conn, PORTGROUPS, node_uuid)


def list_volume_connectors(conn: sa.Connection, node_uuid: str) -> list[dict[str, Any]]:
    return _list(conn, VOLUME_CONNECTORS, node_uuid)


def list_volume_targets(conn: sa.Connection, node_uuid: str) -> list[dict[str, Any]]:
    return _list(conn, VOLUME_TARGETS, node_uuid)


def _list(conn: sa.Connection, table: sa.Table, node_uuid: str) -> list[dict[str, Any]]:
    wanted = sa.select(table).where(table.c.node_uuid == node_uuid).order_by(table.c.id)
    return [_decoded(row) for row in conn.execute(wanted).mappings()]


def _decoded(row: sa.RowMapping) -> dict[str, Any]:
    return {str(k): rows.load(v) if k in _OBJECTS else v for k, v in row.items()}
