"""The root, and the services of the BMC itself: sessions, tasks, event subscriptions."""

from __future__ import annotations

import time
import uuid
from typing import Final

from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.refusal import missing, needed
from bloomery.lab.resources import accounts
from bloomery.lab.routing import NO_CONTENT, Answer, Ask, Json, Reply, collection, ref, route, stamp

_BRANCHES: Final = (
    "Systems", "Managers", "Chassis", "SessionService", "TaskService", "UpdateService",
    "EventService", "Registries", "AccountService",
)  # fmt: skip
_SESSIONS: Final = "/SessionService/Sessions"
_SUBSCRIPTIONS: Final = "/EventService/Subscriptions"
_MONITORS: Final = "/TaskService/TaskMonitors"


@route("GET", "")
def root(bmc: SimulatedBmc, ask: Ask) -> Answer:
    expansions = dict.fromkeys(("ExpandAll", "Levels", "Links", "NoLinks"), bmc.rules.expands)
    return {
        "@odata.id": ROOT,
        "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
        "Id": "RootService", "Name": "Lab BMC", "RedfishVersion": "1.8.0", "Vendor": "Lab",
        "UUID": str(uuid.uuid5(uuid.NAMESPACE_DNS, "lab")),
        "Links": {"Sessions": ref(_SESSIONS)},
        **{branch: ref(f"/{branch}") for branch in _BRANCHES},
        "Tasks": ref("/TaskService"),
        **({"PowerEquipment": ref("/PowerEquipment")} if bmc.has_shelves else {}),
        "ProtocolFeaturesSupported": {
            "ExpandQuery": expansions | ({"MaxLevels": 1} if bmc.rules.expands else {}),
        },
    }  # fmt: skip


@route("GET", "/SessionService")
def session_service(bmc: SimulatedBmc, ask: Ask) -> Answer:
    return {
        "@odata.type": "#SessionService.v1_1_7.SessionService",
        "Id": "SessionService", "Name": "Sessions", "ServiceEnabled": True,
        "SessionTimeout": int(bmc.rules.session_s), "Sessions": ref(_SESSIONS),
    }  # fmt: skip


@route("GET", _SESSIONS)
def list_sessions(bmc: SimulatedBmc, ask: Ask) -> Answer:
    return collection(_SESSIONS, "Session", [s["id"] for s in bmc.live_sessions().values()])


@route("POST", _SESSIONS)
def log_in(bmc: SimulatedBmc, ask: Ask) -> Answer:
    user, password = needed(ask.body, "UserName"), needed(ask.body, "Password")
    token, ident = bmc.log_in(user, password)
    path = f"{ROOT}{_SESSIONS}/{ident}"
    headers = {"X-Auth-Token": token, "Location": path}
    document = _session(ident, user) | {"@odata.id": path}
    if user in bmc.must_change:
        document["@Message.ExtendedInfo"] = [accounts.change_first(user)]
    return Reply(201, document, headers)


@route("GET|DELETE", f"{_SESSIONS}/*")
def show_session(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    session = next((s for s in bmc.live_sessions().values() if s["id"] == ident), None)
    if session is None:
        raise missing(f"session {ident}")
    if ask.method == "DELETE":
        bmc.log_out(ident)
        return NO_CONTENT
    return _session(ident, session["user"])


def _session(ident: str, user: str) -> Json:
    return {
        "@odata.type": "#Session.v1_3_0.Session", "Id": ident, "Name": "Session", "UserName": user,
    }  # fmt: skip


# ------------------------------------------------------------------------------------- tasks


def accepted(task: str) -> Reply:
    """Answer 202 with the URL of a task."""
    return Reply(202, None, {"Location": f"{ROOT}{_MONITORS}/{task}"})


@route("GET", "/TaskService")
def task_service(bmc: SimulatedBmc, ask: Ask) -> Answer:
    return {
        "@odata.type": "#TaskService.v1_1_5.TaskService",
        "Id": "TaskService", "Name": "Tasks", "ServiceEnabled": True,
        "Tasks": ref("/TaskService/Tasks"),
    }  # fmt: skip


@route("GET", "/TaskService/Tasks")
def list_tasks(bmc: SimulatedBmc, ask: Ask) -> Answer:
    return collection("/TaskService/Tasks", "Task", list(bmc.tasks))


@route("GET|DELETE", "/TaskService/(Tasks|TaskMonitors)/*")
def show_task(bmc: SimulatedBmc, ask: Ask, kind: str, ident: str) -> Answer:
    task = bmc.tasks.get(ident)
    if task is None:
        raise missing(f"task {ident}")
    if ask.method == "DELETE":
        bmc.tasks.pop(ident, None)
        return NO_CONTENT
    health = "Critical" if task["state"] == "Exception" else "OK"
    passed = (time.time() - task["start"]) / max(task["seconds"], 0.01)
    document = {
        "@odata.id": f"{ROOT}/TaskService/Tasks/{ident}", "@odata.type": "#Task.v1_4_3.Task",
        "Id": ident, "Name": task["name"], "TaskMonitor": f"{ROOT}{_MONITORS}/{ident}",
        "TaskState": task["state"], "TaskStatus": health, "StartTime": stamp(task["start"]),
        "PercentComplete": 100 if task["end"] else min(99, int(100 * passed)),
        "Messages": [{"Message": task["why"], "Severity": health, "MessageId": "Lab.1.0.Task"}],
    }  # fmt: skip
    if task["payload"] is not None:
        document["Payload"] = task["payload"]
    if task["end"]:
        document["EndTime"] = stamp(task["end"])
    if kind == "TaskMonitors" and document["TaskState"] == "Running":
        return accepted(ident)._replace(document=document)
    return document


# ------------------------------------------------------------------------------------ events


@route("GET", "/EventService")
def event_service(bmc: SimulatedBmc, ask: Ask) -> Answer:
    return {
        "@odata.type": "#EventService.v1_5_0.EventService",
        "Id": "EventService", "Name": "Events", "ServiceEnabled": True,
        "EventTypesForSubscription": ["Alert", "StatusChange"],
        "Subscriptions": ref(_SUBSCRIPTIONS),
    }  # fmt: skip


@route("GET|POST", _SUBSCRIPTIONS)
def subscriptions(bmc: SimulatedBmc, ask: Ask) -> Answer:
    """Store subscriptions; events are not delivered."""
    if ask.method == "GET":
        return collection(_SUBSCRIPTIONS, "EventDestination", list(bmc.events))
    ident = uuid.uuid4().hex[:8]
    bmc.events[ident] = ask.body | {
        "@odata.type": "#EventDestination.v1_9_0.EventDestination",
        "Id": ident,
        "Name": "subscription",
    }
    return Reply(201, bmc.events[ident], {"Location": f"{ROOT}{_SUBSCRIPTIONS}/{ident}"})


@route("GET|DELETE", f"{_SUBSCRIPTIONS}/*")
def show_subscription(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    subscription = bmc.events.get(ident)
    if subscription is None:
        raise missing(f"subscription {ident}")
    if ask.method == "DELETE":
        bmc.events.pop(ident, None)
        return NO_CONTENT
    return subscription
