"""The status of a site on one screen.

status = read(cloud.find(None))
for line in problems(status): ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
    alive = [each["hostname"] for each in status["conductors"] if each["alive"]]
    return {
        "url": client.url,
        **status,
        "fleet": client.get("/ext/v1/fleet"),
        "bmcs": {host: _bmcs(client, host) for host in alive},
        "engines": _engines(site.orchestration),
    }


def _bmcs(client: Client, host: str) -> dict[str, int] | None:
    """Count the BMCs of a conductor."""
    document = _optional(client, f"/ext/v1/conductors/{host}/bmcs")
    if document is None:
        return None
    bmcs = document["bmcs"]
    return {
        "called": len(bmcs),
        "left_alone": sum(each["left_alone"] for each in bmcs),
        "refused_logins": sum(each["refused_logins"] > 0 for each in bmcs),
    }


def _engines(client: Client) -> dict[str, int] | None:
    document = _optional(client, "/services")
    if document is None:
        return None
    live = [each["status"] for each in document["services"] if each["deleted_at"] is None]
    return dict(Counter(live))


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
    return [*_of_conductors(status), *_of_database(status), *_of_events(status), *_of_nodes(status)]


def _of_conductors(status: Json) -> Iterator[str]:
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


def _of_database(status: Json) -> Iterator[str]:
    database = status["database"]
    if database["refusal"]:
        yield f"database: {database['refusal']}"
    limit = database["connections_limit"]
    if limit and database["connections_in_use"] > _NEARLY * limit:
        yield f"{database['connections_in_use']} of {limit} database connections are in use"


def _of_events(status: Json) -> Iterator[str]:
    for each in status["sinks"]:
        if each["is_parked"]:
            yield f"{each['sink']} is parked, and gets no events"
        elif each["lag_s"] > LATE_S:
            yield f"sink {each['sink']} is {each['lag_s']:.0f} s late"


def _of_nodes(status: Json) -> Iterator[str]:
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
    yield "flows", _flows(status["flows"])
    yield "stacks", _counts(status["stacks"])
    yield "BMCs", _counts(_sum(each for each in status["bmcs"].values() if each))
    yield "event sinks", ", ".join(map(_sink, status["sinks"])) or "none"
    yield "database", ", ".join(_database(database))
    if status["message_broker_connected"] is not None:
        yield "broker", "connected" if status["message_broker_connected"] else "away"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n) or "none"


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _flows(flows: Iterable[Json]) -> str:
    counts: Counter[str] = Counter()
    for each in flows:
        state = "waiting" if each["state"] in _WAITS else "running"
        counts[f"{each['phase']} {state}"] += each["flows"]
    return _counts(counts)


def _sink(sink: Json) -> str:
    return f"{sink['sink']} " + ("parked" if sink["is_parked"] else f"{sink['lag_s']:.0f} s late")


def _database(database: Json) -> Iterator[str]:
    yield database["kind"]
    yield f"schema {database['schema']}"
    if database["connections_limit"] is not None:
        yield (
            f"{database['connections_in_use']} of {database['connections_limit']} connections "
            "of the answering process in use"
        )
    if database["refusal"]:
        yield str(database["refusal"])
