"""JSON schemas of answers by the end of their path, for the OpenAPI document.

Only tests validate answers against these schemas.  Most properties are optional, since older
versions and ``fields`` leave some out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bloomery.api.views import nodes as node_views
from bloomery.model import conductor, node, node_facts, nouns
from bloomery.model.fields import FieldTable
from bloomery.model.noun import Noun

Json = dict[str, Any]

TEXT: Final[Json] = {"type": "string"}
TEXT_OR_NULL: Final[Json] = {"type": ["string", "null"]}
BOOLEAN: Final[Json] = {"type": "boolean"}
OBJECT: Final[Json] = {"type": "object"}
_KINDS: Final[Mapping[str, Json]] = {
    "uuid": {"type": ["string", "null"]},
    "text": {"type": ["string", "null"]},
    "bool": {"type": ["boolean", "null"]},
    "int": {"type": ["integer", "null"]},
    "object": {"type": ["object", "null"]},
    "list": {"type": ["array", "null"], "items": {}},
    "time": {"type": ["string", "null"], "format": "date-time"},
}


def _array(items: Json) -> Json:
    return {"type": "array", "items": items}


def _object(properties: Mapping[str, Json], *required: str) -> Json:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _mapping(values: Json) -> Json:
    return {"type": "object", "additionalProperties": values}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


LINKS: Final = _ref("Links")
_LINK: Final = _object({"href": TEXT, "rel": TEXT, "type": TEXT}, "href", "rel")


def _record(fields: FieldTable, links: Mapping[str, Json] | None = None) -> Json:
    """Return the schema of a document with these fields and links."""
    shapes = {
        field.name: _KINDS[field.kind] if field.nullable or field.kind != "bool" else BOOLEAN
        for field in fields.values()
    }
    return _object(shapes | {"links": LINKS} | (dict(links) if links else {}))


def _page(plural: str, items: Json) -> Json:
    return _object({plural: _array(items), "next": TEXT}, plural)


def _component(noun: Noun) -> str:
    """Return the schema name of a noun, such as InspectionRule."""
    return noun.path.rpartition("/")[2].title().replace("_", "")


_VERSION: Final = _object(
    dict.fromkeys(("id", "status", "min_version", "version"), TEXT) | {"links": LINKS},
    "id", "links", "status", "min_version", "version",
)  # fmt: skip
_DRIVER: Final[Json] = {
    "type": "object",
    "properties": {
        "name": TEXT, "type": TEXT, "hosts": _array(TEXT), "links": LINKS, "properties": LINKS,
    },
    "patternProperties": {
        "^default_[a-z]+_interface$": TEXT_OR_NULL,
        "^enabled_[a-z]+_interfaces$": _array(TEXT),
    },
    "additionalProperties": False,
}  # fmt: skip

_HISTORY_ENTRY: Final = _record(
    node_facts.HISTORY, {"duration_seconds": {"type": ["number", "null"]}}
)

_WEBHOOK: Final = _object(
    {
        **dict.fromkeys(("uuid", "url", "state"), TEXT),
        **dict.fromkeys(("type", "object_uuid", "description", "last_error"), TEXT_OR_NULL),
        "failures": {"type": "integer"},
        **dict.fromkeys(("last_delivered_at", "created_at", "updated_at"), _KINDS["time"]),
    },
    "uuid", "url", "state", "failures", "last_error", "last_delivered_at",
)  # fmt: skip

COMPONENTS: Final[Mapping[str, Json]] = {
    "Webhook": _WEBHOOK,
    "Links": _array(_LINK),
    "Node": _record(
        node.FIELDS,
        {name: LINKS for name, _ in node_views.SUBRESOURCES if name not in node.FIELDS},
    ),
    "Version": _VERSION,
    "Driver": _DRIVER,
    "Conductor": _record(conductor.FIELDS),
    "HistoryEntry": _HISTORY_ENTRY,
    "BiosSetting": _record(node_facts.BIOS),
    **{
        _component(noun): _record(
            noun.fields,
            {name: _array(LINKS) if wraps > 1 else LINKS for name, wraps in noun.links.items()},
        )
        for noun in nouns.BY_NAME.values()
    },
}

_INTERFACE: Final = _object({"result": {"type": ["boolean", "null"]}, "reason": TEXT}, "result")
_METHOD: Final[Json] = {"type": "object", "required": ["http_methods", "async", "description"]}
_MENU: Final = dict.fromkeys(("connectors", "targets"), LINKS)
_INDICATOR: Final = _object(
    {"name": TEXT, "component": TEXT, "readonly": BOOLEAN, "states": _array(TEXT), "links": LINKS}
)
_ANY: Final[Json] = {}
_OBJECT_OR_NULL: Final[Json] = {"type": ["object", "null"]}
_WHY_TEXTS: Final = (
    "name", "provision_state", "target_provision_state", "power_state", "target_power_state",
)  # fmt: skip
_EVENT: Final = _object(
    {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        **dict.fromkeys(("event_type", "object_uuid", "level"), TEXT),
        **dict.fromkeys(("publisher", "request_id"), TEXT_OR_NULL),
        "facts": OBJECT,
    },
    "id", "at", "event_type", "object_uuid", "level", "publisher", "request_id", "facts",
)  # fmt: skip
_EVENTS: Final = _object(
    {"events": _array(_EVENT), "last_id": {"type": "integer"}, "next": TEXT}, "events", "last_id"
)
_WHY: Final = _object(
    {
        "uuid": TEXT,
        **dict.fromkeys(_WHY_TEXTS, TEXT_OR_NULL),
        "by": TEXT_OR_NULL,
        "in_state_for_s": {"type": ["number", "null"]},
        **dict.fromkeys(("maintenance", "lock", "step", "last_cleaned"), _OBJECT_OR_NULL),
        "contact": _object({"agent": _ANY, "bmc": _OBJECT_OR_NULL}, "agent", "bmc"),
        "conductor": _OBJECT_OR_NULL,
        "last_error": _ANY,
        "outdated_firmware": _array(
            _object(
                {"component": TEXT, "current_version": TEXT_OR_NULL, "catalogue_version": TEXT},
                "component", "current_version", "catalogue_version",
            )
        ),
        "cause": TEXT,
        **dict.fromkeys(("cause_code", "since"), TEXT_OR_NULL),
        "next_action": TEXT,
        "verbs": _array(
            _object(
                {
                    "verb": TEXT, "target": TEXT, "allowed": BOOLEAN, "reason": TEXT_OR_NULL,
                    "loses_data": BOOLEAN,
                },
                "verb", "target", "allowed", "reason", "loses_data",
            )
        ),
    },
    "uuid", "provision_state", "in_state_for_s", "contact", "cause_code", "cause", "since",
    "next_action", "verbs",
)  # fmt: skip

_ALLOCATION_WHY: Final = _object(
    {
        **dict.fromkeys(("uuid", "state", "cause", "next_action"), TEXT),
        **dict.fromkeys(
            ("name", "resource_class", "node_uuid", "cause_code", "since"), TEXT_OR_NULL
        ),
        "conductor": _OBJECT_OR_NULL,
    },
    "uuid", "name", "state", "resource_class", "node_uuid", "conductor", "cause_code",
    "cause", "since", "next_action",
)  # fmt: skip

_NUMBER_OR_NULL: Final[Json] = {"type": ["number", "null"]}
_USUAL: Final[Json] = {
    "type": ["object", "null"],
    "properties": {
        "runs": {"type": "integer"}, "median_s": {"type": "number"}, "p95_s": {"type": "number"},
    },
    "required": ["runs", "median_s", "p95_s"],
    "additionalProperties": False,
}  # fmt: skip
_TIMELINE_ENTRY: Final = _object(
    {
        "marker": TEXT,
        "kind": {"type": "string", "enum": ["step", "event"]},
        "at": TEXT,
        "duration_s": _NUMBER_OR_NULL,
        "since_previous_s": _NUMBER_OR_NULL,
        "usual": _USUAL,
        "position": {"type": "integer"},
        "internal": BOOLEAN,
        **dict.fromkeys(
            (
                "ended_at", "flow", "flow_id", "name", "child_node", "state", "reason", "error",
                "conductor", "request_id", "event", "provision_state", "target_provision_state",
                "severity", "event_type", "user",
            ),
            TEXT_OR_NULL,
        ),
    },
    "marker", "kind", "at", "conductor", "request_id",
)  # fmt: skip
_TIMELINE: Final = _object(
    {
        "uuid": TEXT,
        **dict.fromkeys(("name", "provision_state", "target_provision_state"), TEXT_OR_NULL),
        "compared_with": _object(
            {"driver": TEXT, "resource_class": TEXT_OR_NULL}, "driver", "resource_class"
        ),
        "running": _OBJECT_OR_NULL,
        "timeline": _array(_TIMELINE_ENTRY),
        "next": TEXT,
    },
    "uuid", "compared_with", "running", "timeline",
)  # fmt: skip

_COUNT: Final[Json] = {"type": "integer"}
_COUNT_OR_NULL: Final[Json] = {"type": ["integer", "null"]}
_CHECK: Final = _object(
    {"name": TEXT, "works": BOOLEAN, "detail": TEXT, "allowed": _array(TEXT)},
    "name", "works", "detail", "allowed",
)  # fmt: skip
_BMC: Final[Json] = _object(
    {
        **dict.fromkeys(("protocol", "address"), TEXT),
        "usable": BOOLEAN,
        "error": TEXT_OR_NULL,
        "driver_info": OBJECT,
        "identity": _mapping(TEXT_OR_NULL),
        "checks": _array(_CHECK),
        "sessions_in_use": {"type": ["integer", "null"]},
        "clock_difference_s": _NUMBER_OR_NULL,
        **dict.fromkeys(("tls", "latency"), _OBJECT_OR_NULL),
        "quirks": _array(TEXT),
    },
    "protocol", "address", "usable", "error", "driver_info", "checks",
)  # fmt: skip
_BMC_LOG: Final = _object(
    {
        "name": TEXT_OR_NULL, "total": _COUNT_OR_NULL, "clock_difference_s": _NUMBER_OR_NULL,
        "entries": _array(
            _object(
                {"id": TEXT, "created_at": _KINDS["time"], "severity": TEXT_OR_NULL,
                 "message": TEXT},
                "id", "created_at", "severity", "message",
            )
        ),
    },
    "name", "total", "clock_difference_s", "entries",
)  # fmt: skip
_READING: Final = _array({"type": ["string", "number"]}) | {"minItems": 2, "maxItems": 2}
_SENSORS: Final = _object(
    {
        "node": TEXT, "interval_s": _COUNT, "is_read": BOOLEAN, "reason": TEXT_OR_NULL,
        "kept_since": _KINDS["time"],
        "sensors": _array(
            _object(
                {
                    **dict.fromkeys(("name", "kind"), TEXT),
                    **dict.fromkeys(("unit", "status"), TEXT_OR_NULL),
                    "readings": _array(_READING),
                },
                "name", "kind", "unit", "status", "readings",
            )
        ),
    },
    "node", "interval_s", "is_read", "reason", "kept_since", "sensors",
)  # fmt: skip
_FLEET: Final = _object(
    {
        **dict.fromkeys(("nodes", "maintenance", "reserved", "without_conductor"), _COUNT),
        **dict.fromkeys(("provision_states", "power_states", "faults"), _mapping(_COUNT)),
        "problems": _array(
            _object(
                {"code": TEXT, "text": TEXT, "count": _COUNT, "since": _KINDS["time"]},
                "code", "text", "count", "since",
            )
        ),
        "last_event_id": _COUNT,
        "resource_classes": _array(
            _object(
                {
                    "resource_class": TEXT_OR_NULL, "nodes": _COUNT,
                    "provision_states": _mapping(_COUNT),
                },
                "resource_class", "nodes", "provision_states",
            )
        ),
        "conductors": _array(
            _object(
                {"hostname": TEXT, "conductor_group": TEXT, "alive": BOOLEAN, "nodes": _COUNT},
                "hostname", "conductor_group", "alive", "nodes",
            )
        ),
    },
    "nodes", "provision_states", "resource_classes", "conductors", "without_conductor",
    "problems", "last_event_id",
)  # fmt: skip
_NODE_ROW: Final = {
    "uuid": TEXT,
    "maintenance": BOOLEAN,
    **dict.fromkeys(
        (
            "name", "provision_state", "target_provision_state", "power_state", "fault",
            "resource_class", "conductor", "conductor_group", "chassis_uuid", "owner", "lessee",
            "description", "rack", "slot", "serial", "bmc_address", "health", "cause_code", "cause",
        ),
        TEXT_OR_NULL,
    ),
    "macs": _array(TEXT),
    **dict.fromkeys(("provision_updated_at", "updated_at"), _KINDS["time"]),
}  # fmt: skip
_NODE_ROWS: Final = _object(
    {"nodes": _array(_object(_NODE_ROW, *_NODE_ROW)), "next": TEXT, "last_event_id": _COUNT},
    "nodes", "last_event_id",
)  # fmt: skip

_COMPONENT: Final = {"component": TEXT} | dict.fromkeys(
    ("vendor", "model", "serial_number", "current_version", "catalogue_version"), TEXT_OR_NULL
)
_MACHINE_FIELDS: Final = {
    "uuid": TEXT, "maintenance": BOOLEAN, "verbs": _array(TEXT), "driver": TEXT,
    "components": _array(_object(_COMPONENT, *_COMPONENT)),
} | dict.fromkeys(
    ("name", "provision_state", "resource_class", "conductor_group", "vendor", "model", "refusal"),
    TEXT_OR_NULL,
)  # fmt: skip
_MACHINE: Final = _object(_MACHINE_FIELDS, *_MACHINE_FIELDS)

_DISK: Final = dict.fromkeys(("name", "serial", "wwn", "vendor", "model"), TEXT_OR_NULL) | {
    "size": {"type": ["integer", "null"]}
}
_ERASURES: Final = _array(
    _object(
        {
            **dict.fromkeys(("uuid", "step", "began_at", "ended_at"), TEXT),
            "methods": _array(TEXT), "excluded": _ANY, "agent": TEXT_OR_NULL,
            "disks": _array(
                _object(
                    _DISK | {"rotational": _ANY, "is_erased": BOOLEAN}, *_DISK, "is_erased"
                )
            ),
        },
        "uuid", "step", "began_at", "ended_at", "methods", "excluded", "agent", "disks",
    )
)  # fmt: skip
_ERASURE: Final = _object(
    {
        "proof": _object(
            {
                "node_uuid": TEXT, "node_name": TEXT_OR_NULL, "issued_at": TEXT,
                "erasures": _ERASURES, "missing": _array(_object(_DISK, "name")),
            },
            "node_uuid", "node_name", "issued_at", "erasures", "missing",
        ),
        "signature": _OBJECT_OR_NULL,
    },
    "proof", "signature",
)  # fmt: skip

_CONDUCTORS: Final = _array(
    _object(
        {
            **dict.fromkeys(("hostname", "conductor_group"), TEXT),
            "state": {"enum": ["online", "draining", "restarting", "offline", "dead"]},
            "alive": BOOLEAN, "silent_s": {"type": "number"}, "drivers": _array(TEXT),
            "reserved": _COUNT,
            **dict.fromkeys(("started_at", "updated_at", "drain_ordered_at"), _KINDS["time"]),
        },
        "hostname", "state", "alive", "drivers", "reserved",
    )
)  # fmt: skip
_BMCS: Final = _array(
    _object(
        {
            "address": TEXT, "left_alone": BOOLEAN, "last_error": TEXT_OR_NULL,
            **dict.fromkeys(
                ("last_contact_at", "last_error_at", "silent_since", "next_try_at"),
                _KINDS["time"],
            ),
            "latency": _OBJECT_OR_NULL, "clock_difference_s": _NUMBER_OR_NULL,
            **dict.fromkeys(("accounts", "refused_logins", "sessions"), _COUNT),
        },
        "address", "left_alone", "latency", "accounts", "refused_logins", "sessions",
    )
)  # fmt: skip


def _results(*results: str, **more: Json) -> Json:
    """Return the schema of the results of many nodes; the first of ``more`` is always there."""
    error = _object(
        {"code": TEXT, "status": {"type": "integer"}, "message": TEXT, "state": TEXT_OR_NULL,
         "possible": _array(TEXT), "first": _array(TEXT)}, "code", "status", "message"
    )  # fmt: skip
    item: Json = {"result": {"enum": list(results)}, "error": {"anyOf": [error, {"type": "null"}]}}
    required = ("result", "error", *list(more)[:1])
    return _object({"results": _array(_object(item | more, *required))}, "results")


_STATUS: Final = _object(
    {
        "release": TEXT,
        "conductors": _CONDUCTORS,
        "flows": _array(
            _object({"phase": TEXT, "state": TEXT, "flows": _COUNT}, "phase", "state", "flows")
        ),
        "stacks": _mapping(_COUNT),
        "sinks": _array(
            _object(
                {"sink": TEXT, "lag_s": {"type": "number"}, "is_parked": BOOLEAN},
                "sink", "lag_s", "is_parked",
            )
        ),
        "database": _object(
            {
                "kind": TEXT,
                **dict.fromkeys(("schema", "refusal"), TEXT_OR_NULL),
                **dict.fromkeys(("connections_in_use", "connections_limit"), _COUNT_OR_NULL),
            },
            "kind", "schema", "refusal", "connections_in_use", "connections_limit",
        ),
        "message_broker_connected": {"type": ["boolean", "null"]},
    },
    "release", "conductors", "flows", "stacks", "sinks", "database", "message_broker_connected",
)  # fmt: skip
_STEPS: Final = _object(
    {
        "steps": _array(
            _object(
                {
                    "interface": TEXT, "step": TEXT, "abortable": BOOLEAN, "keeps_disks": BOOLEAN,
                    "priority": {"type": "integer"}, "args": OBJECT, "argsinfo": OBJECT,
                },
                "interface", "step", "abortable", "keeps_disks", "priority", "argsinfo",
            )
        ),
    },
    "steps",
)  # fmt: skip
_OF_STEP: Final = dict.fromkeys(("phase", "interface", "step"), TEXT)
_FAILURE: Final = _OF_STEP | {
    "count": _COUNT, "last_at": TEXT_OR_NULL, "error": TEXT_OR_NULL,
    "nodes": _array(_object({"uuid": TEXT, "name": TEXT_OR_NULL}, "uuid", "name")),
    "nodes_in_all": _COUNT,
}  # fmt: skip
_TIMES: Final = _OF_STEP | {
    "driver": TEXT, "resource_class": TEXT_OR_NULL, "runs": _COUNT, "failed": _COUNT,
    "total_s": {"type": "number"}, "median_s": _NUMBER_OR_NULL, "p95_s": _NUMBER_OR_NULL,
}  # fmt: skip
_LANE: Final = {"name": TEXT, "done": _array(_COUNT), "failed": _array(_COUNT)}
_ACTIVITY_OF_SITE: Final = {
    "since": TEXT, "until": TEXT, "read_since": TEXT, "span_s": {"type": "number"},
    "lanes": _array(_object(_LANE, *_LANE)),
    "failures": _array(_object(_FAILURE, *_FAILURE)),
    "steps": _array(_object(_TIMES, *_TIMES)),
}  # fmt: skip
_ACTIVITY: Final = _object(_ACTIVITY_OF_SITE, *_ACTIVITY_OF_SITE)
_ORDER: Final = dict.fromkeys(
    ("at", "user", "user_name", "project", "address", "method", "path", "target", "request_id"),
    TEXT_OR_NULL,
) | {"nodes": _ANY, "fields": _ANY, "status": {"type": ["integer", "null"]}}
_RECORD: Final = {
    "host": TEXT, "is_recorded": BOOLEAN, "is_whole": BOOLEAN,
    "orders": _array(_object(_ORDER, *_ORDER)),
}  # fmt: skip
_AUDIT: Final = _object(_RECORD, *_RECORD)
_USERS: Final = {"auth_strategy": TEXT, "users": {"type": ["array", "null"], "items": TEXT}}
_ME: Final = _object(
    {
        "auth_strategy": TEXT,
        **dict.fromkeys(("user", "project"), TEXT_OR_NULL),
        "roles": _array(TEXT),
        "rules": _mapping(BOOLEAN),
    },
    "auth_strategy", "user", "project", "roles", "rules",
)  # fmt: skip
_STATES: Final = _object(
    {
        "states": _array(
            _object(
                {
                    "name": TEXT, "kind": TEXT, "place": _array(_COUNT),
                    **dict.fromkeys(("advice", "cause_code"), TEXT_OR_NULL),
                    **dict.fromkeys(("is_stable", "is_problem"), BOOLEAN),
                },
                "name", "advice", "is_stable", "is_problem", "cause_code", "kind", "place",
            )
        ),
        "problems": _mapping(TEXT),
        "edges": _array(
            _object(
                dict.fromkeys(("source", "event", "target"), TEXT), "source", "event", "target"
            )
        ),
        "verbs": _array(
            _object(
                {
                    **dict.fromkeys(("verb", "target", "event", "purpose"), TEXT),
                    "loss": TEXT_OR_NULL,
                    **dict.fromkeys(("from", "arguments"), _array(TEXT)),
                    **dict.fromkeys(("in_maintenance", "loses_data"), BOOLEAN),
                },
                "verb", "target", "event", "from", "in_maintenance", "purpose", "arguments",
                "loses_data", "loss",
            )
        ),
        "power": _array(
            _object(
                {
                    **dict.fromkeys(("target", "label", "command", "ends_in"), TEXT),
                    "from": _array(TEXT_OR_NULL), "loss": TEXT_OR_NULL,
                },
                "target", "label", "command", "from", "ends_in", "loss",
            )
        ),
    },
    "states", "problems", "edges", "verbs", "power",
)  # fmt: skip

# The end of a path and the schema of its GET; {} stands for an ident.
_ENDS: Final[Mapping[str, Json]] = {
    "/v1": {
        "type": "object",
        "properties": {"id": TEXT, "links": LINKS, "media_types": OBJECT, "version": _VERSION},
        "required": ["id", "links", "media_types", "version"],
        "additionalProperties": LINKS,
    },
    "/validate": _mapping(_INTERFACE),
    "/states": _record(
        {name: node.FIELDS[name] for name in node_views.STATES},
    ),
    "/states/console": _object(
        {"console_enabled": BOOLEAN, "console_info": {"type": ["object", "null"]}},
        "console_enabled", "console_info",
    ),
    "/management/boot_device": _object(
        {"boot_device": TEXT_OR_NULL, "persistent": {"type": ["boolean", "null"]}},
        "boot_device", "persistent",
    ),
    "/boot_device/supported": _object(
        {"supported_boot_devices": _array(TEXT)}, "supported_boot_devices"
    ),
    "/management/indicators": _object({"indicators": _array(_INDICATOR)}, "indicators"),
    "/management/indicators/{}": _object({"state": TEXT_OR_NULL}, "state"),
    "/vendor_passthru/methods": _mapping(_METHOD),
    "/nodes/{}/traits": _object({"traits": _array(TEXT)}, "traits"),
    "/runbooks/{}/traits": _object({"traits": _array(TEXT)}, "traits"),
    "/vifs": _object({"vifs": _array({"type": "object", "required": ["id"]})}, "vifs"),
    "/history": _page("history", _ref("HistoryEntry")),
    "/history/{}": _ref("HistoryEntry"),
    "/bios": _object({"bios": _array(_ref("BiosSetting"))}, "bios"),
    "/bios/{}": _mapping(_ref("BiosSetting")),
    "/firmware": _object({"firmware": _array(_record(node_facts.FIRMWARE))}, "firmware"),
    "/inventory": _object(
        {"inventory": OBJECT, "plugin_data": {"type": ["object", "null"]}},
        "inventory", "plugin_data",
    ),
    "/vmedia": _array(OBJECT),
    "/children": _object({"children": _array(TEXT), "links": _LINK}, "children", "links"),
    "/lookup": _object({"node": OBJECT, "config": OBJECT}, "node", "config"),
    "/v1/continue_inspection/{}": _object({"node": OBJECT, "config": OBJECT, "uuid": TEXT}),
    "/nodes/{}/allocation": _ref("Allocations"),
    "/volume": _object(_MENU | {"links": LINKS}, "links", "connectors", "targets"),
    "/shards": _object(
        {"shards": _array(_object({"name": TEXT_OR_NULL, "count": {"type": "integer"}}))}, "shards"
    ),
    "/ext/v1": _object({"id": TEXT, "links": LINKS}, "id", "links"),
    "/ext/v1/activity": _ACTIVITY,
    "/ext/v1/audit": _AUDIT,
    "/ext/v1/users": _object(_USERS, *_USERS),
    "/ext/v1/fleet": _FLEET,
    "/ext/v1/status": _STATUS,
    "/ext/v1/nodes": _NODE_ROWS,
    "/ext/v1/nodes:batch/{}": _results(
        "created", "completed", "present", "refused", name=TEXT_OR_NULL, uuid=TEXT
    ),
    "/ext/v1/nodes:act/{}": _results("accepted", "refused", node=TEXT),
    "/ext/v1/firmware": _object(
        {"machines": _array(_MACHINE), "catalogue": TEXT_OR_NULL, "next": TEXT},
        "machines", "catalogue",
    ),
    "/ext/v1/nodes/{}/firmware": _object(
        {"machine": _MACHINE, "catalogue": TEXT_OR_NULL}, "machine", "catalogue"
    ),
    "/ext/v1/firmware/catalogue": _object(
        {"catalogue": TEXT_OR_NULL, "digest": TEXT_OR_NULL, "entries": _COUNT},
        "catalogue", "digest", "entries",
    ),
    "/ext/v1/conductors": _object({"conductors": _CONDUCTORS}, "conductors"),
    "/ext/v1/conductors/{}/bmcs": _object({"bmcs": _BMCS}, "bmcs"),
    "/ext/v1/session": _object({"auth_strategy": TEXT}, "auth_strategy"),
    "/ext/v1/session/{}": _object({"token": TEXT, "expires_at": TEXT}, "token", "expires_at"),
    "/ext/v1/nodes/{}": _object(
        {"node": _object(_NODE_ROW, *_NODE_ROW), "last_event_id": _COUNT}, "node", "last_event_id"
    ),
    "/ext/v1/nodes/{}/steps": _STEPS,
    "/ext/v1/me": _ME,
    "/ext/v1/states": _STATES,
    "/ext/v1/nodes/{}/bmc": _BMC,
    "/ext/v1/nodes/{}/bmc_log": _BMC_LOG,
    "/ext/v1/nodes/{}/sensors": _SENSORS,
    "/ext/v1/nodes/{}/console": _object(
        {"console_enabled": BOOLEAN, "may_type": BOOLEAN, "advice": TEXT_OR_NULL},
        "console_enabled", "may_type", "advice",
    ),
    "/ext/v1/nodes/{}/erasure": _ERASURE,
    "/ext/v1/nodes/{}/why": _WHY,
    "/ext/v1/allocations/{}/why": _ALLOCATION_WHY,
    "/ext/v1/events": _EVENTS,
    "/ext/v1/nodes/{}/timeline": _TIMELINE,
    "/ext/v1/webhooks": _object({"webhooks": _array(_ref("Webhook"))}, "webhooks"),
    "/ext/v1/webhooks/{}": _ref("Webhook"),
    "/nodes": _page("nodes", _ref("Node")),
    "/nodes/detail": _page("nodes", _ref("Node")),
    "/v1/nodes/{}": _ref("Node"),
    "/drivers": _object({"drivers": _array(_ref("Driver"))}, "drivers"),
    "/drivers/{}": _ref("Driver"),
    "/drivers/{}/properties": _mapping(TEXT),
    "/logical_disk_properties": _mapping(TEXT),
    "/conductors": _page("conductors", _ref("Conductor")),
    "/conductors/{}": _ref("Conductor"),
    **{
        f"/{noun.path}{end}": _page(noun.plural, _ref(_component(noun)))
        for noun in nouns.BY_NAME.values()
        for end in ("", "/detail")
    },
    **{f"/{noun.path}/{{}}": _ref(_component(noun)) for noun in nouns.BY_NAME.values()},
}  # fmt: skip
_ROOT: Final = _object(
    {"name": TEXT, "description": TEXT, "default_version": _VERSION, "versions": _array(_VERSION)},
    "name", "default_version", "versions",
)  # fmt: skip


def of(method: str, path: str) -> Json | None:
    """Return the schema of an endpoint's document, or None.

    A POST to a collection answers the item, as PATCH of the item does.
    """
    if path == "/":
        return _ROOT
    end = re.sub(r"{\w+}", "{}", path)
    if method == "POST":
        end += "/{}"
    if method not in ("GET", "POST", "PATCH"):
        return None
    matches = [each for each in _ENDS if end == each or end.endswith(each)]
    return _ENDS[max(matches, key=len)] if matches else None
