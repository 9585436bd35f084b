"""Controllers of any noun: its collection, its detailed lists, and its lists below a parent.

    PORTS = Collection(nouns.PORT, gates=Gates(body=..., patch=...))       # /v1/ports
    CHILDREN = Sublist(nouns.PORT, parent="node", find=filters_of_node)    # /v1/nodes/<uuid>/ports

Each controller declares its endpoints from its noun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MethodType
from typing import Any, Final

from bloomery import errors
from bloomery.api import arguments, versions
from bloomery.api.arguments import Arg, Args
from bloomery.api.declare import REFUSED, Call, Reply, Schema, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import build, patch
from bloomery.api.views import nodes, pagination, projection
from bloomery.api.views import records as views
from bloomery.model.noun import Noun
from bloomery.model.rules import idents
from bloomery.model.rules.patches import Patch
from bloomery.operations import policy, records

Json = dict[str, Any]

FIELDS: Final = {"fields": Arg(arguments.words, since=8)}


def detail_argument(since: int = 43) -> Args:
    """Return the argument that asks lists for whole documents."""
    return {"detail": Arg(arguments.boolean, since=since, refusal=400)}


PARSERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "address": arguments.mac,
    "conductor_groups": arguments.words,
    "description_contains": arguments.search,
    "node": arguments.ident,
    "node_uuid": arguments.uuid,
    "owner": arguments.text,
    "phase": arguments.text,
    "portgroup": arguments.ident,
    "resource_class": arguments.text,
    "shard": arguments.words,
    "state": arguments.text,
}  # of the nouns' filters


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Checks of bodies, patches and fields from older clients; each raises NotAcceptable."""

    body: Callable[[Call, Noun, Json], None] = views.admit_body
    patch: Callable[[Call, Noun, Patch], None] = lambda call, noun, patch: None


def declare(controller: Rest, method: str, **declaration: Any) -> None:
    """Make a method of one controller an endpoint."""
    answer = endpoint(**declaration)(getattr(type(controller), method))
    setattr(controller, method, MethodType(answer, controller))


def filters_of(noun: Noun) -> Args:
    return {name: Arg(PARSERS[name], since=since) for name, since in noun.filters.items()}


def creation(noun: Noun, more: Iterable[str] = ()) -> Schema:
    """Return the schema of a POST body; ``more``: texts beside the noun's fields."""
    names = (n for n in (*noun.node_arguments, *more) if n not in noun.fields)
    nodes = {n: {"type": ["string", "null"]} for n in names}
    return Schema(
        thing=noun.name,
        source=build.creation(noun.fields, required=list(noun.required), also=nodes),
    )


# -------------------------------------------------------------------------------------- lists


def read_page(
    call: Call,
    noun: Noun,
    query: Mapping[str, Any],
    parent: Json | None = None,
    *,
    detailed: bool = False,
) -> Json:
    """Return one page of records.

    ``query``: filters, paging, ``fields`` and ``detail`` of the client, parsed. ``parent``: the
    filter of a list below a parent, which ``next`` does not repeat. ``detailed``: the list is at
    ``<plural>/detail``.
    """
    detail = detailed or bool(query.get("detail"))
    fields = _fields(call, noun, query, detail=detail)
    serializer = views.Serializer(call, noun, fields, detail=detail)
    page = pagination.read(call, query, noun.fields)
    filters = {name: query[name] for name in query.keys() & noun.filters.keys()} | (parent or {})
    if "node" in filters:
        nodes.known_ident(call, filters["node"])
    rows = records.list_rows(call.context, noun, serializer.columns, filters, page)
    document: Json = {noun.plural: [serializer.write(row) for row in rows]}
    if page.is_full(rows):
        document["next"] = pagination.next_url(
            call,
            f"{noun.link}/detail" if detailed else noun.link,
            page,
            rows[-1].uuid,
            detail=query.get("detail"),
            fields=fields,
        )
    return document


def _fields(
    call: Call, noun: Noun, query: Mapping[str, Any], *, detail: bool
) -> tuple[str, ...] | None:
    """Return the fields of the documents; None: all fields."""
    fields = query.get("fields")
    projection.refuse_both(fields, detail=detail)
    if fields is None:
        return None if detail or not noun.listed else noun.listed
    views.check_fields(call, noun, fields)
    return tuple(fields)


