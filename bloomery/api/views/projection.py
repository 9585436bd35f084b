"""Project rows to documents: fields of the client's version, secrets masked, ready for orjson.

Objects are stored as JSON text.  Text that masking cannot change is sent without decoding, which
makes long lists cheap.  A document links to its URL with a version (``self``) and without
(``bookmark``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from bloomery import errors, secrets
from bloomery.api import versions
from bloomery.model.fields import FieldTable, selectable

EMPTY: Final = orjson.Fragment("{}")
MAX_PROJECTIONS: Final = 4096  # clients choose the fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The document of one noun in one version: its names, and columns to read.

    ``extra`` columns are read to derive other values, and are no part of the document.
    """

    names: frozenset[str]
    columns: tuple[str, ...]
    extra: tuple[str, ...]
    plain_objects: tuple[str, ...]
    secret_objects: tuple[str, ...]

    def values(self, row: Sequence[Any]) -> dict[str, Any]:
        """Return the values of a row read by ``columns``, the extra ones too."""
        document = dict(zip(self.columns, row, strict=True))
        for name in self.plain_objects:
            document[name] = orjson.Fragment(document[name])
        for name in self.secret_objects:
            document[name] = masked(name, document[name])
        return document

    def finish(self, document: dict[str, Any]) -> dict[str, Any]:
        """Drop the extra values."""
        for name in self.extra:
            del document[name]
        return document


def redaction(rule: str) -> str:
    """Return the text that replaces a value which the policy hides."""
    return f"** redacted: it takes the policy {rule} to read this **"


def masked(name: str, text: str) -> Any:
    """Return an object column with masked secrets, decoded only if necessary."""
    if text == "{}":
        return EMPTY
    if not secrets.may_hold_secret(text):
        return orjson.Fragment(text)
    return secrets.mask(orjson.loads(text), instance_info=name == "instance_info")


class Projections:
    """The projections of one noun, compiled once per version and set of fields.

    ``needed`` columns are always read.
    """

    def __init__(self, fields: FieldTable, *needed: str) -> None:
        self._fields = fields
        self._needed = needed
        self._compiled: dict[tuple[int, frozenset[str] | None], Projection] = {}

    def of(self, version: int, names: Iterable[str] | None) -> Projection:
        """Return the projection of ``version`` with these fields (None: all)."""
        key = (version, None if names is None else frozenset(names))
        projection = self._compiled.get(key)
        if projection is not None:
            return projection
        if len(self._compiled) > MAX_PROJECTIONS:
            self._compiled.clear()
        fields = [
            field
            for field in self._fields.values()
            if field.since <= version and (key[1] is None or field.name in key[1])
        ]
        columns = [field.name for field in fields if field.column or field.name == "traits"]
        extra = tuple(name for name in self._needed if name not in columns)
        objects = [field for field in fields if field.column and field.kind in ("object", "list")]
        projection = self._compiled[key] = Projection(
            names=frozenset(field.name for field in fields),
            columns=(*columns, *extra),
            extra=extra,
            plain_objects=tuple(field.name for field in objects if not field.secret),
            secret_objects=tuple(field.name for field in objects if field.secret),
        )
        return projection


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
def link_maker(url: str, collection: str, *children: str) -> LinkMaker:
    """Return the cached link maker of a collection, whose items have these subresources."""
    return LinkMaker(url, collection, children)


class LinkMaker:
    """Write the links of a collection's items as encoded JSON.

    An item's own links are ``links``; links to its subresources have the subresource's name.
    Identifiers must need no escaping in JSON, as UUIDs and host names do not.
    """

    def __init__(self, url: str, collection: str, children: Sequence[str]) -> None:
        safe = orjson.dumps(url).decode()[1:-1]
        self._texts = [
            (
                name,
                f'[{{"href":"{safe}/v1/{collection}/',
                f'{end}","rel":"self"}},{{"href":"{safe}/{collection}/',
                f'{end}","rel":"bookmark"}}]',
            )
            for name, end in (("links", ""), *((name, f"/{name}") for name in children))
        ]

    def __call__(self, ident: Any) -> dict[str, Any]:
        return {
            name: orjson.Fragment(f"{head}{ident}{middle}{ident}{tail}")
            for name, head, middle, tail in self._texts
        }
