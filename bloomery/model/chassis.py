"""A chassis: its attributes, and its noun."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery import errors
from bloomery.model.fields import Field, FieldTable, table
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


FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("description", "text", access="RW", limit=255),
    Field("extra", "object", access="RW"),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)

NOUN: Final = Noun(
    name="chassis",
    plural="chassis",
    value=Chassis,
    table="chassis",
    fields=FIELDS,
    listed=("uuid", "description"),
    missing=lambda ident: errors.ChassisNotFound(chassis=ident),
    taken={"uuid": lambda uuid: errors.ChassisAlreadyExists(chassis=uuid)},
    not_empty=lambda uuid: errors.ChassisNotEmpty(chassis=uuid),
    has_names=False,
    pinned=frozenset({"uuid"}),
    links={"nodes": 2},
)
