"""Nodes as records: create, update, delete, maintenance, traits.  Asks no BMC."""

from __future__ import annotations

import copy
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import allocations, bmc_sharing, cleanup, console, row_updates, task_manager
from bloomery.conductor.patches import Limits, Patcher
from bloomery.conductor.row_updates import CrudEvent
from bloomery.conductor.runtime import Context
from bloomery.db import nodes, rows
from bloomery.model import node as model
from bloomery.model.node import Node
from bloomery.model.rules import nodes as rules

Json = dict[str, Any]

_NOT_COLUMNS: Final = frozenset({"id", "traits"})
_PATCHER: Final = Patcher(rules.ATTRIBUTES, Node)


# ------------------------------------------------------------------------------------- create


def create(context: Context, values: Json) -> None:
    """Store a node in one commit: choose and check its interfaces, seal its secrets."""
    node, runtime = Node(**values), context.runtime
    facts = {"name": node.name, "driver": node.driver}
    event = CrudEvent(context, "node", node.uuid, "create", facts).snapshot_request(values)
    with event.publishing():
        node.driver_info = runtime.sealer.seal(node.driver_info)
        node.instance_info = runtime.sealer.seal(node.instance_info)
        node.resource_class = node.resource_class or runtime.conf.default.default_resource_class
        _choose_interfaces(context, node)
        _check_driver_info(context, node.driver, node.driver_info)
        node.created_at = rows.now()
        columns = {name: getattr(node, name) for name in model.COLUMNS if name not in _NOT_COLUMNS}
        encoded = rows.encode(columns, model.OBJECTS)
        event.snapshot_stored(node)

        def work(conn: sa.Connection) -> None:
            _require_chassis(conn, node.chassis_uuid)
            nodes.insert(conn, encoded)
            bmc_sharing.check_stored(context, conn, node)
            event(conn)

        runtime.db.transact(work)
    bmc_sharing.warn(context, node)


def _choose_interfaces(context: Context, node: Node) -> None:
    try:
        context.runtime.registry.fill_and_check(node)
    except errors.DriverNotFound as exc:
        raise errors.InvalidParameterValue(reason=str(exc)) from exc


def _check_driver_info(context: Context, driver: str, driver_info: Json) -> None:
    hardware = context.runtime.registry.types.get(driver)
    if hardware is not None:
        hardware.check_driver_info(driver_info)


def _require_chassis(conn: sa.Connection, uuid: str | None) -> None:
    rules.require_chassis(uuid, exists=uuid is not None and nodes.chassis_exists(conn, uuid))


# ------------------------------------------------------------------------------------- update


def update(context: Context, node_uuid: str, patch: list[Json], reset_interfaces: bool) -> None:
    """Apply a JSON patch to the node's row, which the same transaction reads."""
    runtime = context.runtime
    prepared = _PATCHER.prepare(patch, runtime.sealer, Limits.of(runtime.conf))
    paths = [op["path"] for op in patch]
    event = CrudEvent(context, "node", node_uuid, "update", {"patched": paths})

    def work(conn: sa.Connection, node: Node) -> Node | None:
        rules.refuse_while_busy(node, patch)
        changed = _PATCHER.apply(node, prepared)
        if node.fault is not None and "maintenance" in prepared.roots:
            changed.setdefault("maintenance", node.maintenance)  # an operator takes it over
        changed = _changed(context, node, changed, reset_interfaces)
        event.snapshot_change(node, changed, touched=bool(changed))
        if "chassis_uuid" in changed:
            _require_chassis(conn, changed["chassis_uuid"])
        if changed:
            nodes.update(conn, node_uuid, rows.encode(changed, model.OBJECTS))
            allocations.follow(context, conn, node, changed)
        moved = bmc_sharing.check_changed(context, conn, node, changed)
        event(conn)
        return moved

    with event.publishing(lambda node: _PATCHER.apply(node, prepared)):
        moved = row_updates.change(context, node_uuid, work)
    if moved is not None:
        bmc_sharing.warn(context, moved)


