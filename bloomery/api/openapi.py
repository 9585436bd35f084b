"""Build the OpenAPI 3.1 document of an API from its table of endpoints.

    document(routes.ENDPOINTS)          # of the bare-metal API; another has another ``Api``

``x-since`` is the first microversion of an endpoint or an argument, ``x-policy`` its rule.
``x-at-most-one-of`` holds groups of query arguments that OpenAPI cannot call exclusive.  The
function that parses an argument gives the argument's schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from bloomery.api import arguments, auth, documents, versions
from bloomery.api.declare import EVENT_STREAM, JSON_TYPE, REFUSED, Endpoint, Schema
from bloomery.model.fields import MAC, NAME, NAME_OR_EMPTY, NODE_NAME, UUID
from bloomery.model.rules import attributes, nodes

Json: TypeAlias = dict[str, Any]

OPENAPI: Final = "3.1.0"
TITLE: Final = "Bloomery: bare metal behind the API of OpenStack Ironic"
ABOUT: Final = (
    "The methods, arguments, bodies and answers of every endpoint. Errors come in the form of "
    "Ironic: error_message is a text that holds a JSON document; only bodies that are too large "
    "or too deep are refused with that document itself. What an answer holds beyond what is "
    "required depends on the microversion and on fields. Integers fit into 64 bits, and no text "
    "holds the character NUL."
)
_TEXT: Final[Json] = {"type": "string"}
_UUID: Final[Json] = _TEXT | UUID
_IDENT: Final[Json] = _TEXT | NAME
# No node has a reserved word as its name: the first clients' paths begin with them.
_IDENTS: Final[Mapping[str, Json]] = {
    "node": NODE_NAME,
    **dict.fromkeys(
        ("allocation", "deploytemplate", "entry", "port", "portgroup", "runbook", "vif"),
        NAME,
    ),
    **dict.fromkeys(
        (
            "chassis", "DELETE port", "inspectionrule", "volumeconnector", "volumetarget",
            "webhook",
        ),
        UUID,
    ),
    "trait": nodes.TRAIT,
}  # fmt: skip
_INTEGER: Final[Json] = {
    "type": "integer", "format": "int64", "minimum": -(2**63), "maximum": 2**63 - 1,
}  # fmt: skip
SHAPES: Final[Mapping[Callable[..., Any], Json]] = {
    arguments.anything: {},
    arguments.array: {"type": "array", "items": {}},
    arguments.array_or_null: {"type": ["array", "null"], "items": {}},
    arguments.boolean: {"type": "boolean"},
    arguments.boolean_or_null: {"type": ["boolean", "null"]},
    arguments.count: {"type": "integer", "minimum": 1},
    arguments.direction: _TEXT | {"enum": ["asc", "desc"]},
    arguments.ident: _IDENT,
    arguments.ident_or_empty: {
        "type": ["string", "null"],
        **NAME_OR_EMPTY,
    },
    arguments.integer: _INTEGER,
    arguments.integer_or_null: _INTEGER | {"type": ["integer", "null"]},
    arguments.mac: _TEXT | MAC,
    arguments.position: {"anyOf": [_INTEGER, _TEXT | {"enum": ["latest"]}]},
    arguments.search: _TEXT | {"maxLength": attributes.MOST_TEXT},
    arguments.seconds_or_null: _INTEGER | {"type": ["integer", "null"], "minimum": 1},
    arguments.text: _TEXT,
    arguments.text_or_null: {"type": ["string", "null"]},
    arguments.text_or_object_or_null: {"type": ["string", "object", "null"]},
    arguments.uuid: _UUID,
    arguments.comma_list: {"type": "array", "items": _TEXT},
}
_SPELLINGS: Final = r"^\s*(0*1\.0*[0-9]{1,3}|[Ll][Aa][Tt][Ee][Ss][Tt])?\s*$"
_VERSION: Final[Json] = {
    "name": versions.NAME,
    "in": "header",
    "description": f"The microversion, 1.{versions.MIN} to 1.{versions.MAX}, or latest.",
    "schema": {
        "type": "string",
        "pattern": _SPELLINGS,
    },
    "example": f"1.{versions.MAX}",
}
_FIRST_FORM: Final[Json] = {
    "type": "object",
    "required": ["faultcode", "faultstring"],
    "properties": {
        "faultcode": _TEXT | {"enum": ["Client", "Server"]},
        "faultstring": _TEXT,
        "debuginfo": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
}
_SECOND_FORM: Final[Json] = {
    "type": "object",
    "required": ["code", "title", "description"],
    "properties": {"code": {"type": "integer"}, "title": _TEXT, "description": _TEXT},
    "additionalProperties": False,
}
_WRAPPED: Final[Json] = {
    "type": "object",
    "required": ["error_message"],
    "properties": {
        "error_message": _TEXT
        | {
            "contentMediaType": JSON_TYPE,
            "contentSchema": {"anyOf": [_FIRST_FORM, _SECOND_FORM]},
        }
    },
    "additionalProperties": False,
}
_FAULT: Final[Json] = {"anyOf": [_WRAPPED, _FIRST_FORM]}
# Responses of failed authentication: HTTP basic and Keystone.
_LOGIN: Final[Json] = {
    "type": "object",
    "required": ["error_message"],
    "properties": {"error_message": _TEXT},
    "additionalProperties": False,
}
_TOKEN_REFUSED: Final[Json] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "title", "message"],
            "properties": {"code": {"const": 401}, "title": _TEXT, "message": _TEXT},
        }
    },
    "additionalProperties": False,
}
_CHALLENGE: Final = auth.CHALLENGE[0]
_HEADERS: Final[Mapping[str, str]] = {
    "Location": "Where what was made is, or where to look how it goes.",
    "OpenStack-Request-Id": "Names this request in logs and notifications.",
    "X-OpenStack-Request-Id": "The same.",
    "Retry-After": "Seconds after which it may go.",
    "Allow": "The methods of this path.",
    _CHALLENGE: "How to log in: Basic, or Keystone with the address of the identity service.",
    versions.NAME: "The microversion of this answer.",
    **{name: f"1.{minor}" for name, minor in (
        (versions.RANGE[0][0], versions.MIN), (versions.RANGE[1][0], versions.MAX),
    )},
}  # fmt: skip
_OF_HANDLERS: Final = (versions.NAME, *(name for name, _ in versions.RANGE))
_ALWAYS: Final = ("OpenStack-Request-Id", "X-OpenStack-Request-Id")
_SECURITY: Final[Mapping[str, Json]] = {
    "basic": {"type": "http", "scheme": "basic"},
    "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
}
_REFUSAL: Final[Json] = {"$ref": "#/components/schemas/Fault"}
_BODIES: Final[Mapping[int, Json]] = {401: {"anyOf": [_LOGIN, _TOKEN_REFUSED]}}
_EVERYWHERE: Final = (400, 401, 403, 404, 406, 421, 431, 500, 503)
_WRITING: Final = (405, 409, 413, 415)
# Calls that ask a BMC: 409 while it is busy or the node is locked, 502 where it fails.
_ASKING_BMC: Final = re.compile(
    r".*/nodes/.*(/management/.*|/vmedia.*|/vendor_passthru.*|/bmc(_log)?)"
)
_OF_BMC: Final = (502,)
_WITH_DOCUMENT: Final = (200, 201)
_LOCATED: Final = (201, 202, 204, 302)
_HEADERS_OF: Final[Mapping[int, tuple[str, ...]]] = {  # errors, by status
    401: (_CHALLENGE,),
    405: ("Allow",),
    409: ("Retry-After",),
    503: ("Retry-After",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What documents of two APIs do not share.

    ``about``: of the whole document; ``versions``: of an endpoint; ``answer``: the schema of a
    success, if it is known; ``refusals``: the statuses of an endpoint's errors.  ``may_be_absent``
    says so of a body.  ``headers`` are those of every answer.
    """

    about: Mapping[str, Any]
    components: Mapping[str, Any]
    parameters: tuple[Json, ...]
    idents: Mapping[str, Json]
    shapes: Mapping[Callable[..., Any], Json]
    lists: tuple[Callable[..., Any], ...]  # arguments that are comma lists
    versions: Callable[[Endpoint], Json]
    answer: Callable[[str, str], Json | None]
    refusals: Callable[[Endpoint], Iterable[int]]
    may_be_absent: Callable[[Schema], bool]
    headers: tuple[str, ...]


