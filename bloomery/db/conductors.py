"""Queries on conductors: registration, heartbeats, drivers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import pagination, rows, upserts
from bloomery.db.tables import ALLOCATIONS, CONDUCTOR_INTERFACES, CONDUCTORS, NODES, STEP_RUNS
from bloomery.model.allocation import AllocationState
from bloomery.model.conductor import Conductor, EnabledInterface
from bloomery.model.request import Page
from bloomery.model.step import OPEN_RUNS

_T = CONDUCTORS.c
_I = CONDUCTOR_INTERFACES.c


def register(
    conn: sa.Connection,
    *,
    hostname: str,
    group: str,
    drivers: Sequence[str],
    interfaces: Sequence[EnabledInterface],
    alone: bool = False,
    process: str = "",
    former: Conductor | None = None,
) -> str | None:
    """Register a new incarnation of the conductor with its drivers; return the incarnation.

    A row with a living incarnation is taken over only if it is unchanged (``former``).  None: the
    row has changed, and nothing was written.  ``alone``: no other process can use this database, so
    that the rows of all others are deleted.
    """
    if alone:
        conn.execute(sa.delete(CONDUCTORS).where(_T.hostname != hostname))
    now, incarnation = rows.now(), str(uuid.uuid4())
    values = {
        "conductor_group": group, "drivers": rows.dump(list(drivers)), "online": True,
        "updated_at": now, "incarnation": incarnation, "process": process, "started_at": now,
        "fenced_out_at": None, "drain_ordered_at": None,
    }  # fmt: skip
    new = {
        "hostname": hostname, "conductor_group": "", "drivers": rows.dump([]), "online": False,
        "heartbeat": 0, "created_at": now,
    }  # fmt: skip
    insert = upserts.insert_missing(conn.dialect.name, CONDUCTORS, tuple(new), key="hostname")
    conn.execute(insert, new)  # of two concurrent starts, one inserts it
    here = _T.hostname == hostname
    if not alone:  # it has no incarnation, or only the one that was observed without heartbeats
        is_free = _T.incarnation.is_(None)
        here &= is_free if former is None else sa.or_(is_free, _as_observed(former))
    change = sa.update(CONDUCTORS).where(here).values(heartbeat=_T.heartbeat + 1, **values)
    if not conn.execute(change).rowcount:
        return None
    own_id = conn.execute(sa.select(_T.id).where(_T.hostname == hostname)).scalar_one()
    conn.execute(sa.delete(CONDUCTOR_INTERFACES).where(_I.conductor_id == own_id))
    served = [
        {
            "conductor_id": own_id,
            "hardware_type": interface.hardware_type,
            "interface_type": interface.kind,
            "interface_name": interface.name,
            "is_default": interface.default,
            "created_at": now,
        }
        for interface in interfaces
    ]
    if served:
        conn.execute(sa.insert(CONDUCTOR_INTERFACES), served)
    return incarnation


def _as_observed(observed: Conductor) -> sa.ColumnElement[bool]:
    """Are incarnation and heartbeat the observed ones?"""
    same_life = _T.incarnation.is_(None) if observed.incarnation is None else (
        _T.incarnation == observed.incarnation
    )  # fmt: skip
    return sa.and_(same_life, _T.heartbeat == observed.heartbeat)


def _of_life(hostname: str, incarnation: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    """Match the row of this incarnation."""
    return _T.hostname == hostname, _T.incarnation == sa.literal(incarnation, sa.String)


def beat(
    conn: sa.Connection, hostname: str, incarnation: str | None, *, online: bool = True
) -> bool:
    """Raise the heartbeat of this incarnation; ``online`` False: it only finishes its work.

    False: the conductor was declared dead, or another process has the name; nothing was written.
    """
    return bool(
        conn.execute(
            sa.update(CONDUCTORS)
            .where(*_of_life(hostname, incarnation))
            .values(heartbeat=_T.heartbeat + 1, online=online, updated_at=rows.now()),
        ).rowcount
    )


def sign_off(
    conn: sa.Connection, hostname: str, incarnation: str | None, *, online: bool = False
) -> bool:
    """End this incarnation in good order; its row stays.

    ``online``: a restart follows, and the nodes stay with the name until the heartbeat is missed.
    False: the incarnation had ended already.
    """
    return bool(
        conn.execute(
            sa.update(CONDUCTORS)
            .where(*_of_life(hostname, incarnation))
            .values(incarnation=None, online=online, updated_at=rows.now()),
        ).rowcount
    )


def fence_out(conn: sa.Connection, observed: Conductor) -> bool:
    """Declare a conductor dead if its heartbeat is the observed one; False if it has changed.

    The conductor can neither beat nor reserve a node before it registers again.
    """
    now = rows.now()
    gone = {"online": False, "incarnation": None, "fenced_out_at": now, "updated_at": now}
    change = sa.update(CONDUCTORS).where(_T.hostname == observed.hostname, _as_observed(observed))
    return bool(conn.execute(change.values(gone)).rowcount)


def order_drain(conn: sa.Connection, hostname: str) -> bool:
    """Order a living conductor to drain at its next heartbeat; False if it is not alive."""
    lives = _T.hostname == hostname, _T.incarnation.is_not(None)
    now = rows.now()
    return bool(
        conn.execute(sa.update(CONDUCTORS).where(*lives).values(drain_ordered_at=now)).rowcount
    )


def find(conn: sa.Connection, hostname: str) -> Conductor | None:
    query = sa.select(CONDUCTORS).where(_T.hostname == hostname)
    row = conn.execute(query).mappings().one_or_none()
    return None if row is None else _value(row)


def list_gone(conn: sa.Connection, before: datetime, *, at_most: int) -> list[Conductor]:
    """Return conductors that are offline since ``before`` and have no work left, oldest first."""
    query = sa.select(CONDUCTORS).where(*_nothing_left(), _T.updated_at < before)
    query = query.order_by(_T.updated_at, _T.id).limit(at_most)
    return [_value(row) for row in conn.execute(query).mappings()]


def delete_gone(conn: sa.Connection, conductor: Conductor) -> bool:
    """Delete the row of a listed conductor; False: it is back, or has work."""
    is_as_it_was = _T.id == conductor.id, _T.heartbeat == conductor.heartbeat
    return bool(conn.execute(sa.delete(CONDUCTORS).where(*is_as_it_was, *_nothing_left())).rowcount)


def _nothing_left() -> list[sa.ColumnElement[bool]]:
    """Offline, with no reserved node, no open flow and no waiting allocation."""
    flows, waiting = STEP_RUNS.c, ALLOCATIONS.c
    return [
        _T.online.is_(sa.false()),
        ~sa.exists().where(NODES.c.reservation == _T.hostname),
        ~sa.exists().where(flows.conductor == _T.hostname, flows.state.in_(OPEN_RUNS)),
        ~sa.exists().where(
            waiting.conductor_affinity == _T.hostname, waiting.state == AllocationState.ALLOCATING
        ),
    ]


def list_all(conn: sa.Connection) -> list[Conductor]:
    return [_value(row) for row in conn.execute(sa.select(CONDUCTORS).order_by(_T.id)).mappings()]


def list_page(conn: sa.Connection, page: Page) -> list[Conductor]:
    """Return a page of conductors; the marker is a host name.  Raises ConductorNotFound."""
    query = pagination.after(
        conn, sa.select(CONDUCTORS), CONDUCTORS, [(page.sort_key, page.descending)], page.marker,
        lambda unknown: errors.ConductorNotFound(conductor=unknown), marker_column="hostname",
    )  # fmt: skip
    return [_value(row) for row in conn.execute(query.limit(page.limit)).mappings()]


def get(conn: sa.Connection, hostname: str) -> Conductor:
    conductor = find(conn, hostname)
    if conductor is None:
        raise errors.ConductorNotFound(conductor=hostname)
    return conductor


def _value(row: Any) -> Conductor:
    return Conductor(**dict(row) | {"drivers": tuple(rows.load(row["drivers"]))})


def list_interfaces(conn: sa.Connection) -> dict[str, list[EnabledInterface]]:
    """Return the interfaces of each online conductor, by host name."""
    query = (
        sa.select(
            _T.hostname, _I.hardware_type, _I.interface_type, _I.interface_name, _I.is_default
        )
        .join(CONDUCTORS, _T.id == _I.conductor_id)
        .where(_T.online)
        .order_by(_I.id)
    )
    interfaces: dict[str, list[EnabledInterface]] = {}
    for host, hardware_type, kind, name, default in conn.execute(query):
        interfaces.setdefault(host, []).append(
            EnabledInterface(hardware_type=hardware_type, kind=kind, name=name, default=default),
        )
    return interfaces
