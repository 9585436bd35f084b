"""Inspection rules as rows: a sensitive rule stays sensitive, its conditions and actions sealed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import sqlalchemy as sa

from bloomery.conductor.records import Rules
from bloomery.conductor.runtime import Context
from bloomery.db import records
from bloomery.inspection import rule_check
from bloomery.model import inspection_rule
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.nouns import INSPECTION_RULE
from bloomery.secrets import Sealer

Json = dict[str, Any]
_SECRETS: Final = ("conditions", "actions")


def list_opened(conn: sa.Connection, sealer: Sealer) -> list[InspectionRule]:
    """Return all rules unsealed, in no order.  Raises KeyMissing."""
    rules: list[InspectionRule] = records.list_where(conn, INSPECTION_RULE)
    for rule in rules:
        for name in _SECRETS:
            setattr(rule, name, sealer.open(getattr(rule, name)))
    return rules


def check(context: Context, values: Json) -> None:
    """Raise InvalidParameterValue for conditions or actions that no inspection could run."""
    rule_check.check(values.get("conditions") or [], values.get("actions") or [])


def check_new(context: Context, _conn: sa.Connection, rule: InspectionRule) -> None:
    if rule.sensitive:
        for name, value in _sealed(context, rule, _SECRETS).items():
            setattr(rule, name, value)


def check_change(
    context: Context, _conn: sa.Connection, _node: Any, rule: InspectionRule, changed: Json
) -> None:
    sensitive = changed.get("sensitive", rule.sensitive)
    inspection_rule.check_sensitive(rule, sensitive)
    if sensitive:
        for name in _SECRETS:
            setattr(rule, name, changed.get(name, getattr(rule, name)))
        names = [name for name in _SECRETS if name in changed or not rule.sensitive]
        changed |= _sealed(context, rule, names)


def _sealed(context: Context, rule: InspectionRule, names: Iterable[str]) -> Json:
    sealer = context.runtime.sealer
    return {name: sealer.seal_under("secret", getattr(rule, name)) for name in names}


RULES: Final = Rules(check=check, create=check_new, update=check_change)
