"""An inspection rule: conditions on inspection data, and actions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery import errors
from bloomery.model.fields import Field, FieldTable, table
from bloomery.model.noun import Noun
from bloomery.model.rules import inspection, patches

Json = dict[str, Any]
SINCE: Final = 96


@dataclass(slots=True, kw_only=True)
class InspectionRule:
    """``conditions`` must all hold: {op, args, loop, multiple}; ``actions``: {op, args, loop}.

    A ``sensitive`` rule shows neither, and both are sealed in rows. Rules run by descending
    ``priority``.  ``scope`` is Ironic's, and unused.
    """

    uuid: str
    actions: list[Json]
    conditions: list[Json] = field(default_factory=list)
    id: int = 0
    description: str | None = None
    priority: int = 0
    phase: str = inspection.PHASE
    scope: str | None = None
    sensitive: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None


FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("description", "text", access="RW", limit=255),
    Field("priority", "int", access="RW", nullable=False, form=inspection.PRIORITY),
    Field("phase", "text", access="RW", limit=16, nullable=False, form=inspection.PHASES),
    Field("sensitive", "bool", access="RW", strict=True, nullable=False),
    Field(
        "conditions", "list", access="RW", nullable=False, hidden_by="sensitive",
        form=inspection.CONDITIONS_SCHEMA,
    ),
    Field(
        "actions", "list", access="RW", nullable=False, hidden_by="sensitive",
        form=inspection.ACTIONS_SCHEMA,
    ),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)  # fmt: skip


def check_sensitive(rule: Any, sensitive: Any) -> None:
    """Refuse to make a sensitive rule an ordinary one, which would show it."""
    if rule.sensitive and not sensitive:
        raise errors.InvalidParameterValue(
            reason=f"cannot unset sensitive of inspection rule {rule.uuid}: delete it, and create "
            "another one",
        )


def check_patch(row: Any, patch: patches.Patch, _waived: Collection[str]) -> None:
    check_sensitive(row, patches.last_values(patch).get("sensitive", row.sensitive))


NOUN: Final = Noun(
    name="inspectionrule",
    plural="inspection_rules",
    policy="inspection_rule",
    link="inspection",
    value=InspectionRule,
    table="inspection_rules",
    fields=FIELDS,
    listed=("uuid", "priority", "phase", "description"),
    since=SINCE,
    missing=lambda ident: errors.InspectionRuleNotFound(rule=ident),
    taken={"uuid": lambda uuid: errors.InspectionRuleAlreadyExists(uuid=uuid)},
    has_names=False,
    filters={"phase": SINCE},
    required=("actions",),
    kept=frozenset({"actions"}),
    rules={
        "priority": inspection.priority,
        "phase": inspection.phase,
        "conditions": inspection.conditions,
        "actions": inspection.actions,
    },
    check_patch=check_patch,
    shown_when_asked=frozenset({"priority"}),
)
