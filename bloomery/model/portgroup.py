"""A group of ports of a node: its attributes, their rules, and its noun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery import errors
from bloomery.model.fields import MAC, NAME_OR_EMPTY, Field, FieldTable, table
from bloomery.model.noun import INSPECTION, Noun
from bloomery.model.rules import idents


@dataclass(slots=True, kw_only=True)
class Portgroup:
    """One row of ``portgroups``; objects are never None here.

    ``mode`` is None or empty in a request only: the conductor's ``default_portgroup_mode`` replaces
    it.
    """

    uuid: str
    node_uuid: str
    id: int = 0
    name: str | None = None
    address: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    internal_info: dict[str, Any] = field(default_factory=dict)
    standalone_ports_supported: bool = True
    mode: str | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    physical_network: str | None = None
    category: str | None = None
    dynamic_portgroup: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None


FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("name", "text", access="RW", limit=255, form=NAME_OR_EMPTY),
    Field("address", "text", access="RW", form=MAC),
    Field("node_uuid", "uuid", access="RW"),
    Field("extra", "object", access="RW"),
    Field("internal_info", "object"),
    Field("standalone_ports_supported", "bool", access="RW"),
    Field("mode", "text", since=26, access="RW", limit=255),
    Field("properties", "object", since=26, access="RW"),
    Field("physical_network", "text", since=102, access="RW", limit=64),
    Field("category", "text", since=103, access="RW", limit=80),
    Field("dynamic_portgroup", "bool", since=111),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)
ONE_FILTER: Final = ("node", "address", "shard", "conductor_groups")  # at most one of them


def name(text: str) -> str:
    """Return a name: unlike a node's it may be empty, reserved or a UUID."""
    if text and not idents.is_logical_name(text):
        raise errors.InvalidName(
            reason=f"cannot name a port group {text!r}: a name has letters, digits or -._~",
        )
    return text


def check_filters(filters: Mapping[str, Any]) -> None:
    if sum(filter_ in filters for filter_ in ONE_FILTER) > 1:
        raise errors.InvalidParameterValue(
            reason=f"give at most one of the filters {', '.join(ONE_FILTER)}",
        )


NOUN: Final = Noun(
    name="portgroup",
    plural="portgroups",
    value=Portgroup,
    table="portgroups",
    fields=FIELDS,
    listed=("uuid", "address", "name"),
    since=23,
    missing=lambda ident: errors.PortgroupNotFound(portgroup=ident),
    taken={
        "uuid": lambda uuid: errors.PortgroupAlreadyExists(portgroup=uuid),
        "address": lambda mac: errors.PortgroupMACAlreadyExists(mac=mac),
        "name": lambda name: errors.PortgroupDuplicateName(name=name),
    },
    parents={"node_uuid": lambda uuid: errors.NodeNotFound(node=uuid)},
    not_empty=lambda uuid: errors.PortgroupNotEmpty(portgroup=uuid),
    node_arguments={"node_uuid": 23},
    filters={"node": 23, "address": 23, "conductor_groups": 99, "shard": 106},
    exclusive=(ONE_FILTER,),
    check_filters=check_filters,
    required=("node_uuid",),
    kept=frozenset({"mode"}),
    rules={"name": name, "address": idents.mac},
    left_alone=frozenset({"update"}),
    late_rules={INSPECTION: 39},
    links={"ports": 1},
    details_ignore_version=True,
)
