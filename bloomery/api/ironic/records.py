"""Endpoints of any noun: its collection, its detailed lists, and its lists below a parent.

*Collection(nouns.PORT, gates=Gates(body=..., patch=...)).endpoints()      # /v1/ports
*sublist(nouns.PORT, "/v1/nodes/{node}", find=filter_of_node)              # below a node
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import orjson

from bloomery import errors
from bloomery.api import arguments, schemas, versions
from bloomery.api.arguments import Arg, Args
from bloomery.api.declare import REFUSED, Call, Endpoint, Reply, Schema, TooOld
from bloomery.api.views import nodes, pagination, projection
from bloomery.api.views import records as views
from bloomery.model.fields import NAME
from bloomery.model.noun import Noun
from bloomery.model.rules import idents
from bloomery.model.rules.patches import Patch
from bloomery.operations import policy, records

Json = dict[str, Any]


def fields_argument(noun: Noun) -> Args:
    return arguments.fields(views.selectable(noun), since=8)


def detail_argument(since: int = 43) -> Args:
    """Return the argument that asks lists for whole documents."""
    return {"detail": Arg(arguments.boolean, since=since, refusal=400)}


PARSERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "address": arguments.mac,
    "conductor_groups": arguments.comma_list,
    "description_contains": arguments.search,
    "node": arguments.ident,
    "node_uuid": arguments.uuid,
    "owner": arguments.text,
    "phase": arguments.text,
    "portgroup": arguments.ident,
    "resource_class": arguments.text,
    "shard": arguments.comma_list,
    "state": arguments.text,
}  # of the nouns' filters


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Checks of bodies, patches and fields from older clients; each raises NotAcceptable."""

    body: Callable[[Call, Noun, Json], None] = views.admit_body
    patch: Callable[[Call, Noun, Patch], None] = lambda call, noun, patch: None


def filters_of(noun: Noun) -> Args:
    return {name: Arg(PARSERS[name], since=since) for name, since in noun.filters.items()}


