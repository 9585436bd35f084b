"""Answers, and the three forms of errors that Ironic's clients know.

first form   what a handler says:     {"error_message": "{faultcode, faultstring, debuginfo}"}
second form  what routing says:       {"error_message": "{code, title, description}"}
bare         before both (too large): {"faultcode", "faultstring"}

The inner document is a string: clients parse twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson
import webob
from webob import exc as statuses

from bloomery import errors

LOG = logging.getLogger(__name__)

JSON: Final = ("Content-Type", "application/json")
UNEXPECTED: Final = "The service met an unexpected error; its log tells more under this request id."
_SERVER_FAULT: Final = 500

Headers = Sequence[tuple[str, str]]


def document(value: Any, status: int = 200, headers: Headers = ()) -> webob.Response:
    """Answer with a JSON document."""
    return _answer(orjson.dumps(value), status, [JSON, *headers])


def empty(status: int, headers: Headers = ()) -> webob.Response:
    """Answer without a body, and thus without a Content-Type."""
    return _answer(b"", status, list(headers))


def raw(body: bytes, content_type: str, status: int, headers: Headers = ()) -> webob.Response:
    """Answer with a body that is ready to be sent."""
    return _answer(body, status, [("Content-Type", content_type), *headers])


def _answer(body: bytes, status: int, headers: list[tuple[str, str]]) -> webob.Response:
    line = f"{status} {HTTPStatus(status).phrase}"  # webob has no words for some
    return webob.Response(body=body, status=line, headerlist=headers)


def ready(missing: list[str]) -> webob.Response:
    """Answer whether a service can do its work, and what it lacks."""
    return document({"ready": not missing, "missing": missing}, 503 if missing else 200)


def first_form(status: int, text: str, headers: Headers = ()) -> webob.Response:
    """Answer with an error that a handler found."""
    fault = {
        "faultcode": "Server" if status >= _SERVER_FAULT else "Client",
        "faultstring": text,
        "debuginfo": None,
    }
    return _wrapped(fault, status, headers)


def second_form(status: int, description: str = "", headers: Headers = ()) -> webob.Response:
    """Answer with an error found on the way to a handler."""
    known = statuses.status_map.get(status)
    fault = {
        "code": status,
        "title": HTTPStatus(status).phrase if known is None else known.title,
        "description": description,
    }
    return _wrapped(fault, status, headers)


def bare(status: int, text: str) -> webob.Response:
    """Answer with an error found before anything was read; the connection ends."""
    return document({"faultcode": "Client", "faultstring": text}, status, [("Connection", "close")])


def page(status: int, text: str) -> webob.Response:
    """Answer a client that does not take JSON: the message is plain text."""
    return document({"error_message": text}, status)


def _wrapped(inner: Any, status: int, headers: Headers) -> webob.Response:
    return document({"error_message": _encoded(inner)}, status, headers)


def _encoded(inner: Any) -> str:
    try:
        return orjson.dumps(inner).decode()
    except orjson.JSONEncodeError:  # a lone surrogate that the client sent us
        safe = {
            name: value.encode(errors="replace").decode() if isinstance(value, str) else value
            for name, value in inner.items()
        }
        return orjson.dumps(safe).decode()


def retry_after(error: Exception, client: str) -> list[tuple[str, str]]:
    """Return the header that says when to ask again, where the error knows.

    ``client`` is what the client calls itself.  python-ironicclient (6.3) fails on an answer
    with this header, and repeats one without.
    """
    after_s = getattr(error, "retry_after_s", None)
    if after_s is None or "python-ironicclient" in client:
        return []
    return [("Retry-After", str(after_s))]


def failure(error: Exception, headers: Headers = ()) -> webob.Response:
    """Answer with an error that left a handler: ours with its status, others are our bug."""
    if not isinstance(error, errors.Failure):
        LOG.error("unexpected error", exc_info=error)
        return first_form(_SERVER_FAULT, UNEXPECTED, headers)
    if error.log:
        LOG.info("%s: %s; %s", error.code, error, error.log)
    if error.status >= _SERVER_FAULT and error.retry_after_s is None:  # those are many, and meant
        LOG.warning("%s: %s", error.code, error)
    return first_form(error.status, errors.brief(error), headers)
