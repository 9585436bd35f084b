"""What the BMC tells of how a machine is configured: BIOS settings, and versions of firmware.

``manage`` reads it in a few requests.  What explains the settings (their types, what is allowed)
may be long, and is read by a cleaning, which has the time; until then only what is known of
another machine of the model is told with them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from bloomery import errors
from bloomery.conductor.task_manager import TaskManager
from bloomery.drivers import base
from bloomery.outcome import Done, Outcome

LOG = logging.getLogger(__name__)
T = TypeVar("T")


def is_read(driver: base.Driver) -> bool:
    """Tell whether the driver reads any of it: no cleaning needs a step for nothing."""
    return (
        type(driver.bios).cache_bios_settings is not base.Bios.cache_bios_settings
        or type(driver.firmware).cache_firmware_components
        is not base.Firmware.cache_firmware_components
    )


def read(task: TaskManager) -> Done:
    """Return settings and versions, to be stored; what cannot be read fails nothing."""
    return _read(task, task.driver.bios.cache_bios_settings)


def read_in_short(task: TaskManager) -> Done:
    """Return them, too, but what explains the settings only as far as it is known."""
    return _read(task, task.driver.bios.cache_bios_values)


def _read(task: TaskManager, read_settings: Callable[[base.DriverTask], Outcome | None]) -> Done:
    result: dict[str, Any] = {}
    for read_part in (read_settings, task.driver.firmware.cache_firmware_components):
        outcome = read_if_supported(task, read_part)
        result |= outcome.result if isinstance(outcome, Done) else {}
    return Done(result=result)


def read_if_supported(task: TaskManager, read_part: Callable[[base.DriverTask], T]) -> T | None:
    """Return what the driver reads; None where it cannot, or the BMC does not tell."""
    try:
        return read_part(task)
    except errors.UnsupportedDriverExtension:
        return None
    except errors.Failure as exc:
        LOG.warning("node %s: cannot read %s: %s", task.node.uuid, read_part.__name__, exc)
        return None
