"""Virtual media on request: a flow of one step that keeps the provision state.

A failure goes to last_error and to the history.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.conductor import runner, tasks
from bloomery.conductor.phase import Phase, ends_with, records_failure
from bloomery.conductor.runtime import Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.drivers.agent_boot import http_client
from bloomery.drivers.base import RemoteFile
from bloomery.model.node import POWER_FAILURE
from bloomery.model.step import internal_step
from bloomery.outcome import Outcome


def attach(
    context: Context,
    node_uuid: str,
    device_type: str,
    image_url: str,
    image_download_source: str | None,
) -> None:
    """Start a flow that inserts an image; its URL is sealed, as it may hold a password."""
    runtime = context.runtime
    file = RemoteFile(name="image_url", url=image_url)
    tasks.look_at(runtime, http_client.list_checkable(runtime.conf, [file]))
    with tasks.order(context, node_uuid, "attach media") as (task, slot):
        sealed = runtime.sealer.seal_whole(image_url)
        _start(task, slot, "attach", {"device_type": device_type, "image": sealed})


def detach(context: Context, node_uuid: str, device_types: list[str] | None) -> None:
    with tasks.order(context, node_uuid, "detach media") as (task, slot):
        _start(task, slot, "detach", {"device_types": device_types})


def get(context: Context, node_uuid: str) -> list[dict[str, Any]]:
    return tasks.ask_management(
        context, node_uuid, "list media",
        lambda task, management: list(management.get_virtual_media(task)), shared=True,
    )  # fmt: skip


def _start(task: TaskManager, slot: Slot, name: str, args: dict[str, Any]) -> None:
    """Start a flow.  Raises TemporaryFailure while the BMC does not answer."""
    if task.node.maintenance and task.node.fault == POWER_FAILURE:
        raise errors.TemporaryFailure(
            reason=f"Node {errors.name_of(task.node)} is in maintenance after a power failure: "
            "ask again when its BMC answers",
        )
    step = internal_step("management", name, args)
    runner.start(task, slot, VIRTUAL_MEDIA, step)


def _attach(task: TaskManager, device_type: str, image: Any) -> Outcome | None:
    task.driver.management.validate(task)
    address = task.runtime.sealer.open(image)
    return task.driver.management.attach_virtual_media(task, device_type, address)


def _detach(task: TaskManager, device_types: list[str] | None) -> Outcome | None:
    task.driver.management.validate(task)
    return task.driver.management.detach_virtual_media(task, device_types)


VIRTUAL_MEDIA: Final = Phase(
    name="virtual_media",
    own_steps={"attach": _attach, "detach": _detach},
    finish=ends_with(None),
    fail=records_failure("virtual media"),
    urgent=True,
)
