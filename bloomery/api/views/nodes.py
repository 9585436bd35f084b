"""Views of a node and of its stored facts, in the client's version.

The fields of that version, with links, the conductor and old names; history and BIOS settings.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.api import versions
from bloomery.api.declare import Call
from bloomery.api.views import pagination, projection
from bloomery.conductor.states import State
from bloomery.model import node as model
from bloomery.model import node_facts
from bloomery.model.fields import FieldTable, table
from bloomery.model.request import Page
from bloomery.model.rules import idents, patches
from bloomery.model.rules.patches import Patch
from bloomery.operations import nodes, policy
from bloomery.operations.nodes import UpdateTerms

Json = dict[str, Any]

AVAILABLE_SINCE: Final = 2  # before, null stands for available
NAMES_SINCE: Final = 5
ANY_NAME_SINCE: Final = 10  # before: host names
ENROLL_SINCE: Final = 11
UNSET_CHASSIS_SINCE: Final = 25
INSPECT_WAIT_SINCE: Final = 39
RESET_INTERFACES_SINCE: Final = 45
SUBRESOURCES: Final = (("ports", 1), ("states", 14), ("portgroups", 24), ("volume", 32))
UNSELECTABLE: Final = frozenset({"created_at", "updated_at"})  # cannot be selected by ``fields``
UNSORTABLE: Final = frozenset({"chassis_uuid", "allocation_uuid"})
IN_NEXT: Final = ("associated", "maintenance", "retired")  # filters that the next link repeats
DEFAULT: Final = (
    "instance_uuid", "maintenance", "power_state", "provision_state", "uuid", "name",
)  # fmt: skip
STATES: Final = (
    "console_enabled", "last_error", "power_state", "provision_state", "target_power_state",
    "target_provision_state", "provision_updated_at", "raid_config", "target_raid_config",
    "boot_mode", "secure_boot",
)  # fmt: skip

BIOS_SHORT: Final = ("name", "value")
BIOS_ALWAYS: Final = ("created_at", "updated_at")  # shown whatever ``fields`` selects
HISTORY_SHORT: Final = ("uuid", "created_at", "severity", "event")
MAX_SHORT_EVENT: Final = 255

_PROJECTIONS: Final = projection.Projections(model.FIELDS, "uuid")
_WITH_CONDUCTOR: Final = projection.Projections(model.FIELDS, "uuid", "driver", "conductor_group")
_WITH_OWNER: Final = projection.Projections(
    model.FIELDS, "uuid", "driver", "conductor_group", "owner", "lessee"
)
_STATES: Final = projection.Projections(table(*(model.FIELDS[name] for name in STATES)))


# ------------------------------------------------------------------------------------ documents


class Serializer:
    """Build documents from rows read by ``columns``.  ``fields`` None: all."""

    def __init__(self, call: Call, fields: Iterable[str] | None) -> None:
        context = call.context
        shows_conductor = fields is None or "conductor" in fields
        projections = _WITH_CONDUCTOR if shows_conductor else _PROJECTIONS
        self._guards = policy.guards_fields(context)
        if self._guards:
            projections = _WITH_OWNER
            self._hidden = functools.cache(functools.partial(policy.hidden_fields, context))
        self._projection = projections.of(call.version, fields)
        names = self._projection.names
        self._translates_states = "provision_state" in names and call.version < INSPECT_WAIT_SINCE
        self._shows_traits, self._shows_conductor = "traits" in names, "conductor" in names
        self._version = call.version
        self._context = context
        links = [n for n, since in SUBRESOURCES if fields is None and call.version >= since]
        self._links_of = projection.link_maker(call.url, "nodes", *links)
        self.columns = self._projection.columns
        self._bare = [name for name in policy.bare_fields(context) if name in names]

    def write(self, row: Sequence[Any]) -> Json:
        document = self._projection.values(row)
        uuid = document["uuid"]
        if self._translates_states:
            document["provision_state"] = _state(document["provision_state"], self._version)
        if self._shows_traits:
            joined = document["traits"]
            document["traits"] = sorted(joined.split(",")) if joined else []
        if self._shows_conductor:
            document["conductor"] = nodes.find_host(
                self._context, document["driver"], document["conductor_group"], uuid
            )
        for name in self._bare:
            value = orjson.loads(row[self.columns.index(name)])
            sealer = self._context.services.sealer
            # without a key, secrets cannot be unsealed
            document[name] = sealer.open(value) if sealer else secrets.mask(value)
        if self._guards:
            for name in self._hidden(document["owner"], document["lessee"]):
                if name in self._projection.names:
                    text = projection.redaction(f"baremetal:node:get:{name}")
                    is_object = model.FIELDS[name].kind == "object"
                    document[name] = {"content": text} if is_object else text
        document |= self._links_of(uuid)
        return self._projection.finish(document)


def _state(state: str | None, version: int) -> str | None:
    """Return a provision state in the spelling of ``version``."""
    if state == State.AVAILABLE and version < AVAILABLE_SINCE:
        return None
    if state == State.INSPECTWAIT and version < INSPECT_WAIT_SINCE:
        return State.INSPECTING.value
    return state


def state_columns(call: Call) -> tuple[str, ...]:
    return _STATES.of(call.version, None).columns


def states(call: Call, row: Sequence[Any]) -> Json:
    """Return the states of a node alone: clients poll them."""
    document = _STATES.of(call.version, None).values(row)
    return document | {"provision_state": _state(document["provision_state"], call.version)}


# ---------------------------------------------------------------------------------------- lists


def check_fields(call: Call, fields: Iterable[str] | None) -> None:
    """Refuse fields that the client's version or policy excludes."""
    if fields is not None:
        projection.check_fields(fields, model.FIELDS, call.version, never=UNSELECTABLE)


