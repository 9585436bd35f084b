"""The job queue of an iDRAC.

A change of BIOS or RAID settings becomes a job, which runs at the next boot.  Until then, the iDRAC
refuses further changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from bloomery.drivers.idrac import oem
from bloomery.drivers.redfish.hardware import RedfishInterface, T

LOG = logging.getLogger(__name__)

SERVICE: Final = "DellJobService"
_PENDING: Final = ("SYS011", "STOR023")  # message ids: a job of an earlier change is pending


class JobQueueInterface(RedfishInterface):
    """An interface whose changes clear the job queue where a pending job refuses them."""

    def unblocked(self, change: Callable[[Any], T]) -> Callable[[Any], T]:
        return lambda system: _change(system, change)


def clear(system: Any) -> None:
    """Delete the jobs that do not run yet.  Raises InvalidParameterValue where that is missing."""
    oem.act(system, SERVICE, "DeleteJobQueue", JobID="JID_CLEARALL")


def _change(system: Any, change: Callable[[Any], T]) -> T:
    import sushy

    try:
        return change(system)
    except sushy.exceptions.HTTPError as no:
        if not any(name in str(no.extended_info) for name in _PENDING):
            raise
        LOG.info("the job queue of %s is cleared: %s", system.path, no.detail)
    clear(system)
    return change(system)
