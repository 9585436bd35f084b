"""Bodies about nodes."""

from __future__ import annotations

from typing import Final

from bloomery.api.declare import Schema
from bloomery.api.schemas import build
from bloomery.model import node as model

CREATE: Final = Schema(
    thing="node",
    secret=model.SECRET_OBJECTS,
    source=build.creation(
        model.FIELDS,
        required=["driver"],
        also={
            "boot_mode": {"type": ["string", "null"]},
            "secure_boot": {"type": ["boolean", "string", "null"]},
        },
    ),
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
