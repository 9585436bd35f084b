"""The states of a node, without the rest of it: what clients poll."""

from __future__ import annotations

from typing import Any, Final

from bloomery.model import node as model
from bloomery.model.fields import table
from bloomery.operations import documents, lookup, node_documents
from bloomery.operations.context import Context

SHOWN: Final = (
    "console_enabled", "last_error", "power_state", "provision_state", "target_power_state",
    "target_provision_state", "provision_updated_at", "raid_config", "target_raid_config",
    "boot_mode", "secure_boot",
)  # fmt: skip
_SHAPES: Final = documents.Projections(table(*(model.FIELDS[name] for name in SHOWN)))


def show(ctx: Context, ident: str) -> dict[str, Any]:
    shape = _SHAPES.of(ctx.version, None)
    found = shape.values(lookup.row(ctx, ident, shape.columns))
    found["provision_state"] = node_documents.shown_state(found["provision_state"], ctx.version)
    return found
