"""Which steps a flow runs, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import reserved_steps
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.node import STEP_INTERFACES
from bloomery.model.step import Step

# For equal priorities the higher number goes first (spec: interface order).
_ORDER: Final[dict[str, Mapping[str, int]]] = {
    "verify": {
        name: 13 - i
        for i, name in enumerate(
            (
                "power", "management", "firmware", "inspect", "deploy", "boot", "bios", "raid",
                "vendor", "network", "storage", "console", "rescue",
            ),
        )
    },
}  # fmt: skip
_DEFAULT_ORDER: Final = {name: 7 - i for i, name in enumerate(STEP_INTERFACES)}


def available_steps(task: TaskManager, phase: str) -> list[Step]:
    """Return every step that the node's interfaces offer in ``phase``, in no order."""
    order = _ORDER.get(phase, _DEFAULT_ORDER)
    return [step for kind in order for step in task.driver.interface(kind).steps(phase)]


def by_priority(steps: Iterable[Step], phase: str) -> list[Step]:
    """Return the steps that run by themselves, the highest priority first."""
    order = _ORDER.get(phase, _DEFAULT_ORDER)
    wanted = [step for step in steps if step.priority > 0]
    return sorted(wanted, key=lambda s: (s.priority, order[s.interface]), reverse=True)


def override(steps: Iterable[Step], priorities: Mapping[str, str]) -> list[Step]:
    """Apply the operator's ``interface.step:priority`` settings; 0 switches a step off."""
    return [replace(step, priority=int(priorities.get(step.name, step.priority))) for step in steps]


def validated_user_steps(
    task: TaskManager,
    phase: str,
    wanted: Sequence[Mapping[str, Any]],
    *,
    tolerant: bool = False,
) -> list[Step]:
    """Return the steps that a user asked for, in the user's order, with their arguments sealed.

    Raises StepNotFound, InvalidParameterValue (arguments); ``tolerant``: unknown steps are
    left out instead.
    """
    known = {step.name: step for step in available_steps(task, phase)} | _reserved(wanted)
    names = [_name(one) for one in wanted]
    unknown = [name for name in names if name not in known]
    if unknown and not tolerant:
        raise errors.StepNotFound(
            verb=phase, node=task.node.uuid, steps=", ".join(unknown),
            offered=", ".join(sorted(known)) or "none",
        )  # fmt: skip
    pairs = [(known[name], one) for name, one in zip(names, wanted, strict=True) if name in known]
    return [_with_args(task, step, one) for step, one in pairs]


def _name(one: Mapping[str, Any]) -> str:
    return f"{one['interface']}.{one['step']}"


def _reserved(wanted: Sequence[Mapping[str, Any]]) -> dict[str, Step]:
    """The steps of the conductor itself, which go by the same name on any interface."""
    return {
        _name(one): Step(
            interface=one["interface"],
            step=one["step"],
            abortable=True,
            requires_ramdisk=False,
            argsinfo=reserved_steps.ARGSINFO.get(one["step"]),
            resumable=True,
        )
        for one in wanted
        if one["step"] in reserved_steps.TABLE
    }


def raw_user_steps(
    task: TaskManager, phase: str, wanted: Sequence[Mapping[str, Any]]
) -> list[Step]:
    """Return the steps in the user's order, unknown ones as they are.

    Those fail at their turn, so that the steps before them still run.
    """
    known = {step.name: step for step in available_steps(task, phase)} | _reserved(wanted)
    found = []
    for one in wanted:
        plain = Step(interface=one["interface"], step=one["step"])
        step = known.get(_name(one), plain)
        found.append(replace(step, args=task.runtime.sealer.seal(dict(one.get("args") or {}))))
    return found


def _with_args(task: TaskManager, step: Step, one: Mapping[str, Any]) -> Step:
    args = dict(one.get("args") or {})
    _check_args(step, args)
    priority = int(one.get("priority", step.priority))
    return replace(step, args=task.runtime.sealer.seal(args), priority=priority)


def _check_args(step: Step, args: Mapping[str, Any]) -> None:
    """Raise InvalidParameterValue for arguments that the step does not know, or lacks."""
    known = step.argsinfo or {}
    unexpected = sorted(set(args) - set(known))
    missing = sorted(
        name for name, info in known.items() if info.get("required") and name not in args
    )
    if unexpected or missing:
        said = [f"unexpected arguments: {', '.join(unexpected)}"] if unexpected else []
        said += [f"missing arguments: {', '.join(missing)}"] if missing else []
        raise errors.InvalidParameterValue(reason=f"step {step.name} has {'; '.join(said)}")
