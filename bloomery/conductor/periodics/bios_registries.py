"""Background reads of the registries that explain the BIOS settings of newly verified machines.

The registry of a model may be long, so that ``manage`` does not wait for it.  One node is looked
at after another: the first of a model reads the registry, and the others share it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import hardware
from bloomery.conductor.periodics import polling
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import State
from bloomery.db import hardware as rows


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    return partial(run, runtime)


def run(runtime: ConductorRuntime) -> None:
    """Explain the settings of each node that waits for it; one that fails is left to cleaning.

    A database that is busy ends the round; the nodes that are left wait for the next one.
    """
    for uuid in list(runtime.unexplained):
        runtime.unexplained.discard(uuid)  # first: verified anew meanwhile, it waits again
        try:
            with polling.skipping(uuid):
                _explain(runtime, uuid)
        except (errors.DatabaseBusy, sa.exc.DBAPIError):
            runtime.unexplained.add(uuid)
            raise


def _explain(runtime: ConductorRuntime, uuid: str) -> None:
    with polling.poll(polling.context_of(runtime), uuid) as task:
        if task.node.provision_state == State.VERIFYING:
            runtime.unexplained.add(uuid)  # its settings are not stored yet
            return
        settings = hardware.read_settings(task)
    if settings:
        runtime.db.transact(lambda conn: rows.explain_bios_settings(conn, uuid, settings))
