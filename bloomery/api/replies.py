"""Responses, and the three formats of errors that Ironic's clients parse.

    first form   from a handler:          {"error_message": "{faultcode, faultstring, debuginfo}"}
    second form  from routing:            {"error_message": "{code, title, description}"}
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
    """Answer with an encoded body."""
    return _answer(body, status, [("Content-Type", content_type), *headers])


def _answer(body: bytes, status: int, headers: list[tuple[str, str]]) -> webob.Response:
    line = f"{status} {HTTPStatus(status).phrase}"  # webob has no phrase for some
    return webob.Response(body=body, status=line, headerlist=headers)


def ready(missing: list[str]) -> webob.Response:
    """Answer whether a service is ready, with its missing parts."""
    return document({"ready": not missing, "missing": missing}, 503 if missing else 200)


def first_form(status: int, text: str, headers: Headers = ()) -> webob.Response:
    """Answer with an error of a handler."""
    fault = {
        "faultcode": "Server" if status >= _SERVER_FAULT else "Client",
        "faultstring": text,
        "debuginfo": None,
    }
    return _wrapped(fault, status, headers)


def second_form(status: int, description: str = "", headers: Headers = ()) -> webob.Response:
    """Answer with an error of routing."""
    exception = statuses.status_map.get(status)
    fault = {
        "code": status,
        "title": HTTPStatus(status).phrase if exception is None else exception.title,
        "description": description,
    }
    return _wrapped(fault, status, headers)


def bare(status: int, text: str) -> webob.Response:
    """Answer with an error before the body is read; the connection ends."""
    return document({"faultcode": "Client", "faultstring": text}, status, [("Connection", "close")])


def _wrapped(inner: Any, status: int, headers: Headers) -> webob.Response:
    try:
        text = orjson.dumps(inner)
    except orjson.JSONEncodeError:  # a lone surrogate from the client
        text = orjson.dumps(
            {
                name: value.encode(errors="replace").decode() if isinstance(value, str) else value
                for name, value in inner.items()
            }
        )
    return document({"error_message": text.decode()}, status, headers)


def retry_after(error: Exception, client: str) -> list[tuple[str, str]]:
    """Return the header Retry-After, where the error has a time.

    ``client`` is the User-Agent.  python-ironicclient (6.3) fails on an answer with this header,
    and retries one without.
    """
    after_s = getattr(error, "retry_after_s", None)
    if after_s is None or "python-ironicclient" in client:
        return []
    return [("Retry-After", str(after_s))]


def failure(error: Exception, headers: Headers = ()) -> webob.Response:
    """Answer with an error of a handler: ours with its status, others with 500."""
    if not isinstance(error, errors.Failure):
        LOG.error("unexpected error", exc_info=error)
        return first_form(_SERVER_FAULT, UNEXPECTED, headers)
    if error.log:
        LOG.info("%s: %s; %s", error.code, error, error.log)
    # 503 with retry_after_s is expected, and frequent
    if error.status >= _SERVER_FAULT and error.retry_after_s is None:
        LOG.warning("%s: %s", error.code, error)
    return first_form(error.status, errors.brief(error), headers)
