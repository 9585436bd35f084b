"""Queries on nodes, except the reservation (``locks``)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.states import POWER_SYNC_EXCLUDED_STATES, STATES_OF_ERRORS, State
from bloomery.db import json_members, pagination, rows
from bloomery.db.tables import CHASSIS, CONDUCTORS, NODE_TRAITS, NODES, PORTS
from bloomery.model import node as model
from bloomery.model.fields import Column
from bloomery.model.node import LEAKS, Node, RingKey, RingShare
from bloomery.model.rules import agents

AGENT_TOKEN: Final = "agent_secret_token"  # noqa: S105  a key of driver_internal_info
KERNEL_HAS_TOKEN: Final = "agent_secret_token_pregenerated"  # noqa: S105  another key
_MOST_AT_ONCE: Final = 500  # values in one statement, whose number databases limit

_T = NODES.c
_TRAITS = (
    sa.select(sa.func.aggregate_strings(NODE_TRAITS.c.trait, ","))
    .where(NODE_TRAITS.c.node_uuid == _T.uuid)
    .scalar_subquery()
    .label("traits")
)
_MACS = (
    sa.select(sa.func.aggregate_strings(PORTS.c.address, ","))
    .where(PORTS.c.node_uuid == _T.uuid)
    .scalar_subquery()
    .label("macs")
)
_NODE_COLUMNS: dict[str, Any] = {name: _T[name] for name in model.COLUMNS} | {"traits": _TRAITS}
_COLUMNS = _NODE_COLUMNS | {"macs": _MACS}
_WHOLE = sa.select(*_NODE_COLUMNS.values())
BY_UUID: Final = _WHOLE.where(_T.uuid == sa.bindparam("ident"))
_BY_UUID_FOR_UPDATE = (
    sa.select(*(_T[name] for name in model.COLUMNS))
    .where(_T.uuid == sa.bindparam("ident"))
    .with_for_update()
)  # built once, for SQLAlchemy's cache key
_RING_KEY = (_T.uuid, _T.driver, _T.conductor_group)
_RING_POSITION = sa.literal_column("nodes.ring_position", sa.Integer)  # servers compute it
_BMC_HOST = sa.literal_column("nodes.bmc_host", sa.String)  # computed, too
_HELD_BY_NOBODY = (
    sa.func.coalesce(_T.reservation, "") == ""
)  # avoids the index on reservations, where nearly all nodes are null
_INSERT = sa.insert(NODES)
_IN_STATES = _T.provision_state.in_(sa.bindparam("states", expanding=True))
_COUNT_IN_STATES = sa.select(sa.func.count()).select_from(NODES).where(_IN_STATES)
_IS_IN_STATES = sa.select(sa.func.count()).where(_T.uuid == sa.bindparam("ident"), _IN_STATES)
_NOTE_AGENT = (
    sa.update(NODES)
    .where(
        _T.uuid == sa.bindparam("ident"),
        _T.lock_generation == sa.bindparam("generation"),
        _T.reservation.is_(None),
        sa.or_(_T.updated_at.is_(None), _T.updated_at < sa.bindparam("at")),
    )
    .values(
        driver_internal_info=sa.bindparam("info"),
        provision_updated_at=sa.bindparam("since"),
        updated_at=sa.bindparam("at"),
    )
)
OF_NODE = sa.update(NODES).where(_T.uuid == sa.bindparam("ident"))  # for ``rows.change``
_FIRST_CONDUCTOR = sa.select(CONDUCTORS.c.id).order_by(CONDUCTORS.c.id).limit(1).with_for_update()


def from_row(row: Mapping[str, Any] | sa.RowMapping) -> Node:
    """Return the node of a whole row."""
    values = dict(row)
    for name in model.OBJECTS:
        text = values[name]
        values[name] = {} if text == rows.EMPTY_OBJECT else rows.load(text)
    values["traits"] = split_traits(values["traits"])
    return Node(**values)


def split_traits(joined: str | None) -> tuple[str, ...]:
    return tuple(sorted(joined.split(","))) if joined else ()


@lru_cache(maxsize=512)
def _select(dialect: sa.Dialect, columns: tuple[Column, ...]) -> sa.Select[Any]:
    selected = (
        _COLUMNS[each] if isinstance(each, str) else json_members.column(dialect, NODES, each)
        for each in columns
    )
    return sa.select(*selected).select_from(NODES)


@lru_cache(maxsize=256)
def _by_either(dialect: sa.Dialect, columns: tuple[Column, ...]) -> sa.Select[Any]:
    return _select(dialect, columns).where(
        sa.or_(_T.uuid == sa.bindparam("ident"), _T.name == sa.bindparam("ident")),
    )


def find_row(conn: sa.Connection, ident: str, columns: tuple[Column, ...]) -> sa.Row[Any] | None:
    """Return these columns of the node with this UUID or name: objects still JSON text.

    No name is a UUID, so one row at most matches.
    """
    return conn.execute(_by_either(conn.dialect, columns), {"ident": ident}).first()


def list_rows_of(
    conn: sa.Connection, uuids: Collection[str], columns: tuple[str, ...]
) -> list[sa.Row[Any]]:
    """Return these columns of nodes by UUID, as ``find_row`` does; missing nodes are absent."""
    query = _select(conn.dialect, columns)
    idents = sorted(uuids)
    return [
        row
        for start in range(0, len(idents), _MOST_AT_ONCE)
        for row in conn.execute(query.where(_T.uuid.in_(idents[start : start + _MOST_AT_ONCE])))
    ]


def get(conn: sa.Connection, uuid: str) -> Node:
    return from_row(get_row(conn, uuid))


def get_for_update(conn: sa.Connection, uuid: str) -> Node:
    """Return one node, its row locked until the transaction ends.  Raises NodeNotFound."""
    return from_row(get_row(conn, uuid, for_update=True))


def get_row(conn: sa.Connection, uuid: str, *, for_update: bool = False) -> dict[str, Any]:
    """Return the whole row of a node: objects as JSON text, traits joined by comma.

    ``for_update`` locks the row until the transaction ends.  On a server a second statement then
    reads the traits: a statement that waited for the row would show old ones.  SQLite has one
    writer, and needs one statement.  Raises NodeNotFound.
    """
    reads_apart = for_update and conn.dialect.name != "sqlite"
    query = _BY_UUID_FOR_UPDATE if reads_apart else BY_UUID
    row = conn.execute(query, {"ident": uuid}).mappings().one_or_none()
    if row is None:
        raise errors.NodeNotFound(node=uuid)
    return dict(row) | ({"traits": ",".join(traits_of(conn, uuid))} if reads_apart else {})


def is_same(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two whole rows of a node are the same, in whatever order of their traits."""
    traits = split_traits(row["traits"]), split_traits(other["traits"])
    return traits[0] == traits[1] and {**row, "traits": None} == {**other, "traits": None}


