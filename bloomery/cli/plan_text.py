"""Format a plan of templates or of a stack as text.

    !  web  OS::Ironic::Instance  rebuild  about 10 min (95 %: 15 min)
         image.source: http://a -> http://b

    signs: ! rebuilt
    1 to rebuild (data lost); 1 machine, at most 1 at once; about 10 min (95 %: 15 min).

A question mark after the sign: the step depends on values that are known later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from bloomery.cli import terminal

Json = dict[str, Any]
SIGNS: Final = {
    "create": "+", "adopt": "+", "patch": "~", "service": "~", "rebuild": "!", "replace": "±",
    "delete": "-", "keep": "=", "take back": "<", "wait": ":", "refuse": "x",
}  # fmt: skip
LEGEND: Final = {
    "+": "made or adopted",
    "~": "changed in place",
    "!": "rebuilt",
    "±": "replaced by a new one",
    "-": "deleted",
    "=": "kept, but not in the stack any more",
    "<": "taken back",
    ":": "waits",
    "x": "would fail",
    "?": "depends on values that come later",
}
OUTPUT_SIGNS: Final = {"create": "+", "update": "~", "delete": "-"}
PHRASES: Final = {"refuse": "would fail", "patch": "update in place"}
CHANGING: Final = [action for action in SIGNS if action not in ("wait", "refuse")]
MOST_LINES: Final = 5  # of differences of one resource, and resources of one stage
MOST_STAGES: Final = 20
MINUTE_S, HOUR_S = 60, 3600


def text(plan: Json, *, unchanged: bool = False) -> str:
    """Return the steps in order, the stages, the legend of signs, and the summary.

    ``unchanged``: resources without a change follow the steps.
    """
    steps = _groups_first(plan["steps"])
    rows = [_row(step) for step in steps]
    if unchanged:
        rows += [
            ("", each["resource"], each["type"], "unchanged", "") for each in plan["unchanged"]
        ]
    lines = terminal.columns(rows) if rows else []
    resources = []
    for line, step in zip(lines[: len(steps)], steps, strict=True):
        resources.append(line)
        resources += (f"     {difference}" for difference in _differences(step))
    resources += lines[len(steps) :]
    signs = {SIGNS[step["action"]] for step in steps}
    if not all(step["certain"] for step in steps):
        signs.add("?")
    meanings = [f"{sign} {meaning}" for sign, meaning in LEGEND.items() if sign in signs]
    end = [f"signs: {', '.join(meanings)}"] if meanings else []
    for key, word in (("warnings", "warning"), ("refusals", "refused by the operator's checks")):
        end += (terminal.visible(f"{word}: {each}") for each in plan.get(key, ()))
    outputs = [f"{OUTPUT_SIGNS[verb]} {name}" for name, verb in plan["outputs"].items()]
    output_lines = [terminal.visible(f"outputs: {', '.join(outputs)}")] if outputs else []
    parts = (resources, _stages(plan), output_lines, [*end, summary(plan)])
    return "\n\n".join("\n".join(part) for part in parts if part)


def _groups_first(steps: Sequence[Json]) -> list[Json]:
    """Return steps in order, but a group's step before those of its members."""
    first: dict[str, int] = {}
    for number, step in enumerate(steps):
        parts = step["resource"].split("/")
        for depth in range(len(parts)):
            first.setdefault("/".join(parts[: depth + 1]), number)

    def place(numbered: tuple[int, Json]) -> tuple[int, ...]:
        number, step = numbered
        parts = step["resource"].split("/")
        parents = tuple(first["/".join(parts[: depth + 1])] for depth in range(len(parts)))
        return (*parents, number) if step["action"] == "wait" else parents

    return [step for _, step in sorted(enumerate(steps), key=place)]


