"""A scenario: groups of machines, their behaviour, and the events of a timeline.

    scenario = of({"seed": 7, "groups": {"web": {"count": 8, "model": "dell-idrac"}}}, "s.yaml")

``SCHEMA`` declares the keys.  One seed gives the same machines, delays and faults at every start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jsonschema_rs

from bloomery import errors
from bloomery.lab import models
from bloomery.lab.agents import Profile
from bloomery.lab.faults import Faults
from bloomery.lab.refusal import Refusal
from bloomery.lab.system import RESETS
from bloomery.lab.timers import Distribution, Seconds

Json = dict[str, Any]
MOST: Final = 20_000  # machines
IPMI_MOST: Final = 200  # each is a process


def _text(description: str, **more: Any) -> Json:
    return {"type": "string", "minLength": 1, "description": description} | more


def _number(description: str, least: float = 0, **more: Any) -> Json:
    return {"type": "number", "minimum": least, "description": description} | more


def _map(description: str, properties: Json, *required: str) -> Json:
    return {
        "type": "object", "additionalProperties": False, "properties": properties,
        "required": required, "description": f"a map of {description}",
    }  # fmt: skip


_PAIR: Final = {"type": "array", "items": _number("a number"), "minItems": 2, "maxItems": 2}
_SECONDS: Final = {
    "anyOf": [
        _number("seconds"),
        _map("uniform", {"uniform": _PAIR}, "uniform"),
        _map("lognormal", {"lognormal": _PAIR}, "lognormal"),
    ],
    "description": "a number of seconds, {uniform: [least, most]}, or {lognormal: [median, sigma]}",
}  # fmt: skip
_SHARE: Final = _number("a share from 0 to 1", maximum=1)
_FLAG: Final = {"type": "boolean", "description": "true or false"}
_FAULT: Final = {"type": "object", "description": "a fault: a map with kind, such as status"}
_API: Final = _text("the http or https address of an API", pattern="^https?://.")
_AGENT: Final = _map("an agent's behaviour", {
    "api": _API, "image": _text("a part of the address of the agent's image"),
    "boot_s": _SECONDS, "write_s": _SECONDS, "erase_s": _SECONDS, "heartbeat_s": _SECONDS,
    "fails": _SHARE, "inspects": _FLAG, "tpm": _FLAG,
})  # fmt: skip
_COUNT: Final = {
    "type": "integer", "minimum": 1, "maximum": MOST,
    "description": f"a whole number from 1 to {MOST}",
}  # fmt: skip
_GROUP: Final = _map("a group's machines", {
    "count": _COUNT,
    "protocol": {"enum": ["redfish", "ipmi"], "description": "redfish or ipmi"},
    "model": {"enum": list(models.ALL), "description": f"one of {', '.join(models.ALL)}"},
    "apart": _FLAG, "power_s": _SECONDS, "answer_s": _SECONDS, "idle_s": _number("seconds"),
    "is_new": _FLAG,
    "faults": {"type": "array", "items": _FAULT, "description": "a list of faults"},
    "agent": _AGENT,
    "node": {"type": "object", "description": "a map of fields of a node"},
}, "count")  # fmt: skip
_PRESSED: Final = [name for name in RESETS if name != "On"]  # which YAML reads as true
_EVENT: Final = _map("an event", {
    "at_s": _number("a number of seconds after the start"),
    "group": _text("the name of a group"),
    "share": _SHARE,
    "fault": _FAULT,
    "clear": {"enum": [True], "description": "true: the faults end"},
    "reset": {"enum": _PRESSED, "description": f"one of {', '.join(_PRESSED)}"},
    "log": _text("the message of a critical entry"),
}, "at_s")  # fmt: skip
SCHEMA: Final = _map("a scenario: seed, groups, events", {
    "seed": {"type": "integer", "description": "a whole number"},
    "groups": {
        "type": "object", "additionalProperties": _GROUP, "minProperties": 1,
        "propertyNames": {
            "pattern": "^[a-z][a-z0-9-]{0,40}$",
            "description": "a name of lower-case letters, digits and dashes",
        },
        "description": "a map of at least one group, by name",
    },
    "events": {"type": "array", "items": _EVENT, "description": "a list of events"},
}, "groups")  # fmt: skip
_VALIDATOR: Final = jsonschema_rs.validator_for(SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Machines of one kind; ``power_s`` is drawn once for each machine."""

    name: str
    count: int
    protocol: str = "redfish"
    model: str = models.GENERIC.name
    apart: bool = True
    power_s: Seconds = 0.0
    answer_s: Seconds = 0.0
    idle_s: float = 5.0  # before a BMC closes a connection
    is_new: bool = False  # the BMC's password must be changed first
    faults: tuple[Json, ...] = ()
    agent: Profile | None = None
    node: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event at ``at_s`` for a ``share`` of ``group``; None: of all groups."""

    at_s: float
    group: str | None = None
    share: float = 1.0
    fault: Json | None = None
    clear: bool = False
    reset: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    groups: tuple[Group, ...]
    events: tuple[Event, ...] = ()
    seed: int = 0


def of(document: Mapping[str, Any], file: str, api: str | None = None) -> Scenario:
    """Return the scenario of a document; ``api`` replaces the address of each agent's API.

    Raises CannotStart, which names the file and the key.
    """
    for error in _VALIDATOR.iter_errors(dict(document)):
        keys = (f"[{k}]" if isinstance(k, int) else f".{k}" for k in error.instance_path)
        place = "".join(keys).removeprefix(".") or "the scenario"
        raise _unfit(file, place, _reason(error))
    groups = tuple(
        _group(file, name, values, api) for name, values in document["groups"].items()
    )  # fmt: skip
    if sum(group.count for group in groups) > MOST:
        raise _unfit(file, "groups", f"a scenario has at most {MOST} machines; lower count")
    events = tuple(
        _event(file, f"events[{n}]", values, document["groups"])
        for n, values in enumerate(document.get("events", ()))
    )
    return Scenario(groups=groups, events=events, seed=document.get("seed", 0))


def _group(file: str, name: str, values: Mapping[str, Any], api: str | None) -> Group:
    place = f"groups.{name}"
    fields = {key: _seconds(value) for key, value in values.items()} | {"name": name}
    if values.get("protocol") == "ipmi":
        for key in ("model", "apart", "power_s", "answer_s", "idle_s", "is_new", "faults"):
            if key in values:
                raise _unfit(file, f"{place}.{key}", "IPMI machines have none; leave it out")
        if values["count"] > IPMI_MOST:
            raise _unfit(file, f"{place}.count", f"at most {IPMI_MOST} machines of IPMI; lower it")
    if "agent" in values:
        agent = {key: _seconds(value) for key, value in values["agent"].items()}
        agent |= {"api": api} if api else {}
        if "api" not in agent:
            raise _unfit(file, f"{place}.agent.api", "it is missing; write it, or give --api")
        fields["agent"] = Profile(**agent)
    for n, fault in enumerate(values.get("faults", ())):
        _check_fault(file, f"{place}.faults[{n}]", fault)
    fields["faults"] = tuple({"times": -1} | fault for fault in values.get("faults", ()))
    return Group(**fields)


def _event(file: str, place: str, values: Mapping[str, Any], groups: Mapping[str, Any]) -> Event:
    if values.get("group") not in (None, *groups):
        raise _unfit(file, f"{place}.group", f"{values['group']!r} is no group; there are: "
                     f"{', '.join(groups)}")  # fmt: skip
    if len({"fault", "clear", "reset", "log"} & values.keys()) != 1:
        raise _unfit(file, place, "an event needs one of fault, clear, reset and log")
    if "fault" in values:
        _check_fault(file, f"{place}.fault", values["fault"])
    names = [name for name in groups if values.get("group") in (None, name)]
    ipmi = [name for name in names if groups[name].get("protocol") == "ipmi"]
    if ipmi:
        raise _unfit(file, place, f"{ipmi[0]} is a group of IPMI, which takes no events; name "
                     "another group")  # fmt: skip
    return Event(**values)


def _seconds(value: Any) -> Any:
    """Return a distribution for its map, other values as they are."""
    if (
        isinstance(value, dict)
        and len(value) == 1
        and next(iter(value)) in ("uniform", "lognormal")
    ):
        [(kind, pair)] = value.items()
        return Distribution(kind, *pair)
    return value


def _check_fault(file: str, place: str, fault: Json) -> None:
    try:
        Faults().add(**fault)
    except Refusal as no:
        raise _unfit(file, place, f"{no}; bloomery lab example prints some") from no


def _reason(error: jsonschema_rs.ValidationError) -> str:
    """Return what is wrong, with the way out, which is the schema's description."""
    *steps, rule = error.schema_path
    schema: Any = SCHEMA
    value: Any = error.instance
    for step in steps:
        schema = schema[step]
    match rule:
        case "additionalProperties":
            keys = schema["properties"]
            unknown = ", ".join(sorted(value.keys() - keys.keys()))
            return f"{unknown} is unknown; its keys are {', '.join(keys)}"
        case "required":
            missing = ", ".join(key for key in schema["required"] if key not in value)
            return f"{missing} is missing; write it"
    return f"{value!r} does not fit; write {schema['description']}"


def _unfit(file: str, place: str, reason: str) -> errors.CannotStart:
    return errors.CannotStart(reason=f"cannot read {file}: {place}: {reason}")