def creation(noun: Noun, more: Iterable[str] = ()) -> Schema:
    """Return the schema of a POST body; ``more``: names of nodes beside the noun's fields."""
    names = [n for n in (*noun.node_arguments, *more) if n not in noun.fields]
    return schemas.creation(
        noun.name,
        noun.fields,
        required=list(noun.required),
        also={n: {"type": ["string", "null"]} for n in names},
        forms=dict.fromkeys(names, NAME),
        rules=noun.form,
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
    fields = query.get("fields")
    projection.refuse_both(fields, detail=detail)
    if fields is not None:
        views.check_fields(call, noun, fields)
    elif noun.listed and not detail:
        fields = noun.listed
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


# --------------------------------------------------------------------------------- collections


class Collection:
    """/v1/<plural> and /v1/<plural>/<ident>."""

    def __init__(
        self,
        noun: Noun,
        *,
        gates: Gates = Gates(),
        deleted_by: Callable[[str, Any], str] | None = None,
    ) -> None:
        """``deleted_by`` parses the ident of DELETE, where Ironic accepts fewer than for GET."""
        self.noun, self.gates, self._deleted_by = noun, gates, deleted_by

    def endpoints(
        self,
        *,
        list_rule: str = "list",
        has_detail_path: bool = True,
        detail_since: int | None = 43,
        too_old: TooOld = TooOld.NOT_FOUND,
        too_old_write: TooOld | None = None,
        patch_since: int | None = None,
        more: Iterable[str] = (),
    ) -> Iterator[Endpoint]:
        """Yield the endpoints of the collection.

        ``too_old``: the refusal of a client that is older than the collection; ``too_old_write``:
        of POST, PATCH and DELETE, if it differs.  ``detail_since``: None where lists have no
        argument ``detail``.  ``patch_since``: the version of PATCH where it is newer.  ``more``:
        keys of POST beside the fields.
        """
        noun = self.noun
        rule, path = f"baremetal:{noun.policy}", f"/v1/{noun.path}"
        lists, item = f"{rule}:{list_rule}", f"{path}/{{{noun.name}}}"
        read: Json = {"since": noun.since}
        write = dict(read)
        if noun.since > versions.MIN:
            read["too_old"], write["too_old"] = too_old, too_old_write or too_old
        query = {**arguments.paging(noun.fields), **filters_of(noun)}
        if has_detail_path:
            yield Endpoint(
                "GET", f"{path}/detail", self.list_in_detail, lists, query=query,
                exclusive=noun.exclusive, **read,
            )  # fmt: skip
        detail = {} if detail_since is None else detail_argument(detail_since)
        fields = fields_argument(noun)
        query = {**query, **fields, **detail}
        late = write | {"since": patch_since or noun.since}
        body, change = creation(noun, more), schemas.patch_of_noun(noun)
        yield Endpoint(
            "GET", path, self.list_page, lists, query=query, exclusive=noun.exclusive, **read
        )
        yield Endpoint("POST", path, self.create, f"{rule}:create", 201, body=body, **write)
        yield Endpoint("GET", item, self.get, f"{rule}:get", query=fields, **read)
        yield Endpoint("PATCH", item, self.update, f"{rule}:update", body=change, **late)
        yield Endpoint("DELETE", item, self.delete, f"{rule}:delete", 204, **write)

    def list_page(self, call: Call, **query: Any) -> Json:
        return read_page(call, self.noun, query)

    def list_in_detail(self, call: Call, **query: Any) -> Json:
        return read_page(call, self.noun, query, detailed=True)

    def get(
        self, call: Call, ident: str, *, fields: tuple[str, ...] | None = None
    ) -> orjson.Fragment:
        ident = self._ident(ident)
        if fields is not None:
            views.check_fields(call, self.noun, fields)
        return self._document(call, ident, fields)

    def create(self, call: Call, *, body: Json) -> Reply:
        self.gates.body(call, self.noun, body)
        uuid = records.create(call.context, self.noun, body, self._waived(call))
        return Reply(
            document=self._document(call, uuid), location=call.at(f"{self.noun.path}/{uuid}")
        )

    def update(self, call: Call, ident: str, *, body: Patch) -> orjson.Fragment:
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

    def _document(
        self,
        call: Call,
        ident: str,
        fields: tuple[str, ...] | None = None,
        fixed: Mapping[str, Any] = MappingProxyType({}),
    ) -> orjson.Fragment:
        serializer = views.Serializer(call, self.noun, fields, fixed=fixed)
        return serializer.write(records.get(call.context, self.noun, ident, serializer.columns))

    def _waived(self, call: Call) -> tuple[str, ...]:
        """Return the policy rules that the client's version does not have."""
        return tuple(r for r, since in self.noun.late_rules.items() if call.version < since)


# ------------------------------------------------------------------------- lists below a parent

Find = Callable[[Call, str], Json]  # parent's ident -> filter of the list


def sublist(
    noun: Noun,
    parent: str,
    *,
    find: Find,
    since: int = 1,
    detail_since: int = 43,
    has_detail_path: bool = True,
) -> Iterator[Endpoint]:
    """Yield the endpoints of a list below a parent's path.

    Single records are read and written elsewhere, which the other endpoints say.
    """
    rule, path = f"baremetal:{noun.policy}", f"{parent}/{noun.plural}"
    paging = arguments.paging(noun.fields)
    gate: Json = {"since": since}

    def list_page(call: Call, parent: str, **query: Any) -> Json:
        return read_page(call, noun, query, find(call, parent))

    def list_in_detail(call: Call, parent: str, **query: Any) -> Json:
        return read_page(call, noun, query, find(call, parent), detailed=True)

    if has_detail_path:
        yield Endpoint(
            "GET", f"{path}/detail", list_in_detail, f"{rule}:list", query=paging, **gate
        )
    query = {**paging, **fields_argument(noun), **detail_argument(detail_since)}
    yield Endpoint("GET", path, list_page, f"{rule}:list", query=query, **gate)
    yield from refusals(
        path,
        noun.name,
        f"/v1/{noun.path}",
        rule,
        creation(noun),
        schemas.patch_of_noun(noun),
        since=since,
    )


def refusals(
    path: str, ident: str, place: str, rule: str, body: Schema, change: Schema, since: int = 1
) -> Iterator[Endpoint]:
    """Yield the endpoints of single records below a parent, which name the right ``place``."""
    plural = place.rpartition("/")[2]

    def refuse(call: Call, *idents: str, **values: Any) -> None:
        raise errors.Invalid(
            reason=f"Malformed request URI. Use {place} for single {plural}.",
        )

    item = f"{path}/{{{ident}}}"
    for method, below, action, schema in (
        ("POST", path, "create", body), ("GET", item, "get", None),
        ("PATCH", item, "update", change), ("DELETE", item, "delete", None),
    ):  # fmt: skip
        yield Endpoint(method, below, refuse, f"{rule}:{action}", REFUSED, since=since, body=schema)


def of_node(call: Call, ident: str) -> Json:
    """Return the filter of a node, by UUID only; a name or an unknown UUID gets Ironic's error."""
    try:
        node = idents.is_uuid(ident) and policy.get_uuid(call.context, ident)
    except errors.NodeNotFound:
        node = None
    if not node:
        raise errors.PortgroupNotFound(portgroup=None)
    return {"node_uuid": node}
