"""Polls of single nodes, shared by periodics; a node may be gone, busy or changed."""

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
    """Return a context without an API thread, under the request ID of the current log lines."""
    current = IN_LOG.get()
    request = Request.new() if current is None else Request(request_id=current.request_id)
    return Context(runtime=runtime, request=request, in_place=True)


@contextlib.contextmanager
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


def poll(context: Context, uuid: str, budget_s: float | None = None) -> TaskManager:
    """Return a shared task; ``budget_s`` limits each call to the BMC."""
    return task_manager.acquire(context, uuid, shared=True, budget_s=budget_s)
