"""Queries on what hangs on a node: ports, port groups, volume connectors and targets."""

from __future__ import annotations

import sqlalchemy as sa

from bloomery.db import records
from bloomery.model.nouns import PORT, PORTGROUP, VOLUME_CONNECTOR, VOLUME_TARGET
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup
from bloomery.model.volume import VolumeConnector, VolumeTarget


def list_ports(conn: sa.Connection, node_uuid: str) -> list[Port]:
    return records.list_where(conn, PORT, node_uuid=node_uuid)


def list_portgroups(conn: sa.Connection, node_uuid: str) -> list[Portgroup]:
    return records.list_where(conn, PORTGROUP, node_uuid=node_uuid)


def list_volume_connectors(conn: sa.Connection, node_uuid: str) -> list[VolumeConnector]:
    return records.list_where(conn, VOLUME_CONNECTOR, node_uuid=node_uuid)


def list_volume_targets(conn: sa.Connection, node_uuid: str) -> list[VolumeTarget]:
    """Return the targets, the secrets of their properties sealed."""
    return records.list_where(conn, VOLUME_TARGET, node_uuid=node_uuid)