def document(endpoints: Iterable[Endpoint], api: Api | None = None) -> Json:
    """Return the whole document; without ``api`` that of the bare-metal API."""
    api = api or IRONIC
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        summary = (endpoint.function.__doc__ or "").partition("\n")[0]
        words = [endpoint.method.lower(), *re.findall(r"\w+", endpoint.path)]
        operation: Json = {
            "operationId": "_".join(words),
            "tags": [tag_of(endpoint.path)],
            **({"summary": summary} if summary else {}),
            "x-policy": endpoint.rule,
            **api.versions(endpoint),
        }
        subset = (("fields", "detail"),) if endpoint.query.keys() >= {"fields", "detail"} else ()
        if groups := [list(group) for group in (*subset, *endpoint.exclusive)]:
            operation["x-at-most-one-of"] = groups
        operation["parameters"] = [*api.parameters, *_parameters(endpoint, api)]
        operation["responses"] = _responses(endpoint, api)
        body = _body(endpoint, api)
        if body is not None:
            operation["requestBody"] = body
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {"openapi": OPENAPI, **api.about, "paths": paths, "components": dict(api.components)}


def _bounds(since: int) -> Json:
    """Return the range of microversions in OpenStack's own notation."""
    return {"min-ver": f"1.{since}", "max-ver": f"1.{versions.MAX}"}


