"""Polls of single nodes, shared by periodics: the node may be gone, busy or changed by now."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import task_manager
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.request import IN_LOG, Request

LOG = logging.getLogger(__name__)


def context_of(runtime: ConductorRuntime) -> Context:
    """A context of our own, and no thread of the API: the request that log lines name already."""
    current = IN_LOG.get()
    request = Request.new() if current is None else Request(request_id=current.request_id)
    return Context(runtime=runtime, request=request, in_place=True)


@contextlib.contextmanager
def skipping(uuid: str) -> Iterator[None]:
    """Leave a node alone that is gone or busy, or of a driver that is not enabled any more.

    Where no worker is free it is left to the next run.  Whatever else its row or its driver
    makes go wrong is logged: no row may keep a job from the others.
    """
    try:
        yield
    except (
        errors.NodeNotFound, errors.NodeLocked, errors.LockLost, errors.NoFreeConductorWorker,
    ) as gone:  # fmt: skip
        LOG.debug("node %s: left out: %s", uuid, gone)
    except (errors.DriverNotFound, errors.Invalid) as unusable:
        LOG.warning("node %s: cannot be looked at: %s", uuid, unusable)
    except (errors.DatabaseBusy, sa.exc.DBAPIError):
        raise  # not the row's fault
    except Exception as exc:  # noqa: BLE001  the supervisor of one look
        LOG.error("node %s: the look failed: %s", uuid, secrets.report(exc))  # noqa: TRY400  masked


def poll(context: Context, uuid: str, budget_s: float | None = None) -> TaskManager:
    """Return a task that reads; ``budget_s``: what a call to the BMC may take at most."""
    return task_manager.acquire(context, uuid, shared=True, budget_s=budget_s)
