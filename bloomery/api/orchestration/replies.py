"""Responses of the orchestration API, and errors in the format of Heat's API.

    {"code": 404, "title": "Not Found", "explanation": "...",
     "error": {"type": "EntityNotFound", "message": "...", "traceback": null}}

``type`` is the error's class name or its ``wire_type``.  Unexpected errors have no ``message``:
clients then show ``explanation``.
"""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any, Final

import orjson
import webob
from webob import exc as statuses

from bloomery import errors
from bloomery.api.replies import Headers, raw, retry_after
from bloomery.http_server.messages import Refusal

LOG = logging.getLogger(__name__)

_SERVER_FAULT: Final = 500
_HTTP_ERRORS: Final = {  # refusals before any endpoint
    400: "HTTPBadRequest",
    403: "HTTPForbidden",
    404: "HTTPNotFound",
    405: "HTTPMethodNotAllowed",
    421: "HTTPMisdirectedRequest",
    503: "HTTPServiceUnavailable",
}


class BadRequest(errors.Invalid):
    """A malformed request, refused before any stack or template is read."""

    code, wire_type = "request.invalid", "HTTPBadRequest"


class BadValue(errors.Invalid):
    """A value that Heat fails to convert; the type is Python's exception."""

    code, wire_type = "request.value", "ValueError"


class BadAttribute(errors.Invalid):
    """A value of the wrong type, which Heat reports as Python's AttributeError."""

    code, wire_type = "request.attribute", "AttributeError"


class OtherProject(errors.NotAuthorized):
    code, wire_type = "request.project", "HTTPForbidden"
    text = "cannot use project {project} here: the login is one of another project"


def document(value: Any, status: int = 200, headers: Headers = ()) -> webob.Response:
    """Answer with a JSON document; None is the text ``null``."""
    try:
        body = orjson.dumps(value)
    except orjson.JSONEncodeError:  # an integer beyond 64 bits, which a template may hold
        body = json.dumps(value).encode()
    return raw(body, "application/json", status, headers)


def empty(status: int, headers: Headers = ()) -> webob.Response:
    """Answer without a body, and thus without a Content-Type."""
    return webob.Response(body=b"", status=status, headerlist=list(headers))


def phrase(status: int, message: str = "", headers: Headers = ()) -> webob.Response:
    """Answer with the status phrase alone: clients read only status and headers."""
    title = HTTPStatus(status).phrase
    body = {
        "code": f"{status} {title}",
        "title": title,
        "message": message or _explanation(status),
    }
    return document(body, status, headers)


def text(status: int, text: str) -> webob.Response:
    content_type = ("Content-Type", "text/plain; charset=UTF-8")
    return webob.Response(body=text.encode(), status=status, headerlist=[content_type])


def _explanation(status: int) -> str:
    exception = statuses.status_map.get(status)
    return str(exception.explanation or "") if exception is not None else ""


def failure(error: Exception, client: str = "") -> webob.Response:
    """Answer with an error: ours with its status, others with 500."""
    if not isinstance(error, errors.Failure):
        LOG.error("unexpected error", exc_info=error)
        return _fault(_SERVER_FAULT, type(error).__name__)
    if error.log:
        LOG.info("%s: %s; %s", error.code, error, error.log)
    # 503 with retry_after_s is expected, and frequent
    if error.status >= _SERVER_FAULT and error.retry_after_s is None:
        LOG.warning("%s: %s", error.code, error)
    name = getattr(error, "wire_type", None) or type(error).__name__
    return _fault(error.status, name, errors.brief(error), retry_after(error, client))


def refusal(status: int, message: str, headers: Headers = ()) -> webob.Response:
    """Answer a request that reaches no endpoint."""
    return _fault(status, _HTTP_ERRORS[status], message, headers)


def unparsed(refusal: Refusal) -> dict[str, Any]:
    """Return the server's answer to a request that it could not parse."""
    name = _HTTP_ERRORS.get(refusal.status, "HTTPClientError")
    return _fault_document(refusal.status, name, refusal.text)


def _fault(
    status: int, name: str, message: str | None = None, headers: Headers = ()
) -> webob.Response:
    return document(_fault_document(status, name, message), status, headers)


def _fault_document(status: int, name: str, message: str | None) -> dict[str, Any]:
    details = {} if message is None else {"message": message.encode(errors="replace").decode()}
    return {
        "code": status,
        "title": HTTPStatus(status).phrase,
        "explanation": _explanation(status),
        "error": {"type": name, **details, "traceback": None},
    }


def unauthorized(realm: str) -> webob.Response:
    """Answer a missing login in the format of keystonemiddleware."""
    refusal = {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }
    return document(refusal, 401, [("WWW-Authenticate", f'Basic realm="{realm}"')])
