"""Conductors and their drivers."""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.db import conductors as db
from bloomery.db import locks, nodes
from bloomery.db.engine import Database
from bloomery.model.conductor import Conductor
from bloomery.model.request import Page
from bloomery.operations import policy
from bloomery.operations.context import Context
from bloomery.rpc.ring import DriverFacts, Ring


def list_page(ctx: Context, page: Page) -> list[Conductor]:
    """Return a page of conductors; the marker is a host name."""
    policy.authorize(ctx, "baremetal:conductor:get")
    return ctx.services.rpc.ring.judge(lambda conn: db.list_page(conn, page))


def get(ctx: Context, hostname: str) -> Conductor:
    policy.authorize(ctx, "baremetal:conductor:get")
    [conductor] = ctx.services.rpc.ring.judge(lambda conn: [db.get(conn, hostname)])
    return conductor


def describe_all(ctx: Context) -> list[dict[str, Any]]:
    """Return each conductor with its state, and the number of nodes that it has reserved."""
    policy.authorize(ctx, "baremetal:conductor:get")
    with ctx.services.db.read() as conn:
        reserved = locks.count_by_holder(conn)
    return [
        {
            "hostname": each.hostname,
            "conductor_group": each.conductor_group,
            "state": each.state,
            "alive": each.alive,
            "silent_s": round(each.silent_s, 1),
            "drivers": list(each.drivers),
            "reserved": reserved.get(each.hostname, 0),
            "started_at": each.started_at,
            "updated_at": each.updated_at,
            "drain_ordered_at": each.drain_ordered_at,
        }
        for each in ctx.services.rpc.ring.judge(db.list_all)
    ]


def drain(ctx: Context, hostname: str, *, force: bool = False) -> None:
    """Order a conductor to take no new nodes, end its work, and stop.

    ``force``: also where nobody else serves its nodes.  Raises ConductorNotAlive, LastConductor.
    """
    policy.authorize(ctx, "baremetal:conductor:drain")
    services = ctx.services
    if not force:
        require_peers(services.db, services.rpc.ring, hostname)
    if not services.db.transact(lambda conn: db.order_drain(conn, hostname)):
        with services.db.read() as conn:
            state = db.get(conn, hostname).state
        raise errors.ConductorNotAlive(conductor=hostname, action="drain", state=state)


def require_peers(database: Database, ring: Ring, hostname: str) -> None:
    """Raise LastConductor if no other conductor of the group serves all drivers of its nodes."""
    registered = {each.hostname: each for each in ring.judge(db.list_all)}
    own = registered.pop(hostname, None)
    if own is None or own.incarnation is None:
        return  # the order is refused
    peers = [
        each
        for each in registered.values()
        if each.alive and each.drain_ordered_at is None
        and each.conductor_group == own.conductor_group
    ]  # fmt: skip
    served = {driver for each in peers for driver in each.drivers}
    alone = [driver for driver in own.drivers if driver not in served]
    with database.read() as conn:
        number = nodes.count_served(conn, group=own.conductor_group or "", drivers=alone)
    if number or not peers:
        count = f"{number} node" if number == 1 else f"{number} nodes"
        raise errors.LastConductor(conductor=hostname, nodes=count)


def list_bmcs(ctx: Context, hostname: str) -> list[dict[str, Any]]:
    """Return what the conductor remembers of each BMC that it has called since its start.

    Raises ConductorNotFound, ConductorUnreached.
    """
    policy.authorize(ctx, "baremetal:bmc:list")
    [conductor] = ctx.services.rpc.ring.judge(lambda conn: [db.get(conn, hostname)])
    if not conductor.alive:
        raise errors.ConductorUnreached(host=hostname, reason=f"it is {conductor.state}")
    return ctx.services.rpc.conductor_on(hostname).list_bmcs(ctx.request)


def list_drivers(ctx: Context) -> list[DriverFacts]:
    """Return the hardware types of living conductors."""
    policy.authorize(ctx, "baremetal:driver:get")
    return ctx.services.rpc.ring.list_drivers()


def get_driver(ctx: Context, name: str) -> DriverFacts:
    policy.authorize(ctx, "baremetal:driver:get")
    return ctx.services.rpc.ring.get_driver(name)


def get_driver_properties(ctx: Context, name: str) -> dict[str, Any]:
    """Return the driver_info properties of the driver's interfaces, with descriptions."""
    policy.authorize(ctx, "baremetal:driver:get_properties")
    return ctx.services.rpc.conductor_for_driver(name).get_driver_properties(ctx.request, name)


def get_raid_logical_disk_properties(ctx: Context, name: str) -> dict[str, Any]:
    """Return the RAID properties of logical disks.  Raises NotFound without a RAID interface."""
    policy.authorize(ctx, "baremetal:driver:get_raid_logical_disk_properties")
    conductor = ctx.services.rpc.conductor_for_driver(name)
    try:
        return conductor.get_raid_logical_disk_properties(ctx.request, name)
    except errors.UnsupportedDriverExtension as exc:
        raise errors.NotFound(reason=str(exc)) from exc
