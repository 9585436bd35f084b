"""A bare-metal node."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, NamedTuple

from bloomery.model.fields import NODE_NAME, Field, FieldTable, patchable, table

Json = dict[str, Any]

POWER_FAILURE: Final = "power failure"  # the fault that ends by itself
FAULTS: Final = (POWER_FAILURE, "clean failure", "rescue abort failure", "service failure")
FLOW_RETRY: Final = "flow_retry"  # in driver_internal_info: attempt, of, due_at
LEAKS: Final = "leaks"  # in driver_internal_info: since, detectors that say Critical
LEFT_OUT_BY_INSPECTION: Final = "inspection_left_out"  # in driver_internal_info: sentences
INTERFACES: Final = (
    "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network",
    "power", "raid", "rescue", "storage", "vendor",
)  # fmt: skip
STEP_INTERFACES: Final = (
    "vendor", "power", "management", "firmware", "deploy", "bios", "raid",
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Node:
    """One row of ``nodes``, with its traits.  Attributes are those of the Ironic API.

    Objects are never None here.  Our additions: ``conductor_affinity``, ``maintenance_at``,
    ``lock_generation`` and ``reserved_*``.
    """

    uuid: str
    driver: str
    id: int = 0
    name: str | None = None
    driver_info: Json = field(default_factory=dict)
    driver_internal_info: Json = field(default_factory=dict)
    properties: Json = field(default_factory=dict)
    instance_info: Json = field(default_factory=dict)
    instance_uuid: str | None = None
    instance_name: str | None = None
    extra: Json = field(default_factory=dict)
    chassis_uuid: str | None = None
    allocation_uuid: str | None = None
    parent_node: str | None = None
    resource_class: str | None = None
    conductor_group: str = ""
    conductor_affinity: str | None = None
    automated_clean: bool | None = None
    protected: bool = False
    protected_reason: str | None = None
    retired: bool = False
    retired_reason: str | None = None
    owner: str | None = None
    lessee: str | None = None
    description: str | None = None
    network_data: Json = field(default_factory=dict)
    shard: str | None = None
    disable_power_off: bool = False
    maintenance: bool = False
    maintenance_reason: str | None = None
    fault: str | None = None
    console_enabled: bool = False
    bios_interface: str | None = None
    boot_interface: str | None = None
    console_interface: str | None = None
    deploy_interface: str | None = None
    firmware_interface: str | None = None
    inspect_interface: str | None = None
    management_interface: str | None = None
    network_interface: str | None = None
    power_interface: str | None = None
    raid_interface: str | None = None
    rescue_interface: str | None = None
    storage_interface: str | None = None
    vendor_interface: str | None = None
    power_state: str | None = None
    target_power_state: str | None = None
    provision_state: str | None = None
    target_provision_state: str | None = None
    provision_updated_at: datetime | None = None
    inspection_started_at: datetime | None = None
    inspection_finished_at: datetime | None = None
    last_error: str | None = None
    clean_step: Json = field(default_factory=dict)
    deploy_step: Json = field(default_factory=dict)
    service_step: Json = field(default_factory=dict)
    raid_config: Json = field(default_factory=dict)
    target_raid_config: Json = field(default_factory=dict)
    boot_mode: str | None = None
    secure_boot: bool | None = None
    health: str | None = None
    maintenance_at: datetime | None = None
    reservation: str | None = None
    reserved_for: str | None = None
    reserved_at: datetime | None = None
    lock_generation: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    traits: tuple[str, ...] = ()


FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("name", "text", since=5, access="RW", limit=255, form=NODE_NAME),
    Field("driver", "text", access="RW", nullable=False, limit=255),
    Field("driver_info", "object", access="RW", secret=True),
    Field("driver_internal_info", "object", since=3, secret=True),
    Field("properties", "object", access="RW"),
    Field("instance_info", "object", access="RW", secret=True),
    Field("instance_uuid", "uuid", access="RW"),
    Field("instance_name", "text", since=104, access="RW", limit=255, least=1),
    Field("extra", "object", access="RW"),
    Field("chassis_uuid", "uuid", access="RW", sortable=False),
    Field("allocation_uuid", "uuid", since=52, sortable=False),
    Field("parent_node", "text", since=83, access="RW", limit=255),
    Field("resource_class", "text", since=21, access="RW", limit=80),
    Field("conductor_group", "text", since=46, access="RW", limit=255),
    Field("conductor", "text", since=49, column=False),
    Field("automated_clean", "bool", since=47, access="RW"),
    Field("protected", "bool", since=48, access="P", nullable=False),
    Field("protected_reason", "text", since=48, access="P", limit=4096),
    Field("retired", "bool", since=61, access="RW", nullable=False),
    Field("retired_reason", "text", since=61, access="RW", limit=4096),
    Field("owner", "text", since=50, access="RW", limit=255),
    Field("lessee", "text", since=65, access="RW", limit=255),
    Field("description", "text", since=51, access="RW", limit=4096),
    Field("network_data", "object", since=66, access="RW"),
    Field("shard", "text", since=82, access="RW", limit=255),
    Field("disable_power_off", "bool", since=95, access="RW", nullable=False),
    Field("maintenance", "bool", access="RW", nullable=False),
    Field("maintenance_reason", "text"),
    Field("fault", "text", since=42),
    Field("console_enabled", "bool", access="C", nullable=False),
    Field("bios_interface", "text", since=40, access="RW", limit=255),
    Field("boot_interface", "text", since=31, access="RW", limit=255),
    Field("console_interface", "text", since=31, access="RW", limit=255),
    Field("deploy_interface", "text", since=31, access="RW", limit=255),
    Field("firmware_interface", "text", since=86, access="RW", limit=255),
    Field("inspect_interface", "text", since=31, access="RW", limit=255),
    Field("management_interface", "text", since=31, access="RW", limit=255),
    Field("network_interface", "text", since=20, access="RW", limit=255),
    Field("power_interface", "text", since=31, access="RW", limit=255),
    Field("raid_interface", "text", since=31, access="RW", limit=255),
    Field("rescue_interface", "text", since=38, access="RW", limit=255),
    Field("storage_interface", "text", since=33, access="RW", limit=255),
    Field("vendor_interface", "text", since=31, access="RW", limit=255),
    Field("power_state", "text"),
    Field("target_power_state", "text"),
    Field("provision_state", "text"),
    Field("target_provision_state", "text"),
    Field("provision_updated_at", "time"),
    Field("inspection_started_at", "time", since=6),
    Field("inspection_finished_at", "time", since=6),
    Field("reservation", "text"),
    Field("last_error", "text"),
    Field("clean_step", "object", since=7, secret=True),
    Field("deploy_step", "object", since=44, secret=True),
    Field("service_step", "object", since=87, secret=True),
    Field("raid_config", "object", since=12),
    Field("target_raid_config", "object", since=12),
    Field("boot_mode", "text", since=75),
    Field("secure_boot", "bool", since=75),
    Field("health", "text", since=109),
    Field("traits", "list", since=37, column=False),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)


class RingKey(NamedTuple):
    """The node's columns that select its conductor on the ring."""

    uuid: str
    driver: str
    conductor_group: str


class RingShare(NamedTuple):
    """The nodes of a conductor group with these drivers that one conductor serves.

    ``arcs``: first and last position of each of its parts of the ring; None: all positions.
    """

    conductor_group: str
    drivers: tuple[str, ...]
    arcs: tuple[tuple[int, int], ...] | None


COLUMNS: Final = tuple(f.name for f in fields(Node) if f.name != "traits")
OBJECTS: Final = frozenset(f.name for f in FIELDS.values() if f.kind == "object")
SECRET_OBJECTS: Final = frozenset(f.name for f in FIELDS.values() if f.secret)
PATCHABLE: Final = patchable(FIELDS)
RING_BITS: Final = 28  # of nodes.ring_position: the first bits of the MD5 of the UUID
