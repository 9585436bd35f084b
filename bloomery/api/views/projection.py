"""Project rows to documents: fields of the client's version, secrets masked, ready for orjson.

The database prints a field unless its value is secret, or depends on more than its column: on the
caller, the client's version or another column.  Documents are JSON text from there on, which makes
long lists cheap.  A document links to its URL with a version (``self``) and without (``bookmark``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from bloomery import errors, secrets
from bloomery.api import versions
from bloomery.model.fields import Column, FieldTable, JsonMembers, selectable

MAX_PROJECTIONS: Final = 4096  # of a noun: clients choose the fields
MAX_MASKED: Final = 12_288  # cached texts, of a node each
_MOST_CACHED: Final = 2000  # characters of a cached text


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The document of one noun in one version: the names of its fields, and the columns to read.

    The first columns are what the database prints: fields that are sent as they are, and secret
    objects, if there are any.  The others are single columns: the uuid, the ``derived`` fields, and
    what else the caller needs.  ``at`` has the places of single columns in a row.
    """

    names: frozenset[str]
    columns: tuple[Column, ...]
    at: Mapping[str, int]
    has_secrets: bool
    derived: tuple[str, ...]

    def document(
        self, row: Sequence[Any], derived: Mapping[str, Any], links: str = ""
    ) -> orjson.Fragment:
        """Return the document of a row, with values of ``derived`` fields and links."""
        members = [text for text in (row[0], links) if text]
        if self.has_secrets:
            members.append(masked_members(row[1]))
        if derived:
            members.append(orjson.dumps(derived).decode()[1:-1])
        return orjson.Fragment(f"{{{','.join(members)}}}")


def project(
    fields: FieldTable,
    version: int,
    names: frozenset[str] | None,
    *,
    derived: Iterable[str] = (),
    needed: Iterable[str] = (),
) -> Projection:
    """Return the projection of ``version`` with these fields (None: all); callers cache it.

    ``derived`` fields are not printed but read singly, as are the ``needed`` columns.
    """
    shown = {
        field.name: field
        for field in fields.values()
        if field.since <= version and (names is None or field.name in names)
    }
    special = tuple(name for name in dict.fromkeys(derived) if name in shown)
    stored = [each for name, each in shown.items() if each.column and name not in special]
    secret = tuple(field for field in stored if field.secret)
    texts = [JsonMembers(tuple(field for field in stored if not field.secret))]
    texts += [JsonMembers(secret)] if secret else []
    singles = tuple(dict.fromkeys((*needed, *special)))
    return Projection(
        names=frozenset(shown),
        columns=(*texts, *singles),
        at={name: place for place, name in enumerate(singles, start=len(texts))},
        has_secrets=bool(secret),
        derived=special,
    )


def redaction(rule: str) -> str:
    """Return the text that replaces a value which the policy hides."""
    return f"** redacted: it takes the policy {rule} to read this **"


def masked(name: str, text: str) -> orjson.Fragment:
    """Return an object column with masked secrets."""
    return orjson.Fragment(masked_members(f'"{name}":{text}')[len(name) + 3 :])


def masked_members(text: str) -> str:
    """Return printed objects with masked secrets, from the cache where they were masked before.

    Masking costs more than all else in a long list.  Masked texts are not stored in rows: an older
    process would change an object without its masked text, and a release may mask more names.
    """
    return (_mask if len(text) > _MOST_CACHED else _mask_cached)(text)


def _mask(text: str) -> str:
    if not secrets.may_hold_secret(text):
        return text
    objects = orjson.loads(f"{{{text}}}")
    for name, value in objects.items():
        objects[name] = secrets.mask(value, instance_info=name == "instance_info")
    return orjson.dumps(objects).decode()[1:-1]


_mask_cached = functools.lru_cache(maxsize=MAX_MASKED)(_mask)


def check_fields(
    names: Iterable[str],
    fields: FieldTable,
    version: int,
    *,
    also: Iterable[str] = (),
    never: Iterable[str] = (),
) -> None:
    """Refuse fields that the noun lacks (400) or that the client's version lacks (406)."""
    allowed = selectable(fields, also=also, never=never)
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise errors.InvalidParameterValue(
            reason=f'Field(s) "{", ".join(unknown)}" are not valid. '
            f"Allowed are: {', '.join(allowed)}",
        )
    for name in names:
        if name in fields:
            versions.require(version, fields[name].since, f"field {name}")


def refuse_both(fields: Iterable[str] | None, *, detail: bool | None) -> None:
    """Refuse ``detail`` together with ``fields``."""
    if detail and fields is not None:
        raise errors.InvalidParameterValue(
            reason="Can't fetch a subset of fields with 'detail' set: give one of them",
        )


def links(url: str, path: str) -> list[dict[str, str]]:
    """Return the links self and bookmark of ``path``, such as ``nodes/<uuid>``."""
    return [
        {"href": f"{url}/v1/{path}", "rel": "self"},
        {"href": f"{url}/{path}", "rel": "bookmark"},
    ]


@functools.lru_cache(maxsize=64)
def link_maker(url: str, collection: str, *children: str, wrapped: bool = False) -> LinkMaker:
    """Return the cached link maker of a collection, whose items have these subresources."""
    return LinkMaker(url, collection, children, wrapped=wrapped)


class LinkMaker:
    """Write the links of a collection's items as members of a JSON object.

    An item's own links are ``links``; links to its subresources have the subresource's name, and
    are ``wrapped`` in one more list where Ironic does so.  Identifiers must need no escaping in
    JSON, as UUIDs and host names do not.
    """

    def __init__(
        self, url: str, collection: str, children: Sequence[str], *, wrapped: bool
    ) -> None:
        safe = orjson.dumps(url).decode()[1:-1]
        self._pieces = [""]  # between the identifiers
        for name, end in (("links", ""), *((name, f"/{name}") for name in children)):
            head, tail = ("[[", "]]") if end and wrapped else ("[", "]")
            comma = "," if len(self._pieces) > 1 else ""
            self._pieces[-1] += f'{comma}"{name}":{head}{{"href":"{safe}/v1/{collection}/'
            self._pieces.append(f'{end}","rel":"self"}},{{"href":"{safe}/{collection}/')
            self._pieces.append(f'{end}","rel":"bookmark"}}{tail}')

    def __call__(self, ident: str) -> str:
        return ident.join(self._pieces)
