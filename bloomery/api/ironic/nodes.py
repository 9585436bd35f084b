"""/v1/nodes: the collection, one node, its maintenance, traits and stored facts."""

from __future__ import annotations

from typing import Any, Final

import orjson

from bloomery.api import arguments, schemas
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Reply
from bloomery.api.views import nodes as views
from bloomery.api.views import pagination, projection
from bloomery.conductor.states import State
from bloomery.model import node as model
from bloomery.model.fields import selectable
from bloomery.model.node_facts import BIOS, FIRMWARE, HISTORY
from bloomery.model.rules import nodes as rules
from bloomery.operations import node_facts, nodes, policy

Json = dict[str, Any]

FIELDS: Final = arguments.fields(selectable(model.FIELDS, never=views.UNSELECTABLE), since=8)
PAGING: Final = arguments.paging(model.FIELDS, never=views.UNSORTABLE)
FILTERS: Final[arguments.Args] = {
    "chassis_uuid": Arg(arguments.uuid),
    "instance_uuid": Arg(arguments.uuid),
    "associated": Arg(arguments.boolean),
    "maintenance": Arg(arguments.boolean),
    "retired": Arg(arguments.boolean),
    "provision_state": Arg(arguments.text, since=9, form={"enum": sorted(State)}),
    "driver": Arg(arguments.text, since=16),
    "resource_class": Arg(arguments.text, since=21),
    "fault": Arg(arguments.text, since=42, form={"enum": list(model.FAULTS)}),
    "conductor_group": Arg(arguments.text, since=46),
    "conductor": Arg(arguments.text, since=49),
    "owner": Arg(arguments.text, since=50),
    "lessee": Arg(arguments.text, since=65),
    "project": Arg(arguments.text),
    "description_contains": Arg(arguments.search),
    "shard": Arg(arguments.comma_list, since=82),
    "sharded": Arg(arguments.boolean, since=82),
    "include_children": Arg(arguments.boolean, since=83),
    "parent_node": Arg(arguments.ident, since=83),
    "instance_name": Arg(arguments.text, since=104),
}
DETAIL: Final = {  # Ironic's detailed list does not check the version of these two
    **PAGING,
    **FILTERS,
    "include_children": Arg(arguments.boolean),
    "parent_node": Arg(arguments.ident),
}
LIST: Final = {
    **PAGING,
    **FILTERS,
    **FIELDS,
    "detail": Arg(arguments.boolean, since=43, refusal=400),
}
VALIDATE: Final = {"node": Arg(arguments.ident), "node_uuid": Arg(arguments.ident)}
PATCH: Final = schemas.patch_of(model.PATCHABLE, model.OBJECTS)
UPDATE: Final = {"reset_interfaces": Arg(arguments.boolean)}
TRAITS: Final = {"traits": Arg(arguments.array, required=True, form=rules.TRAITS)}
BIOS_DETAIL_SINCE: Final = 74
LINKS: Final = ("links",)  # selectable beside the fields of BIOS settings
BIOS_LIST: Final = {
    "detail": Arg(arguments.boolean, since=BIOS_DETAIL_SINCE, refusal=400),
    **arguments.fields(selectable(BIOS, also=LINKS), since=BIOS_DETAIL_SINCE, refusal=400),
}
FIRMWARE_LIST: Final = arguments.fields(selectable(FIRMWARE))
HISTORY_LIST: Final = {**arguments.paging(HISTORY), "detail": Arg(arguments.boolean)}
MAINTENANCE: Final = {"reason": Arg(arguments.text_or_null)}


def _show(call: Call, ident: str, fields: tuple[str, ...] | None = None) -> orjson.Fragment:
    serializer = views.Serializer(call, fields)
    return serializer.write(nodes.get_row(call.context, ident, serializer.columns))


def read_page(call: Call, query: Json, *, detail: bool = False) -> Json:
    """Return a page of nodes; ``detail``: of the path; ``query["detail"]``: the argument."""
    fields = views.listed_fields(call, query, detail=detail)
    serializer, page = views.Serializer(call, fields), views.page(call, query)
    rows, marker = nodes.list_rows(call.context, serializer.columns, query, page)
    answer: Json = {"nodes": [serializer.write(row) for row in rows]}
    if marker is not None:
        answer["next"] = views.next_url(call, query, page, marker, fields, detail=detail)
    return answer


