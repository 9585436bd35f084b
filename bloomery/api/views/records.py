"""Views of records of any noun: the fields of the client's version, with links."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson

from bloomery.api import versions
from bloomery.api.declare import Call
from bloomery.api.views import projection
from bloomery.model import fields
from bloomery.model.noun import Noun
from bloomery.operations import policy

Json = dict[str, Any]


class Serializer:
    """Build documents from rows read by ``columns``.

    ``fixed``: values of fields that are not those of the row.
    """

    def __init__(
        self,
        call: Call,
        noun: Noun,
        names: Iterable[str] | None,
        *,
        detail: bool = False,
        fixed: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        shows_all = detail and noun.details_ignore_version
        redacted = {
            name: {"redacted_contents": projection.redaction(rule)}
            for name, rule in noun.read_rules.items()
            if not policy.may(call.context, rule)
        }
        self._noun, self._fixed = noun, dict(fixed) | redacted
        self._projection = _projection(
            noun,
            versions.MAX if shows_all else call.version,
            None if names is None else frozenset(names),
            tuple(self._fixed),
        )
        self.columns = self._projection.columns
        links = [name for name in noun.links if names is None or name in names]
        wrapped = any(noun.links[name] > 1 for name in links)
        self._links_of = projection.link_maker(call.url, noun.link, *links, wrapped=wrapped)

    def write(self, row: Sequence[Any]) -> orjson.Fragment:
        at, derived = self._projection.at, dict[str, Any]()
        for name in self._projection.derived:
            if name in self._fixed:
                derived[name] = self._fixed[name]
            else:
                is_hidden = row[at[self._noun.hidden[name]]]
                derived[name] = None if is_hidden else orjson.Fragment(row[at[name]])
        return self._projection.document(row, derived, self._links_of(row[at["uuid"]]))


@functools.lru_cache(maxsize=projection.MAX_PROJECTIONS)
def _projection(
    noun: Noun, version: int, names: frozenset[str] | None, fixed: tuple[str, ...]
) -> projection.Projection:
    return projection.project(
        noun.fields,
        version,
        names,
        derived=(*fixed, *noun.hidden),
        needed=("uuid", *sorted(set(noun.hidden.values()))),
    )


def check_fields(call: Call, noun: Noun, names: Iterable[str]) -> None:
    """Refuse fields that the noun lacks (400) or that the client's version lacks (406)."""
    projection.check_fields(names, noun.fields, call.version, also=_links(noun))


def selectable(noun: Noun) -> list[str]:
    return fields.selectable(noun.fields, also=_links(noun))


def _links(noun: Noun) -> tuple[str, ...]:
    return ("links", *noun.links)


def admit_body(call: Call, noun: Noun, body: Json) -> None:
    """Refuse attributes of a POST that are newer than the client's version, even if null."""
    for name in body:
        since = noun.node_arguments.get(name) or noun.fields[name].since
        versions.require(call.version, since, f"field {name}")
