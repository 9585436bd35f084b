"""Virtual media on request: a flow of one step that moves no provision state.

A failure goes to last_error and to the history: the caller was answered long before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import runner, writes
from bloomery.conductor.phase import FlowFailure, Phase, Transition
from bloomery.conductor.runner import Flow
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import EncodedWrite
from bloomery.model.step import internal_step
from bloomery.outcome import Outcome

_POWER_FAILURE: Final = "power failure"


def start_attach(task: TaskManager, slot: Slot, device_type: str, image_url: str) -> None:
    """Let a flow begin that inserts an image; its address may hold a password, and is sealed."""
    sealed = task.runtime.sealer.seal_whole(image_url)
    _start(task, slot, "attach", {"device_type": device_type, "image": sealed})


def start_detach(task: TaskManager, slot: Slot, device_types: list[str] | None) -> None:
    """Let a flow begin that ejects what is in devices of these types; None: in all."""
    _start(task, slot, "detach", {"device_types": device_types})


def _start(task: TaskManager, slot: Slot, name: str, args: dict[str, Any]) -> None:
    """Raises TemporaryFailure while nobody reaches the BMC."""
    if task.node.maintenance and task.node.fault == _POWER_FAILURE:
        raise errors.TemporaryFailure(
            reason=f"Node {task.node.uuid} is in maintenance after a power failure: "
            "ask again when its BMC answers",
        )
    step = internal_step("management", name, args)
    runner.start(task, slot, VIRTUAL_MEDIA, step, _undo)


def _attach(task: TaskManager, device_type: str, image: Any) -> Outcome | None:
    task.driver.management.validate(task)
    address = task.runtime.sealer.open(image)
    return task.driver.management.attach_virtual_media(task, device_type, address)


def _detach(task: TaskManager, device_types: list[str] | None) -> Outcome | None:
    task.driver.management.validate(task)
    return task.driver.management.detach_virtual_media(task, device_types)


def _finish(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    return Transition(event=None)


def _fail(task: TaskManager, failure: FlowFailure) -> Transition:
    return Transition(event=None, writes=[_give_up(task, failure.sentence)])


def _undo(exc: Exception, flow: Flow) -> None:
    """No worker came: nothing was done, and the node says why."""
    flow.task.save(flow.cancelled, _give_up(flow.task, secrets.brief(exc)))


def _give_up(task: TaskManager, sentence: str) -> EncodedWrite:
    task.node.last_error = sentence
    return writes.history_entry(
        task.context, task.node, sentence, event_type="virtual media", failed=True
    )


VIRTUAL_MEDIA: Final = Phase(
    name="virtual_media",
    own_steps={"attach": _attach, "detach": _detach},
    finish=_finish,
    fail=_fail,
    urgent=True,
)
