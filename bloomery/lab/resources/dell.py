"""Dell's own services of an iDRAC: job queue, restart, state of services, first boot device."""

from __future__ import annotations

from typing import Final

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.refusal import checked, missing, needed
from bloomery.lab.routing import NO_CONTENT, Answer, Ask, Json, Reply, actions, route
from bloomery.lab.system import System

_BELOW: Final = "/Managers/*/Oem/Dell"
_ACTIONS: Final[dict[str, dict[str, Json]]] = {  # by service
    "DellJobService": {"DeleteJobQueue": {}},
    "DelliDRACCardService": {
        "iDRACReset": {"Force@Redfish.AllowableValues": ["Force", "Graceful"]}
    },
    "DellLCService": {"GetRemoteServicesAPIStatus": {}},
}


def _system(bmc: SimulatedBmc, ident: str, path: str) -> System:
    """Return the machine of an iDRAC.  Raises Refusal for another make."""
    system = bmc.system(ident)
    if not system.spec.idrac:
        raise missing(path)
    return system


@route("GET", f"{_BELOW}/({'|'.join(_ACTIONS)})")
def show(bmc: SimulatedBmc, ask: Ask, ident: str, service: str) -> Answer:
    _system(bmc, ident, ask.path)
    path = f"/Managers/{ident}/Oem/Dell/{service}"
    offered = {f"{service}_{name}": more for name, more in _ACTIONS[service].items()}
    return {
        "@odata.type": f"#{service}.v1_1_0.{service}", "Id": service, "Name": service,
        "Actions": actions(path, **offered),
    }  # fmt: skip


@route("POST", f"{_BELOW}/DellJobService/Actions/DellJobService.DeleteJobQueue")
def clear(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = _system(bmc, ident, ask.path)
    kinds = ["JID_CLEARALL", "JID_CLEARALL_FORCE"]
    needed(checked(ask.body, {"JobID": kinds}), "JobID")
    system.clear_jobs()
    return Reply(200, {})


@route("POST", f"{_BELOW}/DelliDRACCardService/Actions/DelliDRACCardService.iDRACReset")
def restart(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = _system(bmc, ident, ask.path)
    needed(checked(ask.body, {"Force": ["Force", "Graceful"]}), "Force")
    system.note("BMC restarts")
    bmc.restart(system)
    return Reply(200, {})


@route("POST", f"{_BELOW}/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus")
def show_status(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    _system(bmc, ident, ask.path)
    return Reply(200, {"LCStatus": "Ready", "RTStatus": "Ready", "Status": "Ready"})


@route("GET", f"{_BELOW}/DellAttributes/(iDRAC|System|LifecycleController).Embedded.1")
def show_attributes(bmc: SimulatedBmc, ask: Ask, ident: str, of: str) -> Answer:
    attributes = _system(bmc, ident, ask.path).first_boot
    return {
        "@odata.type": "#DellAttributes.v1_0_0.DellAttributes",
        "Id": f"{of}.Embedded.1", "Name": of, "Attributes": attributes if of == "iDRAC" else {},
    }  # fmt: skip


@route("PATCH", f"{_BELOW}/DellAttributes/iDRAC.Embedded.1")
def change_attributes(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = _system(bmc, ident, ask.path)
    values = needed(checked(ask.body, {"Attributes": dict}), "Attributes")
    rules = {
        "ServerBoot.1.FirstBootDevice": ["Normal", "VCD-DVD", "PXE", "HDD"],
        "ServerBoot.1.BootOnce": ["Enabled", "Disabled"],
    }
    system.first_boot.update(checked(values, rules, "Attributes"))
    return NO_CONTENT