def _changed(
    context: Context,
    node: Node,
    changed: Json,
    reset: bool,
) -> Json:
    """Return the changed columns, with the consequences between fields.

    ``reset``: a new driver resets the interfaces that the patch does not name.
    """
    changed = rules.with_consequences(node, changed)
    if changed.keys() & (rules.INTERFACE_FIELDS | {"driver"}):
        future = copy.copy(node)
        if reset and "driver" in changed:
            for name in rules.INTERFACE_FIELDS:
                setattr(future, name, None)
        for name, value in changed.items():
            setattr(future, name, value)
        _choose_interfaces(context, future)  # fills the defaults in, and checks all
        changed = {n: v for n, v in changed.items() if n not in rules.INTERFACE_FIELDS}
        for name in rules.INTERFACE_FIELDS:
            if (chosen := getattr(future, name)) != getattr(node, name):
                changed[name] = chosen
    if "driver_info" in changed:
        driver = changed.get("driver", node.driver)
        _check_driver_info(context, driver, changed["driver_info"])
    rules.refuse_in_state(node, changed)
    return changed


# ----------------------------------------------------------------------- delete, maintenance


def destroy(context: Context, node_uuid: str) -> None:
    """Delete a node and its records in one commit, unless a console must be stopped first.

    A console that cannot stop keeps the node.
    """
    event = CrudEvent(context, "node", node_uuid, "delete")

    def work(conn: sa.Connection, node: Node) -> bool:
        event.snapshot_deletion(node)
        _check_deletable(context, node)
        if node.console_enabled:
            return False
        allocations.release(context, node)(conn)
        nodes.delete(conn, node_uuid)
        event(conn)
        return True

    with event.publishing():
        if not row_updates.change(context, node_uuid, work):
            with task_manager.acquire(context, node_uuid, purpose="delete") as task:
                event.snapshot_deletion(task.node)
                _check_deletable(context, task.node)
                if task.node.console_enabled:
                    console.stop(task, "console_set", event.insert_between)
                allocation_gone = allocations.release(context, task.node)
                task.save(
                    allocation_gone, lambda conn: nodes.delete(conn, node_uuid), event, release=True
                )
    cleanup.drop_certificate(context.runtime, node_uuid)


def _check_deletable(context: Context, node: Node) -> None:
    allowed = context.runtime.conf.conductor.allow_deleting_available_nodes
    rules.check_deletable(node, also_available=allowed)


def set_maintenance(
    context: Context, node_uuid: str, maintenance: bool, reason: str | None
) -> None:
    """Begin, take over or end a maintenance.  One commit."""
    values = rules.maintenance_of_operator(maintenance, reason)
    event = CrudEvent(context, "node", node_uuid, "maintenance_set", {"maintenance": maintenance})

    def work(conn: sa.Connection, node: Node) -> None:
        nodes.update(conn, node_uuid, values)
        event.snapshot_change(node, values)(conn)

    with event.publishing(lambda node: values):
        row_updates.change(context, node_uuid, work)


# ------------------------------------------------------------------------------------- traits


def add_traits(context: Context, node_uuid: str, traits: list[str], replace: bool) -> None:
    """Add these traits, or replace all traits by them.  One commit."""
    event = CrudEvent(context, "node", node_uuid, "update", {"traits": list(traits)})

    def change(node: Node) -> Json:
        kept = () if replace else node.traits
        return {"traits": tuple(sorted({*kept, *traits}))}

    def work(conn: sa.Connection, node: Node) -> None:
        if replace:
            nodes.remove_traits(conn, node_uuid, None)
        changed = change(node)
        event.snapshot_change(node, changed, touched=False)
        rules.check_number_of_traits(node, changed["traits"])
        nodes.add_traits(conn, node_uuid, traits)
        event(conn)

    with event.publishing(change):
        row_updates.change(context, node_uuid, work)


def remove_traits(context: Context, node_uuid: str, traits: list[str] | None) -> None:
    """Remove these traits, by default all.  Raises NodeTraitNotFound.  One commit."""
    event = CrudEvent(context, "node", node_uuid, "update", {"traits": []})

    def change(node: Node) -> Json:
        removed = node.traits if traits is None else traits
        return {"traits": tuple(trait for trait in node.traits if trait not in removed)}

    def work(conn: sa.Connection, node: Node) -> None:
        missing = [trait for trait in traits or () if trait not in node.traits]
        if missing:
            raise errors.NodeTraitNotFound(node=errors.name_of(node), trait=missing[0])
        nodes.remove_traits(conn, node_uuid, traits)
        event.snapshot_change(node, change(node), touched=False)(conn)

    with event.publishing(change):
        row_updates.change(context, node_uuid, work)
