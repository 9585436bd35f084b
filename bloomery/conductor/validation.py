"""Validation of a node: missing values, ineffective settings, a shared BMC."""

from __future__ import annotations

import logging
from typing import Any

from bloomery import errors
from bloomery.conductor import bmc_sharing
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.node import INTERFACES
from bloomery.model.rules import nodes as rules

Json = dict[str, Any]


def validate(task: TaskManager) -> Json:
    """Return result and reason for each interface but ``vendor``; asks no BMC.

    Only validation errors are reported.
    """
    results: Json = {}
    disallowed = task.runtime.conf.conductor.disallowed_deployment_boot_modes
    for kind in INTERFACES:
        if kind == "vendor":
            continue
        try:
            if kind == "deploy":
                rules.check_instance(task.node, disallowed)
            task.driver.interface(kind).validate(task)
        except errors.Invalid as exc:
            hint = describe_misspelt(task) if kind == "power" else ""
            reason = "; ".join(filter(None, (str(exc), hint)))
            results[kind] = {"result": False, "reason": reason}
            continue
        reasons = [_ineffective(task, kind)]
        if kind == "deploy":
            reasons += rules.list_doubts(task.node)
        if kind == "power":
            shared = bmc_sharing.describe(task.context, task.node)
            reasons += [shared or "", describe_misspelt(task)]
        reason = "; ".join(filter(None, reasons))
        results[kind] = {"result": True} | ({"reason": reason} if reason else {})
    return results


def _ineffective(task: TaskManager, kind: str) -> str:
    names = task.driver.interface(kind).list_ineffective(task)
    if not names:
        return ""
    own = getattr(task.node, f"{kind}_interface")
    return f"{kind} interface {own} does not carry out: {', '.join(names)}"


def describe_misspelt(task: TaskManager) -> str:
    """Name the keys of driver_info that no interface reads, each with the key that it resembles.

    Keys that resemble none are left out: a driver may read more than it declares.
    """
    info = task.node.driver_info
    declared = {key for kind in INTERFACES for key in task.driver.interface(kind).get_properties()}
    sentences = [
        f"driver_info/{key} is no key of driver {task.node.driver}.{guess}"
        for key in sorted(info.keys() - declared)
        if (guess := errors.nearest(key, sorted(declared - info.keys())))
    ]
    return " ".join(sentences)


def warn(task: TaskManager) -> None:
    """Log the ineffective settings of a node."""
    for kind in INTERFACES:
        if sentence := _ineffective(task, kind):
            task.log("%s", sentence, level=logging.WARNING)
