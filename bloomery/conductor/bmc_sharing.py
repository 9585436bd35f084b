"""Two nodes with one BMC and system: each power sync drives the machine to its own record.

The log and the history warn of such a node, or the conductor refuses it
([conductor]allow_shared_bmc_system).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import writes
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.db import nodes, rows
from bloomery.drivers.base import BmcSystem
from bloomery.model.node import Node

LOG = logging.getLogger(__name__)


def check_stored(context: Context, conn: sa.Connection, node: Node) -> None:
    """Refuse a node whose BMC and system another node has, where the option forbids it.

    Raises BmcSystemShared.  The check runs in the transaction that stores the node.
    """
    if context.runtime.conf.conductor.allow_shared_bmc_system:
        return
    sharers = _list_sharers(context.runtime, conn, node)
    if sharers:
        others = _name(sharers, partial(_may_see, context))
        raise errors.BmcSystemShared(node=errors.name_of(node), others=others)


def check_changed(
    context: Context, conn: sa.Connection, node: Node, changed: dict[str, Any]
) -> Node | None:
    """Check, as ``check_stored`` does, a change that leads to another BMC or system.

    Returns the node as it is stored now, for ``warn``; None where BMC and system stay.
    """
    if not changed.keys() & {"driver", "driver_info"}:
        return None
    after = dataclasses.replace(node, **changed)
    if _system_of(context.runtime, after) == _system_of(context.runtime, node):
        return None
    check_stored(context, conn, after)
    return after


def warn(context: Context, node: Node) -> None:
    """Warn in log and history where other nodes have the BMC and system of a stored node.

    Reads outside of the transaction.  A busy database loses the warning; ``validate`` repeats it.
    """
    runtime = context.runtime
    if not runtime.conf.conductor.allow_shared_bmc_system:
        return
    try:
        with runtime.db.read() as conn:
            sharers = _list_sharers(runtime, conn, node)
        if not sharers:
            return
        LOG.warning("node %s %s: %s", node.uuid, node.name or "-",
                    _sentence(_name(sharers, lambda row: True)))  # fmt: skip
        text = _sentence(_name(sharers, partial(_is_of_the_same, node)))
        runtime.db.transact(writes.history_entry(context, node, text, event_type="bmc", warns=True))
    except (errors.DatabaseBusy, sa.exc.DBAPIError) as exc:
        LOG.warning("node %s: cannot tell in its history who shares its BMC: %s",
                    node.uuid, errors.brief(exc))  # fmt: skip


def describe(context: Context, node: Node) -> str | None:
    """Return a sentence that names the other nodes with the BMC and system.

    None where there are none.
    """
    with context.runtime.db.read() as conn:
        sharers = _list_sharers(context.runtime, conn, node)
    return _sentence(_name(sharers, partial(_may_see, context))) if sharers else None


def _sentence(sharers: str) -> str:
    return f"its BMC and system are also those of {sharers}: each power sync drives one machine"


def _name(sharers: Sequence[sa.Row[Any]], may_be_named: Callable[[sa.Row[Any]], bool]) -> str:
    """Name the other nodes; nodes that the reader may not see count as "another node"."""
    visible = [row for row in sharers if may_be_named(row)]
    named = [f"node {errors.name_of(row)}" for row in visible]
    return ", ".join([*named, *(["another node"] if len(visible) < len(sharers) else [])])


def name_of(node: Node, other: sa.Row[Any]) -> str:
    """Name another node in a sentence that readers of ``node`` see."""
    return _name([other], partial(_is_of_the_same, node))


def _is_of_the_same(node: Node, row: sa.Row[Any]) -> bool:
    """Return whether both nodes have one owner and lessee, so that the name may be shown."""
    return (node.owner, node.lessee) == (row.owner, row.lessee)


def _may_see(context: Context, row: sa.Row[Any]) -> bool:
    """Return whether the caller may see the node by project or scope, or roles are off."""
    request = context.request
    if not context.runtime.conf.default.has_roles or request.system_scope == "all":
        return True
    return request.project is not None and request.project in (row.owner, row.lessee)


def list_of_bmc(runtime: ConductorRuntime, conn: sa.Connection, node: Node) -> list[str]:
    """Return the UUIDs of the other nodes with the BMC of a node, of every system and driver."""
    ours = _system_of(runtime, node)
    if ours is None:
        return []
    return [
        row.uuid
        for driver, hardware_type in runtime.registry.types.items()
        for row in nodes.list_with_bmc_of(conn, node.uuid, driver, ours.text)
        if (theirs := hardware_type.bmc_system(rows.load(row.driver_info))) is not None
        and (ours.host, ours.port) == (theirs.host, theirs.port)
    ]


def _list_sharers(runtime: ConductorRuntime, conn: sa.Connection, node: Node) -> list[sa.Row[Any]]:
    """Return the nodes of the same driver with the same BMC and system.

    The node is stored as it is here.
    """
    ours = _system_of(runtime, node)
    if ours is None:
        return []
    hardware_type = runtime.registry.types[node.driver]
    return [
        row
        for row in nodes.list_with_bmc_of(conn, node.uuid, node.driver, ours.text)
        if (theirs := hardware_type.bmc_system(rows.load(row.driver_info))) is not None
        and ours.is_same(theirs)
    ]


def _system_of(runtime: ConductorRuntime, node: Node) -> BmcSystem | None:
    hardware_type = runtime.registry.types.get(node.driver)
    return None if hardware_type is None else hardware_type.bmc_system(node.driver_info)
