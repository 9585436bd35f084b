"""Serve the files of the pages below ``/ui/``, to everybody: they hold no data.

app.make_app(services, pages=pages.serve)
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import webob

FOLDER: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
ROOT: Final = "/ui/"
_METHODS: Final = ("GET", "HEAD")
_TYPES: Final = {".css": "text/css", ".html": "text/html", ".js": "text/javascript",
                 ".png": "image/png", ".svg": "image/svg+xml", ".yaml": "text/plain"}  # fmt: skip
_NAME: Final = re.compile(rf"(?:[\w-]+/)*[\w.-]+(?:{'|'.join(_TYPES)})", re.ASCII)


def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a path below ``/ui/`` with a file; lead ``/`` and ``/ui`` there."""
    path = environ["PATH_INFO"]
    if not path.startswith(ROOT):
        # Relative, for proxies that add a prefix; WebOb makes addresses absolute.
        start_response("302 Found", [("Location", ROOT[1:]), ("Content-Length", "0")])
        return [b""]
    reply = _reply(path[len(ROOT) :] or INDEX, webob.Request(environ))
    answer: Iterable[bytes] = reply(environ, start_response)
    return answer


def _reply(name: str, request: webob.Request) -> webob.Response:
    if request.method not in _METHODS:
        return _refusal("405 Method Not Allowed", allow=_METHODS)
    if not _NAME.fullmatch(name):
        return _refusal("404 Not Found")
    path = FOLDER / name
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        return _refusal("404 Not Found")
    accepted = request.accept_encoding  # false where the header is missing
    is_packed = bool(accepted and accepted.acceptable_offers(["gzip"]))
    reply = webob.Response(
        _packed(body) if is_packed else body, content_type=_TYPES[path.suffix],
        etag=hashlib.sha256(body).hexdigest()[:32] + ("-gzip" if is_packed else ""),
        cache_control="no-cache", vary=["Accept-Encoding"], conditional_response=True,
    )  # fmt: skip
    if is_packed:
        reply.content_encoding = "gzip"
    return reply


@functools.lru_cache(maxsize=64)
def _packed(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def _refusal(status: str, **headers: Any) -> webob.Response:
    return webob.Response(status, status=status, content_type="text/plain", **headers)
