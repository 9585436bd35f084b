"""Taking things away after a failure: as well as it goes, without hiding the first failure."""

from __future__ import annotations

import logging
from collections.abc import Callable

from bloomery import errors
from bloomery.conductor.task_manager import TaskManager

LOG = logging.getLogger(__name__)


def tidy(task: TaskManager, call: Callable[[TaskManager], object]) -> str | None:
    """Call a driver's clean-up; return what went wrong, if something did.  Raises LockLost."""
    try:
        call(task)
    except errors.LockLost:
        raise
    except Exception as exc:  # noqa: BLE001  drivers may raise anything; the flow fails anyway
        LOG.warning("node %s: cannot tidy up: %s", task.node.uuid, errors.brief(exc))
        return errors.brief(exc)
    return None
