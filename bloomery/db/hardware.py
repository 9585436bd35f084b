"""Queries on hardware facts of nodes: BIOS settings, firmware, inventory, erasures."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import BIOS_SETTINGS, ERASURES, FIRMWARE, NODE_INVENTORY
from bloomery.model import node_facts as model

_B, _F, _I = BIOS_SETTINGS.c, FIRMWARE.c, NODE_INVENTORY.c
_SETTING = sa.select(_B.node_uuid, *(_B[name] for name in model.BIOS))
_EXPLAINS = [n for n in model.BIOS if n not in ("name", "value", "created_at", "updated_at")]
_MOST_AT_ONCE: Final = 500  # nodes of a query
_COMPONENT = sa.select(*(_F[name] for name in model.FIRMWARE))


def list_bios(conn: sa.Connection, node_uuid: str) -> list[dict[str, Any]]:
    """Return the settings of a node by name."""
    query = _SETTING.where(_B.node_uuid == node_uuid).order_by(_B.name)
    return [_setting(row) for row in conn.execute(query).mappings()]


def find_bios(conn: sa.Connection, node_uuid: str, name: str) -> dict[str, Any] | None:
    query = _SETTING.where(_B.node_uuid == node_uuid, _B.name == name)
    row = conn.execute(query).mappings().one_or_none()
    return None if row is None else _setting(row)


def _setting(row: Any) -> dict[str, Any]:
    """Return a setting; as in Ironic, a missing list of values is empty."""
    return dict(row) | {"allowable_values": rows.load(row["allowable_values"]) or []}


def list_firmware(conn: sa.Connection, node_uuid: str) -> list[dict[str, Any]]:
    query = _COMPONENT.where(_F.node_uuid == node_uuid).order_by(_F.component)
    return [dict(row) for row in conn.execute(query).mappings()]


def list_firmware_of(
    conn: sa.Connection, node_uuids: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """Return the components of nodes by UUID; one that has none is absent."""
    found: dict[str, list[dict[str, Any]]] = {}
    for start in range(0, len(node_uuids), _MOST_AT_ONCE):
        some = node_uuids[start : start + _MOST_AT_ONCE]
        query = sa.select(_F.node_uuid, *_COMPONENT.selected_columns).where(_F.node_uuid.in_(some))
        for row in conn.execute(query.order_by(_F.component)).mappings():
            component = dict(row)
            found.setdefault(component.pop("node_uuid"), []).append(component)
    return found


def find_inventory(conn: sa.Connection, node_uuid: str) -> dict[str, Any] | None:
    """Return inventory and plugin data of the node's last inspection."""
    query = sa.select(_I.inventory_data, _I.plugin_data).where(_I.node_uuid == node_uuid)
    row = conn.execute(query).one_or_none()
    if row is None:
        return None
    return {"inventory": rows.load(row.inventory_data), "plugin_data": rows.load(row.plugin_data)}


def replace_inventory(conn: sa.Connection, node_uuid: str, inventory: dict[str, Any]) -> None:
    """Store the data of an inspection: {"inventory": ..., "plugin_data": ...}."""
    conn.execute(sa.delete(NODE_INVENTORY).where(_I.node_uuid == node_uuid))
    row = {
        "node_uuid": node_uuid,
        "inventory_data": rows.dump(inventory["inventory"]),
        "plugin_data": rows.dump(inventory.get("plugin_data", {})),
        "created_at": rows.now(),
    }
    conn.execute(sa.insert(NODE_INVENTORY), row)


def add_erasure(conn: sa.Connection, node_uuid: str, proof: dict[str, Any]) -> None:
    """Store the proof of a step that has erased disks."""
    row = {
        "uuid": str(uuid.uuid4()),
        "node_uuid": node_uuid,
        "proof": rows.dump(proof),
        "created_at": rows.now(),
    }
    conn.execute(sa.insert(ERASURES), row)


def list_erasures(conn: sa.Connection, node_uuid: str) -> list[dict[str, Any]]:
    """Return the proofs of a node with their UUIDs, newest first."""
    query = sa.select(ERASURES.c.uuid, ERASURES.c.proof).where(ERASURES.c.node_uuid == node_uuid)
    newest_first = conn.execute(query.order_by(ERASURES.c.id.desc()))
    return [{"uuid": row.uuid} | rows.load(row.proof) for row in newest_first]


def replace_bios_settings(
    conn: sa.Connection,
    node_uuid: str,
    settings: list[dict[str, Any]],
) -> None:
    """Store the BIOS settings of a node: {"name", "value" and the registry's attributes}."""
    conn.execute(sa.delete(BIOS_SETTINGS).where(_B.node_uuid == node_uuid))
    columns = [name for name in model.BIOS if name not in ("created_at", "updated_at")]
    new = [
        {name: row.get(name) for name in columns}
        | {
            "node_uuid": node_uuid,
            "allowable_values": rows.dump(row.get("allowable_values")),
            "created_at": rows.now(),
        }
        for row in settings
    ]
    if new:
        conn.execute(sa.insert(BIOS_SETTINGS), new)


def explain_bios_settings(
    conn: sa.Connection, node_uuid: str, settings: list[dict[str, Any]]
) -> None:
    """Store the registry's attributes of a node's settings; their values stay."""
    facts = [
        {f"to_{name}": row.get(name) for name in _EXPLAINS}
        | {"to_allowable_values": rows.dump(row.get("allowable_values")), "ident": row["name"]}
        for row in settings
        if row.get("attribute_type")
    ]
    if facts:
        of_setting = sa.and_(_B.node_uuid == node_uuid, _B.name == sa.bindparam("ident"))
        values: dict[str, Any] = {name: sa.bindparam(f"to_{name}") for name in _EXPLAINS}
        conn.execute(sa.update(BIOS_SETTINGS).where(of_setting).values(values), facts)


def replace_firmware(
    conn: sa.Connection,
    node_uuid: str,
    components: list[dict[str, Any]],
) -> None:
    """Store the firmware of a node.

    The initial version of a component stays, and the last flashed version stays unless a row has
    another one.
    """
    before = {row["component"]: row for row in list_firmware(conn, node_uuid)}
    conn.execute(sa.delete(FIRMWARE).where(_F.node_uuid == node_uuid))
    columns = [name for name in model.FIRMWARE if name not in ("created_at", "updated_at")]
    new = []
    for row in components:
        stored = before.get(row["component"])
        first, flashed = row.get("current_version"), row.get("last_version_flashed")
        if stored is not None:
            first, flashed = stored["initial_version"], flashed or stored["last_version_flashed"]
        new.append({name: row.get(name) for name in columns} | {
            "node_uuid": node_uuid, "initial_version": first, "last_version_flashed": flashed,
            "created_at": rows.now(),
        })  # fmt: skip
    if new:
        conn.execute(sa.insert(FIRMWARE), new)
