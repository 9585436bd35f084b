"""Queries on software configurations and deployments.

Their texts and values may contain hidden parameters and are sealed as a whole.  Encode them before
the transaction begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import rows, upserts
from bloomery.db.tables import PROPERTIES_DATA, RESOURCES, SOFTWARE_CONFIGS, SOFTWARE_DEPLOYMENTS
from bloomery.model.software import ConfigSummary, SoftwareConfig, SoftwareDeployment
from bloomery.secrets import Sealer

Row = dict[str, Any]

_C = SOFTWARE_CONFIGS.c
_D = SOFTWARE_DEPLOYMENTS.c
_PARTS: Final = ("config", "inputs", "outputs", "options")
_VALUES: Final = ("input_values", "output_values")
_DEPLOYMENT_COLUMNS: Final = (
    "uuid", "project", "stack_user_project", "server_id", "config_uuid", "action", "status",
    "status_reason", "created_at", "updated_at",
)  # fmt: skip


# ---------------------------------------------------------------------------------------- configs


def encode_config(config: SoftwareConfig, sealer: Sealer) -> Row:
    """Return the row of a configuration."""
    document = {part: getattr(config, part) for part in _PARTS}
    return {
        "uuid": config.uuid,
        "project": config.project,
        "name": config.name,
        "group": config.group,
        "config": sealer.seal_text(rows.dump_document(document)),
        "created_at": config.created_at,
    }


def _decode_config(row: sa.Row[Any], sealer: Sealer) -> SoftwareConfig:
    return SoftwareConfig(
        uuid=row.uuid,
        project=row.project,
        name=row.name,
        group=row.group,
        created_at=row.created_at,
        **rows.load_document(sealer.open_text(row.config)),
    )


def insert_config(conn: sa.Connection, row: Row) -> None:
    """Insert a configuration, unless it exists."""
    conn.execute(upserts.insert_missing(conn.dialect.name, SOFTWARE_CONFIGS, tuple(row)), row)


def find_config(
    conn: sa.Connection, project: str, uuid: str, sealer: Sealer
) -> SoftwareConfig | None:
    """Return a configuration of a project."""
    query = sa.select(SOFTWARE_CONFIGS).where(_C.uuid == uuid, _C.project == project)
    row = conn.execute(query).one_or_none()
    return None if row is None else _decode_config(row, sealer)


def has_config(conn: sa.Connection, project: str, uuid: str) -> bool:
    query = sa.select(_C.id).where(_C.uuid == uuid, _C.project == project)
    return conn.execute(query).one_or_none() is not None


def list_configs(
    conn: sa.Connection, project: str | None, *, limit: int | None, marker: str | None
) -> list[ConfigSummary]:
    """Return a page, newest first; ``project`` None: of all.  An unknown marker is ignored."""
    query = sa.select(_C.uuid, _C.project, _C.name, _C.group, _C.created_at)
    visible = sa.true() if project is None else _C.project == project
    query = query.where(visible).order_by(_C.created_at.desc(), _C.id.desc())
    if marker is not None:
        place = sa.select(_C.created_at, _C.id).where(visible, _C.uuid == marker)
        if (last := conn.execute(place).one_or_none()) is not None:
            same_time = sa.and_(_C.created_at == last.created_at, _C.id < last.id)
            query = query.where(sa.or_(_C.created_at < last.created_at, same_time))
    if limit is not None:
        query = query.limit(limit)
    return [ConfigSummary(**row) for row in conn.execute(query).mappings()]


def count_configs(conn: sa.Connection, project: str) -> int:
    return _count(conn, SOFTWARE_CONFIGS, project)


def delete_config(conn: sa.Connection, project: str, uuid: str) -> bool:
    """Delete a configuration; False: there is none.  Raises SoftwareConfigInUse."""
    used = conn.execute(sa.select(_D.id).where(_D.config_uuid == uuid).limit(1)).first()
    if used is not None and has_config(conn, project, uuid):
        raise errors.SoftwareConfigInUse(config=uuid)
    delete = sa.delete(SOFTWARE_CONFIGS).where(_C.uuid == uuid, _C.project == project)
    with rows.naming_conflicts(lambda exc: errors.SoftwareConfigInUse(config=uuid)):
        return bool(conn.execute(delete).rowcount)


# ------------------------------------------------------------------------------------- deployments


def encode_deployment(deployment: SoftwareDeployment, sealer: Sealer) -> Row:
    """Return the row of a deployment."""
    row = {name: getattr(deployment, name) for name in _DEPLOYMENT_COLUMNS}
    for name in _VALUES:  # an empty map stays unsealed
        values = getattr(deployment, name)
        row[name] = sealer.seal_text(rows.dump_document(values)) if values else rows.EMPTY_OBJECT
    return row


def _opened(text: str, sealer: Sealer) -> dict[str, Any]:
    values = {} if text == rows.EMPTY_OBJECT else rows.load_document(sealer.open_text(text))
    assert isinstance(values, dict)
    return values


def _decode_deployment(row: sa.Row[Any], sealer: Sealer) -> SoftwareDeployment:
    return SoftwareDeployment(
        input_values=_opened(row.input_values, sealer),
        output_values=_opened(row.output_values, sealer),
        **{name: getattr(row, name) for name in _DEPLOYMENT_COLUMNS},
    )


def insert_deployment(conn: sa.Connection, row: Row) -> None:
    """Insert a deployment, unless it exists.

    Raises SoftwareConfigNotFound: its configuration is gone.
    """
    gone = errors.SoftwareConfigNotFound(config=row["config_uuid"])
    with rows.naming_conflicts(lambda exc: gone):
        columns = tuple(row)
        insert = upserts.insert_missing(conn.dialect.name, SOFTWARE_DEPLOYMENTS, columns)
        conn.execute(insert, row)


def find_deployment(
    conn: sa.Connection, project: str, uuid: str, sealer: Sealer
) -> SoftwareDeployment | None:
    """Return a deployment of a project, or one for an agent of the project."""
    query = sa.select(SOFTWARE_DEPLOYMENTS).where(_D.uuid == uuid, _visible(project))
    row = conn.execute(query).one_or_none()
    return None if row is None else _decode_deployment(row, sealer)


def list_deployments(
    conn: sa.Connection, project: str, server_id: str | None, sealer: Sealer
) -> list[SoftwareDeployment]:
    """Return the deployments of a project, or of one server, oldest first."""
    query = sa.select(SOFTWARE_DEPLOYMENTS).where(_visible(project)).order_by(_D.id)
    if server_id is not None:
        query = query.where(_D.server_id == server_id)
    return [_decode_deployment(row, sealer) for row in conn.execute(query)]


def _visible(project: str) -> sa.ColumnElement[bool]:
    return sa.or_(_D.project == project, _D.stack_user_project == project)


def list_server_configs(
    conn: sa.Connection, project: str, server_id: str, sealer: Sealer
) -> list[SoftwareConfig]:
    """Return the configuration of each deployment to a server."""
    query = (
        sa.select(SOFTWARE_CONFIGS)
        .join(SOFTWARE_DEPLOYMENTS, _D.config_uuid == _C.uuid)
        .where(_visible(project), _D.server_id == server_id)
        .order_by(_D.id)
    )
    return [_decode_config(row, sealer) for row in conn.execute(query)]


def list_secret_configs(conn: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Return the configurations with a signal's token or hidden parameters.

    Such are the configurations of stacks' deployments, and those with sealed properties.
    """
    deployed = sa.select(_D.config_uuid).join(RESOURCES, RESOURCES.c.physical_id == _D.uuid)
    return _among(conn, deployed, _D.config_uuid, uuids) | list_secret_deployments(conn, uuids)


