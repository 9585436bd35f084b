"""The status of a site on one screen.

status = read(cloud.find(None))
for line in problems(status): ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomery.cli import terminal
from bloomery.cli.client import ApiError, Client
from bloomery.cli.cloud import Cloud

Json = dict[str, Any]

LATE_S: Final = 300  # from which lag on an event sink is a problem
_NEARLY: Final = 0.9  # of the database connections that a process may have
_WAITS: Final = ("waiting", "held")
_GOOD: Final = ("online", "offline")  # states of conductors that nobody has to look at


def read(site: Cloud) -> Json:
    """Return what the service says of itself.

    ``bmcs``: by conductor, null where it did not answer.  ``engines``: null where the caller may
    not list them.  Raises ApiError.
    """
    client = site.nodes
    status: Json = client.get("/ext/v1/status")
    fleet = client.get("/ext/v1/fleet")
    bmcs: dict[str, dict[str, int] | None] = {}
    for host in (each["hostname"] for each in status["conductors"] if each["alive"]):
        document = _optional(client, f"/ext/v1/conductors/{host}/bmcs")
        bmcs[host] = document and {
            "called": len(document["bmcs"]),
            "left_alone": sum(each["left_alone"] for each in document["bmcs"]),
            "refused_logins": sum(each["refused_logins"] > 0 for each in document["bmcs"]),
        }
    engines = _optional(site.orchestration, "/services")
    if engines is not None:
        engines = Counter(
            each["status"] for each in engines["services"] if each["deleted_at"] is None
        )
    return {"url": client.url, **status, "fleet": fleet, "bmcs": bmcs, "engines": engines}


def _optional(client: Client, path: str) -> Any:
    """Return a document that the caller may be refused, or that another process has to answer."""
    try:
        return client.get(path)
    except ApiError as exc:
        if exc.facts["answer"] is None:
            raise
        return None


# ------------------------------------------------------------------------------------- problems


def problems(status: Json) -> list[str]:
    """Return what a person has to look at, the worst first."""
    return [*_problems_of_processes(status), *_problems_of_nodes(status)]


def _problems_of_processes(status: Json) -> Iterator[str]:
    """Yield the problems of conductors, engines, the database, the broker and event sinks."""
    conductors = status["conductors"]
    if not any(each["alive"] for each in conductors):
        yield "no conductor is online: no machine can be worked on"
    for each in conductors:
        if each["state"] == "online" and not each["alive"]:
            yield f"conductor {each['hostname']} has sent no heartbeat for {each['silent_s']:.0f} s"
        elif each["state"] == "dead":
            yield f"conductor {each['hostname']} is dead"
    yield from (
        f"conductor {host} does not answer"
        for host, bmcs in status["bmcs"].items() if bmcs is None
    )  # fmt: skip
    if (engines := status["engines"]) is not None and not engines.get("up"):
        yield "no engine is up: no stack goes on"
    if status["message_broker_connected"] is False:
        yield "the message broker does not answer"
    database = status["database"]
    if database["refusal"]:
        yield f"database: {database['refusal']}"
    limit = database["connections_limit"]
    if limit and database["connections_in_use"] > _NEARLY * limit:
        yield f"{database['connections_in_use']} of {limit} database connections are in use"
    for each in status["sinks"]:
        if each["is_parked"]:
            yield f"{each['sink']} is parked, and gets no events"
        elif each["lag_s"] > LATE_S:
            yield f"sink {each['sink']} is {each['lag_s']:.0f} s late"


def _problems_of_nodes(status: Json) -> Iterator[str]:
    """Yield the problems of nodes, their BMCs and stacks."""
    for host, bmcs in status["bmcs"].items():
        if bmcs and bmcs["left_alone"]:
            yield f"{bmcs['left_alone']} BMCs of conductor {host} do not answer"
        if bmcs and bmcs["refused_logins"]:
            yield f"{bmcs['refused_logins']} BMCs of conductor {host} refuse their login"
    for each in status["fleet"]["problems"]:
        if each["code"] != "maintenance":
            yield f"{terminal.amount(each['count'], 'node')}: {each['text']}"
    failed = sum(n for state, n in status["stacks"].items() if state.endswith("_FAILED"))
    if failed:
        yield f"{terminal.amount(failed, 'stack')} failed"


# ---------------------------------------------------------------------------------------- lines


def lines(status: Json) -> Iterator[tuple[str, str]]:
    """Yield name and text of each line of the screen."""
    fleet, database = status["fleet"], status["database"]
    states = Counter(
        "silent" if each["state"] == "online" and not each["alive"] else each["state"]
        for each in status["conductors"]
    )
    yield "conductors", _counts(states)
    if status["engines"] is not None:
        yield "engines", _counts(status["engines"])
    yield "nodes", f"{fleet['nodes']}: {_counts(fleet['provision_states'])}"
    yield "", f"{fleet['reserved']} locked, {fleet['maintenance']} in maintenance"
    flows: Counter[str] = Counter()
    for each in status["flows"]:
        state = "waiting" if each["state"] in _WAITS else "running"
        flows[f"{each['phase']} {state}"] += each["flows"]
    yield "flows", _counts(flows)
    yield "stacks", _counts(status["stacks"])
    bmcs: Counter[str] = Counter()
    for counts in status["bmcs"].values():
        bmcs.update(counts or {})
    yield "BMCs", _counts(bmcs)
    yield "event sinks", ", ".join(map(_sink, status["sinks"])) or "none"
    facts = [database["kind"], f"schema {database['schema']}"]
    if database["connections_limit"] is not None:
        facts.append(
            f"{database['connections_in_use']} of {database['connections_limit']} connections "
            "of the answering process in use"
        )
    if database["refusal"]:
        facts.append(str(database["refusal"]))
    yield "database", ", ".join(facts)
    if status["message_broker_connected"] is not None:
        yield "broker", "connected" if status["message_broker_connected"] else "away"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n) or "none"


def _sink(sink: Json) -> str:
    return f"{sink['sink']} " + ("parked" if sink["is_parked"] else f"{sink['lag_s']:.0f} s late")