def list_children(conn: sa.Connection, uuid: str) -> list[Node]:
    """Return the child nodes of a node, oldest first."""
    query = _WHOLE.where(_T.parent_node == uuid).order_by(_T.id)
    return [from_row(row) for row in conn.execute(query).mappings()]


def list_with_bmc_of(conn: sa.Connection, uuid: str, driver: str, text: str) -> list[sa.Row[Any]]:
    """Return names, owners and driver_info of a driver's other nodes that may have a node's BMC.

    They have its ``bmc_host``, or none, and ``text`` in driver_info, in any case.  The drivers
    compare further.  Goes by an index, unless the database knows no host of the nodes' drivers.
    """
    host = conn.execute(sa.select(_BMC_HOST).where(_T.uuid == uuid)).scalar_one_or_none()
    query = sa.select(_T.uuid, _T.name, _T.owner, _T.lessee, _T.driver_info).where(
        _T.driver == driver, _T.uuid != uuid,
        sa.func.lower(_T.driver_info).contains(text, autoescape=True),
    )  # fmt: skip
    if host:
        query = query.where(_BMC_HOST.in_((host, "")))
    return list(conn.execute(query.order_by(_T.id)))


def find_uuid(conn: sa.Connection, ident: str) -> str | None:
    """Return the UUID of the node with this UUID or name."""
    row = find_row(conn, ident, ("uuid",))
    return None if row is None else str(row.uuid)


