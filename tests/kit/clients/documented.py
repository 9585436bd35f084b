"""Whether answers are as the OpenAPI document says: their status, their body and their headers.

client = documented.Client(app)         # as tests.fakes.client, and looks at each answer
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import jsonschema_rs

from bloomery.api import openapi, routes, routing
from tests.fakes import client

MOST_BYTES = 64 * 1024  # what is longer is more of the same
SHOWN = {"location", "www-authenticate"}  # beside those that begin with x-
OLD = re.compile(rf"/v1/nodes/({'|'.join(routing.OLD_SEGMENTS)})(/|$)")  # of first clients


@functools.cache
def document() -> dict[str, Any]:
    return openapi.document(routes.ENDPOINTS)


@functools.cache
def operations() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    """The paths of the document as patterns, those with fewer idents first."""
    paths = sorted(document()["paths"].items(), key=lambda each: each[0].count("{"))
    return [(re.compile(re.sub(r"{\w+}", "[^/]+", path) + "/?"), one) for path, one in paths]


def find(method: str, path: str) -> dict[str, Any] | None:
    """Return the operation that a request is; None: no endpoint of the document."""
    if OLD.match(path):
        return None
    for pattern, methods in operations():
        if pattern.fullmatch(path) and method.lower() in methods:
            operation: dict[str, Any] = methods[method.lower()]
            return operation
    return None


@functools.cache
def validator(operation_id: str, status: str) -> Any:
    """Return what checks the body of an answer; None: it has none that is described."""
    for methods in document()["paths"].values():
        for operation in methods.values():
            if operation["operationId"] == operation_id:
                response = resolved(operation["responses"][status])
                content = response.get("content", {}).get("application/json")
                if content is None:
                    return None
                parts = {"components": document()["components"]}
                return jsonschema_rs.validator_for({**content["schema"], **parts})
    raise KeyError(operation_id)


def resolved(value: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in value:
        here: Any = document()
        for part in value["$ref"].removeprefix("#/").split("/"):
            here = here[part]
        value = here
    return value


def check(method: str, path: str, answer: client.Answer) -> None:
    """Fail unless the document tells of this answer."""
    operation = find(method, path)
    if operation is None:
        return
    status, where = str(answer.status), f"{method} {path}: {answer.status}"
    assert status in operation["responses"], f"{where} is not documented"
    check_headers(where, resolved(operation["responses"][status]).get("headers", {}), answer)
    if not answer.body or len(answer.body) > MOST_BYTES:
        return
    check_body = validator(operation["operationId"], status)
    if check_body is not None and answer.headers["content-type"] == "application/json":
        faults = [each.message for each in check_body.iter_errors(json.loads(answer.body))]
        assert not faults, f"{where}: {faults[:3]} in {answer.body[:500]!r}"


def check_headers(where: str, headers: dict[str, Any], answer: client.Answer) -> None:
    told = {name.lower() for name in headers}
    shown = {each for each in answer.headers if each.startswith("x-") or each in SHOWN}
    assert shown <= told, f"{where} has headers {shown - told} that are not documented"
    needed = {name.lower() for name, one in headers.items() if resolved(one).get("required")}
    missing = needed - set(answer.headers)
    assert not missing, f"{where} lacks headers {missing} that are documented"


class Client(client.Client):
    """Looks at each answer before it is handed out."""

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> client.Answer:
        answer = super().ask(method, path, body, **more)
        check(method, path.partition("?")[0], answer)
        return answer
