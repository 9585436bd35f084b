"""Every table, in SQLAlchemy Core.  Migrations create them; nothing else may.

Rows of different nouns refer to each other by UUID, as the API does, so that a list needs no
join.  Objects are JSON text, encoded before the transaction begins and handed to clients
without being decoded where nothing in them is secret.  Times are UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bloomery.db.rows import LongText, UtcTime
from bloomery.model.stacks import REVISION_COUNTS

METADATA = sa.MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    },
)


BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _table(name: str, *items: sa.Column[Any] | sa.schema.SchemaItem, **more: Any) -> sa.Table:
    stamps = (
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("updated_at", UtcTime),
    )
    return sa.Table(
        name,
        METADATA,
        sa.Column("id", BigId, primary_key=True, autoincrement=True),
        *items,
        *stamps,
        **more,
    )


def _text(name: str, length: int = 255, **more: Any) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), **more)


def _uuid(**more: Any) -> sa.Column[str]:
    return sa.Column("uuid", sa.String(36), nullable=False, unique=True, **more)


def _json(name: str) -> sa.Column[str]:
    return sa.Column(name, LongText, nullable=False)


def _flag(name: str, **more: Any) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(create_constraint=False), **{"nullable": False} | more)


def _time(name: str) -> sa.Column[datetime]:
    return sa.Column(name, UtcTime)


def _of_node(**more: Any) -> sa.Column[str]:
    """Rows that go when their node goes."""
    return sa.Column(
        "node_uuid",
        sa.String(36),
        sa.ForeignKey("nodes.uuid", ondelete="CASCADE"),
        **{"nullable": False, "index": True} | more,
    )


def _where_set(name: str) -> dict[str, Any]:
    """Return the option of an index without the rows that are null there.

    Those of nodes do so on PostgreSQL, too, whose dialect is imported only if it is used.  MariaDB
    indexes every row.
    """
    return {"sqlite_where": sa.column(name).is_not(None)}


CHASSIS = _table("chassis", _uuid(), _text("description"), _json("extra"))

ALLOCATIONS = _table(
    "allocations",
    _uuid(),
    _text("name", unique=True),
    _text("node_uuid", 36, index=True),
    _text("resource_class", 80),
    _text("state", 15, nullable=False, index=True),
    sa.Column("last_error", LongText),
    _json("candidate_nodes"),
    _json("traits"),
    _json("extra"),
    _text("owner", index=True),
    _text("conductor_affinity"),
)

NODES = _table(
    "nodes",
    _uuid(),
    _text("name", unique=True),
    _text("driver", nullable=False),  # ix_nodes_bmc_host begins with it: revision 0017
    _json("driver_info"),
    _json("driver_internal_info"),
    _json("properties"),
    _json("instance_info"),
    _text("instance_uuid", 36),
    _text("instance_name"),
    _json("extra"),
    sa.Column("chassis_uuid", sa.String(36), sa.ForeignKey("chassis.uuid")),
    sa.Column(
        "allocation_uuid", sa.String(36), sa.ForeignKey("allocations.uuid", ondelete="SET NULL")
    ),
    _text("parent_node", 36),
    _text("resource_class", 80),
    _text("conductor_group", nullable=False, index=True),
    _text("conductor_affinity"),
    _flag("automated_clean", nullable=True),
    _flag("protected"),
    sa.Column("protected_reason", LongText),
    _flag("retired"),
    sa.Column("retired_reason", LongText),
    _text("owner"),
    _text("lessee"),
    sa.Column("description", LongText),
    _json("network_data"),
    _text("shard"),
    _flag("disable_power_off"),
    _flag("maintenance"),
    sa.Column("maintenance_reason", LongText),
    _text("fault"),
    _flag("console_enabled"),
    _text("bios_interface"),
    _text("boot_interface"),
    _text("console_interface"),
    _text("deploy_interface"),
    _text("firmware_interface"),
    _text("inspect_interface"),
    _text("management_interface"),
    _text("network_interface"),
    _text("power_interface"),
    _text("raid_interface"),
    _text("rescue_interface"),
    _text("storage_interface"),
    _text("vendor_interface"),
    _text("power_state", 15),
    _text("target_power_state", 15),
    _text("provision_state", 15),
    _text("target_provision_state", 15),
    _time("provision_updated_at"),
    _time("inspection_started_at"),
    _time("inspection_finished_at"),
    sa.Column("last_error", LongText),
    _json("clean_step"),
    _json("deploy_step"),
    _json("service_step"),
    _json("raid_config"),
    _json("target_raid_config"),
    _text("boot_mode", 15),
    _flag("secure_boot", nullable=True),
    _text("health", 15),
    _text("reservation"),
    _text("reserved_for"),
    _time("reserved_at"),
    _time("maintenance_at"),
    sa.Column("lock_generation", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index("ix_nodes_provision_state", "provision_state", "provision_updated_at"),
    sa.Index(
        "ix_nodes_allocatable", "resource_class", "provision_state", "instance_uuid", "uuid"
    ),  # a free node of a class is found from a random UUID on, without a look at the others
    sa.Index("uq_nodes_instance_uuid", "instance_uuid", unique=True, **_where_set("instance_uuid")),
    *(
        sa.Index(f"ix_nodes_{name}", name, **_where_set(name))
        for name in (
            "instance_name", "chassis_uuid", "allocation_uuid", "parent_node", "owner", "lessee",
            "shard", "reservation",
        )
    ),
)  # fmt: skip

NODE_COUNTS = sa.Table(  # written by triggers of nodes: see ``node_counts``
    "node_counts",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    _text("provision_state", 15),
    _text("power_state", 15),
    _text("fault"),
    _flag("maintenance"),
    _flag("has_error"),
    _text("resource_class", 80),
    _text("owner"),
    _text("lessee"),
    _text("driver", nullable=False),
    _text("conductor_group", nullable=False),
    sa.Column("nodes", sa.BigInteger, nullable=False),
    sa.Column("arrivals", sa.BigInteger, nullable=False),
)


def _triggers() -> Iterator[str]:
    """Yield SQLite's triggers, for simulations, whose tables no migration creates."""
    kind = "driver", "conductor_group"
    copied = (
        "provision_state", "power_state", "fault", "maintenance", "resource_class", "owner",
        "lessee", *kind,
    )  # fmt: skip
    columns = ", ".join((*copied, "has_error", "nodes", "arrivals"))
    old, new = (
        ", ".join(
            (*(f"{row}.{name}" for name in copied), f"(COALESCE({row}.last_error, '') <> '')")
        )
        for row in ("OLD", "NEW")
    )
    is_of_kind = " AND ".join(f"OLD.{name} = NEW.{name}" for name in kind)
    insert = f"INSERT INTO node_counts ({columns}) VALUES"
    leaves = f"{insert} ({old}, -1, 0)"
    moves = f"{insert} ({new}, 1, CASE WHEN {is_of_kind} THEN 0 ELSE 1 END)"
    trigger = "CREATE TRIGGER count"
    yield f"{trigger}_new_node AFTER INSERT ON nodes BEGIN {insert} ({new}, 1, 1); END"
    yield f"{trigger}_gone_node AFTER DELETE ON nodes BEGIN {leaves}; END"
    yield (
        f"{trigger}_changed_node AFTER UPDATE OF {', '.join((*copied, 'last_error'))} ON nodes "
        f"WHEN ({old}) IS NOT ({new}) BEGIN {leaves}; {moves}; END"
    )


