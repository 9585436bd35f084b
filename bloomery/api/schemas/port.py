"""Bodies about ports."""

from __future__ import annotations

from typing import Final

from bloomery.api.declare import Schema
from bloomery.api.schemas import build
from bloomery.model import port as model

CREATE: Final = Schema(
    thing="port",
    source=build.creation(
        model.FIELDS,
        required=["address"],
        also={"node_ident": {"type": ["string", "null"]}},
    ),
)
