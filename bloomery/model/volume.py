"""Volumes of a node, and their connectors: attributes and nouns."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery import errors
from bloomery.model.fields import Field, FieldTable, table
from bloomery.model.noun import Noun

SINCE: Final = 32
MOST_INDEX: Final = 2**31 - 1


@dataclass(slots=True, kw_only=True)
class VolumeConnector:
    """The machine's identity for storage.

    ``type`` is meant to be iqn, ip, mac, wwnn, wwpn, port or portgroup; any text is accepted, as in
    Ironic.  ``connector_id`` is such as iqn.2017-07.org.example:web-1.
    """

    uuid: str
    node_uuid: str
    type: str
    connector_id: str
    id: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class VolumeTarget:
    """A volume of a machine.

    ``volume_type`` is meant to be iscsi or fibre_channel; ``volume_id`` is the storage's.
    ``boot_index`` 0: the machine boots from it; it is unique on a node.  ``properties`` are such as
    target_iqn, target_portal, target_lun and auth_password: their secrets are sealed in rows.
    """

    uuid: str
    node_uuid: str
    volume_type: str
    volume_id: str
    boot_index: int
    id: int = 0
    properties: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


CONNECTOR_FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("node_uuid", "uuid", access="RW", nullable=False),
    Field("type", "text", access="RW", limit=32, nullable=False),
    Field("connector_id", "text", access="RW", limit=255, nullable=False),
    Field("extra", "object", access="RW"),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)
TARGET_FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("node_uuid", "uuid", access="RW", nullable=False),
    Field("volume_type", "text", access="RW", limit=64, nullable=False),
    Field(
        "properties",
        "object",
        access="RW",
        secret=True,
        read_rule="baremetal:volume:view_target_properties",
    ),
    Field("boot_index", "int", access="RW", nullable=False),
    Field("volume_id", "text", access="RW", limit=36, nullable=False),
    Field("extra", "object", access="RW"),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)


def boot_index(number: int) -> int:
    """Return a boot index that every database can store."""
    if not -MOST_INDEX <= number <= MOST_INDEX:
        raise errors.InvalidParameterValue(
            reason=f"cannot take {number} for boot_index: it lies between {-MOST_INDEX} and "
            f"{MOST_INDEX}",
        )
    return number


CONNECTOR: Final = Noun(
    name="volumeconnector",
    plural="connectors",
    path="volume/connectors",
    policy="volume",
    value=VolumeConnector,
    table="volume_connectors",
    fields=CONNECTOR_FIELDS,
    listed=("uuid", "node_uuid", "type", "connector_id"),
    since=SINCE,
    missing=lambda ident: errors.VolumeConnectorNotFound(connector=ident),
    taken={
        "uuid": lambda uuid: errors.VolumeConnectorAlreadyExists(uuid=uuid),
        "type": lambda type_: errors.VolumeConnectorTypeAndIdAlreadyExists(type=type_),
    },
    parents={"node_uuid": lambda uuid: errors.NodeNotFound(node=uuid)},
    has_names=False,
    node_arguments={"node_uuid": SINCE},
    filters={"node": SINCE},
    required=("node_uuid", "type", "connector_id"),
    kept=frozenset({"type", "connector_id"}),
)
TARGET: Final = Noun(
    name="volumetarget",
    plural="targets",
    path="volume/targets",
    policy="volume",
    value=VolumeTarget,
    table="volume_targets",
    fields=TARGET_FIELDS,
    listed=("uuid", "node_uuid", "volume_type", "boot_index", "volume_id"),
    since=SINCE,
    missing=lambda ident: errors.VolumeTargetNotFound(target=ident),
    taken={
        "uuid": lambda uuid: errors.VolumeTargetAlreadyExists(uuid=uuid),
        "node_uuid": lambda _: errors.VolumeTargetBootIndexAlreadyExists(),
    },
    parents={"node_uuid": lambda uuid: errors.NodeNotFound(node=uuid)},
    has_names=False,
    node_arguments={"node_uuid": SINCE},
    filters={"node": SINCE},
    required=("node_uuid", "volume_type", "volume_id", "boot_index"),
    kept=frozenset({"volume_type", "volume_id", "boot_index"}),
    rules={"boot_index": boot_index},
)
