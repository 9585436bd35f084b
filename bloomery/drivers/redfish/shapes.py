"""Documents of BMCs whose members have other types than Redfish gives them.

The members are those that the driver and sushy read.  Source: the schemas of DMTF DSP8010.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any, Final

ODD: Final = (AttributeError, KeyError, TypeError, ValueError)  # what reading such a one raises
_DEEPEST: Final = 6
_MOST_NAMED: Final = 3
_OBJECT, _LIST, _TEXT, _NUMBER = "an object", "a list", "a text", "a number"
_TYPES: Final = {
    **dict.fromkeys(
        (
            "Actions", "Attributes", "Bios", "Boot", "BootProgress", "EventService", "Links",
            "Location", "MemorySummary", "Parameters@Redfish.ActionInfo", "ProcessorSummary",
            "Registries", "SecureBoot", "SessionService", "Sessions", "Status", "Subscriptions",
            "UpdateService", "@Redfish.Settings",
        ),
        (_OBJECT,),
    ),
    **dict.fromkeys(
        (
            "BootOrder", "BootSourceOverrideTarget@Redfish.AllowableValues", "ManagedBy",
            "MediaTypes", "Members", "Messages", "Parameters", "RegistryEntries",
            "ResetType@Redfish.AllowableValues", "SupportedApplyTimes",
        ),
        (_LIST,),
    ),
    **dict.fromkeys(
        (
            "Chassis", "ComputerSystems", "Drives", "EthernetInterfaces", "Managers",
            "NetworkAdapters", "Processors", "Storage", "Systems", "Tasks", "VirtualMedia",
            "Volumes",
        ),
        (_OBJECT, _LIST),  # a link, or a list of links
    ),
    **dict.fromkeys(
        (
            "@odata.id", "BootSourceOverrideEnabled", "BootSourceOverrideMode",
            "BootSourceOverrideTarget", "BiosVersion", "FirmwareVersion", "Id", "Image",
            "IndicatorLED", "MACAddress", "Manufacturer", "Model", "Name", "PowerState",
            "RedfishVersion", "SerialNumber", "TaskState", "UUID", "target",
        ),
        (_TEXT,),
    ),
    **dict.fromkeys(("CapacityBytes", "Count", "TotalSystemMemoryGiB"), (_NUMBER,)),
}  # fmt: skip
_MISSING: Final = re.compile(
    r"The (?:attribute|action) (\S+) is (missing|malformed) (?:from|in) the resource ([^\s:]+)"
)


def describe(documents: Iterable[tuple[str, Any]]) -> str:
    """Return which member is odd, or the documents that were read; each with its URL."""
    paths = []
    for url, document in documents:
        path = urllib.parse.urlsplit(url).path
        paths.append(path)
        for member, reason in _odd_members(document, "", _DEEPEST):
            where = f"{member} is" if member else "it is"
            return f"its document {path} is not as Redfish has it: {where} {reason}"
    last = ", ".join(paths[-_MOST_NAMED:])
    return f"one of its documents is not as Redfish has it: {last}" if last else (
        "its documents are not as Redfish has them"
    )  # fmt: skip


def _odd_members(value: Any, at: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the path of each member with a wrong type, and what is wrong."""
    if not at and not isinstance(value, dict):
        yield at, f"{_type(value)}, not {_OBJECT}"
    if not depth:
        return
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _odd_members(each, f"{at}/{number}", depth - 1)
    if not isinstance(value, dict):
        return
    for name, each in value.items():
        member = f"{at}/{name}" if at else name
        types, own = _TYPES.get(name), _type(each)
        if types is not None and each is not None and own not in types:
            yield member, f"{own}, not {' or '.join(types)}"
        elif name == "Members" and not all(isinstance(link, dict) for link in each or ()):
            yield member, "a list of other things than objects"
        else:
            yield from _odd_members(each, member, depth - 1)


def _type(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case dict():
            return _OBJECT
        case list():
            return _LIST
        case str():
            return _TEXT
        case None:
            return "null"
    return _NUMBER


def lacking(text: str) -> str | None:
    """Return our sentence for sushy's of a missing or malformed member; None for another one."""
    match = _MISSING.match(text)
    if match is None:
        return None
    name, what, path = match.groups()
    if what == "missing":
        return f"its document {path} has no {name}"
    return f"its document {path} is not as Redfish has it: see {name}"
