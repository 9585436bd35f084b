"""What is kept about a node beside its row: history, BIOS settings, firmware, inventory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import hardware, history
from bloomery.model.page import Page
from bloomery.model.rules import idents
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context

Json = dict[str, Any]


def list_history(
    ctx: Context, node_uuid: str, page: Page = history.OLDEST_FIRST
) -> Sequence[sa.RowMapping]:
    """Return a page of what happened to a node."""
    policy.authorize_node(ctx, node_uuid, "baremetal:node:history:get")
    with ctx.services.db.read() as conn:
        return history.list_rows(conn, node_uuid, page)


def get_history_entry(ctx: Context, ident: str, uuid: str) -> sa.RowMapping:
    """Return one entry.  Raises NodeHistoryNotFound."""
    policy.authorize_node(ctx, ident, "baremetal:node:history:get")
    idents.check_ident("event_ident", uuid)
    node_uuid = lookup.uuid_of(ctx, ident)
    with ctx.services.db.read() as conn:
        return history.get_row(conn, node_uuid, uuid)


def list_bios_settings(ctx: Context, ident: str) -> list[Json]:
    """Return the BIOS settings by name."""
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:bios:get")
    with ctx.services.db.read() as conn:
        return hardware.list_bios(conn, uuid)


def get_bios_setting(ctx: Context, ident: str, name: str) -> Json:
    """Return one BIOS setting.  Raises BIOSSettingNotFound."""
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:bios:get")
    with ctx.services.db.read() as conn:
        setting = hardware.find_bios(conn, uuid, name)
    if setting is None:
        raise errors.BIOSSettingNotFound(node=uuid, setting=name)
    return setting


def list_firmware(ctx: Context, ident: str) -> list[Json]:
    """Return the firmware components, with the versions seen first, now and flashed last."""
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:firmware:get")
    with ctx.services.db.read() as conn:
        return hardware.list_firmware(conn, uuid)


def get_inventory(ctx: Context, ident: str) -> Json:
    """Return what the last inspection read.  Raises InventoryNotFound."""
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:inventory:get")
    with ctx.services.db.read() as conn:
        inventory = hardware.find_inventory(conn, uuid)
    if inventory is None:
        raise errors.InventoryNotFound(node=uuid)
    return inventory
