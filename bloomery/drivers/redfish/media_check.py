"""The check of virtual media: insert a CD, wait until the BMC fetches it, and eject it.

The power of the machine stays as it is, and so does a medium that was inserted before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bloomery import errors
from bloomery.drivers.base import DriverTask
from bloomery.drivers.redfish import media
from bloomery.drivers.redfish.access import Access

_FAILURES: Final = (errors.BmcUnreachable, errors.BmcRefused, errors.InvalidParameterValue)


class Result(StrEnum):
    FETCHED = "fetched"
    NOT_FETCHED = "not fetched"
    FAILED = "failed"
    NOT_TRIED = "not tried"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``reason``: of a failure.  ``left``: why the CD may still be inserted."""

    result: Result
    reason: str = ""
    left: str | None = None


def check(
    access: Access,
    task: DriverTask,
    image: str,
    *,
    begin: Callable[[], None],
    wait: Callable[[], bool],
) -> Outcome:
    """Insert ``image``, and eject it whatever happens; Ctrl-C ends the wait.

    ``begin`` is called just before the BMC is told.  ``wait`` returns whether it has fetched.
    """
    try:
        inserted = access.read(task, media.list_inserted)
    except _FAILURES as exc:
        return Outcome(result=Result.NOT_TRIED, reason=_reason(exc))
    if inserted:
        reason = f"a medium is inserted already, and stays: {', '.join(inserted)}"
        return Outcome(result=Result.NOT_TRIED, reason=reason)
    begin()
    try:
        outcome = _insert(access, task, image, wait)
    finally:
        left = _eject(access, task, image)
    return dataclasses.replace(outcome, left=left)


def _insert(access: Access, task: DriverTask, image: str, wait: Callable[[], bool]) -> Outcome:
    try:
        media.write_insert(access, task, image).apply_now()
        return Outcome(result=Result.FETCHED if wait() else Result.NOT_FETCHED)
    except _FAILURES as exc:
        return Outcome(result=Result.FAILED, reason=_reason(exc))
    except KeyboardInterrupt:
        return Outcome(result=Result.INTERRUPTED)


def _eject(access: Access, task: DriverTask, image: str) -> str | None:
    try:
        media.write_eject(access, task, media.DISC, image).apply_now()
        inserted = access.read(task, media.list_inserted)
    except _FAILURES as exc:
        return _reason(exc)
    return f"the BMC still shows {', '.join(inserted)}" if inserted else None


def _reason(exc: errors.Failure) -> str:
    return str(exc.facts.get("reason", exc))
