"""The OpenAPI document of the orchestration API: /ext/v1/openapi.json."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final

from bloomery.api import openapi
from bloomery.api.declare import Endpoint
from bloomery.api.openapi import Api
from bloomery.api.orchestration import arguments, schemas

Json = dict[str, Any]

_TITLE: Final = "Bloomery: stacks behind the API of OpenStack Heat"
_TEXT: Final[Json] = {"type": "string"}
_FAULT: Final[Json] = {
    "type": "object",
    "required": ["code", "title", "explanation", "error"],
    "properties": {
        "code": {"type": "integer"},
        "title": _TEXT,
        "explanation": _TEXT,
        "error": {
            "type": "object",
            "required": ["type", "traceback"],
            "properties": {"type": _TEXT, "message": _TEXT, "traceback": {"type": "null"}},
        },
    },
}
# Heat's second form of errors: of an unknown path.
_NO_PATH: Final[Json] = {
    "type": "object",
    "required": ["code", "title", "message"],
    "properties": dict.fromkeys(("code", "title", "message"), _TEXT),
}
_UNAUTHORIZED: Final[Json] = {"type": "object", "required": ["error"]}
_BODIES: Final = {401: _UNAUTHORIZED, 404: {"anyOf": [_FAULT, _NO_PATH]}}
_STATUSES: Final = (400, 401, 403, 404, 405, 409, 421, 431, 500, 503)
_HEADERS: Final = {
    "Location": "Where the stack is.",
    "OpenStack-Request-Id": "Names this request in logs and notifications.",
    "X-OpenStack-Request-Id": "The same.",
    "Allow": "The methods of this path.",
    "Retry-After": "Seconds after which it may go.",
    "WWW-Authenticate": "How to log in.",
}
_ALWAYS: Final = ("OpenStack-Request-Id", "X-OpenStack-Request-Id")
_HEADERS_OF: Final = {401: ("WWW-Authenticate",), 405: ("Allow",), 503: ("Retry-After",)}


_HEAT: Final = Api(
    about={},
    components={
        "schemas": {"Fault": _FAULT},
        "responses": openapi.faults(_STATUSES, _BODIES, _ALWAYS, _HEADERS_OF),
        "headers": {
            name: {"description": text, "schema": _TEXT} for name, text in _HEADERS.items()
        },
    },
    parameters=(),
    idents={},
    shapes=arguments.SHAPES,
    lists=(arguments.comma_list,),
    versions=lambda endpoint: {},
    answer=lambda method, path: None,
    refusals=lambda endpoint: _STATUSES,
    may_be_absent=lambda body: body in schemas.OPTIONAL,
    headers=_ALWAYS,
)


def document(endpoints: Iterable[Endpoint], url: str) -> Json:
    """Describe the API that answers at ``url``."""
    about = {"info": {"title": _TITLE, "version": "v1"}, "servers": [{"url": url}]}
    return openapi.document(endpoints, dataclasses.replace(_HEAT, about=about))