class Detail(Rest):
    """/v1/<plural>/detail."""

    def __init__(self, noun: Noun, too_old: Json, rule: str) -> None:
        super().__init__()
        self.noun = noun
        query = {**arguments.PAGING, **filters_of(noun)}
        declare(self, "get", rule=rule, query=query, **too_old)

    def get(self, call: Call, **query: Any) -> Json:
        return read_page(call, self.noun, query, detailed=True)


# --------------------------------------------------------------------------------- collections


def _gate(noun: Noun, too_old: TooOld) -> Json:
    """Return the endpoint options that refuse clients older than the collection."""
    gate: Json = {"since": noun.since}
    return gate | ({"too_old": too_old} if noun.since > versions.MIN else {})


class Collection(Rest):
    """/v1/<plural> and /v1/<plural>/<ident>."""

    def __init__(
        self,
        noun: Noun,
        *,
        gates: Gates = Gates(),
        list_rule: str = "list",
        has_detail_path: bool = True,
        detail_since: int | None = 43,
        too_old: TooOld = TooOld.NOT_FOUND,
        too_old_write: TooOld | None = None,
        patch_since: int | None = None,
        more: Iterable[str] = (),
        deleted_by: Callable[[str, Any], str] | None = None,
        subresources: Mapping[str, Rest] | None = None,
    ) -> None:
        """``too_old``: the refusal of a client that is older than the collection.

        ``too_old_write``: the refusal of POST, PATCH and DELETE, if it differs. ``detail_since``:
        None where lists have no argument ``detail``.  ``patch_since``: the version of PATCH where
        it is newer than the collection.  ``more``: keys of POST beside the fields. ``deleted_by``
        parses the ident of DELETE, where Ironic accepts fewer idents than for GET.
        """
        super().__init__()
        self.noun, self.gates, self.since = noun, gates, noun.since
        self._deleted_by = deleted_by
        self.subresources = subresources or {}  # type: ignore[misc]
        rule = f"baremetal:{noun.policy}"
        since = patch_since or noun.since
        write = _gate(noun, too_old_write or too_old)
        self._declare_lists(f"{rule}:{list_rule}", detail_since, _gate(noun, too_old))
        self._declare_single(rule, _gate(noun, too_old), write, since, creation(noun, more))
        if has_detail_path:
            gate = _gate(noun, too_old)
            self.children = {"detail": Detail(noun, gate, f"{rule}:{list_rule}")}  # type: ignore[misc]

    def _declare_lists(self, rule: str, detail_since: int | None, read: Json) -> None:
        detail = {} if detail_since is None else detail_argument(detail_since)
        query = {**arguments.PAGING, **filters_of(self.noun), **FIELDS, **detail}
        declare(self, "get_all", rule=rule, query=query, **read)

    def _declare_single(
        self, rule: str, read: Json, write: Json, patch_since: int, body: Schema
    ) -> None:
        single: Json = {"idents": (self.noun.name,)}
        declare(self, "post", rule=f"{rule}:create", status=201, body=body, **write)
        declare(self, "get_one", rule=f"{rule}:get", query=FIELDS, **single, **read)
        late = write | {"since": patch_since}
        declare(self, "patch", rule=f"{rule}:update", body=patch.PATCH, **single, **late)
        single |= {"status": 204, "extra_segment_status": 404}
        declare(self, "delete", rule=f"{rule}:delete", **single, **write)

    def get_all(self, call: Call, **query: Any) -> Json:
        return read_page(call, self.noun, query)

    def get_one(self, call: Call, ident: str, *, fields: tuple[str, ...] | None = None) -> Json:
        ident = self._ident(ident)
        if fields is not None:
            views.check_fields(call, self.noun, fields)
        return self._document(call, ident, fields)

    def post(self, call: Call, *, body: Json) -> Reply:
        self.gates.body(call, self.noun, body)
        uuid = records.create(call.context, self.noun, body, self._waived(call))
        return Reply(
            document=self._document(call, uuid), location=call.at(f"{self.noun.path}/{uuid}")
        )

    def patch(self, call: Call, ident: str, *, body: Patch) -> Json:
        uuid = records.update(
            call.context,
            self.noun,
            self._ident(ident),
            body,
            admit=lambda patch: self.gates.patch(call, self.noun, patch),
            waived=self._waived(call),
        )
        return self._document(call, uuid)

    def delete(self, call: Call, ident: str) -> None:
        parse = self._deleted_by
        records.destroy(
            call.context,
            self.noun,
            parse(f"{self.noun.name}_uuid", ident) if parse else self._ident(ident),
        )

    def _ident(self, ident: str) -> str:
        if self.noun.has_names:
            return arguments.ident(f"{self.noun.name}_ident", ident)
        return arguments.uuid(f"{self.noun.name}_uuid", ident)

    def _document(self, call: Call, ident: str, fields: tuple[str, ...] | None = None) -> Json:
        serializer = views.Serializer(call, self.noun, fields)
        return serializer.write(records.get(call.context, self.noun, ident, serializer.columns))

    def _waived(self, call: Call) -> tuple[str, ...]:
        """Return the policy rules that the client's version does not have."""
        return tuple(r for r, since in self.noun.late_rules.items() if call.version < since)


