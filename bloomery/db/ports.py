"""Queries on ports."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import pagination, rows
from bloomery.db.tables import NODES, PORTGROUPS, PORTS
from bloomery.model import port as model
from bloomery.model.port import Port

_T = PORTS.c
_WHOLE = sa.select(*(_T[name] for name in model.COLUMNS))


def from_row(row: sa.RowMapping) -> Port:
    values = dict(row)
    for name in model.OBJECTS:
        values[name] = rows.load(values[name])
    return Port(**values)


def find_row(conn: sa.Connection, ident: str, columns: Sequence[str]) -> sa.Row[Any] | None:
    """Return these columns of the port with this UUID or name: objects still JSON text."""
    wanted = sa.select(*(_T[name] for name in columns)).where(_is(ident))
    return conn.execute(wanted).one_or_none()


def _is(ident: str) -> sa.ColumnElement[bool]:
    return sa.or_(_T.uuid == ident, _T.name == ident)


def get(conn: sa.Connection, ident: str) -> Port:
    """Return one port by UUID or name.  Raises PortNotFound."""
    row = conn.execute(_WHOLE.where(_is(ident))).mappings().one_or_none()
    if row is None:
        raise errors.PortNotFound(port=ident)
    return from_row(row)


def list_of_node(conn: sa.Connection, node_uuid: str) -> list[Port]:
    wanted = _WHOLE.where(_T.node_uuid == node_uuid).order_by(_T.id)
    return [from_row(row) for row in conn.execute(wanted).mappings()]


def insert(conn: sa.Connection, values: Mapping[str, Any]) -> None:
    """Add a port; ``values`` are encoded.  Raises MACAlreadyExists and its like."""
    with naming_conflicts(values):
        conn.execute(sa.insert(PORTS), values)


def update(conn: sa.Connection, uuid: str, values: Mapping[str, Any]) -> None:
    with naming_conflicts({"uuid": uuid} | dict(values)):
        conn.execute(
            sa.update(PORTS).where(_T.uuid == uuid).values(updated_at=rows.now(), **values),
        )


def delete(conn: sa.Connection, uuid: str) -> bool:
    return bool(conn.execute(sa.delete(PORTS).where(_T.uuid == uuid)).rowcount)


def naming_conflicts(values: Mapping[str, Any]) -> rows.naming_conflicts:
    """Turn a broken unique or foreign key of the ports table into its named error."""
    return rows.naming_conflicts(partial(_named, values))


def _named(said: Mapping[str, Any], exc: sa.exc.IntegrityError) -> errors.Failure | None:
    meanings: dict[str, Callable[[], errors.Failure]] = {
        "ports.uuid": lambda: errors.PortAlreadyExists(port=said.get("uuid")),
        "ports.address": lambda: errors.MACAlreadyExists(mac=said.get("address")),
        "ports.name": lambda: errors.PortDuplicateName(name=said.get("name")),
    }
    return rows.broken_constraint(exc, meanings, _missing(said))


def _missing(said: Mapping[str, Any]) -> errors.NotFound:
    if said.get("portgroup_uuid"):
        return errors.PortgroupNotFound(portgroup=said["portgroup_uuid"])
    return errors.NodeNotFound(node=said.get("node_uuid"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A list of ports; ``conductor_groups`` and ``shards`` look at the ports' nodes."""

    columns: Sequence[str]
    equal: Mapping[str, Any] = field(default_factory=dict)
    shards: Sequence[str] | None = None
    conductor_groups: Sequence[str] | None = None
    description_contains: str | None = None
    sort_key: str = "id"
    descending: bool = False
    marker: str | None = None
    limit: int | None = None


def list_rows(conn: sa.Connection, query: Query) -> Sequence[sa.Row[Any]]:
    """Return raw rows of the asked columns, in that order: objects still JSON text.

    Raises PortNotFound when the marker is unknown.
    """
    wanted = sa.select(*(_T[name] for name in query.columns)).where(*_conditions(query))
    wanted = pagination.keyset(
        conn, wanted, PORTS, query.sort_key, query.descending, query.marker, _no_port,
    )  # fmt: skip
    if query.limit is not None:
        wanted = wanted.limit(query.limit)
    return conn.execute(wanted).all()


def _conditions(query: Query) -> list[sa.ColumnElement[bool]]:
    found = [_T[name] == value for name, value in query.equal.items()]
    if query.description_contains is not None:
        found.append(_T.description.like(f"%{query.description_contains}%"))
    for column, values in (
        (NODES.c.shard, query.shards),
        (NODES.c.conductor_group, query.conductor_groups),
    ):
        if values is not None:
            found.append(_T.node_uuid.in_(sa.select(NODES.c.uuid).where(column.in_(list(values)))))
    return found


def _no_port(marker: str) -> errors.Failure:
    return errors.PortNotFound(port=marker)


def find_group_uuid(conn: sa.Connection, ident: str) -> str | None:
    """Return the UUID of the port group with this UUID or name."""
    wanted = sa.select(PORTGROUPS.c.uuid).where(
        sa.or_(PORTGROUPS.c.uuid == ident, PORTGROUPS.c.name == ident),
    )
    return conn.execute(wanted).scalar_one_or_none()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """What a port must know of the port group that it joins."""

    uuid: str
    node_uuid: str
    standalone_ports_supported: bool
    physical_network: str | None


def find_group(conn: sa.Connection, uuid: str) -> GroupFacts | None:
    """Return the facts of a port group, its physical network being that of its ports."""
    row = (
        conn.execute(
            sa.select(
                PORTGROUPS.c.uuid,
                PORTGROUPS.c.node_uuid,
                PORTGROUPS.c.standalone_ports_supported,
                sa.func.coalesce(
                    PORTGROUPS.c.physical_network,
                    sa.select(sa.func.max(_T.physical_network))
                    .where(_T.portgroup_uuid == PORTGROUPS.c.uuid)
                    .scalar_subquery(),
                ).label("physical_network"),
            ).where(PORTGROUPS.c.uuid == uuid),
        )
        .mappings()
        .one_or_none()
    )
    return None if row is None else GroupFacts(**row)


def add_missing(conn: sa.Connection, node_uuid: str, addresses: Sequence[str]) -> None:
    """Give the node a port for each address that no port has yet, whosever it is."""
    lower = [address.lower() for address in dict.fromkeys(addresses)]
    known = set(conn.execute(sa.select(_T.address).where(_T.address.in_(lower))).scalars())
    for address in lower:
        if address not in known:
            port = Port(uuid=str(uuids.uuid4()), address=address, node_uuid=node_uuid)
            values = {name: getattr(port, name) for name in model.COLUMNS if name != "id"}
            insert(conn, rows.encode(values, model.OBJECTS) | {"created_at": rows.now()})
