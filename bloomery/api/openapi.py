"""The OpenAPI document: what the declarations say, in the words of OpenAPI 3.1.

document(routing.endpoints(root.Root()))     # nothing else is read

``x-since`` is the microversion that first knows an endpoint or an argument, ``x-policy`` the
rule that guards it.  What an argument takes follows from the function that parses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from bloomery.api import arguments, versions
from bloomery.api.declare import JSON_TYPE, Endpoint
from bloomery.model.rules import attributes, patches

Json: TypeAlias = dict[str, Any]
Declared: TypeAlias = Iterable[tuple[str, str, Endpoint]]  # HTTP method, path, declaration

OPENAPI: Final = "3.1.0"
TITLE: Final = "Bloomery: bare metal behind the API of OpenStack Ironic"
ABOUT: Final = (
    "The methods, arguments and bodies of every endpoint. Errors come in the form of Ironic: "
    "error_message is a text that holds a JSON document."
)
_TEXT: Final[Json] = {"type": "string"}
_UUID: Final[Json] = {"type": "string", "format": "uuid"}
_IDENT: Final[Json] = {"minLength": 1, "maxLength": 255, "pattern": r"^[A-Za-z0-9._~-]+$"}
_MAC: Final[Json] = {"pattern": "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"}
_INTEGER: Final[Json] = {"type": "integer", "format": "int64"}
# What operations ask of attributes, beyond the type that a schema checks, by their names.
_ATTRIBUTES: Final[Mapping[str, Json]] = {"uuid": _UUID, "name": _IDENT, "address": _MAC}
_CHANGE: Final[Json] = {"pattern": f"^{patches.PATH.pattern}$"}
SHAPES: Final[Mapping[Callable[..., Any], Json]] = {
    arguments.anything: {},
    arguments.array: {"type": "array"},
    arguments.array_or_null: {"type": ["array", "null"]},
    arguments.boolean: {"type": "boolean"},
    arguments.boolean_or_null: {"type": ["boolean", "null"]},
    arguments.count: _INTEGER | {"minimum": 1},
    arguments.direction: _TEXT | {"enum": ["asc", "desc"]},
    arguments.ident: _TEXT | _IDENT,
    arguments.ident_or_null: {"type": ["string", "null"], **_IDENT},
    arguments.integer: _INTEGER,
    arguments.integer_or_null: _INTEGER | {"type": ["integer", "null"]},
    arguments.mac: _TEXT | _MAC,
    arguments.search: _TEXT | {"maxLength": attributes.MOST_TEXT},
    arguments.seconds_or_null: _INTEGER | {"type": ["integer", "null"], "minimum": 1},
    arguments.text: _TEXT,
    arguments.text_or_null: {"type": ["string", "null"]},
    arguments.text_or_object_or_null: {"type": ["string", "object", "null"]},
    arguments.uuid: _UUID,
    arguments.words: {"type": "array", "items": _TEXT},
}
_VERSION: Final[Json] = {
    "name": versions.NAME,
    "in": "header",
    "description": f"The microversion, 1.{versions.MIN} to 1.{versions.MAX}, or latest.",
    "schema": {"type": "string", "pattern": r"^(1\.[0-9]{1,3}|latest)$"},
    "example": f"1.{versions.MAX}",
}
_FAULT: Final[Json] = {
    "anyOf": [
        {"type": "object", "required": ["error_message"], "properties": {"error_message": _TEXT}},
        {
            "type": "object",
            "required": ["faultcode", "faultstring"],
            "properties": {"faultcode": _TEXT, "faultstring": _TEXT},
        },
    ],
}
_EVERYWHERE: Final = (400, 401, 403, 404, 406, 503)
_WRITING: Final = (405, 409, 413, 415)
_WITH_DOCUMENT: Final = (200, 201)


def document(declared: Declared) -> Json:
    """Return the whole document."""
    paths: dict[str, Json] = {}
    for method, path, endpoint in declared:
        for shown in _spellings(path, endpoint):
            paths.setdefault(shown, {})[method.lower()] = _operation(method, shown, endpoint)
    return {
        "openapi": OPENAPI,
        "info": {"title": TITLE, "version": f"1.{versions.MAX}", "description": ABOUT},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "parameters": {"Version": _VERSION},
            "schemas": {"Fault": _FAULT},
            "responses": dict(_faults()),
        },
    }


def _spellings(path: str, endpoint: Endpoint) -> Iterator[str]:
    """Yield the path, and it without the idents that may be absent."""
    yield path
    for _ in range(endpoint.optional_idents):
        path = path.rpartition("/")[0]
        yield path


def _operation(method: str, path: str, endpoint: Endpoint) -> Json:
    operation: Json = {
        "operationId": "_".join([method.lower(), *re.findall(r"\w+", path)]),
        "x-policy": endpoint.rule,
        "x-since": f"1.{endpoint.since}",
        "parameters": list(_parameters(path, endpoint)),
        "responses": _responses(endpoint),
    }
    body = _body(endpoint)
    return operation if body is None else operation | {"requestBody": body}


def _parameters(path: str, endpoint: Endpoint) -> Iterator[Json]:
    yield {"$ref": "#/components/parameters/Version"}
    for ident in re.findall(r"{(\w+)}", path):
        shape = _TEXT | (_IDENT if ident in ("node", "port") else {"minLength": 1})
        yield {"name": ident, "in": "path", "required": True, "schema": shape}
    for name, arg in endpoint.query.items():
        yield {
            "name": name,
            "in": "query",
            "required": arg.required,
            "schema": SHAPES[arg.parse],
            **({"explode": False} if arg.parse is arguments.words else {}),
            **_since(arg),
        }


def _since(arg: arguments.Arg) -> Json:
    return {"x-since": f"1.{arg.since}"} if arg.since else {}


def _body(endpoint: Endpoint) -> Json | None:
    """Return what the endpoint wants to be sent, if anything."""
    if endpoint.body is not None:
        return _sent(_documented(endpoint.body.source), required=True)
    if endpoint.named is None:
        return None
    needed = [name for name, arg in endpoint.named.items() if arg.required]
    schema = {
        "type": "object",
        "properties": {
            name: SHAPES[arg.parse] | _since(arg) for name, arg in endpoint.named.items()
        },
        "required": needed,
        "additionalProperties": False,
    }
    return _sent(schema, required=bool(needed))


def _documented(source: Mapping[str, Any]) -> Json:
    """Return a body's schema with what operations ask beyond it."""
    if source["type"] == "array":
        items = source["items"]
        change = items["properties"] | {"path": items["properties"]["path"] | _CHANGE}
        limits = {"maxItems": patches.MOST_OPERATIONS}
        return {**source, **limits, "items": {**items, "properties": change}}
    properties = {
        name: _ATTRIBUTES.get(name, {}) | shape for name, shape in source["properties"].items()
    }
    return {**source, "properties": properties}


def _sent(schema: Json, *, required: bool) -> Json:
    return {"required": required, "content": {JSON_TYPE: {"schema": schema}}}


def _responses(endpoint: Endpoint) -> Json:
    """Return the declared answer, and references to the refusals that may come instead."""
    success: Json = {"description": HTTPStatus(endpoint.status).phrase}
    if endpoint.status in _WITH_DOCUMENT:
        success["content"] = {JSON_TYPE: {"schema": {"type": "object"}}}
    writes = endpoint.body is not None or endpoint.status not in _WITH_DOCUMENT
    refusals = [*_EVERYWHERE, *(_WRITING if writes else ())]
    return {str(endpoint.status): success} | {
        str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(refusals)
    }


def _faults() -> Iterator[tuple[str, Json]]:
    schema = {"$ref": "#/components/schemas/Fault"}
    for status in (*_EVERYWHERE, *_WRITING):
        yield (
            str(status),
            {
                "description": HTTPStatus(status).phrase,
                "content": {JSON_TYPE: {"schema": schema}},
            },
        )
