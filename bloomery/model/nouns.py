"""The nouns whose records need no code beyond their rules, and one of them, the chassis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery import errors
from bloomery.model import (
    allocation,
    deploy_template,
    inspection_rule,
    port,
    portgroup,
    runbook,
    volume,
)
from bloomery.model.fields import Field, table
from bloomery.model.noun import Noun


@dataclass(slots=True, kw_only=True)
class Chassis:
    """One row of ``chassis``."""

    uuid: str
    id: int = 0
    description: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


CHASSIS: Final = Noun(
    name="chassis",
    plural="chassis",
    value=Chassis,
    table="chassis",
    fields=table(
        Field("uuid", "uuid", access="C", nullable=False),
        Field("description", "text", access="RW", limit=255),
        Field("extra", "object", access="RW"),
        Field("created_at", "time"),
        Field("updated_at", "time"),
    ),
    listed=("uuid", "description"),
    missing=lambda ident: errors.ChassisNotFound(chassis=ident),
    taken={"uuid": lambda uuid: errors.ChassisAlreadyExists(chassis=uuid)},
    not_empty=lambda uuid: errors.ChassisNotEmpty(chassis=uuid),
    has_names=False,
    pinned=frozenset({"uuid"}),
    links={"nodes": 2},
)
ALLOCATION: Final = allocation.NOUN
DEPLOY_TEMPLATE: Final = deploy_template.NOUN
INSPECTION_RULE: Final = inspection_rule.NOUN
PORT: Final = port.NOUN
PORTGROUP: Final = portgroup.NOUN
RUNBOOK: Final = runbook.NOUN
VOLUME_CONNECTOR: Final = volume.CONNECTOR
VOLUME_TARGET: Final = volume.TARGET

BY_NAME: Final[Mapping[str, Noun]] = {
    noun.name: noun
    for noun in (
        ALLOCATION,
        CHASSIS,
        DEPLOY_TEMPLATE,
        INSPECTION_RULE,
        PORT,
        PORTGROUP,
        RUNBOOK,
        VOLUME_CONNECTOR,
        VOLUME_TARGET,
    )
}
