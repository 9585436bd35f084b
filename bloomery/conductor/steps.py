"""Steps: which ones a flow runs and in which order, those of the conductor, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import ports
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import hardware
from bloomery.model.node import STEP_INTERFACES
from bloomery.model.step import Step
from bloomery.outcome import DONE, Again, Hold, Outcome, WaitForCall

UserStep = Mapping[str, Any]  # {"interface": ..., "step": ..., "args": ..., "priority": ...}

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


# ------------------------------------------------------------------------ which ones, in order


def available_steps(task: TaskManager, phase: str) -> list[Step]:
    """Return every step that the node's interfaces offer in ``phase``, in no order."""
    order = _ORDER.get(phase, _DEFAULT_ORDER)
    return [step for kind in order for step in task.driver.interface(kind).steps(phase)]


def by_priority(steps: Iterable[Step], phase: str) -> list[Step]:
    """Return the steps that run by themselves, the highest priority first."""
    order = _ORDER.get(phase, _DEFAULT_ORDER)
    enabled = [step for step in steps if step.priority > 0]
    return sorted(enabled, key=lambda s: (s.priority, order[s.interface]), reverse=True)


def override(steps: Iterable[Step], priorities: Mapping[str, str]) -> list[Step]:
    """Apply the operator's ``interface.step:priority`` settings; 0 switches a step off."""
    return [replace(step, priority=int(priorities.get(step.name, step.priority))) for step in steps]


def validated_user_steps(
    task: TaskManager, phase: str, user_steps: Sequence[UserStep], *, tolerant: bool = False
) -> list[Step]:
    """Return the steps that a user asked for, in the user's order, with their arguments sealed.

    Raises StepNotFound, InvalidParameterValue (arguments); ``tolerant``: unknown steps are
    left out instead.
    """
    steps_by_name = _known_steps(task, phase, user_steps)
    unknown = [name for name in map(_name, user_steps) if name not in steps_by_name]
    if unknown and not tolerant:
        raise errors.StepNotFound(
            verb=phase, node=task.node.uuid, steps=", ".join(unknown),
            offered=", ".join(sorted(steps_by_name)) or "none",
        )  # fmt: skip
    return [
        _with_args(task, steps_by_name[_name(user_step)], user_step)
        for user_step in user_steps
        if _name(user_step) in steps_by_name
    ]


def raw_user_steps(task: TaskManager, phase: str, user_steps: Sequence[UserStep]) -> list[Step]:
    """Return the steps in the user's order, unknown ones as they are.

    Those fail at their turn, so that the steps before them still run.
    """
    steps_by_name = _known_steps(task, phase, user_steps)
    steps = []
    for user_step in user_steps:
        unknown = Step(interface=user_step["interface"], step=user_step["step"])
        args = task.runtime.sealer.seal(dict(user_step.get("args") or {}))
        steps.append(replace(steps_by_name.get(_name(user_step), unknown), args=args))
    return steps


def _name(user_step: UserStep) -> str:
    return f"{user_step['interface']}.{user_step['step']}"


def _known_steps(task: TaskManager, phase: str, user_steps: Sequence[UserStep]) -> dict[str, Step]:
    """The steps by name: those of the interfaces, and those of the conductor on any of them."""
    steps_by_name = {step.name: step for step in available_steps(task, phase)}
    for user_step in user_steps:
        if user_step["step"] in RESERVED:
            steps_by_name[_name(user_step)] = Step(
                interface=user_step["interface"],
                step=user_step["step"],
                abortable=True,
                requires_ramdisk=False,
                argsinfo=_RESERVED_ARGSINFO.get(user_step["step"]),
                resumable=True,
            )
    return steps_by_name


def _with_args(task: TaskManager, step: Step, user_step: UserStep) -> Step:
    args = dict(user_step.get("args") or {})
    _check_args(step, args)
    priority = int(user_step.get("priority", step.priority))
    return replace(step, args=task.runtime.sealer.seal(args), priority=priority)


def _check_args(step: Step, args: Mapping[str, Any]) -> None:
    """Raise InvalidParameterValue for arguments that the step does not know, or lacks."""
    argsinfo = step.argsinfo or {}
    unexpected = sorted(set(args) - set(argsinfo))
    missing = sorted(
        name for name, info in argsinfo.items() if info.get("required") and name not in args
    )
    if unexpected or missing:
        faults = [f"unexpected arguments: {', '.join(unexpected)}"] if unexpected else []
        faults += [f"missing arguments: {', '.join(missing)}"] if missing else []
        raise errors.InvalidParameterValue(reason=f"step {step.name} has {'; '.join(faults)}")


# ------------------------------------------------------------------------- of the conductor


def _power_on(task: TaskManager) -> Outcome:
    return task.driver.power.set_power_state(task, Power.ON)


def _power_off(task: TaskManager) -> Outcome:
    return task.driver.power.set_power_state(task, Power.OFF)


def _reboot(task: TaskManager) -> Outcome:
    return task.driver.power.reboot(task)


def _hold(task: TaskManager) -> Outcome:
    return Hold(reason="a hold step: unhold the node to go on, or abort")


def _wait(task: TaskManager, seconds: float | None = None) -> Outcome:
    """Wait so many seconds, or for the next call of the agent."""
    if seconds is None:
        return WaitForCall(reason="a wait step: goes on when the agent calls")
    if task.turn:
        return DONE
    limit_s = task.runtime.conf.conductor.max_conductor_wait_step_seconds
    return Again(after_s=min(float(seconds), limit_s), reason=f"a wait step of {seconds} s")


# By the same name on every interface, in any list that a user gives.
RESERVED: Final[dict[str, Callable[..., Outcome]]] = {
    "power_on": _power_on,
    "power_off": _power_off,
    "reboot": _reboot,
    "hold": _hold,
    "wait": _wait,
}
_RESERVED_ARGSINFO: Final[dict[str, dict[str, Any]]] = {
    "wait": {"seconds": {"description": "how long; left out: until the agent calls"}},
}


# ------------------------------------------------------------------------------ their results

_STORES: Final[dict[str, Callable[..., None]]] = {
    "inventory": hardware.replace_inventory,
    "bios_settings": hardware.replace_bios_settings,
    "firmware": hardware.replace_firmware,
    "ports": ports.add_missing,
}


def store_result(task: TaskManager, result: Mapping[str, Any]) -> list[EncodedWrite]:
    """Set the node's fields that a step's result names; return the writes for its other parts.

    ``node``: fields of the node itself, set at once; ``inventory``: {"inventory": ...,
    "plugin_data": ...}; ``bios_settings`` and ``firmware``: lists of rows; ``ports``: MAC
    addresses.  The writes belong into the transaction that ends the step.
    """
    for name, value in result.get("node", {}).items():
        setattr(task.node, name, value)
    uuid = task.node.uuid
    return [
        lambda conn, store=store, part=result[name]: store(conn, uuid, part)  # type: ignore[misc]
        for name, store in _STORES.items()
        if name in result
    ]
