"""The configuration of a machine as its BMC reports it: BIOS settings and firmware versions.

``manage`` reads it in a few requests.  The attribute registry, which explains the settings, may be
long: it is read later in the background, or taken from another machine of the same model.  A
cleaning reads both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import tasks
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import hardware
from bloomery.drivers import base
from bloomery.outcome import Done, Outcome

LOG = logging.getLogger(__name__)
T = TypeVar("T")


def is_read(driver: base.Driver) -> bool:
    """Return whether the driver reads settings or versions; else cleaning needs no step for it."""
    return (
        type(driver.bios).cache_bios_settings is not base.Bios.cache_bios_settings
        or type(driver.firmware).cache_firmware_components
        is not base.Firmware.cache_firmware_components
    )


def read(task: TaskManager) -> Done:
    """Return settings and versions for storage; log unreadable parts."""
    driver = task.driver
    return _read(task, driver.bios.cache_bios_settings, driver.firmware.cache_firmware_components)


def read_in_short(task: TaskManager) -> Done:
    """Return settings and versions; attribute types only where the registry is cached.

    The periodic ``explain_bios`` reads a missing registry.
    """
    bios = task.driver.bios
    done = _read(task, bios.cache_bios_values, task.driver.firmware.cache_firmware_versions)
    settings = done.result.get("bios_settings", ())
    reads_less = type(bios).cache_bios_values is not base.Bios.cache_bios_values
    if reads_less and not all(setting.get("attribute_type") for setting in settings):
        task.runtime.unexplained.add(task.node.uuid)
    return done


def explain_bios(runtime: ConductorRuntime) -> None:
    """Read the registries for all queued nodes; a node that fails waits for its next cleaning.

    Nodes are read one after another: the first of a model reads the registry, and the others share
    it.  A busy database ends the run; the remaining nodes wait for the next run.
    """
    for uuid in list(runtime.unexplained):
        runtime.unexplained.discard(uuid)  # first: a verification meanwhile queues it again
        try:
            with tasks.skipping(uuid):
                with tasks.shared(tasks.background_context(runtime), uuid) as task:
                    if task.node.provision_state == State.VERIFYING:
                        runtime.unexplained.add(uuid)  # its settings are not stored yet
                        continue
                    outcome = read_if_supported(task, task.driver.bios.cache_bios_settings)
                result = outcome.result if isinstance(outcome, Done) else {}
                if settings := result.get("bios_settings"):
                    explain = partial(
                        hardware.explain_bios_settings, node_uuid=uuid, settings=settings
                    )
                    runtime.db.transact(explain)
        except (errors.DatabaseBusy, sa.exc.DBAPIError):
            runtime.unexplained.add(uuid)
            raise


def _read(task: TaskManager, *parts: Callable[[base.DriverTask], Outcome | None]) -> Done:
    result: dict[str, Any] = {}
    for read_part in parts:
        outcome = read_if_supported(task, read_part)
        result |= outcome.result if isinstance(outcome, Done) else {}
    return Done(result=result)


def read_if_supported(task: TaskManager, read_part: Callable[[base.DriverTask], T]) -> T | None:
    """Return what the driver reads, or None if the driver or the BMC cannot."""
    try:
        return read_part(task)
    except errors.UnsupportedDriverExtension:
        return None
    except errors.Failure as exc:
        LOG.warning("node %s: cannot read %s: %s", task.node.uuid, read_part.__name__, exc)
        return None
