"""Errors in the format of Heat's API.

    {"code": 404, "title": "Not Found", "explanation": "...",
     "error": {"type": "EntityNotFound", "message": "...", "traceback": null}}

``type`` is the error's class name or its ``wire_type``.  Unexpected errors have no ``message``:
clients then show ``explanation``.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any, Final

import webob

from bloomery import errors
from bloomery.api import replies
from bloomery.api.orchestration import answers
from bloomery.api.replies import Headers
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


def too_large(most: int) -> errors.RequestLimitExceeded:
    return errors.RequestLimitExceeded(
        what="a larger body", limit=most, unit="bytes", option="[orchestration]max_json_body_size"
    )


def answer(error: Exception, client: str = "") -> webob.Response:
    """Answer with an error: ours with its status, others with 500."""
    if not isinstance(error, errors.Failure):
        LOG.error("unexpected error", exc_info=error)
        return _form(_SERVER_FAULT, type(error).__name__)
    if error.log:
        LOG.info("%s: %s; %s", error.code, error, error.log)
    # 503 with retry_after_s is expected, and frequent
    if error.status >= _SERVER_FAULT and error.retry_after_s is None:
        LOG.warning("%s: %s", error.code, error)
    name = getattr(error, "wire_type", None) or type(error).__name__
    return _form(error.status, name, errors.brief(error), replies.retry_after(error, client))


def refusal(status: int, message: str, headers: Headers = ()) -> webob.Response:
    """Answer a request that reaches no endpoint."""
    return _form(status, _HTTP_ERRORS[status], message, headers)


def unparsed(refusal: Refusal) -> dict[str, Any]:
    """Return the server's answer to a request that it could not parse."""
    name = _HTTP_ERRORS.get(refusal.status, "HTTPClientError")
    return _document(refusal.status, name, refusal.text)


def _form(
    status: int, name: str, message: str | None = None, headers: Headers = ()
) -> webob.Response:
    return answers.document(_document(status, name, message), status, headers)


def _document(status: int, name: str, message: str | None) -> dict[str, Any]:
    details = {} if message is None else {"message": message.encode(errors="replace").decode()}
    return {
        "code": status,
        "title": HTTPStatus(status).phrase,
        "explanation": answers.explanation(status),
        "error": {"type": name, **details, "traceback": None},
    }


def unauthorized(realm: str) -> webob.Response:
    """Answer a missing login in the format of keystonemiddleware."""
    document = {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }
    return answers.document(document, 401, [("WWW-Authenticate", f'Basic realm="{realm}"')])


def no_path(path: str) -> webob.Response:
    """Answer an unknown path in Heat's second format of errors."""
    return answers.phrase(404, f"Nothing is called {path} here.")
