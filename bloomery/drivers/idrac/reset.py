"""The restart of an iDRAC: order it, then wait until the iDRAC has restarted and is ready.

``driver_internal_info`` stores the position.  An order whose answer was lost is repeated where it
had no effect.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any, Final

from bloomery import clock, errors
from bloomery.drivers import base
from bloomery.drivers.idrac import oem
from bloomery.drivers.redfish.access import Access
from bloomery.outcome import Again, Outcome

LOG = logging.getLogger(__name__)

_MEMORY: Final = "idrac_reset"
_LIMIT_S: Final = 1200.0
_LONGEST_PAUSE_S: Final = 10.0
_UNCLEAR_S: Final = 15.0  # before an order without an answer is repeated
_CARD: Final = "DelliDRACCardService"
_LIFECYCLE: Final = "DellLCService"
_READY: Final = "Ready"
_UNCHANGED: Final = "it has not begun to"


def run(access: Access, task: base.DriverTask) -> Outcome | None:
    """Run an attempt of the restart.  Raises StepFailure at the time limit."""
    info, flow = task.node.driver_internal_info, str(task.node.provision_updated_at)
    if info.get(_MEMORY, {}).get("flow") != flow:  # constant during a flow
        info[_MEMORY] = {
            "flow": flow, "before": access.read(task, _last_reset), "was_silent": False,
            "until": _later(_LIMIT_S), "is_ordered": False, "repeat_at": _later(0),
        }  # fmt: skip
        task.save()
    memory = info[_MEMORY]
    try:
        reason = _status(access, task, memory) if memory["is_ordered"] else _UNCHANGED
        left_s = _left_s(memory["until"])
        if reason != _READY and left_s <= 0:
            raise errors.StepFailure(
                reason=f"the iDRAC was reset, and is not ready after {_LIMIT_S / 60:g} min: "
                f"{reason}",
            )
        repeat_at = None if memory["was_silent"] else memory["repeat_at"]
        if reason != _READY and repeat_at and _left_s(repeat_at) <= 0:
            _order(access, task, memory)
    except errors.Failure:
        del info[_MEMORY]
        raise
    if reason == _READY:
        del info[_MEMORY]
        return None
    pause_s = min(_LONGEST_PAUSE_S, 1 + (_LIMIT_S - left_s) / 4)
    return Again(after_s=pause_s, reason=f"the iDRAC restarts: {reason}")


def _status(access: Access, task: base.DriverTask, memory: dict[str, Any]) -> str:
    """Return Ready, or what is missing; documents come back one by one after a restart."""
    try:
        if access.read(task, _last_reset) == memory["before"] and not memory["was_silent"]:
            return _UNCHANGED
        return access.change(task, _services, repeatable=True)
    except errors.BmcLoginRefused:
        raise
    except (errors.BmcUnreachable, errors.BmcRefused) as exc:
        memory["was_silent"] |= not isinstance(exc, errors.BmcLeftAlone)
        return str(exc.facts["reason"])


def _order(access: Access, task: base.DriverTask, memory: dict[str, Any]) -> None:
    """Order the restart; note when to repeat an order whose answer is unclear."""
    memory |= {"is_ordered": True, "repeat_at": _later(_UNCLEAR_S)}
    try:
        access.change(task, lambda system: oem.act(system, _CARD, "iDRACReset", Force="Graceful"))
    except (errors.BmcUnreachable, errors.BmcRefused) as exc:
        if isinstance(exc, errors.BmcRefused) and not isinstance(exc, errors.BmcFailed):
            raise
        LOG.info("node %s: the reset of the iDRAC has no clear answer: %s", task.node.uuid, exc)
    else:
        memory["repeat_at"] = None


def _last_reset(system: Any) -> str | None:
    return oem.manager(system).get("LastResetTime")


def _services(system: Any) -> str:
    """Return the state of the iDRAC's services; Ready where it does not tell."""
    if not oem.service(system, _LIFECYCLE):
        return _READY
    answer = oem.act(system, _LIFECYCLE, "GetRemoteServicesAPIStatus")
    return str(answer.json().get("LCStatus", _READY))


def _later(seconds: float) -> str:
    return (clock.now() + timedelta(seconds=seconds)).isoformat()


def _left_s(moment: str) -> float:
    return (datetime.fromisoformat(moment) - clock.now()).total_seconds()