def tag_of(path: str) -> str:
    """Return the noun of a path, by which generators of clients make modules."""
    words = re.findall(r"[\w.]+", path.replace("{", " {"))
    return next((word for word in words if word not in ("ext", "v1", "project")), "versions")


def _parameters(endpoint: Endpoint, api: Api) -> Iterator[Json]:
    """Yield the idents of the path and the arguments of the query."""
    for ident in re.findall(r"{(\w+)}", endpoint.path):
        default = api.idents.get(ident, {"minLength": 1})
        shape = _TEXT | api.idents.get(f"{endpoint.method} {ident}", default)
        yield {"name": ident, "in": "path", "required": True, "schema": shape}
    for name, arg in endpoint.query.items():
        yield {
            "name": name,
            "in": "query",
            "required": arg.required,
            "schema": _shape(arg, api),
            **({"explode": False} if arg.parse in api.lists else {}),
            **_since(arg),
        }


def _shape(arg: arguments.Arg, api: Api) -> Json:
    shape = api.shapes[arg.parse]
    if arg.parse in api.lists:
        return shape | {"items": {**shape["items"], **arg.form}}
    return {**shape, **arg.form}


def _since(arg: arguments.Arg) -> Json:
    return {"x-since": f"1.{arg.since}"} if arg.since else {}


def _body(endpoint: Endpoint, api: Api) -> Json | None:
    """Return the request body of the endpoint, if any."""
    if endpoint.body is not None:
        schema = {**endpoint.body.source, **endpoint.body.document}
        required = not api.may_be_absent(endpoint.body)
    elif endpoint.named is not None:
        needed = [name for name, arg in endpoint.named.items() if arg.required]
        schema = {
            "type": "object",
            "properties": {
                name: _shape(arg, api) | _since(arg) for name, arg in endpoint.named.items()
            },
            "required": needed,
            "additionalProperties": False,
        }
        required = bool(needed)
    else:
        return None
    return {"required": required, "content": {JSON_TYPE: {"schema": schema}}}


