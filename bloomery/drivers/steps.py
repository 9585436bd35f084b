"""Decorators that make a method of an interface a step of flows.

    class Erase(base.Deploy):
        @steps.clean_step(priority=10, resumable=True)
        def erase_devices(self, task: base.DriverTask) -> Outcome | None: ...

A method may have several.  A resumable step must be idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from bloomery import errors
from bloomery.model.step import Step

PHASES: Final = ("clean", "deploy", "service", "verify")
BIOS_SETTINGS: Final = {  # arguments of bios.apply_configuration
    "settings": {
        "description": "list of {name, value}",
        "required": True,
        "items": {
            "name": {"description": "of the setting", "required": True},
            "value": {"description": "to set", "required": True},
        },
    },
}
M = TypeVar("M", bound=Callable[..., Any])


def _mark(phase: str, **facts: Any) -> Callable[[M], M]:
    def mark(method: M) -> M:
        marks: dict[str, dict[str, Any]] = getattr(method, "step_marks", {})
        method.step_marks = marks | {phase: facts}  # type: ignore[attr-defined]
        return method

    return mark


def clean_step(
    priority: int,
    *,
    abortable: bool = False,
    argsinfo: dict[str, Any] | None = None,
    requires_ramdisk: bool = True,
    resumable: bool = False,
) -> Callable[[M], M]:
    """Offer a method for cleaning: ``def name(self, task, **args) -> Outcome | None``.

    ``priority``: automated cleaning runs steps from high to low; 0: only on request. ``abortable``:
    the verb abort may stop the step while it waits. ``argsinfo``: {argument: {"description": text,
    "required": bool}}; others are refused; "items" is the same for the entries of a list, with a
    "type" for those that are no texts. ``requires_ramdisk``: an agent must run; a service without
    such steps boots none. ``resumable``: the step may be called again after a crash, or after
    silence of the BMC; otherwise its flow fails.
    """
    return _mark(
        "clean", priority=priority, abortable=abortable, argsinfo=argsinfo,
        requires_ramdisk=requires_ramdisk, resumable=resumable,
    )  # fmt: skip


def deploy_step(
    priority: int,
    *,
    abortable: bool = True,
    argsinfo: dict[str, Any] | None = None,
    resumable: bool = False,
) -> Callable[[M], M]:
    """Offer a method for deploying; arguments as of ``clean_step``, but it may be aborted.

    By Ironic's convention the image is written at 80, and the machine boots it at 20.
    """
    return _mark(
        "deploy", priority=priority, abortable=abortable, argsinfo=argsinfo, resumable=resumable,
    )  # fmt: skip


def service_step(
    *,
    abortable: bool = False,
    argsinfo: dict[str, Any] | None = None,
    requires_ramdisk: bool = True,
    resumable: bool = False,
) -> Callable[[M], M]:
    """Offer a method for servicing, which always runs on request; as of ``clean_step``."""
    return _mark(
        "service", priority=0, abortable=abortable, argsinfo=argsinfo,
        requires_ramdisk=requires_ramdisk, resumable=resumable,
    )  # fmt: skip


def out_of_band_step(argsinfo: dict[str, Any] | None = None) -> Callable[[M], M]:
    """Offer a method for cleaning, deploying and servicing, on request and without an agent."""

    def mark(method: M) -> M:
        facts: dict[str, Any] = {"argsinfo": argsinfo, "resumable": True}
        method = clean_step(priority=0, requires_ramdisk=False, **facts)(method)
        method = deploy_step(priority=0, **facts)(method)
        return service_step(requires_ramdisk=False, **facts)(method)

    return mark


def keeps_disks(method: M) -> M:
    """Declare of a step, in each of its phases, that it writes no disk."""
    marks: dict[str, dict[str, Any]] = method.step_marks  # type: ignore[attr-defined]
    method.step_marks = {  # type: ignore[attr-defined]
        phase: facts | {"keeps_disks": True} for phase, facts in marks.items()
    }
    return method


def verify_step(priority: int) -> Callable[[M], M]:
    """Offer a method for the verb manage; it may be repeated.

    A failure is recorded in the node's history, and the node becomes manageable.
    """
    return _mark("verify", priority=priority, resumable=True)


def is_step(method: object) -> bool:
    return hasattr(method, "step_marks")


def marked_in(cls: type, kind: str, phase: str) -> tuple[Step, ...]:
    """Return the steps of ``phase`` in a class of interfaces of ``kind``."""
    steps = []
    for name in dir(cls):
        facts = getattr(getattr(cls, name, None), "step_marks", {}).get(phase)
        if facts is not None:
            steps.append(Step(interface=kind, step=name, **facts))
    return tuple(steps)


def checked_entries(name: str, value: Any, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return a list of objects with these keys, of which the first is a text.

    Raises InvalidParameterValue.
    """
    if not isinstance(value, list) or not all(
        isinstance(each, dict) and set(keys) <= set(each) for each in value
    ):
        raise errors.InvalidParameterValue(
            reason=f"{name} takes a list of objects with {' and '.join(keys)}",
        )
    for each in value:
        if not isinstance(each[keys[0]], str) or not 0 < len(each[keys[0]]) <= 255:
            raise errors.InvalidParameterValue(
                reason=f"{name}: {keys[0]} takes a text of 1 to 255 characters",
            )
    return list(value)
