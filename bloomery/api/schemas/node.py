"""Schemas of bodies about nodes."""

from __future__ import annotations

from typing import Final

from bloomery.api.declare import Schema
from bloomery.api.schemas import build
from bloomery.model import node as model
from bloomery.model.fields import BOOLEAN_TEXT

CREATE: Final = build.creation(
    "node",
    model.FIELDS,
    required=["driver"],
    also={
        "boot_mode": {"type": ["string", "null"]},
        "secure_boot": {"type": ["boolean", "string", "null"]},
        "retired": {"type": ["boolean", "string", "null"]},
        "disable_power_off": {"type": ["boolean", "string", "null"]},
    },
    forms={name: {"pattern": BOOLEAN_TEXT} for name in ("retired", "disable_power_off")},
    secret=model.SECRET_OBJECTS,
)

VIF: Final = Schema(
    thing="vif",
    source={
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "port_uuid": {"type": ["string", "null"]},
            "portgroup_uuid": {"type": ["string", "null"]},
        },
        "required": ["id"],
    },
)

RAID: Final = Schema(
    thing="raid config",
    source={
        "type": "object",
        "properties": {"logical_disks": {}},  # the node's RAID interface validates the rest
        "required": [],
    },
)

VMEDIA: Final = Schema(
    thing="vmedia",
    secret=frozenset({"image_url"}),
    source={
        "type": "object",
        "properties": {
            "device_type": {"enum": ["cdrom", "disk", "floppy"]},
            "image_url": {"type": "string"},
            "image_download_source": {"enum": ["http", "local", "swift"]},
        },
        "required": ["device_type", "image_url"],
        "additionalProperties": False,
    },
)
