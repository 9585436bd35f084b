"""Successful responses."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import orjson
import webob
from webob import exc as statuses

from bloomery.api import replies
from bloomery.api.replies import Headers


def document(value: Any, status: int = 200, headers: Headers = ()) -> webob.Response:
    """Answer with a JSON document; None is the text ``null``."""
    return replies.raw(_encoded(value), "application/json", status, headers)


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # an integer beyond 64 bits, which a template may hold
        return json.dumps(value).encode()


def empty(status: int, headers: Headers = ()) -> webob.Response:
    """Answer without a body, and thus without a Content-Type."""
    return webob.Response(body=b"", status=status, headerlist=list(headers))


def phrase(status: int, message: str = "", headers: Headers = ()) -> webob.Response:
    """Answer with the status phrase alone: clients read only status and headers."""
    words = HTTPStatus(status).phrase
    body = {
        "code": f"{status} {words}",
        "title": words,
        "message": message or explanation(status),
    }
    return document(body, status, headers)


def explanation(status: int) -> str:
    exception = statuses.status_map.get(status)
    return str(exception.explanation or "") if exception is not None else ""


def text(status: int, words: str) -> webob.Response:
    plain = ("Content-Type", "text/plain; charset=UTF-8")
    return webob.Response(body=words.encode(), status=status, headerlist=[plain])
