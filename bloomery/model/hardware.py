"""Hardware facts of a node: BIOS settings and firmware."""

from __future__ import annotations

from typing import Final

from bloomery.model.fields import Field, FieldTable, table

BIOS: Final[FieldTable] = table(
    Field("name", "text"),
    Field("value", "text"),
    Field("attribute_type", "text", since=74),
    Field("allowable_values", "list", since=74),
    Field("lower_bound", "int", since=74),
    Field("upper_bound", "int", since=74),
    Field("min_length", "int", since=74),
    Field("max_length", "int", since=74),
    Field("read_only", "bool", since=74),
    Field("reset_required", "bool", since=74),
    Field("unique", "bool", since=74),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)

FIRMWARE: Final[FieldTable] = table(
    Field("component", "text"),
    Field("initial_version", "text"),
    Field("current_version", "text"),
    Field("last_version_flashed", "text"),
    Field("vendor", "text", since=114),
    Field("model", "text", since=114),
    Field("serial_number", "text", since=114),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)
