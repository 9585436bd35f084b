"""Snapshots of whole masked objects for versioned notifications.

Snapshots are written only for sinks that need them (``ConductorRuntime.snapshots``).  Secrets are
masked.  ``node_request`` shows a node as its client described it, before anything was stored:
values of the server are still null.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from functools import partial
from typing import Any, Final

from bloomery import secrets
from bloomery.model import node as node_model
from bloomery.model import nouns
from bloomery.model.fields import FieldTable
from bloomery.model.node import Node
from bloomery.model.noun import Noun

Json = dict[str, Any]


def _public_names(table: FieldTable) -> tuple[str, ...]:
    return tuple(f.name for f in table.values() if f.column and not f.secret)


_NODE_PUBLIC: Final = _public_names(node_model.FIELDS)
_NODE_SECRET: Final = tuple(sorted(node_model.SECRET_OBJECTS))
_NODE_FILLED: Final[Json] = {"conductor_group": ""}


_GUARDED: Final = frozenset({"last_error", "reservation"})  # by policy rules of their own
_PUBLIC: Final = {"node": frozenset(_NODE_PUBLIC) - _GUARDED} | {
    noun.name: frozenset(_public_names(noun.fields)) - noun.hidden.keys()
    for noun in nouns.BY_NAME.values()
}


def node_snapshot(node: Node) -> Json:
    """Return every attribute of the API, secrets masked."""
    shot = {name: getattr(node, name) for name in _NODE_PUBLIC}
    for name in _NODE_SECRET:
        value = getattr(node, name)
        shot[name] = secrets.mask(value, instance_info=name == "instance_info") if value else value
    shot["traits"] = list(node.traits)
    return shot


def record_snapshot(noun: Noun, record: Any) -> Json:
    """Return every attribute of the API, secrets masked and hidden fields empty."""
    shot = {name: getattr(record, name) for name in _public_names(noun.fields)}
    for name, flag in noun.hidden.items():
        shot[name] = [] if getattr(record, flag) else secrets.mask(shot[name])
    hidden = (f.name for f in noun.fields.values() if f.column and f.secret)
    return shot | {name: secrets.mask(getattr(record, name)) for name in hidden}


def public(noun: str, values: Mapping[str, Any]) -> Json:
    """Return those of an object's values that every reader of the object may read."""
    return {name: value for name, value in values.items() if name in _PUBLIC[noun]}


def described(noun: str, value: Any) -> Json:
    """Return the public values of an object that has them set."""
    return {name: attribute for name in _PUBLIC[noun] if (attribute := getattr(value, name))}


def created_snapshot(noun: Noun, record: Any) -> Json:
    """Return the snapshot of a record before its creation: unset lists are null."""
    shot = record_snapshot(noun, record)
    return shot | {name: shot[name] or None for name in noun.null_when_empty}


def node_request(values: Mapping[str, Any]) -> Json:
    """Return the snapshot of a requested node that is not stored yet."""
    return _unfilled(node_snapshot(Node(**values)), Node, values, _NODE_FILLED)


def record_request(noun: Noun, values: Mapping[str, Any]) -> Json:
    filled = {f.name: f.default for f in dataclasses.fields(noun.value)}
    kept = {name: filled[name] for name in noun.shown_when_asked}
    return _unfilled(created_snapshot(noun, noun.value(**values)), noun.value, values, kept)


def _unfilled(shot: Json, noun: type, values: Mapping[str, Any], filled: Json) -> Json:
    """Remove the server's defaults; empty objects and lists stay empty."""
    defaults = {
        f.name
        for f in dataclasses.fields(noun)
        if f.default is not MISSING and f.name not in ("traits", "id")
    }
    taken_back = defaults - values.keys()
    return {name: None if name in taken_back else value for name, value in shot.items()} | {
        name: values.get(name, default) for name, default in filled.items()
    }


OF: Final[Mapping[str, Callable[[Any], Json]]] = {"node": node_snapshot} | {
    noun.name: partial(record_snapshot, noun) for noun in nouns.BY_NAME.values()
}
OF_CREATED: Final[Mapping[str, Callable[[Any], Json]]] = {"node": node_snapshot} | {
    noun.name: partial(created_snapshot, noun) for noun in nouns.BY_NAME.values()
}
OF_REQUEST: Final[Mapping[str, Callable[[Mapping[str, Any]], Json]]] = {"node": node_request} | {
    noun.name: partial(record_request, noun) for noun in nouns.BY_NAME.values()
}
