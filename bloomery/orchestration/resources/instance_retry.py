"""Retries of a failed deployment, on another node if the Instance has a selector.

    deployed -> deploy                                              on the same node
    deployed -> replace_node -> replaced_node -> reserve            on another one
    deployed -> quarantine -> look_after                            after a later success

A node whose deployment failed goes into maintenance after its cleaning, so that no other instance
gets it, if the stack owner may set maintenance.
"""

from __future__ import annotations

import contextlib
from typing import Final

from bloomery import errors
from bloomery.conductor.states import UNSTABLE_STATES
from bloomery.orchestration.resources import (
    allocation,
    base,
    instance_boot,
    instance_schema,
    instance_teardown,
    machines,
    stepwise,
)
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.stepwise import OnNode

FAILED: Final = "failed_nodes"  # last_error by UUID of a node
QUARANTINED: Final = "quarantined"  # failed nodes whose quarantine is settled
ABANDONED: Final = "given_up"  # a later traversal made the action useless: no further attempt
CLEANED_WITHIN_S: Final = 600.0  # a deployed instance waits this long for a failed node


def first_attempt(instance: OnNode) -> None:
    instance.record.data["attempt"] = 1
    for name in ("errors", FAILED, QUARANTINED, ABANDONED):
        instance.record.data.pop(name, None)


def _setting(instance: OnNode, name: str) -> int:
    retry = instance.properties["retry"] or {}
    value = retry.get(name)
    return int(instance_schema.RETRY[name].default if value is None else value)


def after_failure(instance: OnNode, node: Json) -> str:
    data = instance.record.data
    data["errors"] = [*data.get("errors", ()), str(node["last_error"])]
    ended = data["attempt"] >= _setting(instance, "attempts") or data.get(ABANDONED)
    if instance.record.action is not base.Action.CREATE or ended:
        _quarantine(instance)
        raise stepwise.MachineFailed("; ".join(data["errors"]))
    instance.note_move(node)
    if instance.properties["selector"] and _setting(instance, "other_node"):
        data.setdefault(FAILED, {})[node["uuid"]] = str(node["last_error"])
        return "replace_node"
    data["attempt"] += 1
    instance_boot.arm(instance)
    return "deploy"


def replace_node(instance: OnNode) -> str | None:
    instance.order("deleted")
    return "replaced_node"


def replaced_node(instance: OnNode) -> stepwise.Following:
    if instance_teardown.waits_for_teardown(instance, instance.get_node()):
        return instance.wait_in("teardown", "for the instance to go")
    allocation.withdraw(instance, str(instance.record.data["instance"]))
    instance.record.data["attempt"] += 1
    return "reserve"


def quarantine(instance: OnNode) -> stepwise.Following:
    if waits := _quarantine(instance):
        with contextlib.suppress(stepwise.MachineTimedOut):
            return instance.wait_for(waits, CLEANED_WITHIN_S, "for a failed node to be clean")
    return "look_after"


def _quarantine(instance: OnNode) -> str | None:
    data, waits = instance.record.data, None
    requirer = f"{instance.record.name} of stack {instance.context.stack_name}"
    remaining = {
        uuid: error for uuid, error in data.get(FAILED, {}).items()
        if uuid not in data.get(QUARANTINED, ()) and _setting(instance, "quarantine_failed")
    }  # fmt: skip
    for uuid, error in remaining.items():
        try:
            node = instance.machines.get_node(uuid)
            if node["provision_state"] in UNSTABLE_STATES:
                waits = uuid
                continue
            if node["instance_uuid"] is None and not node["maintenance"]:
                reason = f"cannot be deployed for {requirer} ({instance.context.stack_id}): {error}"
                instance.machines.set_maintenance(uuid, True, reason)
        except machines.Busy:
            waits = uuid
            continue
        except (errors.Forbidden, errors.NodeNotFound):
            pass  # not allowed, or the node is gone
        data.setdefault(QUARANTINED, []).append(uuid)
    return waits
