"""Views of records of any noun: the fields of the client's version, with links."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from bloomery.api import versions
from bloomery.api.declare import Call
from bloomery.api.views import projection
from bloomery.api.views.projection import Projections
from bloomery.model import fields
from bloomery.model.noun import Noun
from bloomery.operations import policy

Json = dict[str, Any]


class Serializer:
    """Build documents from rows read by ``columns``."""

    def __init__(
        self, call: Call, noun: Noun, names: Iterable[str] | None, *, detail: bool = False
    ) -> None:
        shows_all = detail and noun.details_ignore_version
        version = versions.MAX if shows_all else call.version
        self._projection = _projections(noun).of(version, names)
        links = [name for name in noun.links if names is None or name in names]
        self._links_of = projection.link_maker(call.url, noun.link, *links)
        self._wrapped = [name for name in links if noun.links[name] > 1]
        self._hidden = [
            (name, flag) for name, flag in noun.hidden.items() if name in self._projection.names
        ]
        self._redacted = {
            name: {"redacted_contents": projection.redaction(rule)}
            for name, rule in noun.read_rules.items()
            if name in self._projection.names and not policy.may(call.context, rule)
        }
        self.columns = self._projection.columns

    def write(self, row: Sequence[Any]) -> Json:
        document = self._projection.values(row)
        uuid = document["uuid"]
        document |= self._links_of(uuid)
        for name in self._wrapped:
            document[name] = [document[name]]
        for name, flag in self._hidden:
            if document[flag]:
                document[name] = None
        document.update(self._redacted)
        return self._projection.finish(document)


@functools.cache
def _projections(noun: Noun) -> Projections:
    return Projections(noun.fields, "uuid", *sorted(set(noun.hidden.values())))


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
