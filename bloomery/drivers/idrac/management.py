"""Management of Dell machines: redfish's, and steps that bring an iDRAC into a usable state."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from bloomery.conductor.states import State
from bloomery.drivers import base, steps, substeps
from bloomery.drivers.idrac import jobs, oem, reset
from bloomery.drivers.redfish.management import RedfishManagement
from bloomery.outcome import Outcome

LOG = logging.getLogger(__name__)
M = TypeVar("M", bound=Callable[..., Any])


def _step(method: M) -> M:
    """Offer a method for cleaning and verifying, on request and without an agent."""
    clean = steps.clean_step(priority=0, requires_ramdisk=False, resumable=True)
    return clean(steps.verify_step(priority=0)(method))


class IdracManagement(jobs.JobQueueInterface, RedfishManagement):
    @_step
    def clear_job_queue(self, task: base.DriverTask) -> None:
        """Delete the iDRAC's jobs that do not run yet.

        An iDRAC without a job service is left alone while its node is verified.
        """
        is_verified = task.node.provision_state == State.VERIFYING
        if is_verified and not self.access.read(task, _has_queue):
            LOG.warning("node %s: the BMC has no job queue to clear", task.node.uuid)
            return
        self.access.change(task, jobs.clear, repeatable=True)

    @_step
    def reset_idrac(self, task: base.DriverTask) -> Outcome | None:
        """Restart the iDRAC, and wait until it is ready."""
        return reset.run(self.access, task)

    @_step
    def known_good_state(self, task: base.DriverTask) -> Outcome:
        """Restart the iDRAC, then clear its job queue."""
        return substeps.run_in_order(
            task,
            "idrac_good_state",
            lambda: self.reset_idrac(task),
            lambda: self.clear_job_queue(task),
        )


def _has_queue(system: Any) -> bool:
    return bool(oem.service(system, jobs.SERVICE))