def _row(step: Json) -> tuple[str, str, str, str, str]:
    action = step["action"]
    doubt = "" if step["certain"] else "?"
    phrase = PHRASES.get(action, str(action))
    if doubt:
        phrase = phrase.replace("would", "may")
    if step["loses_data"]:
        phrase += ", its data is lost"
    if step["loses_data"] and step.get("node"):
        phrase += f" (node {step['node']})"
    takes = duration(step["takes"])
    if action == "refuse":
        takes = ""
    elif step["verbs"] and not takes:
        takes = "no experience yet"
    reason = "; ".join(part for part in (step["reason"], takes) if part)
    return f"{SIGNS[action]}{doubt}", step["resource"], step["type"], phrase, reason


def _differences(step: Json) -> Iterator[str]:
    """Yield a line for each of the first values that differ."""
    differences = step["differences"]
    for each in differences[:MOST_LINES]:
        after = terminal.brief(each["after"])
        if "known_after" in each:
            after = f"(known after {each['known_after']})"
        before = terminal.brief(each["before"])
        hidden = f" ({each['hidden']})" if "hidden" in each else ""
        yield terminal.visible(f"{each['path']}: {before} -> {after}{hidden}")
    if len(differences) > MOST_LINES:
        yield f"and {len(differences) - MOST_LINES} more"


def _stages(plan: Json) -> list[str]:
    """Return the stages of a plan that has machines: parallel steps, and their order."""
    stages: dict[int, list[str]] = {}
    for step in plan["steps"]:
        stages.setdefault(step["stage"], []).append(f"{SIGNS[step['action']]}{step['resource']}")
    if not plan["machines"] or len(plan["steps"]) == 1:
        return []
    lines = [f"stage {number}: {_names(stages[number])}" for number in sorted(stages)]
    rest = len(lines) - MOST_STAGES
    return [*lines[:MOST_STAGES], *([f"and {rest} more stages"] if rest > 0 else [])]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LINES} more" if len(names) > MOST_LINES else ""
    return terminal.visible(f"{', '.join(names[:MOST_LINES])}{more}")


def changes_anything(plan: Json) -> bool:
    return bool(plan["steps"] or plan["differs"])


def summary(plan: Json) -> str:
    """Summarise the steps, the most machines at once, and the duration."""
    counts = plan["summary"]
    parts = []
    for action in CHANGING:
        if not counts.get(action):
            continue
        part = f"{counts[action]} to {PHRASES.get(action, action)}"
        losing = [step["loses_data"] for step in plan["steps"] if step["action"] == action]
        if any(losing):
            part += " (data lost)" if all(losing) else f" ({sum(losing)} with data lost)"
        parts.append(part)
    if refused := [step for step in plan["steps"] if step["action"] == "refuse"]:
        would = "would" if any(step["certain"] for step in refused) else "may"
        parts.append(f"it {would} fail at {_names([step['resource'] for step in refused])}")
    if not parts:
        return "No resource changes." if plan["differs"] else "Nothing changes."
    if at_once := plan["machines_at_once"]:
        count = plan["machines"]
        machines = f"{count} machine{'' if count == 1 else 's'}, at most {at_once} at once"
        takes = duration(plan["takes"]) or "no experience yet how long that takes"
        if begins := plan.get("begins_at"):
            end = f"about {_moment(plan['ends_at'])}" if plan["ends_at"] else "not known"
            takes = f"{takes}; begins: {_moment(begins)}, ends: {end}"
        return f"{', '.join(parts)}; {machines}; {takes}."
    return f"{', '.join(parts)}."


def _moment(text: str) -> str:
    """Return a time in ISO 8601 as it is read best, such as Sat 2026-12-05 22:00 +0100."""
    return f"{datetime.fromisoformat(text):%a %Y-%m-%d %H:%M %z}"


def duration(takes: Json | None) -> str:
    if takes is None:
        return ""
    return f"about {span(takes['median_s'])} (95 %: {span(takes['p95_s'])})"


def span(seconds: float) -> str:
    if seconds < 0.1:
        return "0.1 s"
    if seconds < MINUTE_S:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < HOUR_S:
        return f"{seconds / MINUTE_S:.0f} min"
    return f"{seconds / HOUR_S:.1f} h"
