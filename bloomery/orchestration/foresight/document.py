"""A plan as maps, lists and scalars, for previews, commands and pages.

    laid_out = schedule.schedule_of(plan, times_of)
    document(plan, laid_out)["summary"]   # {"create": 2, "rebuild": 1}

Each step comes after the steps that it waits for.  Secrets are masked before (foreseen.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.orchestration.foresight.schedule import Schedule, Step, Times, schedule_of
from bloomery.orchestration.plan import plans
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Difference, Key, Plan, Verb

SHOWN_NAMES: Final = 5  # of machines that a warning names


def of_templates(plan: Plan) -> dict[str, Any]:
    return document(plan, schedule_of(plan, lambda key, action: None), {}, {}, {})


def document(
    plan: Plan,
    schedule: Schedule,
    machines: Mapping[Key, str],
    nodes: Mapping[str, str],
    names: Mapping[str, str | None],
) -> dict[str, Any]:
    """Return the document of a plan.

    ``machines``: known UUIDs of nodes; ``nodes``: UUIDs by the name in a template; ``names``: of
    nodes by UUID.
    """
    counts: dict[str, int] = {}
    steps, working = [], set[str | Key]()
    for step in schedule.steps:
        action, effect, machine = step.action, step.action.effect, machines.get(step.key)
        counts[step.verb] = counts.get(step.verb, 0) + 1
        if effect.verbs and step.works_at in machines:
            working.add(machines[step.works_at])
        elif effect.verbs:
            working.add(step.works_at if step.node is None else nodes.get(step.node, step.node))
        reasons = dict.fromkeys(part for part in (action.reason, effect.reason) if part)
        if step.opens_at is not None:
            reasons[f"waits for its window, from {step.opens_at:%a %Y-%m-%d %H:%M %Z}"] = None
        steps.append(
            {
                "resource": step.key.name,
                "type": action.type,
                "action": step.verb,
                "reason": "; ".join(reasons),
                "certain": step.is_certain,
                "stage": step.stage,
                "machine": machine,
                "node": names.get(machine or "") or machine,
                "leftover": step.key.phase == CLEAN and bool(step.key.part),
                "verbs": list(effect.verbs),
                "loses_data": effect.loses_data,
                "takes": _times(step.times),
                "pause_s": action.pause_s,
                "differences": [_difference(each) for each in action.differences],
            }
        )
    return {
        "steps": steps,
        "machines": len(working),
        "machines_at_once": min(schedule.at_once, len(working)),
        "loses_data": [
            str(step.key.name) for step in schedule.steps if step.action.effect.loses_data
        ],
        "takes": _times(schedule.times),
        "begins_at": schedule.begins_at and schedule.begins_at.isoformat(timespec="minutes"),
        "ends_at": schedule.ends_at and schedule.ends_at.isoformat(timespec="minutes"),
        "summary": counts,
        "warnings": [*plan.warnings, *warnings(schedule.steps)],
        "unchanged": [
            {"resource": key.name, "type": action.type}
            for key, action in plan
            if action.verb is Verb.UNCHANGED
        ],
        "outputs": {name: str(verb) for name, verb in plan.outputs.items()},
        "differs": plan.differs or bool(plan.outputs),
    }


def warnings(steps: Sequence[Step]) -> list[str]:
    """Warn of machines that are deleted, with data loss, before new machines are deployed.

    Replaced resources are left out: the new one comes first, unless the template says otherwise.
    """
    deployed = [step for step in steps if "active" in step.action.effect.verbs]
    names = {step.key.name for step in steps if step.key.phase == MAKE}
    early = [
        step for step in steps
        if step.action.verb is Verb.DELETE and step.action.effect.loses_data
        and step.key.name not in names and any(step.stage <= each.stage for each in deployed)
    ]  # fmt: skip
    if not early:
        return []
    last = max(deployed, key=lambda step: step.stage)
    their, them = ("its", "it") if len(early) == 1 else ("their", "them")
    gone = [step.key.name for step in early]
    more = f" and {len(gone) - SHOWN_NAMES} more" if len(gone) > SHOWN_NAMES else ""
    warning = (
        f"{', '.join(gone[:SHOWN_NAMES])}{more} would be given back before {last.key.name} is up, "
        f"and no rollback brings back what was on {their} disks: remove {them} in an update of "
        f"{their} own, after this one"
    )
    return [warning]


def _times(times: Times | None) -> dict[str, Any] | None:
    if times is None:
        return None
    return {"median_s": times.median_s, "p95_s": times.p95_s, "runs": times.runs}


def _difference(each: Difference) -> dict[str, Any]:
    entry = {"path": each.where, "before": _bare(each.before), "after": _bare(each.after)}
    if isinstance(each.after, plans.Unknown):
        entry["known_after"] = each.after.after
    if each.hidden:
        entry["hidden"] = each.hidden
    return entry | ({} if each.certain else {"certain": False})


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_bare(item) for item in value]
    return None if isinstance(value, plans.Unknown | plans.NotSet) else value
