"""How a call from outside gets its node: exclusively, shared, or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from bloomery.conductor import task_manager
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.model.request import PARKING, Request

T = TypeVar("T")

_API_CALL_S: Final = 30.0  # that a caller of the API waits for one call to a BMC


def exclusive(
    runtime: ConductorRuntime, request: Request, node_uuid: str, purpose: str
) -> TaskManager:
    """Return a task that holds the node; it tries a BMC that is left alone.  Raises NodeLocked."""
    context = Context(runtime=runtime, request=request)
    return task_manager.acquire(context, node_uuid, purpose=purpose, insists=True)


@contextmanager
def order(
    runtime: ConductorRuntime, request: Request, node_uuid: str, purpose: str
) -> Iterator[tuple[TaskManager, Slot]]:
    """Take a worker's slot, then the node: a full pool is told with nothing written.

    Raises NoFreeConductorWorker, NodeLocked.
    """
    with runtime.workers.slot() as slot, exclusive(runtime, request, node_uuid, purpose) as task:
        yield task, slot


def shared(runtime: ConductorRuntime, request: Request, node_uuid: str) -> TaskManager:
    """Return a task that reads the node without a lock."""
    return task_manager.acquire(Context(runtime=runtime, request=request), node_uuid, shared=True)


def in_worker(
    runtime: ConductorRuntime,
    request: Request,
    node_uuid: str,
    work: Callable[[TaskManager], T],
    *,
    purpose: str,
    shared: bool = False,
    insists: bool = False,
) -> T:
    """Return what ``work``, which may ask a BMC, answers: it gets the node in a worker.

    Raises what ``result_in_worker`` and ``work`` raise, as it is.
    ``insists``: an order, which tries a BMC that is left alone; a look does not.
    """
    context = Context(runtime=runtime, request=request, in_place=True)

    def with_node() -> T:
        with task_manager.acquire(
            context, node_uuid, shared=shared, purpose=purpose, insists=insists,
            budget_s=_API_CALL_S,
        ) as task:  # fmt: skip
            return work(task)

    return result_in_worker(runtime, f"{purpose} of node {node_uuid}", with_node)


def result_in_worker(runtime: ConductorRuntime, purpose: str, work: Callable[[], T]) -> T:
    """Return what ``work`` answers in a worker.

    A request of the API is parked meanwhile.  Any other caller's thread waits, in a place of those
    that may.  Raises ApiThreadsBusy and NoFreeConductorWorker at once, and Parked.
    """
    parking = PARKING.get()
    if parking is not None:
        return parking.result_of(purpose, lambda: runtime.begin_parked(purpose, work))
    with runtime.workers.slot() as slot, runtime.waiting_place(purpose):
        return slot.spawn(work).result()
