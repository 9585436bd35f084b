"""The least client of the bare-metal API: what our own commands need of it.

api = Client("http://127.0.0.1:6385")
node = api.post("/v1/nodes", {"driver": "fake-hardware", "name": "web-1"})
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from bloomery import errors

VERSION = "1.115"
_TIMEOUT_S = 30.0


class ApiError(errors.Failure):
    """The API said no, or did not answer."""

    code = "client.api"
    text = "{method} {path}: {reason}"


class Client:
    """JSON over HTTP, one request at a time.  Raises ApiError with the API's own words."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def post(self, path: str, body: Any) -> Any:
        return self._ask("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, body)

    def patch(self, path: str, body: Any) -> Any:
        return self._ask("PATCH", path, body)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(  # noqa: S310  the URL is the operator's own
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": VERSION},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                said = answer.read()
        except urllib.error.HTTPError as exc:
            with exc:
                reason = _reason(exc.read())
            raise ApiError(method=method, path=path, reason=f"{exc.code} {reason}") from exc
        except OSError as exc:
            raise ApiError(method=method, path=path, reason=str(exc)) from exc
        return json.loads(said) if said else None


def _reason(body: bytes) -> str:
    """Read the doubly encoded error; whatever else came is shown as it is."""
    try:
        told = json.loads(json.loads(body)["error_message"])
        return str(told.get("faultstring") or told.get("description"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return body.decode(errors="replace")
