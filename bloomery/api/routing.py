"""Find the endpoint of a method and a path in a table of endpoints.

    table = Table(routes.ENDPOINTS)
    endpoint, idents = find(table, call, "/v1/nodes/web-1/states")

A path that no endpoint has is 404; one whose endpoints have other methods is 405, with these in
the header Allow.  Literal segments precede idents.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from webob import exc as statuses

from bloomery import errors
from bloomery.api.declare import Call, Endpoint, TooOld
from bloomery.model.rules import idents

PREFIXES: Final = ("v1", "ext")
OLD_SEGMENTS: Final = frozenset({"maintenance", "management", "states", "vendor_passthru"})
OLD_IDENT: Final = "node_ident"
NODES: Final = ("v1", "nodes", "{}")
STATES: Final = (*NODES, "states")


@dataclass(slots=True)
class Place:
    """One path: its endpoints by method, and the longer paths that begin with it."""

    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    literals: dict[str, Place] = field(default_factory=dict)
    ident: Place | None = None

    def child(self, segment: str) -> Place:
        """Return the place of a segment of a template, and add it if it is new."""
        if not segment.startswith("{"):
            return self.literals.setdefault(segment, Place())
        self.ident = self.ident or Place()
        return self.ident


class Table:
    """Endpoints in a tree of the segments of their paths."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self.root = Place()
        for endpoint in endpoints:
            place = functools.reduce(Place.child, segments_of(endpoint.path), self.root)
            if endpoint.method in place.endpoints:
                raise ValueError(f"{endpoint.method} {endpoint.path} is declared twice")
            place.endpoints[endpoint.method] = endpoint

    def find(self, segments: Sequence[str]) -> list[tuple[Place, list[str]]]:
        """Return each place that has endpoints and that the path names, with its idents."""
        return list(_find(self.root, segments, 0, []))


def segments_of(path: str) -> list[str]:
    return [each for each in path.split("/") if each]


def _find(
    place: Place, segments: Sequence[str], depth: int, idents: list[str]
) -> Iterator[tuple[Place, list[str]]]:
    if depth == len(segments):
        if place.endpoints:
            yield place, idents
        return
    literal = place.literals.get(segments[depth])
    if literal is not None:
        yield from _find(literal, segments, depth + 1, idents)
    if place.ident is not None:
        yield from _find(place.ident, segments, depth + 1, [*idents, segments[depth]])


def find(table: Table, call: Call, path: str) -> tuple[Endpoint, list[str]]:
    """Return the endpoint of a call and its idents, if the client's version has the endpoint.

    A path without /v1 counts as one with it.  Raises HTTPNotFound, HTTPMethodNotAllowed,
    HTTPBadRequest for a malformed ident of a node, and MissingParameterValue.
    """
    segments = segments_of(path)
    if segments and segments[0] not in PREFIXES:
        segments.insert(0, PREFIXES[0])
    if len(segments) > 2 and segments[2] in OLD_SEGMENTS and segments[:2] == ["v1", "nodes"]:
        segments[2:] = _with_ident_first(table, call, segments[2:])
    places = table.find(segments)
    if not places:
        if call.method == "PUT" and len(segments) == 5 and segments[3] == STATES[3]:
            # Tempest expects what Ironic answers to the order of a state that does not exist
            raise refused(functools.reduce(Place.child, STATES, table.root))
        raise statuses.HTTPNotFound
    place, values = places[0]
    endpoint = place.endpoints.get("GET" if call.method == "HEAD" else call.method)
    if endpoint is None or (call.method == "HEAD" and not endpoint.has_head):
        raise statuses.HTTPNotFound if _is_unknown(place, call.version) else refused(place)
    if call.version < endpoint.since:
        if endpoint.too_old is TooOld.NO_PAGE or _is_unknown(place, call.version):
            raise statuses.HTTPNotFound
        if endpoint.too_old is TooOld.NOT_ALLOWED:
            raise refused(place)
    if endpoint.begins_with_node and not (
        idents.is_uuid(values[0]) or idents.is_logical_name(values[0])
    ):
        raise statuses.HTTPBadRequest(f"Expected UUID or name for node: {values[0]}")
    return endpoint, values


def _is_unknown(place: Place, version: int) -> bool:
    """Say whether all endpoints of a path are newer than the client, and none shows itself."""
    endpoints = place.endpoints.values()
    refusals = {endpoint.too_old for endpoint in endpoints}
    return all(version < endpoint.since for endpoint in endpoints) and (
        TooOld.NO_PAGE in refusals <= {TooOld.NO_PAGE, TooOld.NOT_FOUND}
    )


def refused(*places: Place) -> statuses.HTTPMethodNotAllowed:
    """Return the refusal of a method that a path does not have, at any of its places."""
    methods = {method for place in places for method in place.endpoints}
    if any(endpoint.has_head for place in places for endpoint in place.endpoints.values()):
        methods.add("HEAD")
    return statuses.HTTPMethodNotAllowed(headers=[("Allow", ", ".join(sorted(methods)))])


def _with_ident_first(table: Table, call: Call, segments: list[str]) -> list[str]:
    """Return today's spelling of a deprecated path, whose ident is at the end or in the query.

        /v1/nodes/states/console/<ident>            for /v1/nodes/<ident>/states/console
        /v1/nodes/maintenance?node_ident=<ident>    for /v1/nodes/<ident>/maintenance

    Ironic still answers these paths; no node can have one of these words as its name.
    """
    place, depth = functools.reduce(Place.child, NODES, table.root), 0
    while depth < len(segments) and segments[depth] in place.literals:
        place = place.literals[segments[depth]]
        depth += 1
    ident = call.query.pop(OLD_IDENT, None)
    if ident is None and depth < len(segments):
        ident = segments.pop(depth)
    if (segments[0] == "states" and depth < len(segments)) or not (ident or place.endpoints):
        raise statuses.HTTPNotFound
    if not ident:
        if call.method not in place.endpoints:
            raise refused(place)
        raise errors.MissingParameterValue(reason=f"Missing mandatory parameter: {OLD_IDENT}")
    if not isinstance(ident, str):
        raise errors.InvalidParameterValue(
            reason=f"Expected a name or UUID for {OLD_IDENT}: {ident}"
        )
    return [ident, *segments]
