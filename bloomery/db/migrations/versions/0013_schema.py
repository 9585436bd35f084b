"""The schema of the first release.

Revision 0013, after nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0013"
down_revision = None
kind = "expand"

UtcTime = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Seconds = sa.Float().with_variant(mysql.DOUBLE(asdecimal=False), "mysql", "mariadb")


def upgrade() -> None:
    create_nodes()
    create_stacks()
    create_events()
    create_site()


def create_table(
    name: str,
    *items: sa.schema.SchemaItem,
    primary_key: str = "id",
    unique: Sequence[str] = (),
    references: Sequence[tuple[str, str, str | None]] = (),
    indexes: Sequence[str] = (),
    **more: Any,
) -> sa.Table:
    """Create a table, its keys and indexes; spaces separate the columns of a key.

    References are a column, what it refers to, and what the deletion of that does.
    """
    table = op.create_table(
        name,
        *items,
        *(
            sa.ForeignKeyConstraint(
                [column], [target], name=f"fk_{name}_{column}", ondelete=ondelete
            )
            for column, target, ondelete in references
        ),
        sa.PrimaryKeyConstraint(*primary_key.split(), name=f"pk_{name}"),
        *(
            sa.UniqueConstraint(*columns.split(), name=f"uq_{name}_{'_'.join(columns.split())}")
            for columns in unique
        ),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
        **more,
    )
    for columns in indexes:
        op.create_index(f"ix_{name}_{'_'.join(columns.split())}", name, columns.split())
    return table


def identity() -> sa.Column[int]:
    return sa.Column("id", BigId, autoincrement=True)


def uuid() -> sa.Column[str]:
    return text("uuid", 36, nullable=False)


def text(name: str, length: int = 255, **more: Any) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), **more)


def long_text(name: str, **more: Any) -> sa.Column[str]:
    return sa.Column(name, LongText, **more)


def flag(name: str, **more: Any) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), **more)


def time(name: str, **more: Any) -> sa.Column[Any]:
    return sa.Column(name, UtcTime, **more)


def stamps() -> tuple[sa.Column[Any], sa.Column[Any]]:
    return time("created_at", nullable=False), time("updated_at")


def create_nodes() -> None:
    create_table(
        "allocations",
        identity(),
        uuid(),
        text("name"),
        text("node_uuid", 36),
        text("resource_class", 80),
        text("state", 15, nullable=False),
        long_text("last_error"),
        long_text("candidate_nodes", nullable=False),
        long_text("traits", nullable=False),
        long_text("extra", nullable=False),
        text("owner"),
        text("conductor_affinity"),
        *stamps(),
        unique=["name", "uuid"],
        indexes=["node_uuid", "state", "owner"],
    )
    create_table(
        "chassis",
        identity(),
        uuid(),
        text("description"),
        long_text("extra", nullable=False),
        *stamps(),
        unique=["uuid"],
    )
    create_table(
        "conductors",
        identity(),
        text("hostname", nullable=False),
        text("conductor_group", nullable=False),
        long_text("drivers", nullable=False),
        flag("online", nullable=False),
        sa.Column("heartbeat", sa.BigInteger(), server_default="0", nullable=False),
        *stamps(),
        text("incarnation", 36),
        text("process"),
        time("started_at"),
        time("fenced_out_at"),
        time("drain_ordered_at"),
        unique=["hostname"],
    )
    create_table(
        "deploy_templates",
        identity(),
        uuid(),
        text("name", nullable=False),
        long_text("steps", nullable=False),
        long_text("extra", nullable=False),
        *stamps(),
        unique=["name", "uuid"],
    )
    create_table(
        "inspection_rules",
        identity(),
        uuid(),
        text("description"),
        sa.Column("priority", sa.Integer(), nullable=False),
        text("phase", 16),
        text("scope"),
        flag("sensitive", nullable=False),
        long_text("conditions", nullable=False),
        long_text("actions", nullable=False),
        *stamps(),
        unique=["uuid"],
    )
    create_table(
        "runbooks",
        identity(),
        uuid(),
        text("name", nullable=False),
        text("description"),
        long_text("steps", nullable=False),
        long_text("traits", nullable=False),
        flag("disable_ramdisk", nullable=False),
        flag("public", nullable=False),
        text("owner"),
        long_text("extra", nullable=False),
        *stamps(),
        unique=["name", "uuid"],
        indexes=["owner"],
    )
    create_table(
        "conductor_hardware_interfaces",
        identity(),
        sa.Column("conductor_id", BigId, nullable=False),
        text("hardware_type", 64, nullable=False),
        text("interface_type", 16, nullable=False),
        text("interface_name", 64, nullable=False),
        flag("is_default", nullable=False),
        *stamps(),
        sa.UniqueConstraint(
            "conductor_id",
            "hardware_type",
            "interface_type",
            "interface_name",
            name="uq_conductor_hardware_interfaces",
        ),
        references=[("conductor_id", "conductors.id", "CASCADE")],
    )
    create_table(
        "nodes",
        identity(),
        uuid(),
        text("name"),
        text("driver", nullable=False),
        long_text("driver_info", nullable=False),
        long_text("driver_internal_info", nullable=False),
        long_text("properties", nullable=False),
        long_text("instance_info", nullable=False),
        text("instance_uuid", 36),
        text("instance_name"),
        long_text("extra", nullable=False),
        text("chassis_uuid", 36),
        text("allocation_uuid", 36),
        text("parent_node", 36),
        text("resource_class", 80),
        text("conductor_group", nullable=False),
        text("conductor_affinity"),
        flag("automated_clean"),
        flag("protected", nullable=False),
        long_text("protected_reason"),
        flag("retired", nullable=False),
        long_text("retired_reason"),
        text("owner"),
        text("lessee"),
        long_text("description"),
        long_text("network_data", nullable=False),
        text("shard"),
        flag("disable_power_off", nullable=False),
        flag("maintenance", nullable=False),
        long_text("maintenance_reason"),
        text("fault"),
        flag("console_enabled", nullable=False),
        text("bios_interface"),
        text("boot_interface"),
        text("console_interface"),
        text("deploy_interface"),
        text("firmware_interface"),
        text("inspect_interface"),
        text("management_interface"),
        text("network_interface"),
        text("power_interface"),
        text("raid_interface"),
        text("rescue_interface"),
        text("storage_interface"),
        text("vendor_interface"),
        text("power_state", 15),
        text("target_power_state", 15),
        text("provision_state", 15),
        text("target_provision_state", 15),
        time("provision_updated_at"),
        time("inspection_started_at"),
        time("inspection_finished_at"),
        long_text("last_error"),
        long_text("clean_step", nullable=False),
        long_text("deploy_step", nullable=False),
        long_text("service_step", nullable=False),
        long_text("raid_config", nullable=False),
        long_text("target_raid_config", nullable=False),
        text("boot_mode", 15),
        flag("secure_boot"),
        text("health", 15),
        text("reservation"),
        text("reserved_for"),
        time("reserved_at"),
        sa.Column("lock_generation", sa.BigInteger(), server_default="0", nullable=False),
        *stamps(),
        time("maintenance_at"),
        unique=["instance_uuid", "name", "uuid"],
        references=[
            ("allocation_uuid", "allocations.uuid", "SET NULL"),
            ("chassis_uuid", "chassis.uuid", None),
        ],
        indexes=[
            "chassis_uuid",
            "conductor_group",
            "driver",
            "instance_name",
            "lessee",
            "owner",
            "parent_node",
            "provision_state",
            "reservation",
            "resource_class",
            "shard",
            "allocation_uuid",
        ],
    )
    op.create_index(
        "ix_nodes_allocatable",
        "nodes",
        ["resource_class", "provision_state", "instance_uuid", "uuid"],
    )
    create_table(
        "bios_settings",
        identity(),
        text("node_uuid", 36, nullable=False),
        text("name", nullable=False),
        long_text("value"),
        text("attribute_type"),
        long_text("allowable_values", nullable=False),
        sa.Column("lower_bound", sa.Integer()),
        sa.Column("upper_bound", sa.Integer()),
        sa.Column("min_length", sa.Integer()),
        sa.Column("max_length", sa.Integer()),
        flag("read_only"),
        flag("reset_required"),
        flag("unique"),
        *stamps(),
        unique=["node_uuid name"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
        indexes=["node_uuid"],
    )
    create_table(
        "firmware_information",
        identity(),
        text("node_uuid", 36, nullable=False),
        text("component", nullable=False),
        text("initial_version"),
        text("current_version"),
        text("last_version_flashed"),
        text("vendor"),
        text("model"),
        text("serial_number"),
        *stamps(),
        unique=["node_uuid component"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
        indexes=["node_uuid"],
    )
    create_table(
        "node_history",
        identity(),
        uuid(),
        text("node_uuid", 36, nullable=False),
        text("conductor"),
        text("severity", 10, nullable=False),
        long_text("event", nullable=False),
        text("event_type"),
        text("user"),
        text("project"),
        text("state", 15),
        text("target_provision_state", 15),
        sa.Column("duration_seconds", Seconds),
        text("request_id", 64),
        *stamps(),
        unique=["uuid"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
        indexes=["node_uuid"],
    )
    create_table(
        "node_inventory",
        identity(),
        text("node_uuid", 36, nullable=False),
        long_text("inventory_data", nullable=False),
        long_text("plugin_data", nullable=False),
        *stamps(),
        unique=["node_uuid"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
    )
    create_table(
        "node_traits",
        text("node_uuid", 36, nullable=False),
        text("trait", nullable=False),
        primary_key="node_uuid trait",
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
    )
    create_table(
        "portgroups",
        identity(),
        uuid(),
        text("name"),
        text("node_uuid", 36, nullable=False),
        text("address", 18),
        long_text("extra", nullable=False),
        long_text("internal_info", nullable=False),
        flag("standalone_ports_supported", nullable=False),
        text("mode", nullable=False),
        long_text("properties", nullable=False),
        text("physical_network", 64),
        text("category", 80),
        flag("dynamic_portgroup", nullable=False),
        *stamps(),
        unique=["address", "name", "uuid"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
        indexes=["node_uuid"],
    )
    create_table(
        "step_runs",
        identity(),
        text("node_uuid", 36, nullable=False),
        text("flow", 36, nullable=False),
        text("phase", 16, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        text("interface", 16, nullable=False),
        text("step", nullable=False),
        long_text("args", nullable=False),
        long_text("facts", nullable=False),
        text("state", 16, nullable=False),
        text("conductor"),
        sa.Column("lock_generation", sa.BigInteger(), nullable=False),
        text("request_id", 64),
        long_text("reason"),
        long_text("error"),
        text("resume_then", 8),
        sa.Column("recovery_weight", sa.Integer(), nullable=False),
        time("due_at"),
        time("deadline_at"),
        time("started_at"),
        time("finished_at"),
        *stamps(),
        unique=["flow position"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
        indexes=["node_uuid", "state"],
    )
    op.create_index("ix_step_runs_kind", "step_runs", ["phase", "interface", "step", "id"])
    create_table(
        "volume_connectors",
        identity(),
        uuid(),
        text("node_uuid", 36, nullable=False),
        text("type", 32, nullable=False),
        text("connector_id", nullable=False),
        long_text("extra", nullable=False),
        *stamps(),
        unique=["type connector_id", "uuid"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
        indexes=["node_uuid"],
    )
    create_table(
        "volume_targets",
        identity(),
        uuid(),
        text("node_uuid", 36, nullable=False),
        text("volume_type", 64, nullable=False),
        text("volume_id", 36, nullable=False),
        sa.Column("boot_index", sa.Integer(), nullable=False),
        long_text("properties", nullable=False),
        long_text("extra", nullable=False),
        *stamps(),
        unique=["node_uuid boot_index", "uuid"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
        indexes=["node_uuid"],
    )
    create_table(
        "ports",
        identity(),
        uuid(),
        text("address", 18, nullable=False),
        text("node_uuid", 36, nullable=False),
        long_text("extra", nullable=False),
        long_text("internal_info", nullable=False),
        flag("pxe_enabled", nullable=False),
        long_text("local_link_connection", nullable=False),
        text("portgroup_uuid", 36),
        text("physical_network", 64),
        flag("is_smartnic", nullable=False),
        text("name"),
        text("description"),
        text("vendor", 32),
        text("category", 80),
        flag("available_for_dynamic_portgroup", nullable=False),
        *stamps(),
        unique=["address", "name", "uuid"],
        references=[
            ("node_uuid", "nodes.uuid", "CASCADE"),
            ("portgroup_uuid", "portgroups.uuid", None),
        ],
        indexes=["node_uuid", "portgroup_uuid"],
    )
    create_table(
        "erasures",
        identity(),
        uuid(),
        text("node_uuid", 36, nullable=False),
        long_text("proof", nullable=False),
        *stamps(),
        unique=["uuid"],
        references=[("node_uuid", "nodes.uuid", "CASCADE")],
        indexes=["node_uuid"],
    )


def create_stacks() -> None:
    create_table(
        "template_files",
        identity(),
        text("digest", 64, nullable=False),
        long_text("files", nullable=False),
        *stamps(),
        unique=["digest"],
    )
    create_table(
        "raw_templates",
        identity(),
        uuid(),
        long_text("template", nullable=False),
        long_text("environment", nullable=False),
        text("files_digest", 64),
        flag("sealed", nullable=False),
        *stamps(),
        unique=["uuid"],
        indexes=["files_digest"],
    )
    create_table(
        "credentials",
        identity(),
        uuid(),
        text("user"),
        text("project"),
        long_text("roles", nullable=False),
        long_text("trust"),
        text("auth_method", 32, nullable=False),
        *stamps(),
        unique=["uuid"],
    )
    create_table(
        "stacks",
        identity(),
        uuid(),
        text("name", nullable=False),
        text("project", nullable=False),
        text("live_name", 512),
        text("user"),
        text("root_uuid", 36, nullable=False),
        text("owner_uuid", 36),
        text("owner_resource"),
        sa.Column("depth", sa.Integer(), nullable=False),
        text("template_uuid", 36, nullable=False),
        text("previous_template_uuid", 36),
        text("credentials_uuid", 36),
        text("action", 16, nullable=False),
        text("status", 16, nullable=False),
        long_text("reason", nullable=False),
        flag("disable_rollback", nullable=False),
        sa.Column("timeout_mins", sa.Integer()),
        time("deadline_at"),
        sa.Column("traversal", sa.BigInteger(), nullable=False),
        long_text("graph"),
        flag("open", nullable=False),
        time("deleted_at"),
        *stamps(),
        unique=["live_name", "uuid"],
        indexes=["owner_uuid", "project deleted_at created_at", "root_uuid"],
    )
    create_table(
        "stack_tags",
        text("stack_uuid", 36, nullable=False),
        text("tag", 80, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        primary_key="stack_uuid tag",
        references=[("stack_uuid", "stacks.uuid", "CASCADE")],
        indexes=["tag"],
    )
    create_table(
        "engines",
        identity(),
        text("engine_id", 36, nullable=False),
        text("host", nullable=False),
        text("hostname", nullable=False),
        text("binary", 64, nullable=False),
        text("topic", 64, nullable=False),
        sa.Column("report_interval", sa.Integer(), nullable=False),
        sa.Column("heartbeat", sa.BigInteger(), server_default="0", nullable=False),
        time("deleted_at"),
        *stamps(),
        unique=["engine_id"],
    )
    create_table(
        "stack_locks",
        text("root_uuid", 36, nullable=False),
        text("engine_id", 36),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("transactions", sa.BigInteger(), nullable=False),
        time("updated_at"),
        primary_key="root_uuid",
        indexes=["engine_id"],
    )
    create_table(
        "stack_orders",
        identity(),
        text("root_uuid", 36, nullable=False),
        text("stack_uuid", 36, nullable=False),
        text("kind", 32, nullable=False),
        long_text("payload", nullable=False),
        long_text("request", nullable=False),
        *stamps(),
        indexes=["root_uuid"],
        sqlite_autoincrement=True,
    )
    create_table(
        "properties_data",
        identity(),
        uuid(),
        text("root_uuid", 36, nullable=False),
        long_text("data", nullable=False),
        flag("sealed", nullable=False),
        *stamps(),
        unique=["uuid"],
        indexes=["root_uuid"],
    )
    create_table(
        "resources",
        identity(),
        uuid(),
        text("stack_uuid", 36, nullable=False),
        text("root_uuid", 36, nullable=False),
        text("name", nullable=False),
        text("type", nullable=False),
        text("action", 16, nullable=False),
        text("status", 16, nullable=False),
        long_text("reason", nullable=False),
        text("state_before", 32),
        text("physical_id"),
        flag("is_current", nullable=False),
        text("replaces_uuid", 36),
        sa.Column("traversal", sa.BigInteger(), nullable=False),
        text("template_uuid", 36, nullable=False),
        text("properties_uuid", 36),
        text("previous_properties_uuid", 36),
        long_text("policy", nullable=False),
        long_text("metadata", nullable=False),
        sa.Column("metadata_version", sa.BigInteger(), nullable=False),
        long_text("requires", nullable=False),
        long_text("pending_action"),
        sa.Column("attempt", sa.Integer(), nullable=False),
        time("due_at"),
        long_text("waits_for"),
        flag("sealed", nullable=False),
        *stamps(),
        unique=["uuid"],
        references=[("stack_uuid", "stacks.uuid", "CASCADE")],
        indexes=["physical_id", "root_uuid", "stack_uuid name"],
    )
    create_table(
        "resource_data",
        text("resource_uuid", 36, nullable=False),
        text("key", nullable=False),
        long_text("value", nullable=False),
        flag("redacted", nullable=False),
        primary_key="resource_uuid key",
        references=[("resource_uuid", "resources.uuid", "CASCADE")],
    )
    create_table(
        "stack_events",
        identity(),
        time("created_at", nullable=False),
        uuid(),
        text("stack_uuid", 36, nullable=False),
        text("root_uuid", 36, nullable=False),
        text("action", 16, nullable=False),
        text("status", 16, nullable=False),
        text("name", nullable=False),
        text("type", nullable=False),
        text("physical_id"),
        text("reason", nullable=False),
        text("properties_uuid", 36),
        unique=["uuid"],
        references=[("stack_uuid", "stacks.uuid", "CASCADE")],
        indexes=["root_uuid id", "stack_uuid id"],
    )
    create_table(
        "snapshots",
        identity(),
        uuid(),
        text("stack_uuid", 36, nullable=False),
        text("name"),
        text("project", nullable=False),
        text("action", 16, nullable=False),
        text("status", 16, nullable=False),
        long_text("reason", nullable=False),
        long_text("definition"),
        long_text("data"),
        *stamps(),
        unique=["uuid"],
        references=[("stack_uuid", "stacks.uuid", "CASCADE")],
        indexes=["stack_uuid"],
    )
    create_table(
        "software_configs",
        identity(),
        uuid(),
        text("project", nullable=False),
        text("name"),
        text("group"),
        long_text("config", nullable=False),
        *stamps(),
        unique=["uuid"],
        indexes=["project"],
    )
    create_table(
        "software_deployments",
        identity(),
        uuid(),
        text("project", nullable=False),
        text("stack_user_project"),
        text("server_id"),
        text("config_uuid", 36, nullable=False),
        long_text("input_values", nullable=False),
        long_text("output_values", nullable=False),
        text("action", 16),
        text("status", 16),
        long_text("status_reason"),
        *stamps(),
        unique=["uuid"],
        references=[("config_uuid", "software_configs.uuid", None)],
        indexes=["project", "server_id"],
    )
    create_table(
        "stack_drift",
        text("resource_uuid", 36, nullable=False),
        long_text("differences", nullable=False),
        time("since", nullable=False),
        primary_key="resource_uuid",
        references=[("resource_uuid", "resources.uuid", "CASCADE")],
    )


def create_events() -> None:
    create_table(
        "events",
        identity(),
        time("created_at", nullable=False),
        text("object", 32, nullable=False),
        text("object_uuid", 36, nullable=False),
        text("action", 32, nullable=False),
        text("status", 16, nullable=False),
        text("level", 16, nullable=False),
        text("publisher"),
        text("request_id", 64),
        long_text("facts", nullable=False),
        long_text("snapshot"),
        sa.Column("number", sa.BigInteger()),
        text("owner"),
        text("lessee"),
        indexes=["number id", "object_uuid"],
        sqlite_autoincrement=True,
    )
    numbering = create_table(
        "event_numbering",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_number", sa.BigInteger(), nullable=False),
    )
    op.bulk_insert(numbering, [{"id": 1, "last_number": 0}])
    create_table(
        "event_cursors",
        text("sink", 64, nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        text("holder"),
        sa.Column("generation", sa.BigInteger(), server_default="0", nullable=False),
        time("updated_at"),
        flag("wants_snapshots", server_default=sa.false(), nullable=False),
        primary_key="sink",
    )
    create_table(
        "webhooks",
        identity(),
        uuid(),
        text("url", 2048, nullable=False),
        long_text("secret", nullable=False),
        text("type", 128),
        text("object_uuid", 36),
        text("description"),
        text("state", 16, nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        long_text("last_error"),
        time("last_delivered_at"),
        *stamps(),
        unique=["uuid"],
    )


def create_site() -> None:
    create_table(
        "commit_tokens",
        text("token", 32, nullable=False),
        flag("is_void", nullable=False),
        primary_key="token",
    )
    home = create_table(
        "home",
        text("name", 64, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        primary_key="name",
    )
    # Releases before revision 0011 have other names of columns, and refuse this schema.
    op.bulk_insert(home, [{"name": "contracted_at", "value": "0011"}])
