"""/v1/nodes: the collection, one node, and the mount points of subresources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from webob import exc as statuses

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.controllers.v1 import (
    allocations,
    node_facts,
    node_hardware,
    node_management,
    node_states,
    node_traits,
    old_paths,
    portgroups,
    ports,
    vendor_passthru,
    volume,
)
from bloomery.api.declare import Call, Reply, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import node as schemas
from bloomery.api.schemas import patch
from bloomery.api.views import nodes as views
from bloomery.model.rules import idents
from bloomery.operations import nodes

FIELDS: Final = {"fields": Arg(arguments.words, since=8)}
FILTERS: Final[arguments.Args] = {
    "chassis_uuid": Arg(arguments.uuid),
    "instance_uuid": Arg(arguments.uuid),
    "associated": Arg(arguments.boolean),
    "maintenance": Arg(arguments.boolean),
    "retired": Arg(arguments.boolean),
    "provision_state": Arg(arguments.text, since=9),
    "driver": Arg(arguments.text, since=16),
    "resource_class": Arg(arguments.text, since=21),
    "fault": Arg(arguments.text, since=42),
    "conductor_group": Arg(arguments.text, since=46),
    "conductor": Arg(arguments.text, since=49),
    "owner": Arg(arguments.text, since=50),
    "lessee": Arg(arguments.text, since=65),
    "project": Arg(arguments.text),
    "description_contains": Arg(arguments.search),
    "shard": Arg(arguments.words, since=82),
    "sharded": Arg(arguments.boolean, since=82),
    "include_children": Arg(arguments.boolean, since=83),
    "parent_node": Arg(arguments.ident, since=83),
    "instance_name": Arg(arguments.text, since=104),
}
DETAIL: Final = {  # Ironic's detailed list does not check the version of these two
    **arguments.PAGING,
    **FILTERS,
    "include_children": Arg(arguments.boolean),
    "parent_node": Arg(arguments.ident),
}
LIST: Final = {
    **arguments.PAGING,
    **FILTERS,
    **FIELDS,
    "detail": Arg(arguments.boolean, since=43, refusal=400),
}
MAINTENANCE: Final = {"reason": Arg(arguments.text_or_null)}


def _show(call: Call, ident: str, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
    serializer = views.Serializer(call, fields)
    return serializer.write(nodes.get_row(call.context, ident, serializer.columns))


def read_page(call: Call, query: dict[str, Any], *, detail: bool = False) -> dict[str, Any]:
    """Return a page of nodes; ``detail``: of the path; ``query["detail"]``: the argument."""
    fields = views.listed_fields(call, query, detail=detail)
    serializer, page = views.Serializer(call, fields), views.page(call, query)
    rows, marker = nodes.list_rows(call.context, serializer.columns, query, page)
    answer: dict[str, Any] = {"nodes": [serializer.write(row) for row in rows]}
    if marker is not None:
        answer["next"] = views.next_url(call, query, page, marker, fields, detail=detail)
    return answer


class Detail(Rest):
    @endpoint(rule="baremetal:node:list", query=DETAIL, extra_segment_status=404)
    def get(self, call: Call, **query: Any) -> dict[str, Any]:
        return read_page(call, query, detail=True)


class ValidateAny(Rest):
    """The old path of validate: /nodes/validate?node=<ident>."""

    @endpoint(
        rule="baremetal:node:validate",
        query={"node": Arg(arguments.ident), "node_uuid": Arg(arguments.ident)},
    )
    def get(self, call: Call, **query: str) -> dict[str, Any]:
        ident = arguments.needed("node", query.get("node") or query.get("node_uuid"))
        return nodes.validate(call.context, views.known_ident(call, ident))


class Validate(Rest):
    @endpoint(rule="baremetal:node:validate")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return nodes.validate(call.context, views.known_ident(call, node))


class Maintenance(Rest):
    @endpoint(rule="baremetal:node:set_maintenance", status=202, named=MAINTENANCE)
    def put(self, call: Call, node: str, *, reason: str | None = None) -> None:
        nodes.set_maintenance(call.context, views.known_ident(call, node), True, reason)

    @endpoint(rule="baremetal:node:clear_maintenance", status=202)
    def delete(self, call: Call, node: str) -> None:
        nodes.set_maintenance(call.context, views.known_ident(call, node), False)


class Children(Rest):
    @endpoint(rule="baremetal:node:get", since=83)
    def get_all(self, call: Call, node: str) -> dict[str, Any]:
        return views.children(call, *nodes.list_children(call.context, node))


class Nodes(Rest):
    since = 1
    children: ClassVar[Mapping[str, Rest]] = {"detail": Detail(), "validate": ValidateAny()}
    subresources: ClassVar[Mapping[str, Rest]] = {
        "states": node_states.States(),
        "maintenance": Maintenance(),
        "management": node_management.Management(),
        "validate": Validate(),
        "traits": node_traits.Traits(),
        "history": node_facts.History(),
        "bios": node_facts.Bios(),
        "firmware": node_facts.Firmware(),
        "inventory": node_facts.Inventory(),
        "allocation": allocations.OF_NODES,
        "vifs": node_management.Vifs(),
        "vmedia": node_hardware.Vmedia(),
        "vendor_passthru": vendor_passthru.NodePassthru(),
        "children": Children(),
        "ports": ports.OF_NODES,
        "portgroups": portgroups.OF_NODES,
        "volume": volume.OF_NODES,
    }

    def walk_without_ident(self, call: Call, segments: list[str]) -> Any:
        if segments[0] not in old_paths.WORDS:
            raise statuses.HTTPNotFound
        path = old_paths.with_ident_first(call, self.subresources, segments)
        return self.walk_behind_ident(call, path)

    def check_ident(self, call: Call, ident: str) -> None:
        if not (idents.is_uuid(ident) or idents.is_logical_name(ident)):
            raise statuses.HTTPBadRequest(f"Expected UUID or name for node: {ident}")

    @endpoint(rule="baremetal:node:list", query=LIST)
    def get_all(self, call: Call, **query: Any) -> dict[str, Any]:
        return read_page(call, query)

    @endpoint(rule="baremetal:node:get", query=FIELDS, extra_segment_status=404)
    def get_one(
        self,
        call: Call,
        node: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        views.check_fields(call, fields)
        return _show(call, views.known_ident(call, node), fields)

    @endpoint(rule="baremetal:node:create", status=201, body=schemas.CREATE)
    def post(self, call: Call, *, body: dict[str, Any]) -> Reply:
        views.check_body(call, body)
        uuid = nodes.create(call.context, body, views.initial_state(call))
        return Reply(document=_show(call, uuid), location=call.at(f"nodes/{uuid}"))

    @endpoint(
        rule="baremetal:node:update",
        query={"reset_interfaces": Arg(arguments.boolean)},
        body=patch.PATCH,
    )
    def patch(
        self,
        call: Call,
        node: str,
        *,
        body: list[dict[str, Any]],
        reset_interfaces: bool | None = None,
    ) -> dict[str, Any]:
        terms = views.update_terms(call, node, reset_interfaces)
        return _show(call, nodes.update(call.context, node, body, reset_interfaces, terms))

    @endpoint(rule="baremetal:node:delete", status=204, extra_segment_status=404)
    def delete(self, call: Call, node: str) -> None:
        nodes.delete(call.context, views.known_ident(call, node))
