"""Built-in rules: the operator's YAML file, a list of rules in the API's form.

- uuid: 5f1a...             # any text; by default the position in the file
description: Racks by serial number
priority: 10000           # may be outside the range of API rules
conditions: [...]
actions: [...]
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.inspection import rule_check
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.rules import attributes, inspection

Json = dict[str, Any]
_KEYS: Final = frozenset(
    {"uuid", "description", "priority", "phase", "sensitive", "conditions", "actions", "scope"}
)


@functools.lru_cache(maxsize=4)
def load(path: str) -> tuple[InspectionRule, ...]:
    """Return the rules of a file, which is read once.  Raises CannotStart."""
    import yaml  # rarely needed

    try:
        listed = yaml.safe_load(Path(path).read_bytes())
        attributes.refuse_sealed(listed, "a rule")
        rules = _list({"the file": listed}, "the file")
        return tuple(_rule(place, entry) for place, entry in enumerate(rules))
    except (OSError, yaml.YAMLError, errors.Invalid) as exc:
        text = " ".join(str(exc).split())
        raise errors.CannotStart(
            reason=f"cannot use [inspection_rules]built_in_rules = {path}: {text}",
        ) from exc


def _rule(place: int, entry: Any) -> InspectionRule:
    where = f"rule {place}"
    if not isinstance(entry, dict) or not entry.keys() <= _KEYS:
        raise errors.Invalid(reason=f"{where} takes {', '.join(sorted(_KEYS))}")
    priority = entry.get("priority", 0)
    if type(priority) is not int:
        raise errors.Invalid(reason=f"{where}/priority takes a whole number")
    try:
        rule = InspectionRule(
            uuid=str(entry.get("uuid", f"built-in {place}")),
            description=str(entry["description"]) if entry.get("description") else None,
            priority=priority,
            phase=inspection.phase(entry.get("phase") or inspection.PHASE),
            sensitive=bool(entry.get("sensitive", False)),
            conditions=inspection.conditions(_list(entry, "conditions")),
            actions=inspection.actions(_list(entry, "actions")),
        )
        rule_check.check(rule.conditions, rule.actions)
    except errors.Invalid as exc:
        raise errors.Invalid(reason=f"{where}/{exc}") from exc
    return rule


def _list(entry: Json, name: str) -> list[Any]:
    value = entry.get(name) or []
    if not isinstance(value, list):
        raise errors.Invalid(reason=f"{name} takes a list")
    return value
