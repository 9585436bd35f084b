"""Rescue: boot a node into a ramdisk with a login for its user, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import cleanup
from bloomery.conductor.phase import FlowFailure, Phase, Transition, ends_with
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.node import Node
from bloomery.model.request import ProvisionArguments
from bloomery.model.rules import agents
from bloomery.model.step import Run, internal_step

RESCUE_STEP: Final = internal_step("rescue", "rescue")
UNRESCUE_STEP: Final = internal_step("rescue", "unrescue")
_PASSWORDS: Final = ("rescue_password", "hashed_rescue_password")


def check(task: TaskManager, arguments: ProvisionArguments, action: str = "rescue") -> None:
    """Raise unless the node may be rescued, or unrescued."""
    node = task.node
    try:
        task.driver.power.validate(task)
        task.driver.rescue.validate(task)
        task.driver.network.validate(task)
    except errors.Failure as exc:
        raise errors.InstanceRescueFailure(
            action=action, node=errors.name_of(node), reason=str(exc)
        ) from exc


def begin(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Store the password, sealed, until the ramdisk has it."""
    cleanup.wipe_internal_info(task)
    sealed = task.runtime.sealer.seal({"rescue_password": arguments.rescue_password or ""})
    task.node.instance_info = task.node.instance_info | sealed


def forget_password(node: Node) -> None:
    kept = {name: v for name, v in node.instance_info.items() if name not in _PASSWORDS}
    node.instance_info = kept


def clean_up(task: TaskManager) -> str | None:
    """Undo a rescue; return the error, if any."""
    return cleanup.tidy_in_turns(task, task.driver.rescue.clean_up)


def _finish_unrescue(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    forget_password(task.node)
    cleanup.wipe_internal_info(task)
    return Transition(event="done")


def _fail(task: TaskManager, failure: FlowFailure) -> Transition:
    has_agent = agents.has_session(task.node.driver_internal_info)
    if has_agent or failure.run.state == Run.WAITING:  # the ramdisk sent no heartbeat
        cleanup.power_off(task)
        clean_up(task)
    forget_password(task.node)
    return Transition(event="fail", last_error=failure.sentence)


RESCUE: Final = Phase(
    name="rescue",
    own_steps={"rescue": lambda task: task.driver.rescue.rescue(task)},
    finish=ends_with("done"),
    fail=_fail,
)
UNRESCUE: Final = Phase(
    name="unrescue",
    own_steps={"unrescue": lambda task: task.driver.rescue.unrescue(task)},
    finish=_finish_unrescue,
    fail=_fail,
)
