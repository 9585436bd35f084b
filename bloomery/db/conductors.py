"""Queries on conductors: who serves what, and who is alive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import pagination, rows
from bloomery.db.tables import ALLOCATIONS, CONDUCTOR_INTERFACES, CONDUCTORS, NODES, STEP_RUNS
from bloomery.model.allocation import AllocationState
from bloomery.model.conductor import Conductor, EnabledInterface
from bloomery.model.page import Page
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
) -> None:
    """Put the conductor on line with what it serves; a row of its former life is taken over.

    ``alone``: the rows of all others go; their nodes would wait for conductors that are no more.
    """
    if alone:
        conn.execute(sa.delete(CONDUCTORS).where(_T.hostname != hostname))
    facts = {"conductor_group": group, "drivers": rows.dump(list(drivers)), "online": True}
    now = rows.now()
    touched = sa.update(CONDUCTORS).where(_T.hostname == hostname)
    if not conn.execute(
        touched.values(updated_at=now, heartbeat=_T.heartbeat + 1, **facts),
    ).rowcount:
        new = {"hostname": hostname, "created_at": now, "updated_at": now, "heartbeat": 0} | facts
        conn.execute(sa.insert(CONDUCTORS), new)
    own_id = conn.execute(sa.select(_T.id).where(_T.hostname == hostname)).scalar_one()
    conn.execute(sa.delete(CONDUCTOR_INTERFACES).where(_I.conductor_id == own_id))
    served = [_interface_row(own_id, interface, now) for interface in interfaces]
    if served:
        conn.execute(sa.insert(CONDUCTOR_INTERFACES), served)


def _interface_row(conductor_id: int, interface: EnabledInterface, now: Any) -> dict[str, Any]:
    return {
        "conductor_id": conductor_id,
        "hardware_type": interface.hardware_type,
        "interface_type": interface.kind,
        "interface_name": interface.name,
        "is_default": interface.default,
        "created_at": now,
    }


def beat(conn: sa.Connection, hostname: str, *, online: bool = True) -> None:
    """Raise the counter that says that this conductor lives; off line, it only ends its work."""
    conn.execute(
        sa.update(CONDUCTORS)
        .where(_T.hostname == hostname)
        .values(heartbeat=_T.heartbeat + 1, online=online, updated_at=rows.now()),
    )


def unregister(conn: sa.Connection, hostname: str) -> None:
    """Take the conductor off line; its row stays for those who look back."""
    conn.execute(
        sa.update(CONDUCTORS)
        .where(_T.hostname == hostname)
        .values(online=False, updated_at=rows.now()),
    )


def list_gone(conn: sa.Connection, before: datetime, *, at_most: int) -> list[Conductor]:
    """Return conductors that are off line since ``before`` and have nothing left, oldest first."""
    query = sa.select(CONDUCTORS).where(*_nothing_left(), _T.updated_at < before)
    query = query.order_by(_T.updated_at, _T.id).limit(at_most)
    return [_value(row) for row in conn.execute(query).mappings()]


def delete_gone(conn: sa.Connection, conductor: Conductor) -> bool:
    """Drop the row of a conductor that was listed as gone; False: it is back, or has work."""
    is_as_it_was = _T.id == conductor.id, _T.heartbeat == conductor.heartbeat
    return bool(conn.execute(sa.delete(CONDUCTORS).where(*is_as_it_was, *_nothing_left())).rowcount)


def _nothing_left() -> list[sa.ColumnElement[bool]]:
    """Off line, with no node held, no flow that has not ended, no allocation that waits."""
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
    """Return conductors; the marker is a host name.  Raises ConductorNotFound."""
    query = pagination.keyset(
        conn,
        sa.select(CONDUCTORS),
        CONDUCTORS,
        page.sort_key,
        page.descending,
        page.marker,
        lambda unknown: errors.ConductorNotFound(conductor=unknown),
        "hostname",
    )
    return [_value(row) for row in conn.execute(query.limit(page.limit)).mappings()]


def get(conn: sa.Connection, hostname: str) -> Conductor:
    """Return one conductor.  Raises ConductorNotFound."""
    row = (
        conn.execute(sa.select(CONDUCTORS).where(_T.hostname == hostname)).mappings().one_or_none()
    )
    if row is None:
        raise errors.ConductorNotFound(conductor=hostname)
    return _value(row)


def _value(row: Any) -> Conductor:
    return Conductor(**dict(row) | {"drivers": tuple(rows.load(row["drivers"]))})


def list_interfaces(conn: sa.Connection) -> dict[str, list[EnabledInterface]]:
    """Return what each online conductor serves, by host name."""
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
