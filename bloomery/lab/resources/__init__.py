"""The Redfish tree, one file per branch; importing them registers their routes."""

from __future__ import annotations

from bloomery.lab.resources import (
    accounts,
    bios,
    chassis,
    dell,
    logs,
    managers,
    services,
    storage,
    systems,
    updates,
)

__all__ = [
    "accounts", "bios", "chassis", "dell", "logs", "managers", "services", "storage",
    "systems", "updates",
]  # fmt: skip