def list_with_addresses(conn: sa.Connection, addresses: Iterable[str]) -> list[str]:
    """Return the distinct UUIDs of the nodes with ports of these MAC addresses."""
    uuids: dict[str, None] = {}
    remaining = iter(addresses)
    while batch := list(itertools.islice(remaining, _MOST_AT_ONCE)):
        query = sa.select(PORTS.c.node_uuid).where(PORTS.c.address.in_(batch)).distinct()
        uuids |= dict.fromkeys(conn.execute(query).scalars())
    return list(uuids)


def add_agent_token(conn: sa.Connection, uuid: str, sealed: Any, taker: str | None) -> Any:
    """Store the lookup and the agent token of a reserved or free node; return the sealed token.

    The taker of a token gets it again until it has sent a heartbeat: the answer may be lost. None:
    another agent has the token.  Raises NodeNotFound.
    """
    info = get_for_update(conn, uuid).driver_internal_info
    noted = info | {agents.LOOKED_UP: True}
    if not info.get(AGENT_TOKEN):
        noted |= {AGENT_TOKEN: sealed} | ({agents.TOKEN_TAKER: taker} if taker else {})
    if noted != info:
        update(conn, uuid, {"driver_internal_info": rows.dump(noted)})
    was_heard = bool(info.get("agent_url"))
    is_taker = taker is not None and noted.get(agents.TOKEN_TAKER) == taker and not was_heard
    return noted[AGENT_TOKEN] if is_taker or AGENT_TOKEN not in info else None


def note_agents(conn: sa.Connection, calls: Sequence[Mapping[str, Any]]) -> None:
    """Store agent calls of nodes that were not reserved since they were read.

    Each has ident, generation, info (encoded), at, and since: when the node's wait began.
    """
    conn.execute(_NOTE_AGENT, list(calls))


def lock_row(conn: sa.Connection, uuid: str) -> sa.Row[tuple[str | None, str | None]] | None:
    """Lock a node's row until the transaction ends; return its owner and lessee, or None.

    The reservation is ignored.  SQLite has one writer, and needs no lock of rows.
    """
    query = sa.select(_T.owner, _T.lessee).where(_T.uuid == uuid).with_for_update()
    return conn.execute(query).one_or_none()


def uuid_of(conn: sa.Connection, row_id: int) -> str:
    """Return the UUID of the node in this row.  Raises NodeNotFound."""
    uuid: str | None = conn.execute(sa.select(_T.uuid).where(_T.id == row_id)).scalar_one_or_none()
    if uuid is None:
        raise errors.NodeNotFound(node=row_id)
    return uuid


def insert(conn: sa.Connection, values: Mapping[str, Any]) -> None:
    """Add a node; ``values`` holds every column but id and updated_at, encoded.

    Raises NodeAlreadyExists, DuplicateName, InstanceAssociated, ChassisNotFound.
    """
    try:
        conn.execute(_INSERT, values)
    except sa.exc.IntegrityError as exc:
        raise_named(exc, values)
        raise


def update(conn: sa.Connection, uuid: str, values: Mapping[str, Any]) -> None:
    """Change columns of a node without a guard; under a lock use ``locks.update_guarded``."""
    changed = {"updated_at": rows.now()} | dict(values)
    try:
        rows.change(conn, OF_NODE, {"ident": uuid}, changed)
    except sa.exc.IntegrityError as exc:
        raise_named(exc, {"uuid": uuid} | changed)
        raise


