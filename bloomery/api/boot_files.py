"""Boot CDs for BMCs, and what iPXE fetches: without a login, whole or in ranges.

Whoever knows the name of one gets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import webob

from bloomery import boot_files
from bloomery.api import replies
from bloomery.conf import Conf

PREFIXES: Final = tuple(
    f"/{name}" for name in (f"{boot_files.FOLDER}/", f"{boot_files.LINKS}/", boot_files.ENTRY)
)
_TYPES: Final = {".iso": "application/x-iso9660-image", ".kernel": "application/octet-stream",
                 ".ramdisk": "application/octet-stream"}  # fmt: skip
_PIECE: Final = 256 << 10
_METHODS: Final = ("GET", "HEAD")


class FilePieces:
    """The bytes of a file from ``start`` to ``stop``, each piece read when it is sent."""

    def __init__(self, path: Path, start: int, stop: int) -> None:
        self._path, self._start, self._stop = path, start, stop

    def app_iter_range(self, start: int, stop: int) -> FilePieces:
        """Return a part of the file: WebOb's name, for requests with a range."""
        return FilePieces(self._path, start, stop)

    def __iter__(self) -> Iterator[bytes]:
        left = self._stop - self._start
        with self._path.open("rb") as file:
            file.seek(self._start)
            while left and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                yield piece


class BootFiles:
    """A WSGI application over ``[deploy]http_root``."""

    def __init__(self, http_root: Path) -> None:
        self._http_root = http_root

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = boot_files.find(self._http_root, environ["PATH_INFO"][1:])
        answer: Iterable[bytes] = _reply(path, environ["REQUEST_METHOD"])(environ, start_response)
        return answer


def _reply(path: Path | None, method: str) -> webob.Response:
    if path is None:
        return replies.second_form(404)
    if method not in _METHODS:
        return replies.second_form(405, headers=[("Allow", ", ".join(_METHODS))])
    try:
        status = path.stat()
    except FileNotFoundError:
        return replies.second_form(404)
    return webob.Response(
        app_iter=FilePieces(path, 0, status.st_size), content_length=status.st_size,
        last_modified=status.st_mtime, content_type=_TYPES.get(path.suffix, "text/plain"),
        accept_ranges="bytes", conditional_response=True,
    )  # fmt: skip


def make(conf: Conf) -> BootFiles | None:
    """Return what hands out boot files; None where a web server does."""
    root = conf.deploy.http_root
    return None if root is None or conf.deploy.http_url else BootFiles(Path(root))
