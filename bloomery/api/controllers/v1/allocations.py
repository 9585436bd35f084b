"""Allocations: /v1/allocations and /v1/nodes/<ident>/allocation."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.api.controllers.v1 import records
from bloomery.api.declare import Call, Reply, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import nodes as node_views
from bloomery.api.views import records as views
from bloomery.model import nouns
from bloomery.model.allocation import BACKFILL_SINCE, PATCH_SINCE, SINCE, AllocationState
from bloomery.model.noun import Noun
from bloomery.model.rules.patches import Patch
from bloomery.operations import allocations
from bloomery.operations import records as operations

Json = dict[str, Any]
# As in Ironic, the response precedes the search for a node.
_NEW: Final = {
    "state": AllocationState.ALLOCATING,
    "node_uuid": None,
    "last_error": None,
    "updated_at": None,
}


def admit_body(call: Call, noun: Noun, body: Json) -> None:
    """Refuse ``node`` below its version as an unknown key, newer fields with 406, as Ironic."""
    fields = {name: value for name, value in body.items() if name != "node"}
    views.admit_body(call, noun, fields)
    if "node" in body and call.version < BACKFILL_SINCE:
        raise errors.Invalid(
            reason=f"cannot take node with API version 1.{call.version}: ask with version "
            f"1.{BACKFILL_SINCE} or newer",
        )


def check_fields(call: Call, fields: tuple[str, ...] | None) -> None:
    """Refuse unknown fields; as in Ironic, fields newer than the client's version are unknown."""
    try:
        views.check_fields(call, nouns.ALLOCATION, fields or ())
    except errors.NotAcceptable as exc:
        raise errors.Invalid(reason=str(exc)) from exc


class Allocations(records.Collection):
    """Allocations, which conductors create and delete by RPC."""

    def get_all(self, call: Call, **query: Any) -> Json:
        check_fields(call, query.get("fields"))
        try:
            return super().get_all(call, **query)
        except errors.NodeNotFound as exc:  # the filter ``node`` names no node
            raise errors.InvalidParameterValue(reason=str(exc)) from exc

    def get_one(self, call: Call, ident: str, *, fields: tuple[str, ...] | None = None) -> Json:
        check_fields(call, fields)
        return super().get_one(call, ident, fields=fields)

    def patch(self, call: Call, ident: str, *, body: Patch) -> Json:
        """Update an allocation; as in Ironic, a missing allocation precedes faults of the patch."""
        operations.get(call.context, self.noun, self._ident(ident), ("uuid",))
        return super().patch(call, ident, body=body)

    def post(self, call: Call, *, body: Json) -> Reply:
        self.gates.body(call, self.noun, body)
        uuid = allocations.create(call.context, body)
        document = self._document(call, uuid)
        return Reply(
            document=document if body.get("node") else document | _NEW,
            location=call.at(f"{self.noun.path}/{uuid}"),
        )

    def delete(self, call: Call, ident: str) -> None:
        allocations.destroy(call.context, self._ident(ident))


class AllocationOfNode(Rest):
    """/v1/nodes/<ident>/allocation."""

    @endpoint(rule="baremetal:allocation:get", since=SINCE, query=records.FIELDS)
    def get(self, call: Call, node: str, *, fields: tuple[str, ...] | None = None) -> Json:
        """Return the allocation of a node; as in Ironic, an unknown node gives 400."""
        try:
            uuid = allocations.uuid_of_node(call.context, node_views.known_ident(call, node))
        except errors.NodeNotFound as exc:
            raise errors.InvalidParameterValue(reason=str(exc)) from exc
        check_fields(call, fields)
        serializer = views.Serializer(call, nouns.ALLOCATION, fields)
        row = operations.get(call.context, nouns.ALLOCATION, uuid, serializer.columns)
        return serializer.write(row)

    @endpoint(rule="baremetal:allocation:delete", status=204, since=SINCE)
    def delete(self, call: Call, node: str) -> None:
        uuid = allocations.uuid_of_node(call.context, node_views.known_ident(call, node))
        allocations.destroy(call.context, uuid)


ALLOCATIONS: Final = Allocations(
    nouns.ALLOCATION,
    gates=records.Gates(body=admit_body),
    has_detail_path=False,
    detail_since=None,
    too_old=TooOld.NOT_FOUND,
    too_old_write=TooOld.REFUSED,
    patch_since=PATCH_SINCE,
    more=("node",),
)
OF_NODES: Final = AllocationOfNode()
