"""A network port of a node."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final

from bloomery.model.fields import Field, FieldTable, patchable, table


@dataclass(slots=True, kw_only=True)
class Port:
    """One row of ``ports``; objects are never None here."""

    uuid: str
    address: str
    node_uuid: str
    id: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    internal_info: dict[str, Any] = field(default_factory=dict)
    pxe_enabled: bool = True
    local_link_connection: dict[str, Any] = field(default_factory=dict)
    portgroup_uuid: str | None = None
    physical_network: str | None = None
    is_smartnic: bool = False
    name: str | None = None
    description: str | None = None
    vendor: str | None = None
    category: str | None = None
    available_for_dynamic_portgroup: bool = True
    created_at: datetime | None = None
    updated_at: datetime | None = None


FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("address", "text", access="RW", nullable=False),
    Field("node_uuid", "uuid", access="RW"),
    Field("extra", "object", access="RW"),
    Field("internal_info", "object", since=18),
    Field("pxe_enabled", "bool", since=19, access="RW"),
    Field("local_link_connection", "object", since=19, access="RW"),
    Field("portgroup_uuid", "uuid", since=24, access="RW", sortable=False),
    Field("physical_network", "text", since=34, access="RW", limit=64, least=1),
    Field("is_smartnic", "bool", since=53, access="RW"),
    Field("name", "text", since=88, access="RW", limit=255),
    Field("description", "text", since=97, access="RW", limit=255),
    Field("vendor", "text", since=100, access="RW", limit=32),
    Field("category", "text", since=101, access="RW", limit=80),
    Field("available_for_dynamic_portgroup", "bool", since=111, access="RW"),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)

COLUMNS: Final = tuple(f.name for f in fields(Port))
OBJECTS: Final = frozenset(f.name for f in FIELDS.values() if f.kind == "object")
PATCHABLE: Final = patchable(FIELDS)
