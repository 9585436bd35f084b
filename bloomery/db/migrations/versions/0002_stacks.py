"""Stacks: what tenants asked for, how far it is, and what happened on the way.

Revision 0002, after 0001.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0002"
down_revision = "0001"
kind = "expand"

UtcTime = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MySql: dict[str, Any] = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB"}


def upgrade() -> None:
    create_template_files()
    create_raw_templates()
    create_credentials()
    create_stacks()
    create_stack_tags()
    create_engines()
    create_stack_locks()
    create_stack_orders()
    create_properties_data()
    create_resources()
    create_resource_data()
    create_stack_events()
    create_snapshots()
    create_software_configs()
    create_software_deployments()


def create_template_files() -> None:
    op.create_table(
        "template_files",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("files", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_template_files")),
        sa.UniqueConstraint("digest", name=op.f("uq_template_files_digest")),
        **MySql,
    )


def create_raw_templates() -> None:
    op.create_table(
        "raw_templates",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("template", LongText, nullable=False),
        sa.Column("environment", LongText, nullable=False),
        sa.Column("files_digest", sa.String(length=64), nullable=True),
        sa.Column("sealed", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_raw_templates")),
        sa.UniqueConstraint("uuid", name=op.f("uq_raw_templates_uuid")),
        **MySql,
    )
    op.create_index(
        op.f("ix_raw_templates_files_digest"), "raw_templates", ["files_digest"], unique=False
    )


def create_credentials() -> None:
    op.create_table(
        "credentials",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("user", sa.String(length=255), nullable=True),
        sa.Column("project", sa.String(length=255), nullable=True),
        sa.Column("roles", LongText, nullable=False),
        sa.Column("trust", LongText, nullable=True),
        sa.Column("auth_method", sa.String(length=32), nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
        sa.UniqueConstraint("uuid", name=op.f("uq_credentials_uuid")),
        **MySql,
    )


def create_stacks() -> None:
    op.create_table(
        "stacks",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("project", sa.String(length=255), nullable=False),
        sa.Column("live_name", sa.String(length=512), nullable=True),
        sa.Column("user", sa.String(length=255), nullable=True),
        sa.Column("root_uuid", sa.String(length=36), nullable=False),
        sa.Column("owner_uuid", sa.String(length=36), nullable=True),
        sa.Column("owner_resource", sa.String(length=255), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("template_uuid", sa.String(length=36), nullable=False),
        sa.Column("previous_template_uuid", sa.String(length=36), nullable=True),
        sa.Column("credentials_uuid", sa.String(length=36), nullable=True),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", LongText, nullable=False),
        sa.Column("disable_rollback", sa.Boolean(), nullable=False),
        sa.Column("timeout_mins", sa.Integer(), nullable=True),
        sa.Column("deadline_at", UtcTime, nullable=True),
        sa.Column("traversal", sa.BigInteger(), nullable=False),
        sa.Column("graph", LongText, nullable=True),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("deleted_at", UtcTime, nullable=True),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stacks")),
        sa.UniqueConstraint("live_name", name=op.f("uq_stacks_live_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_stacks_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_stacks_owner_uuid"), "stacks", ["owner_uuid"], unique=False)
    op.create_index(
        "ix_stacks_project_deleted_at_created_at",
        "stacks",
        ["project", "deleted_at", "created_at"],
        unique=False,
    )
    op.create_index(op.f("ix_stacks_root_uuid"), "stacks", ["root_uuid"], unique=False)


def create_stack_tags() -> None:
    op.create_table(
        "stack_tags",
        sa.Column("stack_uuid", sa.String(length=36), nullable=False),
        sa.Column("tag", sa.String(length=80), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stack_uuid"],
            ["stacks.uuid"],
            name=op.f("fk_stack_tags_stack_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("stack_uuid", "tag", name=op.f("pk_stack_tags")),
        **MySql,
    )
    op.create_index(op.f("ix_stack_tags_tag"), "stack_tags", ["tag"], unique=False)


def create_engines() -> None:
    op.create_table(
        "engines",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("engine_id", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("hostname", sa.String(length=255), nullable=False),
        sa.Column("binary", sa.String(length=64), nullable=False),
        sa.Column("topic", sa.String(length=64), nullable=False),
        sa.Column("report_interval", sa.Integer(), nullable=False),
        sa.Column("heartbeat", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("deleted_at", UtcTime, nullable=True),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_engines")),
        sa.UniqueConstraint("engine_id", name=op.f("uq_engines_engine_id")),
        **MySql,
    )


def create_stack_locks() -> None:
    op.create_table(
        "stack_locks",
        sa.Column("root_uuid", sa.String(length=36), nullable=False),
        sa.Column("engine_id", sa.String(length=36), nullable=True),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("root_uuid", name=op.f("pk_stack_locks")),
        **MySql,
    )
    op.create_index(op.f("ix_stack_locks_engine_id"), "stack_locks", ["engine_id"], unique=False)


def create_stack_orders() -> None:
    op.create_table(
        "stack_orders",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("root_uuid", sa.String(length=36), nullable=False),
        sa.Column("stack_uuid", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("payload", LongText, nullable=False),
        sa.Column("request", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stack_orders")),
        **MySql,
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_stack_orders_root_uuid"), "stack_orders", ["root_uuid"], unique=False)


def create_properties_data() -> None:
    op.create_table(
        "properties_data",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("root_uuid", sa.String(length=36), nullable=False),
        sa.Column("data", LongText, nullable=False),
        sa.Column("sealed", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_properties_data")),
        sa.UniqueConstraint("uuid", name=op.f("uq_properties_data_uuid")),
        **MySql,
    )
    op.create_index(
        op.f("ix_properties_data_root_uuid"), "properties_data", ["root_uuid"], unique=False
    )


def create_resources() -> None:
    op.create_table(
        "resources",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("stack_uuid", sa.String(length=36), nullable=False),
        sa.Column("root_uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("type", sa.String(length=255), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", LongText, nullable=False),
        sa.Column("state_before", sa.String(length=32), nullable=True),
        sa.Column("physical_id", sa.String(length=255), nullable=True),
        sa.Column("stands", sa.Boolean(), nullable=False),
        sa.Column("replaces", sa.String(length=36), nullable=True),
        sa.Column("traversal", sa.BigInteger(), nullable=False),
        sa.Column("template_uuid", sa.String(length=36), nullable=False),
        sa.Column("properties_uuid", sa.String(length=36), nullable=True),
        sa.Column("previous_properties_uuid", sa.String(length=36), nullable=True),
        sa.Column("policy", LongText, nullable=False),
        sa.Column("metadata", LongText, nullable=False),
        sa.Column("metadata_version", sa.BigInteger(), nullable=False),
        sa.Column("requires", LongText, nullable=False),
        sa.Column("act", LongText, nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("due_at", UtcTime, nullable=True),
        sa.Column("waits_for", LongText, nullable=True),
        sa.Column("sealed", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["stack_uuid"],
            ["stacks.uuid"],
            name=op.f("fk_resources_stack_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resources")),
        sa.UniqueConstraint("uuid", name=op.f("uq_resources_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_resources_physical_id"), "resources", ["physical_id"], unique=False)
    op.create_index(op.f("ix_resources_root_uuid"), "resources", ["root_uuid"], unique=False)
    op.create_index(
        "ix_resources_stack_uuid_name", "resources", ["stack_uuid", "name"], unique=False
    )


def create_resource_data() -> None:
    op.create_table(
        "resource_data",
        sa.Column("resource_uuid", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("value", LongText, nullable=False),
        sa.Column("redacted", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_uuid"],
            ["resources.uuid"],
            name=op.f("fk_resource_data_resource_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("resource_uuid", "key", name=op.f("pk_resource_data")),
        **MySql,
    )


def create_stack_events() -> None:
    op.create_table(
        "stack_events",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("stack_uuid", sa.String(length=36), nullable=False),
        sa.Column("root_uuid", sa.String(length=36), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("type", sa.String(length=255), nullable=False),
        sa.Column("physical_id", sa.String(length=255), nullable=True),
        sa.Column("reason", sa.String(length=255), nullable=False),
        sa.Column("properties_uuid", sa.String(length=36), nullable=True),
        sa.ForeignKeyConstraint(
            ["stack_uuid"],
            ["stacks.uuid"],
            name=op.f("fk_stack_events_stack_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stack_events")),
        sa.UniqueConstraint("uuid", name=op.f("uq_stack_events_uuid")),
        **MySql,
    )
    op.create_index(
        "ix_stack_events_root_uuid_id", "stack_events", ["root_uuid", "id"], unique=False
    )
    op.create_index(
        "ix_stack_events_stack_uuid_id", "stack_events", ["stack_uuid", "id"], unique=False
    )


def create_snapshots() -> None:
    op.create_table(
        "snapshots",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("stack_uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=True),
        sa.Column("project", sa.String(length=255), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", LongText, nullable=False),
        sa.Column("definition", LongText, nullable=True),
        sa.Column("data", LongText, nullable=True),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["stack_uuid"],
            ["stacks.uuid"],
            name=op.f("fk_snapshots_stack_uuid"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshots")),
        sa.UniqueConstraint("uuid", name=op.f("uq_snapshots_uuid")),
        **MySql,
    )
    op.create_index(op.f("ix_snapshots_stack_uuid"), "snapshots", ["stack_uuid"], unique=False)


def create_software_configs() -> None:
    op.create_table(
        "software_configs",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("project", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=True),
        sa.Column("group", sa.String(length=255), nullable=True),
        sa.Column("config", LongText, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_software_configs")),
        sa.UniqueConstraint("uuid", name=op.f("uq_software_configs_uuid")),
        **MySql,
    )
    op.create_index(
        op.f("ix_software_configs_project"), "software_configs", ["project"], unique=False
    )


def create_software_deployments() -> None:
    op.create_table(
        "software_deployments",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("project", sa.String(length=255), nullable=False),
        sa.Column("stack_user_project", sa.String(length=255), nullable=True),
        sa.Column("server_id", sa.String(length=255), nullable=True),
        sa.Column("config_uuid", sa.String(length=36), nullable=False),
        sa.Column("input_values", LongText, nullable=False),
        sa.Column("output_values", LongText, nullable=False),
        sa.Column("action", sa.String(length=16), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=True),
        sa.Column("status_reason", LongText, nullable=True),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime, nullable=True),
        sa.ForeignKeyConstraint(
            ["config_uuid"],
            ["software_configs.uuid"],
            name=op.f("fk_software_deployments_config_uuid"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_software_deployments")),
        sa.UniqueConstraint("uuid", name=op.f("uq_software_deployments_uuid")),
        **MySql,
    )
    op.create_index(
        op.f("ix_software_deployments_project"), "software_deployments", ["project"], unique=False
    )
    op.create_index(
        op.f("ix_software_deployments_server_id"),
        "software_deployments",
        ["server_id"],
        unique=False,
    )
