"""The system event log (SEL) of an IPMI BMC: its newest entries, and its clearing.

IPMI has no severities: they follow from ipmitool's words for an event.  Source: IPMI 2.0, chapters
31 and 42.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bloomery import clock, errors
from bloomery.drivers import base, substeps
from bloomery.drivers.bmc import logs
from bloomery.drivers.ipmi import tool
from bloomery.drivers.ipmi.bmc import IpmiBmc
from bloomery.outcome import Again, Outcome

LIST: Final = ("-Z", "sel", "elist", "last", str(logs.MOST_ENTRIES))
GET_TIME: Final = ("-Z", "sel", "time", "get")
CLEAR: Final = ("sel", "clear")
INFO: Final = ("sel", "info")
_TIMES: Final = ("%m/%d/%y %H:%M:%S", "%m/%d/%Y %H:%M:%S")  # of ipmitool 1.8.19, and older
_MEMORY: Final = "ipmi_log_cleared_until"  # in driver_internal_info: the deadline of a clearing
_CLEARED_WITHIN: Final = timedelta(seconds=60)
_PAUSE_S: Final = 3.0
_OVER: Final = ("deasserted", "presence", "log area reset", "log cleared")
_WARNS: Final = re.compile(
    r"(?<!un)correctable ecc|non-critical|predictive|degraded|redundancy lost|limit reached"
    r"|mismatch|throttled|almost full|battery low",
    re.IGNORECASE,
)
_IS_CRITICAL: Final = re.compile(
    r"critical|recoverable|uncorrectable|fail|fault|ierr|\bnmi\b|thermal trip|ac lost|bus error"
    r"|perr|serr|machine check|fatal|drive fault|over-?current|panic|config error",
    re.IGNORECASE,
)


def read(bmc: IpmiBmc) -> dict[str, Any]:
    """Return the newest entries; see ``Management.read_bmc_log``."""
    time, now = parse_time(bmc.ask(*GET_TIME)), datetime.now(UTC)
    difference_s = None if time is None else round((time - now).total_seconds(), 1)
    entries = parse(bmc.ask(*LIST))
    total = len(entries) if len(entries) < logs.MOST_ENTRIES else None
    bmc.state.note_clock(difference_s)
    return logs.document("SEL", total, difference_s, entries)


def parse_time(output: str) -> datetime | None:
    """Return the clock of ``sel time get``, or None before it is set."""
    text = " ".join(output.split()[:2])
    for form in _TIMES:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=UTC)
    return None


def parse(output: str) -> list[logs.LogEntry]:
    """Return the entries of ``sel elist``, oldest first."""
    entries = []
    for line in output.splitlines():
        number, *parts = [part.strip() for part in line.split("|")]
        if not re.fullmatch("[0-9a-fA-F]+", number) or len(parts) < 3:
            continue
        message = ": ".join(filter(None, parts[2:]))
        entries.append(
            logs.LogEntry(
                id=str(int(number, 16)), created_at=parse_time(f"{parts[0]} {parts[1]}"),
                severity=_severity(message), message=message,
            )
        )  # fmt: skip
    return entries


def _severity(message: str) -> str:
    words = message.lower()
    if any(word in words for word in _OVER):
        return "OK"
    if _WARNS.search(words):
        return "Warning"
    return "Critical" if _IS_CRITICAL.search(words) else "OK"


def clear(bmc: IpmiBmc, task: base.DriverTask) -> Outcome:
    """Clear the log, and read that it is empty: many BMCs write the clearing into it."""
    memory = task.node.driver_internal_info

    def send() -> Outcome | None:
        if rest_s := bmc.rest_s():
            return Again(after_s=rest_s, reason="waiting to clear the BMC's log")
        bmc.tell(*CLEAR, write=True)
        memory[_MEMORY] = (clock.now() + _CLEARED_WITHIN).isoformat()
        return None

    def wait() -> Outcome | None:
        until = datetime.fromisoformat(memory.setdefault(_MEMORY, clock.now().isoformat()))
        if rest_s := bmc.rest_s():
            return Again(after_s=rest_s, reason="waiting for the BMC to clear its log")
        count = tool.fields(bmc.tell(*INFO)).get("Entries", "")
        if count in ("0", "1"):
            del memory[_MEMORY]
            return None
        if clock.now() < until:
            return Again(after_s=_PAUSE_S, reason="waiting for the BMC to clear its log")
        del memory[_MEMORY]
        raise errors.StepFailure(
            reason=f"the BMC accepted the order to clear its log, and still shows {count or 'no'} "
            f"entries after {_CLEARED_WITHIN.seconds} s",
        )

    return substeps.run_in_order(task, "ipmi_log", send, wait)
