"""Facts of a node: traits, history, BIOS settings, firmware, inventory, and proof of erasure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import hardware, history, nodes
from bloomery.model.node_facts import HistoryEntry
from bloomery.model.request import Page
from bloomery.model.rules import idents
from bloomery.model.rules import nodes as rules
from bloomery.operations import bulk, lookup, policy
from bloomery.operations.context import Context

Json = dict[str, Any]

_DISK_NAMES: Final = ("wwn", "serial")  # of a disk, whatever its name is after a boot


def list_history(
    ctx: Context, node_uuid: str, page: Page = history.OLDEST_FIRST
) -> Sequence[sa.RowMapping]:
    """Return a page of a node's history."""
    policy.authorize_node(ctx, node_uuid, "baremetal:node:history:get")
    with ctx.services.db.read() as conn:
        return history.list_rows(conn, node_uuid, page)


def get_history_entry(ctx: Context, ident: str, uuid: str) -> sa.RowMapping:
    policy.authorize_node(ctx, ident, "baremetal:node:history:get")
    idents.check_ident("event_ident", uuid)
    node_uuid = lookup.uuid_of(ctx, ident)
    with ctx.services.db.read() as conn:
        return history.get_row(conn, node_uuid, uuid)


def list_bios_settings(ctx: Context, ident: str) -> list[Json]:
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:bios:get")
    with ctx.services.db.read() as conn:
        return hardware.list_bios(conn, uuid)


def get_bios_setting(ctx: Context, ident: str, name: str) -> Json:
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:bios:get")
    with ctx.services.db.read() as conn:
        setting = hardware.find_bios(conn, uuid, name)
    if setting is None:
        raise errors.BIOSSettingNotFound(node=ident, setting=name)
    return setting


def list_firmware(ctx: Context, ident: str) -> list[Json]:
    """Return the firmware components, with their initial, current and last flashed versions."""
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:firmware:get")
    with ctx.services.db.read() as conn:
        return hardware.list_firmware(conn, uuid)


def get_inventory(ctx: Context, ident: str) -> Json:
    """Return the data of the last inspection.  Raises InventoryNotFound."""
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:inventory:get")
    with ctx.services.db.read() as conn:
        inventory = hardware.find_inventory(conn, uuid)
    if inventory is None:
        raise errors.InventoryNotFound(node=ident)
    return inventory


def prove_erasure(ctx: Context, ident: str) -> Json:
    """Return the erasures of the node, newest first, signed as a whole.

    ``missing``: disks of the last inspection that the newest erasure of whole disks did not erase.
    ``signature``: see ``signatures``; null without a sealing key.  Raises NodeNotFound.
    """
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:inventory:get")
    with ctx.services.db.read() as conn:
        node = nodes.get(conn, uuid)
        erasures = hardware.list_erasures(conn, uuid)
        inspected = hardware.find_inventory(conn, uuid)
    # disks of the inventory that the newest erasure of whole disks did not erase
    whole = next((each for each in erasures if each["step"] == "erase_devices"), None)
    erased = {
        disk[name]
        for disk in (whole["disks"] if whole else ()) for name in _DISK_NAMES
        if disk["is_erased"] and disk.get(name)
    }  # fmt: skip
    missing = [
        {name: disk.get(name) for name in ("name", "model", "size", *_DISK_NAMES)}
        for disk in (inspected or {}).get("inventory", {}).get("disks") or ()
        if not erased.intersection(disk.get(name) for name in _DISK_NAMES)
    ]
    proof = {
        "node_uuid": node.uuid,
        "node_name": node.name,
        "issued_at": datetime.now(UTC).isoformat(),
        "erasures": erasures,
        "missing": missing,
    }
    sealer = ctx.services.sealer
    return {"proof": proof, "signature": None if sealer is None else sealer.sign(proof)}


def bring_past(ctx: Context, ident: str, documents: Sequence[Json], inspected: Json | None) -> None:
    """Store the past of an imported node in another service: its history and its inspection data.

    ``documents``: entries of the history; those that are there stay, so that a repetition adds
    nothing.  ``inspected``: {"inventory": ..., "plugin_data": ...}, in place of what is there.

    Raises NodeNotFound, and Conflict unless the node is in maintenance.
    """
    uuid = policy.get_uuid(ctx, ident, bulk.IMPORT_RULE)
    entries = []
    for document in documents:
        try:
            created_at = datetime.fromisoformat(document["created_at"])
        except ValueError:
            raise errors.Invalid(
                reason=f"created_at must be a time as of ISO 8601, not "
                f"{errors.shortened(document['created_at'])!r}"
            ) from None
        if created_at.tzinfo is None:  # other services' times have no zone and mean UTC
            created_at = created_at.replace(tzinfo=UTC)
        entries.append(HistoryEntry(**document | {"node_uuid": uuid, "created_at": created_at}))

    def store(conn: sa.Connection) -> None:
        node = nodes.get(conn, uuid)
        if not node.maintenance:
            raise errors.Conflict(
                reason=f"cannot bring the past of node {errors.name_of(node)}, which is not in "
                "maintenance: only an imported node that has not been taken over gets one",
            )
        there = history.find_known(conn, uuid, [entry.uuid for entry in entries])
        for entry in entries:
            if entry.uuid not in there:
                history.insert(conn, entry)
        if inspected is not None:
            hardware.replace_inventory(conn, uuid, inspected)

    ctx.services.db.transact(store)


def list_traits(ctx: Context, ident: str) -> list[str]:
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:traits:list")
    with ctx.services.db.read() as conn:
        return sorted(nodes.traits_of(conn, uuid))


def replace_traits(ctx: Context, ident: str, traits: list[Any]) -> None:
    """Replace the node's traits."""
    policy.authorize_node(ctx, ident, "baremetal:node:traits:set")
    for trait in traits:
        rules.check_trait(trait)
    node = lookup.row(ctx, ident)
    conductor = lookup.conductor_of(ctx, node)
    conductor.add_node_traits(ctx.request, node.uuid, list(dict.fromkeys(traits)), replace=True)


def add_trait(ctx: Context, ident: str, trait: str) -> None:
    policy.authorize_node(ctx, ident, "baremetal:node:traits:set")
    rules.check_trait(trait)
    node = lookup.row(ctx, ident)
    lookup.conductor_of(ctx, node).add_node_traits(ctx.request, node.uuid, [trait], replace=False)


def remove_traits(ctx: Context, ident: str, trait: str | None = None) -> None:
    """Remove one trait, or all.  A missing trait is not found, even a malformed one."""
    node = policy.get_node(ctx, ident, "baremetal:node:traits:delete")
    gone = None if trait is None else [trait]
    lookup.conductor_of(ctx, node).remove_node_traits(ctx.request, node.uuid, gone)