def _responses(endpoint: Endpoint, api: Api) -> Json:
    """Return the declared response, and references to the possible errors."""
    answers: Json = {}
    if endpoint.status != REFUSED:
        names = (*api.headers, *(("Location",) if endpoint.status in _LOCATED else ()))
        success: Json = {
            "description": HTTPStatus(endpoint.status).phrase,
            "headers": headers_of(*names),
        }
        answers[str(endpoint.status)] = success
        if endpoint.answers == "any":
            headers = headers_of(*api.headers)
            answers["202"] = {"description": HTTPStatus.ACCEPTED.phrase, "headers": headers}
        elif endpoint.status in _WITH_DOCUMENT:
            schema = api.answer(endpoint.method, endpoint.path) or {"type": endpoint.answers}
            success["content"] = {JSON_TYPE: {"schema": schema}}
            if endpoint.streams:
                success["content"][EVENT_STREAM] = {"schema": _TEXT}
    if endpoint.upgrades:
        answers["101"] = {"description": "A web socket, where the client asks for one"}
    for status in sorted(set(api.refusals(endpoint))):
        answers[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return answers


def headers_of(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def faults(
    statuses: Iterable[int],
    bodies: Mapping[int, Json],
    always: Iterable[str],
    headers: Mapping[int, tuple[str, ...]],
) -> Json:
    """Return the responses of errors by status: with ``always`` and the status's own headers."""
    return {
        str(status): {
            "description": HTTPStatus(status).phrase,
            "headers": headers_of(*always, *headers.get(status, ())),
            "content": {JSON_TYPE: {"schema": bodies.get(status, _REFUSAL)}},
        }
        for status in statuses
    }


# ----------------------------------------------------------------------------- the bare-metal API


def _versions_of(endpoint: Endpoint) -> Json:
    """Return the microversions of an endpoint, and that it is public where it is."""
    is_public = auth.PUBLIC.fullmatch(re.sub(r"{\w+}", "x", endpoint.path))
    return {
        "x-since": f"1.{endpoint.since}",
        **({"x-also": [f"1.{each}" for each in endpoint.also_in]} if endpoint.also_in else {}),
        "x-openstack": _bounds(endpoint.since),
        **({"security": []} if is_public else {}),
    }


def _refusals(endpoint: Endpoint) -> Iterator[int]:
    yield from (*_EVERYWHERE, endpoint.too_old.value[0])
    writes = endpoint.body is not None or endpoint.status not in (*_WITH_DOCUMENT, REFUSED)
    asks_bmc = _ASKING_BMC.fullmatch(endpoint.path) is not None
    if writes or endpoint.answers == "any" or asks_bmc:
        yield from _WRITING
    if asks_bmc:
        yield from _OF_BMC


IRONIC: Final = Api(
    about={
        "info": {"title": TITLE, "version": f"1.{versions.MAX}", "description": ABOUT},
        "servers": [{"url": "/"}],
        "security": [{}, *({name: []} for name in _SECURITY)],
        "x-openstack": _bounds(versions.MIN),
    },
    components={
        "parameters": {"Version": _VERSION},
        "schemas": {"Fault": _FAULT, "Trait": nodes.trait_schema(), **documents.COMPONENTS},
        "responses": faults(
            (*_EVERYWHERE, *_WRITING, *_OF_BMC), _BODIES, (*_ALWAYS, *_OF_HANDLERS), _HEADERS_OF
        ),
        "headers": {
            name: {"description": text, "schema": _TEXT, "required": name == _CHALLENGE}
            for name, text in _HEADERS.items()
        },
        "securitySchemes": dict(_SECURITY),
    },
    parameters=({"$ref": "#/components/parameters/Version"},),
    idents=_IDENTS,
    shapes=SHAPES,
    lists=(arguments.comma_list,),
    versions=_versions_of,
    answer=documents.of,
    refusals=_refusals,
    # an absent body counts as an empty object
    may_be_absent=lambda body: bool(body.validator.is_valid({})),
    headers=(*_ALWAYS, *_OF_HANDLERS),
)
