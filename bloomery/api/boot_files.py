"""Serve boot CDs to BMCs and boot files to machines: without a login, whole or in ranges.

The secret name of a boot file is its credential.  Names of links to scripts are MAC addresses and
no secret: only [api]agent_networks may fetch them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import webob

from bloomery import boot_files
from bloomery.api import replies
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.http_server.wsgi import FilePieces
from bloomery.operations import agent_callers

PREFIXES: Final = tuple(
    f"/{name}" for name in (f"{boot_files.FOLDER}/", f"{boot_files.LINKS}/", *boot_files.ENTRIES)
)
_TYPES: Final = {".iso": "application/x-iso9660-image", ".kernel": "application/octet-stream",
                 ".ramdisk": "application/octet-stream"}  # fmt: skip
_METHODS: Final = ("GET", "HEAD")
_RANGE: Final = re.compile(r"bytes=(?:\d{1,18}-\d{0,18}|-(?P<suffix>\d{1,18}))", re.ASCII)


class BootFiles:
    """A WSGI application over ``[deploy]http_root``."""

    def __init__(self, http_root: Path, conf: Api) -> None:
        """``conf`` names the networks that may fetch links to scripts."""
        self._http_root, self._conf = http_root, conf

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        name = environ["PATH_INFO"][1:]
        caller = environ.get("REMOTE_ADDR", "")
        is_hidden = name.startswith(boot_files.LINKS) and not agent_callers.is_inside(
            self._conf, caller
        )
        path = None if is_hidden else boot_files.find(self._http_root, name)
        answer = replies.second_form(404)
        if path is not None and environ["REQUEST_METHOD"] not in _METHODS:
            answer = replies.second_form(405, headers=[("Allow", ", ".join(_METHODS))])
        elif path is not None:
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                answer = webob.Response(
                    app_iter=FilePieces(path, 0, status.st_size), content_length=status.st_size,
                    last_modified=status.st_mtime,
                    content_type=_TYPES.get(path.suffix, "text/plain"),
                    accept_ranges="bytes", conditional_response=True,
                )  # fmt: skip
        if "HTTP_RANGE" in environ:
            # "" answers the whole file (RFC 9110, 14.2).  WebOb misreads suffix ranges of 0 bytes
            # and suffixes longer than the file.
            match = _RANGE.fullmatch(environ["HTTP_RANGE"])
            if match is None:
                environ["HTTP_RANGE"] = ""
            elif match["suffix"] is not None:
                size = answer.content_length or 0
                environ["HTTP_RANGE"] = f"bytes={size - min(int(match['suffix']), size)}-"
        parts: Iterable[bytes] = answer(environ, start_response)
        return parts


def make(conf: Conf) -> BootFiles | None:
    """Return the application that serves boot files; None where a web server does."""
    root = conf.deploy.http_root
    return None if root is None or conf.deploy.http_url else BootFiles(Path(root), conf.api)