def list_secret_deployments(conn: sa.Connection, uuids: Sequence[str]) -> set[str]:
    """Return the deployments of resources with sealed properties."""
    properties = PROPERTIES_DATA.c
    sealed = (
        sa.select(RESOURCES.c.physical_id)
        .join(PROPERTIES_DATA, properties.uuid == RESOURCES.c.properties_uuid)
        .where(properties.sealed)
    )
    return _among(conn, sealed, RESOURCES.c.physical_id, uuids)


def _among(
    conn: sa.Connection, query: sa.Select[Any], column: sa.Column[Any], values: Sequence[str]
) -> set[str]:
    """Return the results of ``query`` whose ``column`` is one of ``values``."""
    return {
        each
        for some in upserts.chunks(values)
        for each in conn.execute(query.where(column.in_(list(some)))).scalars()
    }


def count_deployments(conn: sa.Connection, project: str) -> int:
    return _count(conn, SOFTWARE_DEPLOYMENTS, project)


def update_deployment(conn: sa.Connection, row: Row, updated_at: datetime | None) -> bool:
    """Update a deployment; False: it is gone, or has changed since ``updated_at``.

    Raises SoftwareConfigNotFound as ``insert_deployment`` does.
    """
    gone = errors.SoftwareConfigNotFound(config=row["config_uuid"])
    change = sa.update(SOFTWARE_DEPLOYMENTS).where(
        _D.uuid == row["uuid"], _D.updated_at.is_(None) if updated_at is None
        else _D.updated_at == updated_at,
    )  # fmt: skip
    with rows.naming_conflicts(lambda exc: gone):
        return bool(conn.execute(change.values(row)).rowcount)


def delete_deployment(conn: sa.Connection, project: str, uuid: str) -> bool:
    """Delete a deployment; False: there is none."""
    delete = sa.delete(SOFTWARE_DEPLOYMENTS).where(_D.uuid == uuid, _D.project == project)
    return bool(conn.execute(delete).rowcount)


def _count(conn: sa.Connection, table: sa.Table, project: str) -> int:
    query = sa.select(sa.func.count()).where(table.c.project == project).select_from(table)
    return int(conn.execute(query).scalar_one())