for _statement in _triggers():
    _trigger = sa.DDL(_statement)  # type: ignore[no-untyped-call]
    sa.event.listen(METADATA, "after_create", _trigger.execute_if(dialect="sqlite"))


def _bmc_host() -> str:
    """Return the column of nodes by which SQLite finds their BMC, as revision 0017 adds it."""
    key = (
        "(CASE WHEN driver = 'ipmi' THEN 'ipmi_address' "
        "WHEN driver IN ('redfish', 'idrac') THEN 'redfish_address' END)"
    )
    info = "(CASE WHEN driver IN ('ipmi', 'redfish', 'idrac') THEN driver_info END)"
    address = f"trim(lower(json_extract({info}, '$.' || {key})))"
    rest = f"replace(replace({address}, 'https://', ''), 'http://', '')"
    until = "substr({0}, 1, instr({0} || '{1}', '{1}') - 1)"
    host = until.format(f"replace({rest}, '/', ':')", ":")
    in_brackets = until.format(f"replace({rest}, '[', '')", "]")
    return (
        "bmc_host VARCHAR(255) GENERATED ALWAYS AS (substr(coalesce("
        f"CASE WHEN driver = 'ipmi' THEN {address} "
        f"WHEN {rest} LIKE '[%' THEN {in_brackets} ELSE {host} END, "
        "''), 1, 255)) VIRTUAL"
    )


