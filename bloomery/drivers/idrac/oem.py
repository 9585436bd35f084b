"""Dell's services of an iDRAC, which its manager links to, their actions, and its job queue.

A change of BIOS or RAID settings becomes a job, which runs at the next boot.  Until then, the iDRAC
refuses further changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.hardware import RedfishInterface, T

LOG = logging.getLogger(__name__)
Json: TypeAlias = dict[str, Any]

JOB_SERVICE: Final = "DellJobService"
_PENDING: Final = ("SYS011", "STOR023")  # message ids: a job of an earlier change is pending


def manager(system: Any) -> Json:
    """Return the document of the system's iDRAC, or {} where it links to none."""
    first = next(reading.managers(system), None)
    return {} if first is None else first.json


def service(system: Any, name: str) -> Json:
    """Return the document of a service such as DellJobService, or {} where there is none."""
    return reading.follow(system, _links(system), name)


def attributes_path(system: Any) -> str | None:
    """Return the path of the iDRAC's own attributes, or None where there are none."""
    links = _links(system).get("DellAttributes") or ()
    paths = (str(link.get("@odata.id")) for link in links if isinstance(link, dict))
    return next((path for path in paths if path.rpartition("/")[2].startswith("iDRAC")), None)


def _links(system: Any) -> Json:
    links: Any = manager(system)
    for name in ("Links", "Oem", "Dell"):
        links = links.get(name) or {}
    return dict(links)


def act(system: Any, name: str, action: str, **values: str) -> Any:
    """Carry out an action of a service; return the answer.

    Raises InvalidParameterValue where the iDRAC does not offer it.
    """
    offered = (service(system, name).get("Actions") or {}).get(f"#{name}.{action}") or {}
    if not offered.get("target"):
        raise errors.InvalidParameterValue(
            reason=f"its BMC offers no {action} of {name}: that needs an iDRAC with firmware 4.00 "
            "or newer",
        )
    return system.root._conn.post(offered["target"], data=values)  # noqa: SLF001  sushy has no class


def clear_jobs(system: Any) -> None:
    """Delete the jobs that do not run yet.  Raises InvalidParameterValue where that is missing."""
    act(system, JOB_SERVICE, "DeleteJobQueue", JobID="JID_CLEARALL")


class JobQueueInterface(RedfishInterface):
    """An interface whose changes clear the job queue where a pending job refuses them."""

    def unblocked(self, change: Callable[[Any], T]) -> Callable[[Any], T]:
        def change_or_clear(system: Any) -> T:
            import sushy

            try:
                return change(system)
            except sushy.exceptions.HTTPError as no:
                if not any(name in str(no.extended_info) for name in _PENDING):
                    raise
                LOG.info("the job queue of %s is cleared: %s", system.path, no.detail)
            clear_jobs(system)
            return change(system)

        return change_or_clear
