"""A plan as an operator reads it, and as a program does.

    + db   OS::Heat::Value         create
    ~ web  OS::Heat::Value         update in place: value "a" -> "b"
    ± key  OS::Heat::RandomString  replace: length cannot change in place: length 8 -> 16
    - key  OS::Heat::RandomString  delete: replaced

    outputs: + url, ~ name, - old

A question mark after the sign: it depends on values that come while the plan is walked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomery.orchestration.plan.differences import Difference, NotSet, Unknown
from bloomery.orchestration.plan.plans import CHANGES, Action, Key, Plan, Verb

SIGNS: Final[Mapping[Verb, tuple[str, str]]] = {
    Verb.CREATE: ("+", "create"),
    Verb.ADOPT: ("+", "adopt"),
    Verb.RECREATE: ("+", "create again"),
    Verb.TAKE_BACK: ("<", "take back"),
    Verb.UPDATE: ("~", "update in place"),
    Verb.REPLACE: ("±", "replace"),
    Verb.REFUSE: ("!", "the update would fail"),
    Verb.UNCHANGED: (" ", "unchanged"),
    Verb.WAIT: (":", "wait"),
    Verb.DELETE: ("-", "delete"),
    Verb.KEEP: ("=", "keep"),
}
SHOWN_CHARS: Final = 60  # of one value
SHOWN_LEAVES: Final = 10  # of one resource
SHOWN_NAMES: Final = 5  # of resources at which the update would fail


def text(plan: Plan, *, unchanged: bool = False) -> str:
    """Return the plan in the order of its walk; ``unchanged``: those that stay are listed too."""
    rows = [row for row in plan if unchanged or row[1].verb is not Verb.UNCHANGED]
    names = max((len(key.name) for key, _ in rows), default=0)
    types = max((len(action.type) for _, action in rows), default=0)
    lines = [line for key, each in rows for line in _lines(key, each, names, types)]
    return "\n".join([*lines, *([""] if lines else []), *_outputs(plan), summary(plan), ""])


def summary(plan: Plan) -> str:
    counts = plan.counts()
    parts = [
        f"{counts[verb]} to {words}"
        for verb, (_, words) in SIGNS.items()
        if _is_listed(verb, counts)
    ]
    fails = _fails(plan)
    if not parts and not fails:
        return "No resource changes." if plan.differs or plan.outputs else "Nothing changes."
    unchanged = [f"{counts[Verb.UNCHANGED]} unchanged"] if counts[Verb.UNCHANGED] else []
    numbers = ", ".join([*parts, *unchanged])
    return " ".join([*([f"{numbers}."] if numbers else []), *fails])


def _fails(plan: Plan) -> list[str]:
    """Say where the update would come to a bad end."""
    refused = plan.refused
    if not refused:
        return []
    names = [key.name for key in refused]
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    would = "would" if any(each.is_certain for each in refused.values()) else "may"
    return [f"The update {would} fail at {', '.join(names[:SHOWN_NAMES])}{more}."]


def _outputs(plan: Plan) -> list[str]:
    signed = [f"{SIGNS[verb][0]} {name}" for name, verb in plan.outputs.items()]
    return [f"outputs: {', '.join(signed)}"] if signed else []


def _is_listed(verb: Verb, counts: Mapping[Verb, int]) -> bool:
    return verb in CHANGES and verb is not Verb.REFUSE and counts[verb] > 0


def _lines(key: Key, action: Action, names: int, types: int) -> Iterator[str]:
    sign, words = SIGNS[action.forecast]
    if action.forecast is Verb.REFUSE and not action.is_certain:
        words = words.replace("would", "may")
    doubt = "" if action.is_certain else "?"
    head = f"{sign + doubt:2} {key.name:{names}}  {action.type:{types}}  {words}"
    details = [_leaf(each) for each in action.differences[:SHOWN_LEAVES]]
    if len(action.differences) > SHOWN_LEAVES:
        details.append(f"and {len(action.differences) - SHOWN_LEAVES} more")
    if len(details) == 1:
        yield ": ".join(part for part in (head, action.forecast_reason, *details) if part)
        return
    yield ": ".join(part for part in (head, action.forecast_reason) if part)
    for detail in details:
        yield f"{'':{names + types + 7}}{detail}"


def _leaf(each: Difference) -> str:
    hidden = f" ({each.hidden})" if each.hidden else ""
    return f"{each.where} {_value(each.before)} -> {_value(each.after)}{hidden}"


def _value(value: Any) -> str:
    if isinstance(value, Unknown | NotSet):
        return str(value)
    encoded = json.dumps(value, ensure_ascii=False, default=str)
    return encoded if len(encoded) <= SHOWN_CHARS else f"{encoded[: SHOWN_CHARS - 3]}..."


# ------------------------------------------------------------------------------------- as JSON


def document(plan: Plan) -> dict[str, Any]:
    """Return the plan as maps, lists and scalars; a key that says nothing is left out.

    A no-op has an entry without an action: others may wait for it, and nothing is done there.
    """
    outputs = {name: str(verb) for name, verb in plan.outputs.items()}
    return {
        "actions": [_entry(plan, key) for key in plan.graph.order()],
        **({"outputs": outputs} if outputs else {}),
        "summary": {str(verb): count for verb, count in sorted(plan.counts().items())},
    }


def _entry(plan: Plan, key: Key) -> dict[str, Any]:
    place = {"id": str(key), "name": key.name}
    after = {"after": sorted(str(need) for need in plan.requires(key))}
    action = plan.actions.get(key)
    entry = place | after | (_act(action) if action else {})
    return {name: value for name, value in entry.items() if value or value is False}


def _act(action: Action) -> dict[str, Any]:
    entry = {
        "type": action.type,
        "action": str(action.forecast),
        "reason": action.forecast_reason,
        "differences": differences_of(action),
        "pause_s": action.pause_s,
    }
    return entry | ({} if action.is_certain else {"certain": False})


def differences_of(action: Action) -> list[dict[str, Any]]:
    """Return what differs, leaf by leaf; secrets are masked already."""
    return [_difference(each) for each in action.differences]


def _difference(each: Difference) -> dict[str, Any]:
    entry = {"path": each.where, "before": _bare(each.before), "after": _bare(each.after)}
    if isinstance(each.after, Unknown):
        entry["known_after"] = each.after.after
    if each.hidden:
        entry["hidden"] = each.hidden
    return entry | ({} if each.certain else {"certain": False})


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_bare(item) for item in value]
    return None if isinstance(value, Unknown | NotSet) else value