def listed_fields(call: Call, query: Mapping[str, Any], *, detail: bool) -> list[str] | None:
    """Return the fields of a list; None: all."""
    fields = query.get("fields")
    projection.refuse_both(fields, detail=detail or query.get("detail"))
    check_fields(call, fields)
    if fields is not None:
        return list(fields)
    return None if detail or query.get("detail") else list(DEFAULT)


def page(call: Call, query: Mapping[str, Any]) -> Page:
    return pagination.read(call, query, model.FIELDS, never=UNSORTABLE)


def next_url(
    call: Call,
    query: Mapping[str, Any],
    page: Page,
    marker: str,
    fields: list[str] | None,
    *,
    detail: bool,
) -> str:
    """Return the URL of the next page; that of /nodes/detail repeats neither fields nor detail."""
    return pagination.next_url(
        call,
        "nodes/detail" if detail else "nodes",
        page,
        marker,
        **{name: True for name in IN_NEXT if query.get(name)},
        detail=query.get("detail"),
        fields=fields,
    )


def children(call: Call, uuid: str, uuids: Sequence[str]) -> Json:
    link = {"href": call.at(f"nodes?parent_node={uuid}"), "rel": "children"}
    return {"children": uuids, "links": link}


# ---------------------------------------------------------------- limits of older clients


def known_ident(call: Call, ident: str) -> str:
    """Return the ident of a node.

    Raises NodeNotFound for names in versions without names, Invalid in versions with host names.
    """
    if call.version < ANY_NAME_SINCE and not idents.is_uuid(ident):
        if call.version < NAMES_SINCE:
            raise errors.NodeNotFound(node=ident)
        if not idents.is_host_name(ident):
            raise errors.Invalid(reason=f"Expected UUID or host name for node: {ident}")
    return ident


def check_body(call: Call, body: Json) -> None:
    """Refuse attributes of a new node that the client's version does not have."""
    for name, value in body.items():
        if value != ("" if name == "conductor_group" else None):
            versions.require(call.version, model.FIELDS[name].since, f"field {name}")
    if call.version < ANY_NAME_SINCE and body.get("name") is not None:
        idents.check_node_name(body["name"], host_name=True)


def initial_state(call: Call) -> State:
    return State.ENROLL if call.version >= ENROLL_SINCE else State.AVAILABLE


def update_terms(call: Call, ident: str, reset_interfaces: bool | None) -> UpdateTerms:
    """Return the limits of an update by this client's version."""

    def check_patch(patch: Patch) -> None:
        touched = sorted({patches.root_of(each) for each in patch if each["op"] != "remove"})
        for name in touched:
            versions.require(call.version, model.FIELDS[name].since, f"field {name}")
        values = patches.last_values(patch)
        if "chassis_uuid" in values and values["chassis_uuid"] is None:
            versions.require(call.version, UNSET_CHASSIS_SINCE, "removal of chassis_uuid")
        if reset_interfaces is not None:
            versions.require(call.version, RESET_INTERFACES_SINCE, "reset_interfaces")
        known_ident(call, ident)

    def check_names(patch: Patch) -> None:
        for operation in patch if call.version < ANY_NAME_SINCE else ():
            if operation["path"] == "/name" and operation["op"] != "remove":
                idents.check_node_name(operation["value"], host_name=True)

    return UpdateTerms(
        check_patch=check_patch,
        check_names=check_names,
        while_inspecting=call.version < INSPECT_WAIT_SINCE,
    )


# -------------------------------------------------------------- history, BIOS settings and firmware


def names_in(fields: FieldTable, version: int) -> tuple[str, ...]:
    """Return the names of the fields in ``version``."""
    return tuple(field.name for field in fields.values() if field.since <= version)


def history_page(
    call: Call,
    ident: str,
    page: Page,
    rows: Sequence[sa.RowMapping],
    *,
    detail: bool | None,
) -> Json:
    entries = [history_entry(call, row, detail=bool(detail)) for row in rows]
    answer: Json = {"history": entries}
    if page.is_full(rows):
        answer["next"] = pagination.next_url(
            call,
            f"nodes/{ident}/history",
            page,
            rows[-1]["uuid"],
            detail=detail,
            fields=None if detail else HISTORY_SHORT,
        )
    return answer


def history_entry(call: Call, row: sa.RowMapping, *, detail: bool = True) -> Json:
    names = names_in(node_facts.HISTORY, call.version)
    entry = {name: row[name] for name in names if detail or name in HISTORY_SHORT}
    if not detail and len(entry["event"]) > MAX_SHORT_EVENT:
        entry["event"] = entry["event"][: MAX_SHORT_EVENT - 4] + "..."
    href = call.at(f"nodes/{row['node_uuid']}/history/{row['uuid']}")
    return entry | {"links": [{"href": href, "rel": "self"}]}


def bios_fields(call: Call, fields: Iterable[str] | None, *, detail: bool | None) -> list[str]:
    """Return the fields of a list of BIOS settings."""
    if detail:
        return list(names_in(node_facts.BIOS, call.version))
    names = (*(BIOS_SHORT if fields is None else fields), *BIOS_ALWAYS)
    return [name for name in names if name in node_facts.BIOS]


def bios_setting(call: Call, ident: str, setting: Json, fields: Iterable[str]) -> Json:
    path = f"nodes/{ident}/bios/{setting['name']}"
    return {name: setting[name] for name in fields} | {"links": projection.links(call.url, path)}