def raise_named(exc: sa.exc.IntegrityError, values: Mapping[str, Any]) -> None:
    """Raise the named error of a unique or foreign key of the nodes that ``values`` broke."""
    node, chassis = values.get("uuid"), values.get("chassis_uuid")
    meanings: dict[str, Callable[[], errors.Failure]] = {
        "nodes.uuid": lambda: errors.NodeAlreadyExists(node=node),
        "nodes.name": lambda: errors.DuplicateName(name=values.get("name")),
        "nodes.instance_uuid": lambda: errors.InstanceAssociated(
            instance=values.get("instance_uuid"),
            node=node,
        ),
    }
    missing = errors.ChassisNotFound(chassis=chassis) if chassis else None
    named = rows.broken_constraint(exc, meanings, missing)
    if named is not None:
        raise named from exc


def delete(conn: sa.Connection, uuid: str) -> None:
    """Remove a node and, by cascade, its dependent rows; its children are without a parent then."""
    conn.execute(sa.update(NODES).where(_T.parent_node == uuid).values(parent_node=None))
    conn.execute(sa.update(PORTS).where(PORTS.c.node_uuid == uuid).values(portgroup_uuid=None))
    conn.execute(sa.delete(NODES).where(_T.uuid == uuid))


def add_traits(conn: sa.Connection, uuid: str, traits: Iterable[str]) -> None:
    """Add these traits to the node's."""
    had = set(traits_of(conn, uuid))
    new = [
        {"node_uuid": uuid, "trait": trait} for trait in dict.fromkeys(traits) if trait not in had
    ]
    if new:
        conn.execute(sa.insert(NODE_TRAITS), new)


def remove_traits(conn: sa.Connection, uuid: str, traits: Iterable[str] | None) -> int:
    """Remove these traits (None: all); return their number."""
    gone = sa.delete(NODE_TRAITS).where(NODE_TRAITS.c.node_uuid == uuid)
    if traits is not None:
        gone = gone.where(NODE_TRAITS.c.trait.in_(list(traits)))
    return conn.execute(gone).rowcount


def traits_of(conn: sa.Connection, uuid: str) -> list[str]:
    query = sa.select(NODE_TRAITS.c.trait).where(NODE_TRAITS.c.node_uuid == uuid)
    return list(conn.execute(query).scalars())


def count_others_in_states(
    conn: sa.Connection, uuid: str, states: Iterable[State], group: str | None = None
) -> int:
    """Count the other nodes in one of ``states``, for limits on concurrent work.

    ``group``: of this conductor group alone; None: of all.

    Call it in the transaction that moves ``uuid`` there.  SQLite has one writer; on a server
    concurrent transactions would not see each other, so they lock one common row until they commit.
    """
    if conn.dialect.name != "sqlite":
        conn.execute(_FIRST_CONDUCTOR)
    return count_in_states(conn, uuid, states, group)


def count_in_states(
    conn: sa.Connection, uuid: str, states: Iterable[State], group: str | None = None
) -> int:
    """As ``count_others_in_states``, without a lock.

    Reads the index of states alone, and one row: a condition on UUIDs would read each node.
    """
    in_group = [] if group is None else [_T.conductor_group == group]
    counted, own = _COUNT_IN_STATES.where(*in_group), _IS_IN_STATES.where(*in_group)
    others = sa.select(counted.scalar_subquery() - own.scalar_subquery())
    return int(conn.execute(others, {"states": list(states), "ident": uuid}).scalar_one())


def count_reserved(conn: sa.Connection, project: str | None) -> int:
    """Count reserved nodes; ``project``: of this one alone.  By the index of reservations."""
    visible = on_nodes_of(project)
    counted = sa.select(sa.func.count()).where(_T.reservation.is_not(None), *visible)
    return conn.execute(counted).scalar_one()


