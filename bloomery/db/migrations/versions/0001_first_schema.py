"""The first schema: every noun of Ironic, and our step runs, events and home.

Revision 0001, after nothing.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
kind = "expand"

UtcTime = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MySql: dict[str, Any] = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB"}


def upgrade() -> None:
    create_allocations()
    create_chassis()
    create_conductors()
    create_deploy_templates()
    create_event_cursors()
    create_events()
    create_home()
    create_inspection_rules()
    create_runbooks()
    create_conductor_hardware_interfaces()
    create_nodes()
    create_bios_settings()
    create_firmware_information()
    create_node_history()
    create_node_inventory()
    create_node_traits()
    create_portgroups()
    create_step_runs()
    create_volume_connectors()
    create_volume_targets()
    create_ports()


def create_allocations() -> None:
    op.create_table(
        "allocations",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255)),
        sa.Column("node_uuid", sa.String(length=36)),
        sa.Column("resource_class", sa.String(length=80)),
        sa.Column("state", sa.String(length=15), nullable=False),
        sa.Column("last_error", LongText),
        sa.Column("candidate_nodes", LongText, nullable=False),
        sa.Column("traits", LongText, nullable=False),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("owner", sa.String(length=255)),
        sa.Column("conductor_affinity", sa.String(length=255)),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocations")),
        sa.UniqueConstraint("name", name=op.f("uq_allocations_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_allocations_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_allocations_node_uuid"), "allocations", ["node_uuid"])


def create_chassis() -> None:
    op.create_table(
        "chassis",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("description", sa.String(length=255)),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chassis")),
        sa.UniqueConstraint("uuid", name=op.f("uq_chassis_uuid")),
        **MySql,
    )


def create_conductors() -> None:
    op.create_table(
        "conductors",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("hostname", sa.String(length=255), nullable=False),
        sa.Column("conductor_group", sa.String(length=255), nullable=False),
        sa.Column("drivers", LongText, nullable=False),
        sa.Column("online", sa.Boolean(), nullable=False),
        sa.Column("heartbeat", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conductors")),
        sa.UniqueConstraint("hostname", name=op.f("uq_conductors_hostname")),
        **MySql,
    )


def create_deploy_templates() -> None:
    op.create_table(
        "deploy_templates",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("steps", LongText, nullable=False),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deploy_templates")),
        sa.UniqueConstraint("name", name=op.f("uq_deploy_templates_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_deploy_templates_uuid")),
        **MySql,
    )


def create_event_cursors() -> None:
    op.create_table(
        "event_cursors",
        sa.Column("sink", sa.String(length=64), nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(length=255)),
        sa.Column("generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.PrimaryKeyConstraint("sink", name=op.f("pk_event_cursors")),
        **MySql,
    )


def create_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("object", sa.String(length=32), nullable=False),
        sa.Column("object_uuid", sa.String(length=36), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("publisher", sa.String(length=255)),
        sa.Column("request_id", sa.String(length=64)),
        sa.Column("facts", LongText, nullable=False),
        sa.Column("snapshot", LongText),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
        **MySql,
    )


def create_home() -> None:
    op.create_table(
        "home",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_home")),
        **MySql,
    )


def create_inspection_rules() -> None:
    op.create_table(
        "inspection_rules",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("description", sa.String(length=255)),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=16)),
        sa.Column("scope", sa.String(length=255)),
        sa.Column("sensitive", sa.Boolean(), nullable=False),
        sa.Column("conditions", LongText, nullable=False),
        sa.Column("actions", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inspection_rules")),
        sa.UniqueConstraint("uuid", name=op.f("uq_inspection_rules_uuid")),
        **MySql,
    )


def create_runbooks() -> None:
    op.create_table(
        "runbooks",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("description", sa.String(length=255)),
        sa.Column("steps", LongText, nullable=False),
        sa.Column("traits", LongText, nullable=False),
        sa.Column("disable_ramdisk", sa.Boolean(), nullable=False),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.String(length=255)),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runbooks")),
        sa.UniqueConstraint("name", name=op.f("uq_runbooks_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_runbooks_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_runbooks_owner"), "runbooks", ["owner"])


def create_conductor_hardware_interfaces() -> None:
    op.create_table(
        "conductor_hardware_interfaces",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("conductor_id", BigId, nullable=False),
        sa.Column("hardware_type", sa.String(length=64), nullable=False),
        sa.Column("interface_type", sa.String(length=16), nullable=False),
        sa.Column("interface_name", sa.String(length=64), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["conductor_id"],
            ["conductors.id"],
            name=op.f("fk_conductor_hardware_interfaces_conductor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conductor_hardware_interfaces")),
        sa.UniqueConstraint(
            "conductor_id",
            "hardware_type",
            "interface_type",
            "interface_name",
            name="uq_conductor_hardware_interfaces",
        ),
        **MySql,
    )


def create_nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255)),
        sa.Column("driver", sa.String(length=255), nullable=False),
        sa.Column("driver_info", LongText, nullable=False),
        sa.Column("driver_internal_info", LongText, nullable=False),
        sa.Column("properties", LongText, nullable=False),
        sa.Column("instance_info", LongText, nullable=False),
        sa.Column("instance_uuid", sa.String(length=36)),
        sa.Column("instance_name", sa.String(length=255)),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("chassis_uuid", sa.String(length=36)),
        sa.Column("allocation_uuid", sa.String(length=36)),
        sa.Column("parent_node", sa.String(length=36)),
        sa.Column("resource_class", sa.String(length=80)),
        sa.Column("conductor_group", sa.String(length=255), nullable=False),
        sa.Column("conductor_affinity", sa.String(length=255)),
        sa.Column("automated_clean", sa.Boolean()),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("protected_reason", LongText),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.Column("retired_reason", LongText),
        sa.Column("owner", sa.String(length=255)),
        sa.Column("lessee", sa.String(length=255)),
        sa.Column("description", LongText),
        sa.Column("network_data", LongText, nullable=False),
        sa.Column("shard", sa.String(length=255)),
        sa.Column("disable_power_off", sa.Boolean(), nullable=False),
        sa.Column("maintenance", sa.Boolean(), nullable=False),
        sa.Column("maintenance_reason", LongText),
        sa.Column("fault", sa.String(length=255)),
        sa.Column("console_enabled", sa.Boolean(), nullable=False),
        sa.Column("bios_interface", sa.String(length=255)),
        sa.Column("boot_interface", sa.String(length=255)),
        sa.Column("console_interface", sa.String(length=255)),
        sa.Column("deploy_interface", sa.String(length=255)),
        sa.Column("firmware_interface", sa.String(length=255)),
        sa.Column("inspect_interface", sa.String(length=255)),
        sa.Column("management_interface", sa.String(length=255)),
        sa.Column("network_interface", sa.String(length=255)),
        sa.Column("power_interface", sa.String(length=255)),
        sa.Column("raid_interface", sa.String(length=255)),
        sa.Column("rescue_interface", sa.String(length=255)),
        sa.Column("storage_interface", sa.String(length=255)),
        sa.Column("vendor_interface", sa.String(length=255)),
        sa.Column("power_state", sa.String(length=15)),
        sa.Column("target_power_state", sa.String(length=15)),
        sa.Column("provision_state", sa.String(length=15)),
        sa.Column("target_provision_state", sa.String(length=15)),
        sa.Column("provision_updated_at", UtcTime),
        sa.Column("inspection_started_at", UtcTime),
        sa.Column("inspection_finished_at", UtcTime),
        sa.Column("last_error", LongText),
        sa.Column("clean_step", LongText, nullable=False),
        sa.Column("deploy_step", LongText, nullable=False),
        sa.Column("service_step", LongText, nullable=False),
        sa.Column("raid_config", LongText, nullable=False),
        sa.Column("target_raid_config", LongText, nullable=False),
        sa.Column("boot_mode", sa.String(length=15)),
        sa.Column("secure_boot", sa.Boolean()),
        sa.Column("health", sa.String(length=15)),
        sa.Column("reservation", sa.String(length=255)),
        sa.Column("reserved_for", sa.String(length=255)),
        sa.Column("reserved_at", UtcTime),
        sa.Column("lock_generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["allocation_uuid"],
            ["allocations.uuid"],
            name=op.f("fk_nodes_allocation_uuid"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["chassis_uuid"], ["chassis.uuid"], name=op.f("fk_nodes_chassis_uuid")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
        sa.UniqueConstraint("instance_uuid", name=op.f("uq_nodes_instance_uuid")),
        sa.UniqueConstraint("name", name=op.f("uq_nodes_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_nodes_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_nodes_chassis_uuid"), "nodes", ["chassis_uuid"])
    op.create_index(op.f("ix_nodes_conductor_group"), "nodes", ["conductor_group"])
    op.create_index(op.f("ix_nodes_driver"), "nodes", ["driver"])
    op.create_index(op.f("ix_nodes_instance_name"), "nodes", ["instance_name"])
    op.create_index(op.f("ix_nodes_lessee"), "nodes", ["lessee"])
    op.create_index(op.f("ix_nodes_owner"), "nodes", ["owner"])
    op.create_index(op.f("ix_nodes_parent_node"), "nodes", ["parent_node"])
    op.create_index(op.f("ix_nodes_provision_state"), "nodes", ["provision_state"])
    op.create_index(op.f("ix_nodes_reservation"), "nodes", ["reservation"])
    op.create_index(op.f("ix_nodes_resource_class"), "nodes", ["resource_class"])
    op.create_index(op.f("ix_nodes_shard"), "nodes", ["shard"])


def create_bios_settings() -> None:
    op.create_table(
        "bios_settings",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("value", LongText),
        sa.Column("attribute_type", sa.String(length=255)),
        sa.Column("allowable_values", LongText, nullable=False),
        sa.Column("lower_bound", sa.Integer()),
        sa.Column("upper_bound", sa.Integer()),
        sa.Column("min_length", sa.Integer()),
        sa.Column("max_length", sa.Integer()),
        sa.Column("read_only", sa.Boolean()),
        sa.Column("reset_required", sa.Boolean()),
        sa.Column("unique", sa.Boolean()),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"],
            ["nodes.uuid"],
            name=op.f("fk_bios_settings_node_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bios_settings")),
        sa.UniqueConstraint("node_uuid", "name", name=op.f("uq_bios_settings_node_uuid_name")),
        **MySql,
    )
    op.create_index(op.f("ix_bios_settings_node_uuid"), "bios_settings", ["node_uuid"])


def create_firmware_information() -> None:
    op.create_table(
        "firmware_information",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("component", sa.String(length=255), nullable=False),
        sa.Column("initial_version", sa.String(length=255)),
        sa.Column("current_version", sa.String(length=255)),
        sa.Column("last_version_flashed", sa.String(length=255)),
        sa.Column("vendor", sa.String(length=255)),
        sa.Column("model", sa.String(length=255)),
        sa.Column("serial_number", sa.String(length=255)),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"],
            ["nodes.uuid"],
            name=op.f("fk_firmware_information_node_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_firmware_information")),
        sa.UniqueConstraint(
            "node_uuid", "component", name=op.f("uq_firmware_information_node_uuid_component")
        ),
        **MySql,
    )
    op.create_index(
        op.f("ix_firmware_information_node_uuid"), "firmware_information", ["node_uuid"]
    )


def create_node_history() -> None:
    op.create_table(
        "node_history",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("conductor", sa.String(length=255)),
        sa.Column("severity", sa.String(length=10), nullable=False),
        sa.Column("event", LongText, nullable=False),
        sa.Column("event_type", sa.String(length=255)),
        sa.Column("user", sa.String(length=255)),
        sa.Column("project", sa.String(length=255)),
        sa.Column("state", sa.String(length=15)),
        sa.Column("target_provision_state", sa.String(length=15)),
        sa.Column("duration_seconds", sa.Float()),
        sa.Column("request_id", sa.String(length=64)),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"],
            ["nodes.uuid"],
            name=op.f("fk_node_history_node_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_node_history")),
        sa.UniqueConstraint("uuid", name=op.f("uq_node_history_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_node_history_node_uuid"), "node_history", ["node_uuid"])


def create_node_inventory() -> None:
    op.create_table(
        "node_inventory",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("inventory_data", LongText, nullable=False),
        sa.Column("plugin_data", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"],
            ["nodes.uuid"],
            name=op.f("fk_node_inventory_node_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_node_inventory")),
        sa.UniqueConstraint("node_uuid", name=op.f("uq_node_inventory_node_uuid")),
        **MySql,
    )


def create_node_traits() -> None:
    op.create_table(
        "node_traits",
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("trait", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["node_uuid"], ["nodes.uuid"], name=op.f("fk_node_traits_node_uuid"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("node_uuid", "trait", name=op.f("pk_node_traits")),
        **MySql,
    )


def create_portgroups() -> None:
    op.create_table(
        "portgroups",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255)),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("address", sa.String(length=18)),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("internal_info", LongText, nullable=False),
        sa.Column("standalone_ports_supported", sa.Boolean(), nullable=False),
        sa.Column("mode", sa.String(length=255), nullable=False),
        sa.Column("properties", LongText, nullable=False),
        sa.Column("physical_network", sa.String(length=64)),
        sa.Column("category", sa.String(length=80)),
        sa.Column("dynamic_portgroup", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"], ["nodes.uuid"], name=op.f("fk_portgroups_node_uuid"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_portgroups")),
        sa.UniqueConstraint("address", name=op.f("uq_portgroups_address")),
        sa.UniqueConstraint("name", name=op.f("uq_portgroups_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_portgroups_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_portgroups_node_uuid"), "portgroups", ["node_uuid"])


def create_step_runs() -> None:
    op.create_table(
        "step_runs",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("flow", sa.String(length=36), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("interface", sa.String(length=16), nullable=False),
        sa.Column("step", sa.String(length=255), nullable=False),
        sa.Column("args", LongText, nullable=False),
        sa.Column("facts", LongText, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("conductor", sa.String(length=255)),
        sa.Column("lock_generation", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(length=64)),
        sa.Column("reason", LongText),
        sa.Column("error", LongText),
        sa.Column("resume_then", sa.String(length=8)),
        sa.Column("taken_up", sa.Integer(), nullable=False),
        sa.Column("due_at", UtcTime),
        sa.Column("deadline_at", UtcTime),
        sa.Column("started_at", UtcTime),
        sa.Column("finished_at", UtcTime),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"], ["nodes.uuid"], name=op.f("fk_step_runs_node_uuid"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step_runs")),
        sa.UniqueConstraint("flow", "position", name=op.f("uq_step_runs_flow_position")),
        **MySql,
    )
    op.create_index(op.f("ix_step_runs_node_uuid"), "step_runs", ["node_uuid"])
    op.create_index(op.f("ix_step_runs_state"), "step_runs", ["state"])


def create_volume_connectors() -> None:
    op.create_table(
        "volume_connectors",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("connector_id", sa.String(length=255), nullable=False),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"],
            ["nodes.uuid"],
            name=op.f("fk_volume_connectors_node_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume_connectors")),
        sa.UniqueConstraint(
            "type", "connector_id", name=op.f("uq_volume_connectors_type_connector_id")
        ),
        sa.UniqueConstraint("uuid", name=op.f("uq_volume_connectors_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_volume_connectors_node_uuid"), "volume_connectors", ["node_uuid"])


def create_volume_targets() -> None:
    op.create_table(
        "volume_targets",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("volume_type", sa.String(length=64), nullable=False),
        sa.Column("volume_id", sa.String(length=36), nullable=False),
        sa.Column("boot_index", sa.Integer(), nullable=False),
        sa.Column("properties", LongText, nullable=False),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"],
            ["nodes.uuid"],
            name=op.f("fk_volume_targets_node_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume_targets")),
        sa.UniqueConstraint(
            "node_uuid", "boot_index", name=op.f("uq_volume_targets_node_uuid_boot_index")
        ),
        sa.UniqueConstraint("uuid", name=op.f("uq_volume_targets_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_volume_targets_node_uuid"), "volume_targets", ["node_uuid"])


def create_ports() -> None:
    op.create_table(
        "ports",
        sa.Column("id", BigId, autoincrement=True),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("address", sa.String(length=18), nullable=False),
        sa.Column("node_uuid", sa.String(length=36), nullable=False),
        sa.Column("extra", LongText, nullable=False),
        sa.Column("internal_info", LongText, nullable=False),
        sa.Column("pxe_enabled", sa.Boolean(), nullable=False),
        sa.Column("local_link_connection", LongText, nullable=False),
        sa.Column("portgroup_uuid", sa.String(length=36)),
        sa.Column("physical_network", sa.String(length=64)),
        sa.Column("is_smartnic", sa.Boolean(), nullable=False),
        sa.Column("name", sa.String(length=255)),
        sa.Column("description", sa.String(length=255)),
        sa.Column("vendor", sa.String(length=32)),
        sa.Column("category", sa.String(length=80)),
        sa.Column("available_for_dynamic_portgroup", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
        sa.ForeignKeyConstraint(
            ["node_uuid"], ["nodes.uuid"], name=op.f("fk_ports_node_uuid"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["portgroup_uuid"], ["portgroups.uuid"], name=op.f("fk_ports_portgroup_uuid")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ports")),
        sa.UniqueConstraint("address", name=op.f("uq_ports_address")),
        sa.UniqueConstraint("name", name=op.f("uq_ports_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_ports_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_ports_node_uuid"), "ports", ["node_uuid"])
    op.create_index(op.f("ix_ports_portgroup_uuid"), "ports", ["portgroup_uuid"])
