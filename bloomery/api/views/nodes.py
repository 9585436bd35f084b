"""Views of a node and of its stored facts, in the client's version.

The fields of that version, with links, the conductor and old names; history and BIOS settings.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
import sqlalchemy as sa

from bloomery import errors
from bloomery.api import versions
from bloomery.api.declare import Call
from bloomery.api.views import pagination, projection
from bloomery.conductor.states import State
from bloomery.model import node as model
from bloomery.model import node_facts
from bloomery.model.fields import Column, FieldTable, table
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

_STATES: Final = table(*(model.FIELDS[name] for name in STATES))


# ------------------------------------------------------------------------------------ documents


class Serializer:
    """Build documents from rows read by ``columns``.  ``fields`` None: all."""

    def __init__(self, call: Call, fields: Iterable[str] | None) -> None:
        self._context, self._version = call.context, call.version
        self._bare = policy.bare_fields(call.context)
        self._guards = policy.guards_fields(call.context)
        self._hidden = functools.cache(functools.partial(policy.hidden_fields, call.context))
        names = None if fields is None else frozenset(fields)
        self._projection = _projection(call.version, names, self._bare, guards=self._guards)
        self.columns, self._uuid_at = self._projection.columns, self._projection.at["uuid"]
        self._is_derived = len(self._projection.at) > 1
        links = [n for n, since in SUBRESOURCES if fields is None and call.version >= since]
        self._links_of = projection.link_maker(call.url, "nodes", *links)

    def write(self, row: Sequence[Any]) -> orjson.Fragment:
        uuid = row[self._uuid_at]
        derived = self._derived(row, uuid) if self._is_derived else {}
        return self._projection.document(row, derived, self._links_of(uuid))

    def _derived(self, row: Sequence[Any], uuid: str) -> Json:
        """Return the values that the database does not print."""
        at, derived = self._projection.at, dict[str, Any]()
        sealer = self._context.services.sealer
        for name in self._projection.derived:
            derived[name] = stored = row[at[name]]
            if name == "provision_state":
                derived[name] = _state(stored, self._version)
            elif name in self._bare and sealer:  # without a key, secrets cannot be unsealed
                derived[name] = sealer.open(orjson.loads(stored))
            elif name in model.OBJECTS:
                derived[name] = projection.masked(name, stored)
        if "traits" in at:
            joined = row[at["traits"]]
            derived["traits"] = sorted(joined.split(",")) if joined else []
        if "driver" in at:
            driver, group = row[at["driver"]], row[at["conductor_group"]]
            derived["conductor"] = nodes.find_host(self._context, driver, group, uuid)
        if self._guards:
            for name in self._hidden(row[at["owner"]], row[at["lessee"]]):
                if name in derived:
                    text = projection.redaction(f"baremetal:node:get:{name}")
                    derived[name] = {"content": text} if name in model.OBJECTS else text
        return derived


@functools.lru_cache(maxsize=projection.MAX_PROJECTIONS)
def _projection(
    version: int, names: frozenset[str] | None, bare: tuple[str, ...], *, guards: bool
) -> projection.Projection:
    """Return the projection of callers who see ``bare`` secrets; ``guards``: rules hide fields."""

    def is_shown(name: str) -> bool:
        return model.FIELDS[name].since <= version and (names is None or name in names)

    return projection.project(
        model.FIELDS,
        version,
        names,
        derived=(*bare, *(policy.GUARDED if guards else ()), *_renamed(version)),
        needed=(
            "uuid",
            *(("traits",) if is_shown("traits") else ()),
            *(("driver", "conductor_group") if is_shown("conductor") else ()),
            *(("owner", "lessee") if guards else ()),
        ),
    )


def _renamed(version: int) -> tuple[str, ...]:
    """Return the fields with values that ``version`` spells otherwise."""
    return ("provision_state",) if version < INSPECT_WAIT_SINCE else ()


def _state(state: str | None, version: int) -> str | None:
    """Return a provision state in the spelling of ``version``."""
    if state == State.AVAILABLE and version < AVAILABLE_SINCE:
        return None
    if state == State.INSPECTWAIT and version < INSPECT_WAIT_SINCE:
        return State.INSPECTING.value
    return state


@functools.lru_cache(maxsize=versions.MAX)
def _states_projection(version: int) -> projection.Projection:
    return projection.project(_STATES, version, None, derived=_renamed(version))


def state_columns(call: Call) -> tuple[Column, ...]:
    return _states_projection(call.version).columns


def states(call: Call, row: Sequence[Any]) -> orjson.Fragment:
    """Return the states of a node alone: clients poll them."""
    shape = _states_projection(call.version)
    renamed = {name: _state(row[shape.at[name]], call.version) for name in shape.derived}
    return shape.document(row, renamed)


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
