"""Background reads of the registries that explain the BIOS settings of newly verified machines.

A registry may be long, so that ``manage`` does not wait for it.  Nodes are read one after another:
the first of a model reads the registry, and the others share it.
"""

from __future__ import annotations

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import hardware
from bloomery.conductor.periodics import polling
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import State
from bloomery.db import hardware as rows


def run(runtime: ConductorRuntime) -> None:
    """Read the registries for all queued nodes; a node that fails waits for its next cleaning.

    A busy database ends the run; the remaining nodes wait for the next run.
    """
    for uuid in list(runtime.unexplained):
        runtime.unexplained.discard(uuid)  # first: a verification meanwhile queues it again
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
