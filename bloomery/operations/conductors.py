"""Conductors and their drivers."""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.db import conductors as db
from bloomery.model.conductor import Conductor
from bloomery.model.page import Page
from bloomery.operations import policy
from bloomery.operations.context import Context
from bloomery.rpc.drivers import DriverFacts


def list_page(ctx: Context, page: Page) -> list[Conductor]:
    """Return a page of conductors; the marker is a host name."""
    policy.authorize(ctx, "baremetal:conductor:get")
    return ctx.services.rpc.ring.judge(lambda conn: db.list_page(conn, page))


def get(ctx: Context, hostname: str) -> Conductor:
    policy.authorize(ctx, "baremetal:conductor:get")
    [conductor] = ctx.services.rpc.ring.judge(lambda conn: [db.get(conn, hostname)])
    return conductor


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
