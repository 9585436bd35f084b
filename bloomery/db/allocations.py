"""Queries on allocations: candidate nodes, and the rows of allocated nodes.

A node is selected and taken in one transaction.  SQLite has one writer; on a server the node's row
is locked as it is read, and rows locked by others are skipped: two allocations never get one node,
and neither waits for the other.
"""

from __future__ import annotations

import itertools
import uuid as uuids
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa

from bloomery.conductor.states import State
from bloomery.db import nodes, rows
from bloomery.db.tables import ALLOCATIONS, CONDUCTORS, NODE_TRAITS, NODES
from bloomery.model.allocation import Allocation, AllocationState

_T = ALLOCATIONS.c
_N = NODES.c
_MOST_AT_ONCE: Final = 500  # idents in one statement
_FREE = (
    _N.resource_class == sa.bindparam("resource_class"),
    _N.provision_state == State.AVAILABLE,
    _N.instance_uuid.is_(None),
    _N.power_state.is_not(None),
    _N.maintenance.is_(sa.false()),
    _N.retired.is_(sa.false()),
)  # conditions on every node; the index ix_nodes_allocatable begins with the first three
_UNFIT = sa.case(
    (_N.instance_uuid.is_not(None), "with an instance"),
    (_N.provision_state != State.AVAILABLE, "in a provision state other than available"),
    (_N.maintenance.is_(sa.true()), "in maintenance"),
    (_N.retired.is_(sa.true()), "retired"),
    (
        _N.power_state.is_(None),
        "whose power state is not known: baremetal node power on/off tells it",
    ),
).label("unfit")  # the first unmet condition of a node of the class, else NULL


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Conditions on a node: its class, traits, candidates, and project."""

    resource_class: str | None
    traits: Sequence[str] = ()
    candidate_nodes: Sequence[str] = ()
    project: str | None = None
    name: str | None = None

    @classmethod
    def of(cls, allocation: Allocation) -> Criteria:
        return cls(
            resource_class=allocation.resource_class, project=allocation.owner,
            traits=tuple(dict.fromkeys(allocation.traits)), name=allocation.name,
            candidate_nodes=allocation.candidate_nodes,
        )  # fmt: skip


def find_free(conn: sa.Connection, criteria: Criteria) -> sa.Row[Any] | None:
    """Return a suitable node with the columns for ``bind`` and events, its row locked, or None.

    A node with the allocation's name is preferred.  The index is entered at a random UUID and read
    up to the first suitable node: a few rows if most of the class is suitable.  Traits, owner,
    power state, maintenance and reservation are not indexed: a class of 30,000 unsuitable nodes is
    read to its end, in about 0.2 s.
    """
    columns = _N.uuid, _N.instance_info, _N.owner, _N.lessee
    query = sa.select(*columns).where(_N.reservation.is_(None)).limit(1)
    query = query.with_for_update(of=NODES, skip_locked=True)
    if criteria.name and (row := _first(conn, criteria, query.where(_N.name == criteria.name))):
        return row
    entry = str(uuids.uuid4())
    ordered = query.order_by(_N.uuid)
    return _first(conn, criteria, ordered.where(_N.uuid >= entry)) or _first(
        conn, criteria, ordered.where(_N.uuid < entry)
    )


def count_suitable(conn: sa.Connection, criteria: Criteria) -> int:
    """Count the suitable nodes, reserved or not."""
    query = sa.select(sa.func.count()).select_from(NODES)
    return sum(conn.execute(part, parameters).scalar_one()
               for part, parameters in _parts(criteria, query))  # fmt: skip


def count_unfit(conn: sa.Connection, criteria: Criteria) -> dict[str, int]:
    """Count the unsuitable nodes of the class in the project, by the first unmet condition."""
    of_class, counts = replace(criteria, traits=()), Counter[str]()
    for part, parameters in _parts(of_class, sa.select(_UNFIT), where=_FREE[:1]):
        unfit = part.subquery().c.unfit
        grouped = sa.select(unfit, sa.func.count()).where(unfit.is_not(None)).group_by(unfit)
        counts.update(dict(conn.execute(grouped, parameters).tuples().all()))
    return dict(sorted(counts.items()))


def _first(conn: sa.Connection, criteria: Criteria, query: sa.Select[Any]) -> sa.Row[Any] | None:
    parts = (conn.execute(part, parameters).first() for part, parameters in _parts(criteria, query))
    return next((row for row in parts if row is not None), None)


def _parts(
    criteria: Criteria, query: sa.Select[Any], *, where: Sequence[sa.ColumnElement[bool]] = _FREE
) -> Iterator[tuple[sa.Select[Any], dict[str, Any]]]:
    """Yield the query with the conditions of the criteria, once per batch of candidates."""
    c = NODE_TRAITS.c
    has_traits = [
        sa.exists().where(c.node_uuid == _N.uuid, c.trait == sa.bindparam(f"trait_{number}"))
        for number in range(len(criteria.traits))
    ]
    query = query.where(*where, *has_traits)
    parameters: dict[str, Any] = {"resource_class": criteria.resource_class}
    parameters |= {f"trait_{number}": trait for number, trait in enumerate(criteria.traits)}
    if criteria.project is not None:
        query = query.where(sa.or_(_N.owner == criteria.project, _N.lessee == criteria.project))
    if not criteria.candidate_nodes:
        yield query, parameters
        return
    for batch in _batches(criteria.candidate_nodes):
        yield query.where(_N.uuid.in_(batch)), parameters


def find_uuids(conn: sa.Connection, idents: Iterable[str]) -> dict[str, str]:
    """Return the UUIDs of nodes by UUID or name; unknown idents are absent."""
    uuid_of: dict[str, str] = {}
    for batch in _batches(idents):
        query = sa.select(_N.uuid, _N.name).where(sa.or_(_N.uuid.in_(batch), _N.name.in_(batch)))
        for uuid, name in conn.execute(query):
            uuid_of |= {uuid: uuid} | ({name: uuid} if name else {})
    return uuid_of


def _batches(idents: Iterable[str]) -> Iterator[list[str]]:
    """Yield the distinct idents in lists that fit into a statement."""
    remaining = iter(dict.fromkeys(idents))
    while batch := list(itertools.islice(remaining, _MOST_AT_ONCE)):
        yield batch


# ------------------------------------------------------------------------------------- writes


def bind(conn: sa.Connection, allocation: Allocation, node: Any) -> None:
    """Give the node, a row with uuid and instance_info, to a stored allocation.

    Raises InstanceAssociated where another node has the allocation's UUID for its instance.
    """
    instance_info = node.instance_info
    info = rows.load(instance_info) if isinstance(instance_info, str) else instance_info
    nodes.update(conn, node.uuid, {
        "allocation_uuid": allocation.uuid, "instance_uuid": allocation.uuid,
        "instance_info": rows.dump(info | {"traits": allocation.traits}),
    })  # fmt: skip
    end(conn, allocation.uuid, AllocationState.ACTIVE, node_uuid=node.uuid)


def end(conn: sa.Connection, uuid: str, state: AllocationState, **values: Any) -> bool:
    """End an allocation; False: it has ended already, or is gone."""
    return _change(conn, uuid, state=state, **{"last_error": None} | values)


def wait(conn: sa.Connection, uuid: str, reason: str) -> bool:
    """Store why an allocation waits; False: it no longer waits."""
    return _change(conn, uuid, last_error=reason)


def _change(conn: sa.Connection, uuid: str, **values: Any) -> bool:
    waiting = sa.update(ALLOCATIONS).where(_T.uuid == uuid, _T.state == AllocationState.ALLOCATING)
    return bool(conn.execute(waiting.values(updated_at=rows.now(), **values)).rowcount)


def unbind(conn: sa.Connection, node_uuid: str) -> None:
    """Remove allocation and instance from a node; other columns of the instance stay."""
    nodes.update(conn, node_uuid, {"allocation_uuid": None, "instance_uuid": None})


def find_of_node(conn: sa.Connection, node_uuid: str) -> str | None:
    """Return the UUID of the node's allocation."""
    query = sa.select(_T.uuid).where(_T.node_uuid == node_uuid)
    uuid: str | None = conn.execute(query).scalar_one_or_none()
    return uuid


def owner_of(conn: sa.Connection, uuid: str) -> str | None:
    query = sa.select(_T.owner).where(_T.uuid == uuid)
    owner: str | None = conn.execute(query).scalar_one_or_none()
    return owner


# ---------------------------------------------------------------------------- after a crash


def adopt(conn: sa.Connection, host: str) -> list[str]:
    """Move the waiting allocations of offline conductors to ``host``.

    Returns the UUIDs of all waiting allocations of ``host``, oldest first.
    """
    online = sa.select(CONDUCTORS.c.hostname).where(CONDUCTORS.c.online)
    orphan = sa.or_(_T.conductor_affinity.is_(None), _T.conductor_affinity.not_in(online))
    waiting = _T.state == AllocationState.ALLOCATING
    conn.execute(
        sa.update(ALLOCATIONS).where(waiting, orphan).values(conductor_affinity=host),
    )
    own = sa.select(_T.uuid).where(waiting, _T.conductor_affinity == host)
    return list(conn.execute(own.order_by(_T.id)).scalars())