for _statement in (
    f"ALTER TABLE nodes ADD COLUMN {_bmc_host()}".replace("%", "%%"),
    "CREATE INDEX ix_nodes_bmc_host ON nodes (driver, bmc_host)",
):
    _column = sa.DDL(_statement)  # type: ignore[no-untyped-call]
    sa.event.listen(METADATA, "after_create", _column.execute_if(dialect="sqlite"))

NODE_TRAITS = sa.Table(
    "node_traits",
    METADATA,
    sa.Column(
        "node_uuid",
        sa.String(36),
        sa.ForeignKey("nodes.uuid", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("trait", sa.String(255), primary_key=True),
)

PORTGROUPS = _table(
    "portgroups",
    _uuid(),
    _text("name", unique=True),
    _of_node(),
    _text("address", 18, unique=True),
    _json("extra"),
    _json("internal_info"),
    _flag("standalone_ports_supported"),
    _text("mode", nullable=False),
    _json("properties"),
    _text("physical_network", 64),
    _text("category", 80),
    _flag("dynamic_portgroup"),
)

PORTS = _table(
    "ports",
    _uuid(),
    _text("address", 18, nullable=False, unique=True),
    _of_node(),
    _json("extra"),
    _json("internal_info"),
    _flag("pxe_enabled"),
    _json("local_link_connection"),
    sa.Column("portgroup_uuid", sa.String(36), sa.ForeignKey("portgroups.uuid"), index=True),
    _text("physical_network", 64),
    _flag("is_smartnic"),
    _text("name", unique=True),
    _text("description"),
    _text("vendor", 32),
    _text("category", 80),
    _flag("available_for_dynamic_portgroup"),
)

VOLUME_CONNECTORS = _table(
    "volume_connectors",
    _uuid(),
    _of_node(),
    _text("type", 32, nullable=False),
    _text("connector_id", nullable=False),
    _json("extra"),
    sa.UniqueConstraint("type", "connector_id"),
)

VOLUME_TARGETS = _table(
    "volume_targets",
    _uuid(),
    _of_node(),
    _text("volume_type", 64, nullable=False),
    _text("volume_id", 36, nullable=False),
    sa.Column("boot_index", sa.Integer, nullable=False),
    _json("properties"),
    _json("extra"),
    sa.UniqueConstraint("node_uuid", "boot_index"),
)

CONDUCTORS = _table(
    "conductors",
    _text("hostname", nullable=False, unique=True),
    _text("conductor_group", nullable=False),
    _json("drivers"),
    _flag("online"),
    sa.Column("heartbeat", sa.BigInteger, nullable=False, server_default="0"),
    _text("incarnation", 36),
    _text("process"),
    _time("started_at"),
    _time("fenced_out_at"),
    _time("drain_ordered_at"),
)

CONDUCTOR_INTERFACES = _table(
    "conductor_hardware_interfaces",
    sa.Column(
        "conductor_id",
        BigId,
        sa.ForeignKey("conductors.id", ondelete="CASCADE"),
        nullable=False,
    ),
    _text("hardware_type", 64, nullable=False),
    _text("interface_type", 16, nullable=False),
    _text("interface_name", 64, nullable=False),
    _flag("is_default"),
    sa.UniqueConstraint(
        "conductor_id",
        "hardware_type",
        "interface_type",
        "interface_name",
        name="uq_conductor_hardware_interfaces",  # by rule it would be longer than PostgreSQL takes
    ),
)

BIOS_SETTINGS = _table(
    "bios_settings",
    _of_node(),
    _text("name", nullable=False),
    sa.Column("value", LongText),
    _text("attribute_type"),
    _json("allowable_values"),
    sa.Column("lower_bound", sa.Integer),
    sa.Column("upper_bound", sa.Integer),
    sa.Column("min_length", sa.Integer),
    sa.Column("max_length", sa.Integer),
    _flag("read_only", nullable=True),
    _flag("reset_required", nullable=True),
    _flag("unique", nullable=True),
    sa.UniqueConstraint("node_uuid", "name"),
)

FIRMWARE = _table(
    "firmware_information",
    _of_node(),
    _text("component", nullable=False),
    _text("initial_version"),
    _text("current_version"),
    _text("last_version_flashed"),
    _text("vendor"),
    _text("model"),
    _text("serial_number"),
    sa.UniqueConstraint("node_uuid", "component"),
)

DEPLOY_TEMPLATES = _table(
    "deploy_templates", _uuid(), _text("name", nullable=False, unique=True), _json("steps"),
    _json("extra"),
)  # fmt: skip

RUNBOOKS = _table(
    "runbooks",
    _uuid(),
    _text("name", nullable=False, unique=True),
    _text("description"),
    _json("steps"),
    _json("traits"),
    _flag("disable_ramdisk"),
    _flag("public"),
    _text("owner", index=True),
    _json("extra"),
)

INSPECTION_RULES = _table(
    "inspection_rules",
    _uuid(),
    _text("description"),
    sa.Column("priority", sa.Integer, nullable=False),
    _text("phase", 16),
    _text("scope"),
    _flag("sensitive"),
    _json("conditions"),
    _json("actions"),
)

NODE_INVENTORY = _table(
    "node_inventory", _of_node(unique=True, index=False), _json("inventory_data"),
    _json("plugin_data"),
)  # fmt: skip

ERASURES = _table("erasures", _uuid(), _of_node(), _json("proof"))

NODE_HISTORY = _table(
    "node_history",
    _text("uuid", 36, nullable=False),  # found among the entries of its node
    _of_node(),
    _text("conductor"),
    _text("severity", 10, nullable=False),
    sa.Column("event", LongText, nullable=False),
    _text("event_type"),
    _text("user"),
    _text("project"),
    _text("state", 15),
    _text("target_provision_state", 15),
    sa.Column("duration_seconds", sa.Float().with_variant(sa.Double(), "mysql")),
    _text("request_id", 64),
)

STEP_RUNS = _table(
    "step_runs",
    _of_node(),
    _text("flow", 36, nullable=False),
    _text("phase", 16, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    _text("interface", 16, nullable=False),
    _text("step", nullable=False),
    _json("args"),
    _json("facts"),
    _text("state", 16, nullable=False, index=True),
    _text("conductor"),
    sa.Column("lock_generation", sa.BigInteger, nullable=False),
    _text("request_id", 64),
    sa.Column("reason", LongText),
    sa.Column("error", LongText),
    _text("resume_then", 8),
    sa.Column("recovery_weight", sa.Integer, nullable=False),
    _time("due_at"),
    _time("deadline_at"),
    _time("started_at"),
    _time("finished_at"),
    sa.UniqueConstraint("flow", "position"),
    sa.Index("ix_step_runs_kind", "phase", "interface", "step", "id"),  # newest runs of a step
)

# ------------------------------------------------------------------------------ orchestration


def _of_stack(**more: Any) -> sa.Column[str]:
    """Rows that go when their stack's row is purged."""
    return sa.Column(
        "stack_uuid",
        sa.String(36),
        sa.ForeignKey("stacks.uuid", ondelete="CASCADE"),
        **{"nullable": False, "index": True} | more,
    )


TEMPLATE_FILES = _table("template_files", _text("digest", 64, nullable=False, unique=True),
    _json("files"))  # fmt: skip

RAW_TEMPLATES = _table(
    "raw_templates",
    _uuid(),
    _json("template"),
    _json("environment"),  # merged; its parameters sealed
    _text("files_digest", 64, index=True),
    _flag("sealed"),  # the template: a hidden value of a stack above may have reached it
    sa.Column("text", LongText),  # in which it came, sealed with it; null: it came as a document
)

CREDENTIALS = _table(
    "credentials",
    _uuid(),
    _text("user"),
    _text("project"),
    _json("roles"),
    sa.Column("trust", LongText),  # sealed
    _text("auth_method", 32, nullable=False),
)

STACKS = _table(
    "stacks",
    _uuid(),
    _text("name", nullable=False),
    _text("project", nullable=False),
    _text("live_name", 512, unique=True),  # project/name of a root that lives, else null
    _text("user"),
    _text("root_uuid", 36, nullable=False, index=True),
    _text("owner_uuid", 36, index=True),
    _text("owner_resource"),
    sa.Column("depth", sa.Integer, nullable=False),
    _text("template_uuid", 36, nullable=False),
    _text("previous_template_uuid", 36),
    _text("credentials_uuid", 36),
    _text("action", 16, nullable=False),
    _text("status", 16, nullable=False),
    sa.Column("reason", LongText, nullable=False),
    _flag("disable_rollback"),
    sa.Column("timeout_mins", sa.Integer),
    _time("deadline_at"),
    sa.Column("traversal", sa.BigInteger, nullable=False),
    sa.Column("graph", LongText),  # of the traversal that is walked; null at rest
    _flag("open"),  # actions of the traversal, or of one before, have not ended
    _time("deleted_at"),
)
sa.Index(
    "ix_stacks_project_deleted_at_created_at", STACKS.c.project, STACKS.c.deleted_at,
    STACKS.c.created_at,
)  # fmt: skip

STACK_TAGS = sa.Table(
    "stack_tags",
    METADATA,
    sa.Column(
        "stack_uuid",
        sa.String(36),
        sa.ForeignKey("stacks.uuid", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("tag", sa.String(80), primary_key=True, index=True),
    sa.Column("position", sa.Integer, nullable=False),  # tags are told in the order given
)

ENGINES = _table(
    "engines",
    _text("engine_id", 36, nullable=False, unique=True),
    _text("host", nullable=False),
    _text("hostname", nullable=False),
    _text("binary", 64, nullable=False),
    _text("topic", 64, nullable=False),
    sa.Column("report_interval", sa.Integer, nullable=False),
    sa.Column("heartbeat", sa.BigInteger, nullable=False, server_default="0"),
    _time("deleted_at"),
)

STACK_LOCKS = sa.Table(
    "stack_locks",
    METADATA,
    sa.Column("root_uuid", sa.String(36), primary_key=True),
    sa.Column("engine_id", sa.String(36), index=True),  # null: free
    sa.Column("generation", sa.BigInteger, nullable=False),  # counts the holders
    sa.Column("transactions", sa.BigInteger, nullable=False),  # that the holder has written
    sa.Column("updated_at", UtcTime),
)

STACK_ORDERS = _table(
    "stack_orders",
    _text("root_uuid", 36, nullable=False, index=True),
    _text("stack_uuid", 36, nullable=False),
    _text("kind", 32, nullable=False),
    _json("payload"),  # sealed
    _json("request"),
    sqlite_autoincrement=True,
)

PROPERTIES_DATA = _table(
    "properties_data",
    _uuid(),
    _text("root_uuid", 36, nullable=False, index=True),
    sa.Column("data", LongText, nullable=False),
    _flag("sealed"),
)

RESOURCES = _table(
    "resources",
    _uuid(),
    _of_stack(index=False),
    _text("root_uuid", 36, nullable=False, index=True),
    _text("name", nullable=False),
    _text("type", nullable=False),
    _text("action", 16, nullable=False),
    _text("status", 16, nullable=False),
    sa.Column("reason", LongText, nullable=False),
    _text("state_before", 32),  # ACTION_STATUS before the pending action
    _text("physical_id", index=True),
    _flag("is_current"),  # false: replaced, and still there
    _text("replaces_uuid", 36),
    sa.Column("traversal", sa.BigInteger, nullable=False),  # that has finished it last
    _text("template_uuid", 36, nullable=False),
    _text("properties_uuid", 36),
    _text("previous_properties_uuid", 36),  # before the pending action
    _json("policy"),
    _json("metadata"),
    sa.Column("metadata_version", sa.BigInteger, nullable=False),
    _json("requires"),
    sa.Column("pending_action", LongText),  # action, arguments, token
    sa.Column("attempt", sa.Integer, nullable=False),
    _time("due_at"),
    sa.Column("waits_for", LongText),
    _flag("sealed"),  # metadata and pending action: a hidden value may have reached them
    sa.Index("ix_resources_stack_uuid_name", "stack_uuid", "name"),
)

RESOURCE_DATA = sa.Table(
    "resource_data",
    METADATA,
    sa.Column(
        "resource_uuid",
        sa.String(36),
        sa.ForeignKey("resources.uuid", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("key", sa.String(255), primary_key=True),
    sa.Column("value", LongText, nullable=False),  # JSON; sealed if redacted
    sa.Column("redacted", sa.Boolean(create_constraint=False), nullable=False),
)

STACK_DRIFT = sa.Table(
    "stack_drift",  # what was told of resources whose machines are not as they say
    METADATA,
    sa.Column(
        "resource_uuid",
        sa.String(36),
        sa.ForeignKey("resources.uuid", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("differences", LongText, nullable=False),  # JSON: sentence by field
    sa.Column("since", UtcTime, nullable=False),
)

STACK_EVENTS = sa.Table(
    "stack_events",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    _of_stack(index=False),
    _text("root_uuid", 36, nullable=False),
    _text("action", 16, nullable=False),
    _text("status", 16, nullable=False),
    _text("name", nullable=False),
    _text("type", nullable=False),
    _text("physical_id"),
    _text("reason", nullable=False),
    _text("properties_uuid", 36),
    sa.Index("ix_stack_events_stack_uuid_id", "stack_uuid", "id"),
    sa.Index("ix_stack_events_root_uuid_id", "root_uuid", "id"),
)

SNAPSHOTS = _table(
    "snapshots",
    _uuid(),
    _of_stack(),
    _text("name"),
    _text("project", nullable=False),
    _text("action", 16, nullable=False),
    _text("status", 16, nullable=False),
    sa.Column("reason", LongText, nullable=False),
    sa.Column("definition", LongText),  # what was accepted, in the form of data; sealed
    sa.Column("data", LongText),  # what the engine has added when it was made; sealed
)

STACK_REVISIONS = _table(
    "stack_revisions",  # an order each that gave a root stack a template
    _of_stack(index=False),
    sa.Column("number", sa.Integer, nullable=False),
    _text("template_uuid", 36, nullable=False, index=True),
    _text("action", 16, nullable=False),
    _text("status", 16, nullable=False),
    sa.Column("reason", LongText, nullable=False),
    _text("user"),
    _text("request_id", 64),
    _time("ended_at"),
    *(sa.Column(name, sa.Integer, nullable=False, server_default="0") for name in REVISION_COUNTS),
    sa.UniqueConstraint("stack_uuid", "number"),
)

SOFTWARE_CONFIGS = _table(
    "software_configs",
    _uuid(),
    _text("project", nullable=False, index=True),
    _text("name"),
    _text("group"),
    sa.Column("config", LongText, nullable=False),  # the document: config, inputs, outputs, options
)

SOFTWARE_DEPLOYMENTS = _table(
    "software_deployments",
    _uuid(),
    _text("project", nullable=False, index=True),
    _text("stack_user_project"),
    _text("server_id", index=True),
    sa.Column("config_uuid", sa.String(36), sa.ForeignKey("software_configs.uuid"), nullable=False),
    _json("input_values"),
    _json("output_values"),
    _text("action", 16),
    _text("status", 16),
    sa.Column("status_reason", LongText),
)

EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("created_at", UtcTime, nullable=False),
    _text("object", 32, nullable=False),
    _text("object_uuid", 36, nullable=False, index=True),
    _text("action", 32, nullable=False),
    _text("status", 16, nullable=False),
    _text("level", 16, nullable=False),
    _text("publisher"),
    _text("request_id", 64),
    _json("facts"),
    sa.Column("snapshot", LongText),
    sa.Column("number", sa.BigInteger),  # given after the commit; SQLite goes by id
    _text("owner"),
    _text("lessee"),
    sa.Index("ix_events_number_id", "number", "id", **_where_set("number")),  # whole on servers
    sqlite_autoincrement=True,  # numbers of trimmed rows are never used again
)

EVENT_NUMBERING = sa.Table(
    "event_numbering",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("last_number", sa.BigInteger, nullable=False),
)

EVENT_CURSORS = sa.Table(
    "event_cursors",
    METADATA,
    sa.Column("sink", sa.String(64), primary_key=True),
    sa.Column("last_id", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.String(255)),
    sa.Column("generation", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("updated_at", UtcTime),
    _flag("wants_snapshots", server_default=sa.false()),
)

COMMIT_TOKENS = sa.Table(
    "commit_tokens",
    METADATA,
    sa.Column("token", sa.String(32), primary_key=True),
    sa.Column("is_void", sa.Boolean(create_constraint=False), nullable=False),
)

WEBHOOKS = _table(
    "webhooks",
    _uuid(),
    _text("url", 2048, nullable=False),
    sa.Column("secret", LongText, nullable=False),
    _text("type", 128),
    _text("object_uuid", 36),
    _text("description"),
    _text("state", 16, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("last_error", LongText),
    _time("last_delivered_at"),
)

SETTINGS = sa.Table(
    "home",  # older releases ask this table whether they can use a newer schema
    METADATA,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
