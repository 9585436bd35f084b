"""/Systems/*/LogServices or /Managers/*/LogServices: the BMC's log, 50 entries a page."""

from __future__ import annotations

from typing import Final

from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.refusal import checked, missing
from bloomery.lab.routing import (
    HEALTHY,
    NO_CONTENT,
    Answer,
    Ask,
    Json,
    actions,
    collection,
    ref,
    route,
    stamp,
)
from bloomery.lab.system import System

_PAGE: Final = 50
_OF: Final = "/(Systems|Managers)/*/LogServices"


def link(system: System, resource: str) -> Json:
    """Return the property that leads to the logs, where this resource has them."""
    has_logs = resource == system.spec.log_of
    return {"LogServices": ref(f"/{resource}/{system.id}/LogServices")} if has_logs else {}


@route("GET", _OF)
def list_services(bmc: SimulatedBmc, ask: Ask, resource: str, ident: str) -> Answer:
    _with_log(bmc, ask, resource, ident)
    return collection(f"/{resource}/{ident}/LogServices", "LogService", ["AuditLog", "Sel"])


def _with_log(bmc: SimulatedBmc, ask: Ask, resource: str, ident: str) -> System:
    system = bmc.system(ident)
    if resource != system.spec.log_of:
        raise missing(ask.path)
    return system


@route("GET", f"{_OF}/(Sel|AuditLog)")
def show(bmc: SimulatedBmc, ask: Ask, resource: str, ident: str, log: str) -> Answer:
    system = _with_log(bmc, ask, resource, ident)
    path = f"/{resource}/{ident}/LogServices/{log}"
    return {
        "@odata.type": "#LogService.v1_3_0.LogService",
        "Id": log, "Name": "System Event Log" if log == "Sel" else "Audit Log",
        "LogEntryType": "SEL" if log == "Sel" else "Event", "ServiceEnabled": True,
        "Status": HEALTHY, "MaxNumberOfRecords": system.log.maxlen,
        "DateTime": stamp(system.bmc_time, system.utc_offset),
        "DateTimeLocalOffset": system.utc_offset, "Entries": ref(f"{path}/Entries"),
        "Actions": actions(path, LogService_ClearLog={}),
    }  # fmt: skip


@route("GET", f"{_OF}/(Sel|AuditLog)/Entries")
def list_entries(bmc: SimulatedBmc, ask: Ask, resource: str, ident: str, log: str) -> Answer:
    """List the entries, oldest first, from ``$skip`` on."""
    system = _with_log(bmc, ask, resource, ident)
    path = f"/{resource}/{ident}/LogServices/{log}/Entries"
    entries = list(system.log) if log == "Sel" else []
    skip = int(ask.query.get("$skip", 0))
    page = entries[skip : skip + _PAGE]
    following = {"Members@odata.nextLink": f"{ROOT}{path}?$skip={skip + _PAGE}"}
    return collection(path, "LogEntry", []) | {
        "Members@odata.count": len(entries),
        "Members": [{
            "@odata.id": f"{ROOT}{path}/{entry.number}", "@odata.type": "#LogEntry.v1_9_0.LogEntry",
            "Id": str(entry.number), "Name": f"Entry {entry.number}", "EntryType": "SEL",
            "Created": stamp(entry.at, system.utc_offset), "Severity": entry.severity,
            "Message": entry.message,
        } for entry in page],
    } | (following if skip + _PAGE < len(entries) else {})  # fmt: skip


@route("POST", f"{_OF}/(Sel|AuditLog)/Actions/LogService.ClearLog")
def clear(bmc: SimulatedBmc, ask: Ask, resource: str, ident: str, log: str) -> Answer:
    system = _with_log(bmc, ask, resource, ident)
    checked(ask.body, {})
    if log == "Sel":
        system.clear_log()
    return NO_CONTENT
