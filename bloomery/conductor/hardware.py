"""The configuration of a machine as its BMC reports it: BIOS settings, and versions of firmware.

``manage`` reads it in a few requests.  What explains the settings (their types, what is allowed)
may be long, and is read soon after it, in the background; what is known of another machine of the
model is told at once.  A cleaning reads both.
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
    """Return them, too, but what explains the settings only as far as it is known.

    Where nothing is known, the periodic ``explain_bios`` reads it.
    """
    bios = task.driver.bios
    done = _read(task, bios.cache_bios_values)
    settings = done.result.get("bios_settings", ())
    reads_less = type(bios).cache_bios_values is not base.Bios.cache_bios_values
    if reads_less and not all(setting.get("attribute_type") for setting in settings):
        task.runtime.unexplained.add(task.node.uuid)
    return done


def read_settings(task: TaskManager) -> list[dict[str, Any]]:
    """Return the BIOS settings with all that explains them; [] where they cannot be read."""
    outcome = read_if_supported(task, task.driver.bios.cache_bios_settings)
    return outcome.result.get("bios_settings", []) if isinstance(outcome, Done) else []


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
