"""Stored facts of a node: history, BIOS settings, firmware, inventory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import hardware, history
from bloomery.model.request import Page
from bloomery.model.rules import idents
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context

Json = dict[str, Any]


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
