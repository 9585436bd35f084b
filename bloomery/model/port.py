"""A network port of a node: its attributes, their rules, and its noun."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery import errors
from bloomery.model.fields import MAC, Field, FieldTable, table
from bloomery.model.noun import INSPECTION, Noun
from bloomery.model.rules import idents, patches

Json = dict[str, Any]


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
    Field("address", "text", access="RW", nullable=False, form=MAC),
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


# ------------------------------------------------------------------------------- rules of values

VTEP: Final = frozenset({"vtep-logical-switch", "vtep-physical-switch"})
LINK_KEYS: Final = VTEP | {"port_id", "switch_id", "hostname", "switch_info", "network_type"}
LINK_FORMS: Final[tuple[frozenset[str], ...]] = (
    frozenset({"port_id", "switch_id"}),
    frozenset({"port_id", "hostname"}),
    VTEP | {"port_id"},
)  # sets of required keys, of which one must be complete; other keys are optional
NETWORK_TYPES: Final = ("managed", "unmanaged")  # the second needs no other keys
_DATAPATH_ID: Final = re.compile(r"[0-9a-fA-F]{16}")


def local_link(link: Json) -> Json:
    """Return a local_link_connection, empty or in one of the supported forms."""
    keys = frozenset(link)
    if keys - LINK_KEYS:
        raise _bad_link(f"unknown keys {', '.join(sorted(keys - LINK_KEYS))}")
    is_free = not keys or link.get("network_type") == "unmanaged"
    if not is_free and not any(form <= keys for form in LINK_FORMS):
        raise _bad_link(f"the keys {', '.join(sorted(keys))} fit none of the forms")
    if len(keys & VTEP) == 1:
        raise _bad_link(f"{' and '.join(sorted(VTEP))} go together")
    if not all(isinstance(value, str) for value in link.values()):
        raise _bad_link("each value must be a text")
    if link.get("network_type", "managed") not in NETWORK_TYPES:
        raise _bad_link(f"network_type must be {' or '.join(NETWORK_TYPES)}")
    if "switch_id" not in link:
        return link
    switch = link["switch_id"]
    if not idents.is_mac(switch) and _DATAPATH_ID.fullmatch(switch) is None:
        raise _bad_link("switch_id must be a MAC address or 16 hexadecimal digits")
    return link | {"switch_id": switch.lower()}


def _bad_link(problem: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(
        reason=f"Schema error for local_link_connection: {problem}; allowed are {{}}, port_id "
        "with switch_id, hostname or both VTEP keys, and network_type unmanaged with any of them",
    )


# ----------------------------------------------------------------------------------- the noun

ONE_PARENT: Final = ("node", "portgroup", "shard")  # at most one of them
NOT_WITH_GROUPS: Final = ("node", "node_uuid", "portgroup", "address")
GROUP_NETWORK: Final = "network of a group"  # the late rule that a member's network is the group's


def check_filters(filters: Mapping[str, Any]) -> None:
    if sum(name in filters for name in ONE_PARENT) > 1:
        raise errors.OperationNotPermitted(
            reason=f"give at most one of the filters {', '.join(ONE_PARENT)}",
        )
    if "conductor_groups" in filters and any(name in filters for name in NOT_WITH_GROUPS):
        raise errors.InvalidParameterValue(
            reason=f"conductor_groups does not go with {', '.join(NOT_WITH_GROUPS)}",
        )


def check_patch(row: Any, patch: patches.Patch, waived: Collection[str]) -> None:
    """Refuse another physical network than the port group's: change the group instead."""
    values = patches.last_values(patch)
    if GROUP_NETWORK in waived or row.portgroup_uuid is None:
        return
    if values.get("physical_network", row.physical_network) != row.physical_network:
        raise errors.InvalidParameterValue(
            reason=f"cannot change physical_network of port {row.uuid}: it is in port group "
            f"{row.portgroup_uuid}; change that of the port group",
        )


NOUN: Final = Noun(
    name="port",
    plural="ports",
    value=Port,
    table="ports",
    fields=FIELDS,
    listed=("uuid", "address"),
    missing=lambda ident: errors.PortNotFound(port=ident),
    taken={
        "uuid": lambda uuid: errors.PortAlreadyExists(port=uuid),
        "address": lambda mac: errors.MACAlreadyExists(mac=mac),
        "name": lambda name: errors.PortDuplicateName(name=name),
    },
    parents={
        "portgroup_uuid": lambda uuid: errors.PortgroupNotFound(portgroup=uuid),
        "node_uuid": lambda uuid: errors.NodeNotFound(node=uuid),
    },
    node_arguments={"node_uuid": 1, "node_ident": 94},
    filters={
        "node": 1, "node_uuid": 1, "address": 1, "portgroup": 24, "shard": 82,
        "description_contains": 97, "conductor_groups": 99,
    },
    exclusive=(ONE_PARENT, *(("conductor_groups", name) for name in NOT_WITH_GROUPS)),
    check_filters=check_filters,
    required=("address",),
    kept=frozenset({"address"}),
    pinned=frozenset({"node_uuid", "node_ident"}),
    rules={"address": idents.mac, "local_link_connection": local_link},
    check_patch=check_patch,
    left_alone=frozenset({"create", "update"}),
    late_rules={INSPECTION: 39, GROUP_NETWORK: 102},
    shown_when_asked=frozenset({"available_for_dynamic_portgroup"}),
)  # fmt: skip