def first_move_at(conn: sa.Connection, state: str, project: str | None) -> datetime | None:
    """Return when the first of the nodes in ``state``, without those with a fault, came into it.

    ``project``: of its nodes alone.  By an index, which is in the order of these times.
    """
    has_fault = sa.and_(_T.maintenance.is_(sa.true()), sa.func.coalesce(_T.fault, "") != "")
    query = sa.select(_T.provision_updated_at).where(
        _T.provision_state == state, _T.provision_updated_at.is_not(None), ~has_fault,
        *on_nodes_of(project),
    )  # fmt: skip
    return conn.execute(query.order_by(_T.provision_updated_at).limit(1)).scalar_one_or_none()


def list_uuids_of(
    conn: sa.Connection, *, driver: str, group: str, project: str | None
) -> Sequence[str]:
    """Return the UUIDs of a driver's nodes in a conductor group; ``project``: of its nodes."""
    of_kind = _T.driver == driver, _T.conductor_group == group, *on_nodes_of(project)
    return conn.execute(sa.select(_T.uuid).where(*of_kind)).scalars().all()


def count_served(conn: sa.Connection, *, group: str, drivers: Collection[str]) -> int:
    """Count the nodes of a conductor group with one of these drivers."""
    of_group = _T.conductor_group == group, _T.driver.in_(drivers)
    return conn.execute(sa.select(sa.func.count()).where(*of_group)).scalar_one()


