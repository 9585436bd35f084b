"""Delete the rows of conductors that went off line long ago."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import Final

from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import conductors, rows

LOG = logging.getLogger(__name__)

_LEAST_TIMEOUTS: Final = 3  # heartbeat_timeouts that make "long ago"


def run(runtime: ConductorRuntime) -> None:
    """Delete the rows in batches; the first conductor of the ring does it for all.

    Wall clocks decide, as the limit is in days.  A conductor that still holds a node, a flow or an
    allocation stays.
    """
    ours = runtime.conf.conductor
    if not runtime.ring.leads(runtime.host):
        return
    if ours.conductor_cleanup_timeout < _LEAST_TIMEOUTS * ours.heartbeat_timeout:
        LOG.warning(
            "cannot clean up conductors: [conductor]conductor_cleanup_timeout is less than %d "
            "times heartbeat_timeout", _LEAST_TIMEOUTS,
        )  # fmt: skip
        return
    before = rows.now() - timedelta(seconds=ours.conductor_cleanup_timeout)
    while True:
        with runtime.db.read() as conn:
            gone = conductors.list_gone(conn, before, at_most=ours.conductor_cleanup_batch_size)
        deleted = [
            conductor.hostname
            for conductor in gone
            if runtime.db.transact(partial(conductors.delete_gone, conductor=conductor))
        ]
        for hostname in deleted:
            LOG.warning("conductor %s is off line for long: row deleted", hostname)
        if not deleted:  # what is left came back meanwhile
            return