def list_page(call: Call, **query: Any) -> Json:
    return read_page(call, query)


def list_in_detail(call: Call, **query: Any) -> Json:
    return read_page(call, query, detail=True)


def get(call: Call, node: str, *, fields: tuple[str, ...] | None = None) -> orjson.Fragment:
    views.check_fields(call, fields)
    return _show(call, views.known_ident(call, node), fields)


def create(call: Call, *, body: Json) -> Reply:
    views.check_body(call, body)
    uuid = nodes.create(call.context, body, views.initial_state(call))
    return Reply(document=_show(call, uuid), location=call.at(f"nodes/{uuid}"))


def update(
    call: Call, node: str, *, body: list[Json], reset_interfaces: bool | None = None
) -> orjson.Fragment:
    terms = views.update_terms(call, node, reset_interfaces)
    return _show(call, nodes.update(call.context, node, body, reset_interfaces, terms))


def delete(call: Call, node: str) -> None:
    nodes.delete(call.context, views.known_ident(call, node))


def validate(call: Call, node: str) -> Json:
    return nodes.validate(call.context, views.known_ident(call, node))


def validate_named(call: Call, **query: str) -> Json:
    """The old path of validate: /nodes/validate?node=<ident>."""
    return validate(call, arguments.needed("node", query.get("node") or query.get("node_uuid")))


def set_maintenance(call: Call, node: str, *, reason: str | None = None) -> None:
    nodes.set_maintenance(call.context, views.known_ident(call, node), True, reason)


def clear_maintenance(call: Call, node: str) -> None:
    nodes.set_maintenance(call.context, views.known_ident(call, node), False)


def list_children(call: Call, node: str) -> Json:
    return views.children(call, *nodes.list_children(call.context, node))


# -------------------------------------------------------------------------------------- traits


def list_traits(call: Call, node: str) -> Json:
    return {"traits": node_facts.list_traits(call.context, node)}


def set_traits(
    call: Call, node: str, trait: str | None = None, *, traits: list[Any] | None = None
) -> Reply:
    """Replace all traits, or add the trait that the path names."""
    if trait is None:
        node_facts.replace_traits(call.context, node, traits or [])
        return Reply()
    node_facts.add_trait(call.context, node, trait)
    return Reply(location=call.at(f"nodes/{node}/traits/{trait}"))


def remove_trait(call: Call, node: str, trait: str | None = None) -> None:
    """Remove the trait that the path names, or all."""
    node_facts.remove_traits(call.context, node, trait)


# ------------------------------------------------------------------------------- stored facts


def list_history(call: Call, node: str, **query: Any) -> Json:
    uuid = policy.get_uuid(call.context, node)
    page = pagination.read(call, query, HISTORY, default_key="created_at")
    rows = node_facts.list_history(call.context, uuid, page)
    return views.history_page(call, node, page, rows, detail=query.get("detail"))


def get_history_entry(call: Call, node: str, entry: str) -> Json:
    return views.history_entry(call, node_facts.get_history_entry(call.context, node, entry))


def list_bios_settings(
    call: Call, node: str, *, detail: bool | None = None, fields: tuple[str, ...] | None = None
) -> Json:
    settings = node_facts.list_bios_settings(call.context, node)
    projection.refuse_both(fields, detail=detail)
    if fields is not None:
        projection.check_fields(fields, BIOS, call.version, also=LINKS)
    names = views.bios_fields(call, fields, detail=detail)
    return {"bios": [views.bios_setting(call, node, each, names) for each in settings]}


def get_bios_setting(call: Call, node: str, setting: str) -> Json:
    document = node_facts.get_bios_setting(call.context, node, setting)
    names = views.names_in(BIOS, call.version)
    return {setting: views.bios_setting(call, document["node_uuid"], document, names)}


def list_firmware(call: Call, node: str, *, fields: tuple[str, ...] | None = None) -> Json:
    components = node_facts.list_firmware(call.context, node)
    if fields is not None:
        projection.check_fields(fields, FIRMWARE, call.version)
    names = views.names_in(FIRMWARE, call.version) if fields is None else fields
    return {"firmware": [{name: each[name] for name in names} for each in components]}


def get_inventory(call: Call, node: str) -> Json:
    return node_facts.get_inventory(call.context, node)