# ------------------------------------------------------------------------- lists below a parent

Find = Callable[[Call, str], Json]  # parent's ident -> filter of the list


class SublistDetail(Rest):
    """/v1/<parents>/<ident>/<plural>/detail."""

    def __init__(self, noun: Noun, parent: str, find: Find, since: int) -> None:
        super().__init__()
        self.noun, self._find = noun, find
        declare(
            self,
            "get",
            rule=f"baremetal:{noun.policy}:list",
            query=arguments.PAGING,
            since=since,
            idents=(parent,),
        )

    def get(self, call: Call, parent: str, **query: Any) -> Json:
        return read_page(call, self.noun, query, self._find(call, parent), detailed=True)


class Sublist(Rest):
    """/v1/<parents>/<ident>/<plural>: a list; single records are read and written elsewhere."""

    def __init__(
        self,
        noun: Noun,
        *,
        parent: str,
        find: Find,
        since: int = 1,
        detail_since: int = 43,
        has_detail_path: bool = True,
    ) -> None:
        super().__init__()
        self.noun, self._find = noun, find
        if has_detail_path:
            self.children = {"detail": SublistDetail(noun, parent, find, since)}  # type: ignore[misc]
        rule, query = (
            f"baremetal:{noun.policy}",
            {**arguments.PAGING, **FIELDS, **detail_argument(detail_since)},
        )
        above: Json = {"since": since, "idents": (parent,)}
        refused: Json = {"since": since, "status": REFUSED}
        single = refused | {"idents": (parent, noun.name)}
        declare(self, "get_all", rule=f"{rule}:list", query=query, **above)
        declare(self, "post", rule=f"{rule}:create", body=creation(noun), **above | refused)
        declare(self, "get_one", rule=f"{rule}:get", **single)
        declare(self, "patch", rule=f"{rule}:update", body=patch.PATCH, **single)
        declare(self, "delete", rule=f"{rule}:delete", **single)

    def get_all(self, call: Call, parent: str, **query: Any) -> Json:
        return read_page(call, self.noun, query, self._find(call, parent))

    def get_one(self, call: Call, parent: str, ident: str) -> None:
        raise malformed(self.noun)

    def post(self, call: Call, parent: str, *, body: Json) -> None:
        raise malformed(self.noun)

    def patch(self, call: Call, parent: str, ident: str, *, body: Patch) -> None:
        raise malformed(self.noun)

    def delete(self, call: Call, parent: str, ident: str) -> None:
        raise malformed(self.noun)


def malformed(noun: Noun) -> errors.Invalid:
    return errors.Invalid(
        reason=f"Malformed request URI. Use /v1/{noun.path} for single {noun.plural}.",
    )


def of_node(call: Call, ident: str) -> Json:
    """Return the filter of a node, by UUID only; a name or an unknown UUID gets Ironic's error."""
    try:
        node = idents.is_uuid(ident) and policy.get_uuid(call.context, ident)
    except errors.NodeNotFound:
        node = None
    if not node:
        raise errors.PortgroupNotFound(portgroup=None)
    return {"node_uuid": node}
