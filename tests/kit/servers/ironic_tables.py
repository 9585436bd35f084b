"""A database as an Ironic leaves it: the columns that the import reads, a row in each table."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from bloomery.cli.imports.plan import INTERFACES

SECRET: Final = "hunter2hunter2"
NODE: Final = "7d6f1c1e-1111-4c62-9d3a-8a6c1b6f2a01"
_UUID: Final = "7d6f1c1e-{:04d}-4c62-9d3a-8a6c1b6f2a01"
_BEATS: Final = timedelta(seconds=30)
_NOOP: Final = ("network", "storage")
_STEP: Final = {"id": 1, "interface": "raid", "step": "delete_configuration", "args": {"a": 1}}
_ROWS: Final[dict[str, dict[str, Any]]] = {
    "chassis": {"description": "rack 1", "extra": {}},
    "nodes": {
        "uuid": NODE, "name": "web-1", "driver": "fake-hardware", "provision_state": "active",
        "driver_info": {"fake_password": SECRET},
        "instance_info": {"image_source": "a", "traits": []},
        "properties": {"cpus": 4}, "extra": {"asset": 7}, "network_data": {}, "chassis_id": 1,
        "resource_class": "bm.large", "power_state": "power on", "maintenance": False,
        "maintenance_reason": None, "reservation": None, "protected": True,
        "protected_reason": "do not touch", "retired": False, "allocation_id": 1,
        "instance_uuid": _UUID.format(8),  # as of the allocation, the eighth table
        **{f"{kind}_interface": "fake" for kind in INTERFACES if kind not in _NOOP},
        **{f"{kind}_interface": "noop" for kind in _NOOP},
        "last_error": None, "raid_config": {}, "target_raid_config": None,
    },
    "node_traits": {"trait": "CUSTOM_FAST", "node_id": 1},
    "ports": {"address": "52:54:00:00:00:01", "node_id": 1, "portgroup_id": 1,
              "pxe_enabled": False, "local_link_connection": {}, "extra": {"cable": "red"}},
    "portgroups": {"name": "bond-1", "node_id": 1, "mode": "active-backup", "properties": {},
                   "standalone_ports_supported": True},
    "volume_connectors": {"node_id": 1, "type": "iqn", "connector_id": "iqn.a", "extra": {}},
    "volume_targets": {"node_id": 1, "volume_type": "iscsi", "volume_id": "v-1", "boot_index": 0,
                       "properties": {"lun": 1}},
    "allocations": {"name": "web", "node_id": 1, "state": "active", "resource_class": "bm.large",
                    "traits": [], "candidate_nodes": [], "extra": {}},
    "deploy_templates": {"name": "CUSTOM_FAST", "extra": {}},
    "deploy_template_steps": _STEP | {"deploy_template_id": 1, "priority": 5},
    "runbooks": {"name": "CUSTOM_BOOK", "public": False, "disable_ramdisk": True, "extra": {}},
    "runbook_steps": _STEP | {"runbook_id": 1, "order": 1},
    "node_history": {"node_id": 1, "event": "deploy failed: the disk is gone", "severity": "ERROR",
                     "created_at": datetime.fromisoformat("2026-01-02T03:04:05"),
                     "user": "ann"},
    "node_inventory": {"node_id": 1, "inventory_data": {"disks": []}, "plugin_data": {}},
}  # fmt: skip
_WITHOUT_UUID: Final = ("conductors", "node_inventory", "node_traits")


def make(engine: sa.Engine, *, is_online: bool = False, beats: bool = False) -> None:
    """Make tables and rows; ``is_online``: no stop took the conductor offline.

    ``beats``: the last heartbeat is of this minute.
    """
    metadata = sa.MetaData()
    beat = datetime.now(UTC).replace(tzinfo=None) - (_BEATS if beats else 100 * _BEATS)
    conductor = {"hostname": "old-1", "online": is_online, "updated_at": beat}
    rows = _ROWS | {"conductors": conductor}
    with engine.begin() as conn:
        for number, (name, values) in enumerate(rows.items(), 1):
            own: dict[str, Any] = {"id": 1}
            if name not in _WITHOUT_UUID and not name.endswith("_steps"):
                own["uuid"] = _UUID.format(number)
            row = own | values
            columns = [sa.Column(column, _type(value), primary_key=column == "id")
                       for column, value in row.items()]  # fmt: skip
            sa.Table(name, metadata, *columns).create(conn)
            stored = {column: json.dumps(value) if isinstance(value, dict | list) else value
                      for column, value in row.items()}  # fmt: skip
            conn.execute(metadata.tables[name].insert(), stored)


def write_config(path: Path, url: sa.URL) -> Path:
    """Write an ironic.conf that names the database."""
    text = url.render_as_string(hide_password=False).replace("%", "%%")
    path.write_text(f"[DEFAULT]\ndebug = true\n[database]\nconnection = {text}\n")
    return path


def _type(value: Any) -> sa.types.TypeEngine[Any]:
    kinds: dict[type, sa.types.TypeEngine[Any]] = {
        bool: sa.Boolean(), int: sa.Integer(), datetime: sa.DateTime(), str: sa.String(255),
    }  # fmt: skip
    return kinds.get(type(value), sa.Text())
