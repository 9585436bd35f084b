"""The OpenAPI 3.1 document of the orchestration API: /ext/v1/openapi.json.

    document(routes.ROUTES, routes.EXTENSIONS, url)

The tables of routes give paths, methods and statuses.  Arguments and bodies have no schema here:
Heat's API reference describes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

from bloomery.api.orchestration import lookup
from bloomery.api.orchestration.routing import BRACES, Route

Json = dict[str, Any]

_OPENAPI: Final = "3.1.0"
_TITLE: Final = "Bloomery: stacks behind the API of OpenStack Heat"
_PROJECT: Final = "/v1/{project}"
_EXTENSION: Final = "/ext/v1"
_JSON_TYPE: Final = "application/json"
_OBJECT: Final[Json] = {"schema": {"type": "object"}}
_SENDS_BODY: Final = ("post", "put", "patch")
_TAKE_ANY: Final = ("software_configs",)  # no object counts as an empty one, as in Heat
_FAULT: Final[Json] = {
    "type": "object",
    "required": ["code", "title", "explanation", "error"],
    "properties": {
        "code": {"type": "integer"},
        "title": {"type": "string"},
        "explanation": {"type": "string"},
        "error": {
            "type": "object",
            "required": ["type", "traceback"],
            "properties": {
                "type": {"type": "string"},
                "message": {"type": "string"},
                "traceback": {"type": "null"},
            },
        },
    },
}


def document(routes: Iterable[Route], extensions: Iterable[Route], url: str) -> Json:
    """Describe the API that answers at ``url``."""
    paths: dict[str, Json] = {}
    for prefix, table in ((_PROJECT, routes), (_EXTENSION, extensions)):
        for route in table:
            for method, path in _spellings(route):
                operation = _operation(route, method, f"{prefix}/{path}")
                paths.setdefault(f"{prefix}/{path}", {}).setdefault(method, operation)
    return {
        "openapi": _OPENAPI,
        "info": {"title": _TITLE, "version": "v1"},
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            "schemas": {"Fault": _FAULT},
            "responses": {
                "Fault": {
                    "description": "The request was refused, or failed.",
                    "content": {_JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Fault"}}},
                }
            },
        },
    }


def _spellings(route: Route) -> Iterator[tuple[str, str]]:
    """Yield each method with its path; a braced name with alternatives gives a path for each."""
    if route.endpoint is lookup.find_arn:
        return  # an ARN in place of a name: OpenAPI has no path of several segments
    words = re.search(r"\{\w+=([\w|]+)\}", route.path)
    for word in words[1].split("|") if words else [""]:
        path = route.path.replace(words[0], word) if words else route.path
        for method in route.methods.lower().split(","):
            yield method, path


def _operation(route: Route, method: str, path: str) -> Json:
    function = route.endpoint
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    summary = (function.__doc__ or "").partition("\n")[0]
    operation: Json = {
        "operationId": f"{method} {path}",
        "tags": [re.sub(r"^(/v1/{project}|/ext/v1)/", "", path).split("/")[0]],
        "summary": summary or name,
        "parameters": [
            {"name": each, "in": "path", "required": True, "schema": {"type": "string"}}
            for each, _words in BRACES.findall(path)
        ],
        "responses": {
            str(route.status): _success(route),
            "default": {"$ref": "#/components/responses/Fault"},
        },
    }
    if method in _SENDS_BODY and route.status != HTTPStatus.FOUND:
        body = {"schema": {}} if route.path in _TAKE_ANY else _OBJECT
        operation["requestBody"] = {"content": {_JSON_TYPE: body}}
    return operation


def _success(route: Route) -> Json:
    success: Json = {"description": HTTPStatus(route.status).phrase}
    if route.status in (HTTPStatus.OK, HTTPStatus.CREATED):
        success["content"] = {_JSON_TYPE: _OBJECT}
    return success
