"""Looks at files that users name, before a flow boots a machine for them.

    preflight.look(conf, [RemoteFile(name="instance_info/image_source", url=url)])

A look sends HEAD.  Where a server refuses HEAD, or sends a web page, it reads the beginning of the
file: signed URLs allow GET alone, and a portal's login page is no image.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import urllib3

from bloomery import errors, secrets
from bloomery.conf import Conf
from bloomery.drivers.agent_boot import http_client
from bloomery.drivers.agent_boot.http_client import Headers, HttpClient
from bloomery.drivers.base import RemoteFile

_SCHEMES: Final = ("http://", "https://", "oci://")
_BEGINNING: Final = 256  # bytes that tell a web page from a file
_PAGES: Final = (b"<!doctype html", b"<html")


def due(conf: Conf, files: Iterable[RemoteFile]) -> list[RemoteFile]:
    """Return the files that can be looked at; none where the option says so."""
    is_on = conf.conductor.preflight_timeout > 0
    return [file for file in files if is_on and file.url.startswith(_SCHEMES)]


def look(conf: Conf, files: Iterable[RemoteFile]) -> None:
    """Raise InvalidParameterValue unless the server of each file hands it out.

    Ends at the first that it does not.  A silent server takes [conductor]preflight_timeout.
    """
    client = HttpClient(conf.default, timeout_s=conf.conductor.preflight_timeout)
    for file in files:
        try:
            if file.read is not None:
                file.read(client)
            else:
                _look(client, file.url, file.headers)
        except errors.Failure as exc:
            raise errors.InvalidParameterValue(reason=f"{file.name}: {exc}") from exc


def _look(client: HttpClient, url: str, headers: Headers) -> None:
    try:
        status, answer, _ = client.begin("HEAD", url, headers, 0)
        beginning = b""
        if status != 200 or answer.get("Content-Type", "").startswith("text/html"):
            some = {"Range": f"bytes=0-{_BEGINNING - 1}"}
            status, answer, beginning = client.begin("GET", url, {**headers, **some}, _BEGINNING)
    except urllib3.exceptions.HTTPError as exc:
        fault = http_client.why(exc)
    else:
        if status == 416 or (status == 200 and answer.get("Content-Length") == "0"):
            fault = "the file is empty"
        elif status not in (200, 206):
            fault = f"HTTP {status}"
        elif beginning.lstrip().lower().startswith(_PAGES):
            fault = "its server sends a web page, and no file"
        else:
            return
    raise errors.StepFailure(reason=f"cannot fetch {secrets.mask_address(url)}: {fault}")
