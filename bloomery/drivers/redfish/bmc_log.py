"""The BMC's own log by Redfish: its newest entries, and its clearing.

BMCs have several logs, at the system or at its manager: of hardware, of logins, of their own
programs.  The log of hardware is read: SEL, or what the make has in its place.  Source: DMTF
DSP0268, LogService and LogEntry.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import errors
from bloomery.drivers import base
from bloomery.drivers.bmc import logs
from bloomery.drivers.redfish import bmc_clock, reading
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.bmc_write import MEMORY, BmcWrite
from bloomery.outcome import Outcome

Json = dict[str, Any]

_NAMES: Final = (  # of logs of hardware, in small letters; the first is the best
    "sel", "systemeventlog", "iml", "platformlog", "standardlog", "eventlog", "faultlog", "log1",
    "log",
)  # fmt: skip
_OF_OTHERS: Final = (  # parts of the names of logs that say nothing of the hardware
    "audit", "security", "operate", "run", "dump", "postcode", "journal", "host", "lclog",
    "diagnostic", "bios", "fdr", "internal", "maintenance",
)  # fmt: skip
_ANOTHER_KIND: Final = len(_NAMES) + 1
_MOST_MANAGERS: Final = 2
_MOST_SERVICES: Final = 3  # that are looked at until one is usable
_MOST_PAGES: Final = 40
_MOST_KEPT: Final = 2000  # entries of these pages
_MOST_LINKED: Final = 50  # entries that are read one by one
_CLEARED_WITHIN_S: Final = 60.0
_CLEAR: Final = "#LogService.ClearLog"
_SKIP: Final = re.compile(r"((?:\$|%24)skip=)(\d+)", re.IGNORECASE)
_ARGUMENT: Final = re.compile(r"%([1-9])")


def read(system: Json) -> reading.Read[Json]:
    """Return the newest entries of the log; see ``Management.read_bmc_log``."""
    service = yield from _service(system)
    if not service:
        return logs.document(None, None, None, [])
    time = bmc_clock.time_of(service)
    difference_s = None if time is None else bmc_clock.difference_s(time, datetime.now(UTC))
    documents, total = yield from _entries(service)
    entries = [_entry(each, time) for each in documents]
    name = service.get("Id") or service.get("Name")
    return logs.document(str(name)[:80], total, difference_s, entries)


def clear(access: Access, task: base.DriverTask) -> Outcome:
    """Clear the log; done when the newest of its entries is gone.  Raises InvalidParameterValue."""

    def send(system: Any) -> bool:
        """Send the order, unless the log is empty; remember the newest entry before the first."""
        service = reading.run(system, _service(system.json))
        action = (service.get("Actions") or {}).get(_CLEAR) or {}
        if not action.get("target"):
            raise errors.InvalidParameterValue(
                reason=f"cannot clear the BMC's log of node {errors.name_of(task.node)}: its BMC "
                "offers no ClearLog; clear it in the BMC's own interface",
            )
        entries = reading.run(system, read(system.json))["entries"]
        memory = task.node.driver_internal_info[MEMORY]
        memory.setdefault("newest", entries[0] if entries else None)
        if not entries:
            return True
        system._conn.post(action["target"], data={})  # noqa: SLF001  sushy offers no other way
        return is_clear(system)

    def is_clear(system: Any) -> bool:
        """Return whether the entry is gone; many BMCs write the clearing into the log."""
        entries = reading.run(system, read(system.json))["entries"]
        newest = task.node.driver_internal_info[MEMORY].get("newest")
        return len(entries) <= 1 or newest not in entries

    return BmcWrite(
        access=access, task=task, what="clear its log", change=send, is_so=is_clear,
        limit_s=_CLEARED_WITHIN_S,
    ).apply()  # fmt: skip


def _service(system: Json) -> reading.Read[Json]:
    """Return the service of the log of hardware, or {}.

    The managers are asked only where the system has no log of the best name.
    """
    paths = yield from _services_of(system)
    if not any(_rank(path) == 0 for path in paths):
        of_system = system.get("Links")
        managers = reading.links(of_system, "ManagedBy") or reading.links(of_system, "Managers")
        for path in managers[:_MOST_MANAGERS]:
            paths += yield from _services_of((yield path) or {})
    ranked = sorted((path for path in paths if _rank(path) < _ANOTHER_KIND), key=_rank)
    for path in ranked[:_MOST_SERVICES]:
        service = (yield path) or {}
        if service.get("ServiceEnabled") is not False and service.get("Entries"):
            return service
    return {}


def _services_of(holder: Json) -> reading.Read[list[str]]:
    return reading.links((yield from reading.linked(holder, "LogServices")), "Members")


def _rank(path: str) -> int:
    """Return the place of a log by the end of its path, 0 for the best."""
    name = path.rstrip("/").rpartition("/")[2].lower()
    if name in _NAMES:
        return _NAMES.index(name)
    return _ANOTHER_KIND if any(part in name for part in _OF_OTHERS) else len(_NAMES)


def _entries(service: Json) -> reading.Read[tuple[list[Json], int]]:
    """Return documents with the newest entries among them, and the number of all.

    BMCs list them in either order, in pages.  Where the oldest come first, the pages between are
    skipped; where their links cannot be changed so, pages are read up to a limit.
    """
    entries: deque[Json] = deque(maxlen=_MOST_KEPT)
    paths = reading.links({"of": [service.get("Entries")]}, "of")
    path, total, seen = (paths[0] if paths else None), None, set[str]()
    while path is not None and path not in seen and len(seen) < _MOST_PAGES:
        seen.add(path)
        page = (yield path) or {}
        members = page.get("Members")
        entries += yield from _members(members if isinstance(members, list) else [])
        count, following = page.get("Members@odata.count"), page.get(reading.NEXT_PAGE)
        total = count if type(count) is int else total
        path = following if isinstance(following, str) else None
        is_newest_first = len(entries) > 1 and _created(entries[0]) > _created(entries[-1])
        if is_newest_first and len(entries) >= logs.MOST_ENTRIES:
            break
        if path is not None and len(seen) == 1 and not is_newest_first and total is not None:
            skip = _SKIP.search(path)
            start = max(int(skip[2]) if skip else 0, total - logs.MOST_ENTRIES)
            path = _SKIP.sub(rf"\g<1>{start}", path)
    return list(entries), max(total or 0, len(entries))


def _members(members: Iterable[Any]) -> reading.Read[list[Json]]:
    """Return the entries of a page; of mere links, the newest ones are followed."""
    entries = [each for each in members if isinstance(each, dict)]
    paths = [each["@odata.id"] for each in entries if set(each) == {"@odata.id"}]
    entries = [each for each in entries if set(each) != {"@odata.id"}]
    if len(paths) > _MOST_LINKED:
        first, last = (yield paths[0]) or {}, (yield paths[-1]) or {}
        is_newest_first = _created(first) > _created(last)
        paths = paths[:_MOST_LINKED] if is_newest_first else paths[-_MOST_LINKED:]
    for path in paths:
        entry = yield path
        entries += [entry] if entry else []
    return entries


def _created(entry: Json) -> float:
    at = bmc_clock.parse(entry.get("Created"))
    return 0.0 if at is None else at.timestamp()


def _entry(document: Json, time: datetime | None) -> logs.LogEntry:
    """Return an entry; a time without a zone has that of the BMC's clock ``time``."""
    message = document.get("Message") or ": ".join(
        str(document[name]) for name in ("SensorType", "EntryCode") if document.get(name)
    )
    values = document.get("MessageArgs")
    if isinstance(values, list):
        message = _ARGUMENT.sub(lambda at: str((values[int(at[1]) - 1 :] or [at[0]])[0]), message)
    severity = document.get("Severity")
    zone = None if time is None else time.tzinfo
    return logs.LogEntry(
        id=str(document.get("Id") or ""), message=str(message or document.get("MessageId") or ""),
        created_at=bmc_clock.parse(document.get("Created"), zone),
        severity=severity if severity in logs.SEVERITIES else None,
    )  # fmt: skip