def count_by_shard(conn: sa.Connection) -> list[tuple[str | None, int]]:
    """Count nodes by shard, the fullest first; None: in no shard."""
    number = sa.func.count().label("number")
    order = number.desc(), _T.shard.is_not(None), _T.shard
    counted = sa.select(_T.shard, number).group_by(_T.shard).order_by(*order)
    return [(shard, count) for shard, count in conn.execute(counted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A list of nodes: columns, filters, order, marker and limit.

    ``equal`` holds column -> value (None: is null), ``among`` column -> values.
    """

    columns: tuple[Column, ...]
    equal: Mapping[str, Any] = field(default_factory=dict)
    among: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    associated: bool | None = None
    project: str | None = None
    description_contains: str | None = None
    sharded: bool | None = None
    include_children: bool = True
    sort_key: str = "id"
    descending: bool = False
    marker: str | None = None
    limit: int | None = None


def list_rows(conn: sa.Connection, query: Query) -> Sequence[sa.Row[Any]]:
    """Return rows of the selected columns, in that order.

    Objects are still JSON text, traits joined by comma.  Raises NodeNotFound for an unknown marker.
    """
    conditions = [
        _T[name].is_(None) if value is None else _T[name] == value
        for name, value in query.equal.items()
    ]
    conditions += [_T[name].in_(list(values)) for name, values in query.among.items()]
    if query.associated is not None:
        conditions.append(
            _T.instance_uuid.is_not(None) if query.associated else _T.instance_uuid.is_(None)
        )
    if query.sharded is not None:
        conditions.append(_T.shard.is_not(None) if query.sharded else _T.shard.is_(None))
    conditions += (visible := on_nodes_of(query.project))
    if query.description_contains is not None:
        conditions.append(_T.description.ilike(f"%{query.description_contains}%"))
    if not query.include_children:
        conditions.append(_T.parent_node.is_(None))
    statement = _select(conn.dialect, query.columns).where(*conditions)
    statement = pagination.after(
        conn, statement, NODES, [(query.sort_key, query.descending)], query.marker,
        lambda marker: errors.NodeNotFound(node=marker), visible=visible,
    )  # fmt: skip
    if query.limit is not None:
        statement = statement.limit(query.limit)
    return conn.execute(statement).all()


def on_nodes_of(project: str | None) -> list[sa.ColumnElement[bool]]:
    """Return the condition that limits a query on nodes to those of a project; None: to none."""
    return [] if project is None else [sa.or_(_T.owner == project, _T.lessee == project)]


def chassis_exists(conn: sa.Connection, uuid: str) -> bool:
    return conn.execute(sa.select(CHASSIS.c.id).where(CHASSIS.c.uuid == uuid)).first() is not None


# The lists below name candidates of a conductor, by its shares of the ring.  The ring decides
# (``Ring.list_served``): positions in rows are rounded, and the ring may have another hash.


def is_in(conn: sa.Connection, shares: Sequence[RingShare]) -> sa.ColumnElement[bool]:
    """Return the condition on nodes in these shares; on servers by the index of positions.

    SQLite has one conductor and no positions, so all nodes are candidates.
    """
    if conn.dialect.name == "sqlite":
        return sa.true()
    conditions: list[sa.ColumnElement[bool]] = [sa.false()]
    for share in shares:
        one = _T.conductor_group == share.conductor_group, _T.driver.in_(share.drivers)
        arcs = (_RING_POSITION.between(first, last) for first, last in share.arcs or ())
        conditions.append(sa.and_(*one, *([] if share.arcs is None else [sa.or_(*arcs)])))
    return sa.or_(*conditions)


def list_unattended(
    conn: sa.Connection, shares: Sequence[RingShare], states: Iterable[State]
) -> list[RingKey]:
    """Return unreserved nodes in a transient state, the longest first."""
    query = (
        sa.select(*_RING_KEY)
        .where(is_in(conn, shares), _T.provision_state.in_(list(states)), _HELD_BY_NOBODY)
        .order_by(_T.provision_updated_at, _T.id)
    )
    return [RingKey(*row) for row in conn.execute(query)]


def list_consoles(conn: sa.Connection) -> list[tuple[RingKey, dict[str, Any]]]:
    """Return the unreserved nodes with an enabled console, with their driver_internal_info."""
    query = sa.select(*_RING_KEY, _T.driver_internal_info).where(
        _T.console_enabled.is_(sa.true()), _T.reservation.is_(None)
    )
    return [(RingKey(*key), rows.load(info)) for *key, info in conn.execute(query.order_by(_T.id))]


def list_with_info(
    conn: sa.Connection, shares: Sequence[RingShare], key: str, states: Iterable[State]
) -> list[tuple[RingKey, dict[str, Any]]]:
    """Return the unreserved nodes in ``states`` whose driver_internal_info has ``key``, with it."""
    query = sa.select(*_RING_KEY, _T.driver_internal_info).where(
        is_in(conn, shares),
        _T.provision_state.in_(list(states)),
        _T.reservation.is_(None),
        _T.driver_internal_info.contains(f'"{key}"', autoescape=True),
    )
    pairs = [(RingKey(*ring), rows.load(info)) for *ring, info in conn.execute(query)]
    return [(ring, info) for ring, info in pairs if key in info]


def list_waiting(
    conn: sa.Connection, shares: Sequence[RingShare], state: State, since: str
) -> list[tuple[RingKey, datetime]]:
    """Return the unreserved nodes in ``state`` with their time ``since``, longest ago first."""
    statement = sa.select(*_RING_KEY, _T[since]).where(
        is_in(conn, shares),
        _T.provision_state == state,
        _T.reservation.is_(None),
        _T.maintenance.is_(sa.false()),
        _T[since].is_not(None),
    )
    waiting = conn.execute(statement.order_by(_T[since], _T.id))
    return [(RingKey(*key), at) for *key, at in waiting]


def list_of_interface(
    conn: sa.Connection,
    shares: Sequence[RingShare],
    column: str,
    name: str,
    states: Iterable[str],
) -> list[tuple[RingKey, tuple[Any, ...]]]:
    """Return unreserved nodes in ``states`` that use the interface ``name``.

    The version beside each node changes with the row.
    """
    query = sa.select(*_RING_KEY, _T.updated_at, _T.provision_updated_at).where(
        is_in(conn, shares),
        _T.provision_state.in_(list(states)),
        _T[column] == name,
        _HELD_BY_NOBODY,
        _T.maintenance.is_(sa.false()),
    )
    size = len(_RING_KEY)
    return [
        (RingKey(*row[:size]), tuple(row[size:])) for row in conn.execute(query.order_by(_T.id))
    ]


class PowerRow(NamedTuple):
    """What is compared with the BMC.  ``has_error``: one that power sync clears if all is well."""

    key: RingKey
    changed_at: datetime | None
    power_state: str | None
    health: str | None
    has_error: bool


def list_for_power_sync(conn: sa.Connection, shares: Sequence[RingShare]) -> list[PowerRow]:
    """Return the unreserved nodes whose power may be polled."""
    return _list_power(
        conn,
        shares,
        _T.maintenance.is_(sa.false()),
        _T.provision_state.not_in(list(POWER_SYNC_EXCLUDED_STATES)),
    )


def list_with_fault(conn: sa.Connection, shares: Sequence[RingShare], fault: str) -> list[PowerRow]:
    """Return the unreserved nodes in maintenance for ``fault``."""
    return _list_power(
        conn,
        shares,
        _T.maintenance.is_(sa.true()),
        _T.fault == fault,
        _T.provision_state != State.ENROLL,
    )


def _list_power(
    conn: sa.Connection, shares: Sequence[RingShare], *conditions: Any
) -> list[PowerRow]:
    has_error = sa.and_(
        _T.last_error.is_not(None), _T.provision_state.not_in(list(STATES_OF_ERRORS))
    )
    query = sa.select(*_RING_KEY, _T.updated_at, _T.power_state, _T.health, has_error).where(
        is_in(conn, shares), _T.reservation.is_(None), _T.target_power_state.is_(None), *conditions
    )
    size = len(_RING_KEY)
    found = conn.execute(query.order_by(_T.id))
    return [PowerRow(RingKey(*row[:size]), *row[size:]) for row in found]


class SensorRow(NamedTuple):
    """A node whose sensors are read, with what its notification says of it."""

    key: RingKey
    changed_at: datetime | None
    name: str | None
    instance_uuid: str | None
    has_leaks: bool = False


def list_for_sensors(
    conn: sa.Connection, shares: Sequence[RingShare], *, also_free: bool
) -> list[SensorRow]:
    """Return active nodes outside of maintenance, and those with leaks in whatever state.

    ``also_free``: those without an instance, too.
    """
    has_leaks, is_listed = _sensor_conditions(also_free)
    query = sa.select(*_RING_KEY, _T.updated_at, _T.name, _T.instance_uuid, has_leaks).where(
        is_in(conn, shares), is_listed
    )
    size = len(_RING_KEY)
    found = conn.execute(query.order_by(_T.id))
    return [SensorRow(RingKey(*row[:size]), *row[size:]) for row in found]


def get_sensor_facts(conn: sa.Connection, uuid: str, *, also_free: bool) -> tuple[bool, bool]:
    """Return whether ``list_for_sensors`` lists the node, and whether it is in maintenance.

    Raises NodeNotFound.
    """
    _, is_listed = _sensor_conditions(also_free)
    row = conn.execute(sa.select(is_listed, _T.maintenance).where(_T.uuid == uuid)).one_or_none()
    if row is None:
        raise errors.NodeNotFound(node=uuid)
    return bool(row[0]), bool(row[1])


def _sensor_conditions(also_free: bool) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    """Return the conditions of nodes with leaks, and of those whose sensors are read."""
    has_leaks = _T.driver_internal_info.contains(f'"{LEAKS}"', autoescape=True)
    is_listed: list[sa.ColumnElement[bool]] = [_T.maintenance.is_(sa.false())]
    if not also_free:
        is_listed.append(_T.provision_state == State.ACTIVE)
    return has_leaks, sa.or_(sa.and_(*is_listed), has_leaks)
