"""How RPC calls and periodics get a node: exclusively, shared, or in a worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import task_manager
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.drivers.agent_boot import http_client
from bloomery.drivers.base import Management, RemoteFile
from bloomery.model.request import IN_LOG, PARKING, Request

LOG = logging.getLogger(__name__)

T = TypeVar("T")

_API_CALL_S: Final = 30.0  # longest call to a BMC within an API request


def exclusive(context: Context, node_uuid: str, purpose: str, *, late: bool = False) -> TaskManager:
    """Return an exclusive task that also calls a BMC in back-off; ``late``: see TaskManager.

    Raises NodeLocked.
    """
    return task_manager.acquire(context, node_uuid, purpose=purpose, insists=True, late=late)


@contextmanager
def order(
    context: Context, node_uuid: str, purpose: str, *, late: bool = False
) -> Iterator[tuple[TaskManager, Slot]]:
    """Reserve a worker, then the node, so that a full pool fails before any write.

    Raises NoFreeConductorWorker, NodeLocked.
    """
    with (
        context.runtime.workers.slot() as slot,
        exclusive(context, node_uuid, purpose, late=late) as task,
    ):
        yield task, slot


def shared(context: Context, node_uuid: str, budget_s: float | None = None) -> TaskManager:
    """Return a shared task, which takes no lock; ``budget_s`` limits each call to the BMC."""
    return task_manager.acquire(context, node_uuid, shared=True, budget_s=budget_s)


def in_worker(
    context: Context,
    node_uuid: str,
    work: Callable[[TaskManager], T],
    *,
    purpose: str,
    shared: bool = False,
    insists: bool = False,
) -> T:
    """Run ``work`` with the node in a worker, where it may ask a BMC; return its result.

    Raises the errors of ``result_in_worker`` and ``work``.  ``insists``: also call a BMC in
    back-off.
    """
    in_place = replace(context, in_place=True)

    def with_node() -> T:
        with task_manager.acquire(
            in_place, node_uuid, shared=shared, purpose=purpose, insists=insists,
            budget_s=_API_CALL_S,
        ) as task:  # fmt: skip
            return work(task)

    return result_in_worker(context.runtime, f"{purpose} of node {node_uuid}", with_node)


def ask_management(
    context: Context,
    node_uuid: str,
    purpose: str,
    call: Callable[[TaskManager, Management], T],
    *,
    shared: bool = False,
    insists: bool = False,
) -> T:
    """Return what ``call`` gets from the validated management interface, in a worker."""

    def work(task: TaskManager) -> T:
        task.driver.management.validate(task)
        return call(task, task.driver.management)

    return in_worker(context, node_uuid, work, purpose=purpose, shared=shared, insists=insists)


def look_at(runtime: ConductorRuntime, files: Sequence[RemoteFile]) -> dict[str, Any]:
    """Look at remote files in a worker; return what was read of them.

    Raises InvalidParameterValue.

    One request looks once at the same files, for however many nodes.
    """
    if not files:
        return {}
    names = ", ".join(secrets.mask_address(file.url) for file in files)
    work = partial(http_client.look, runtime.conf, files)
    return result_in_worker(runtime, f"look at {names}", work)


def result_in_worker(runtime: ConductorRuntime, purpose: str, work: Callable[[], T]) -> T:
    """Return the result of ``work``, run in a worker.

    A request of the API is parked meanwhile; other callers' threads wait in a place.  Raises
    ApiThreadsBusy and NoFreeConductorWorker at once, and Parked.
    """
    parking = PARKING.get()
    if parking is not None:
        return parking.result_of(purpose, lambda: runtime.begin_parked(purpose, work))
    with runtime.workers.slot() as slot, runtime.waiting_place(purpose):
        return slot.spawn(work).result()


# ----------------------------------------------------------------------------------- periodics


def background_context(runtime: ConductorRuntime) -> Context:
    """Return a context without an API thread, under the request ID of the current log lines."""
    current = IN_LOG.get()
    request = Request.new() if current is None else Request(request_id=current.request_id)
    return Context(runtime=runtime, request=request, in_place=True)


@contextmanager
def skipping(uuid: str) -> Iterator[None]:
    """Skip a node that is gone, reserved or without an enabled driver, or while no worker is free.

    Any other error of its row or driver is logged, so that one node stops no job.
    """
    try:
        yield
    except (
        errors.NodeNotFound, errors.NodeLocked, errors.LockLost, errors.NoFreeConductorWorker,
    ) as gone:  # fmt: skip
        LOG.debug("node %s: skipped: %s", uuid, gone)
    except (errors.DriverNotFound, errors.Invalid) as unusable:
        LOG.warning("node %s: cannot poll it: %s", uuid, unusable)
    except (errors.DatabaseBusy, sa.exc.DBAPIError):
        raise  # the database failed, not the node
    except Exception as exc:  # noqa: BLE001  the supervisor of one poll
        LOG.error("node %s: poll failed: %s", uuid, secrets.report(exc))  # noqa: TRY400  masked
