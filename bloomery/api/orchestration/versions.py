"""API versions: one.

openstacksdk asks ``/v1`` for this document first, without a login, where it has no identity
service; Heat has it at ``/`` only.
"""

from __future__ import annotations

import re
from typing import Final

import webob
from webob import exc as statuses

from bloomery.api.orchestration import answers

_VERSION: Final = re.compile(r"v(\d+)(?:\.(\d+))?", re.ASCII)
_MEDIA_TYPE: Final = re.compile(r"application/vnd\.openstack\.orchestration-(v[\d.]+)")
_OURS: Final = (1, 0)


class OtherVersion(Exception):
    """The request names no version or another one; the answer lists the versions."""


def cut(path: str, accept: str) -> str:
    """Return the path below the version; the header Accept may name the version instead.

    Raises OtherVersion, and HTTPNotFound where neither names a version.
    """
    first, _, rest = path.strip("/").partition("/")
    if first == "versions" and not rest:
        raise OtherVersion
    version = _VERSION.fullmatch(first)
    if version is not None:
        _check(version)
        if not rest.strip("/"):
            raise OtherVersion
        return rest
    named = _MEDIA_TYPE.search(accept)
    version = _VERSION.fullmatch(named[1]) if named is not None else None
    if version is not None:
        _check(version)
        return path
    if not first:
        raise OtherVersion
    raise statuses.HTTPNotFound


def _check(version: re.Match[str]) -> None:
    if (int(version[1][:9]), int((version[2] or "0")[:9])) != _OURS:
        raise OtherVersion


def document(url: str) -> webob.Response:
    """Answer with the versions: status 300, as in Heat."""
    links = [{"rel": "self", "href": f"{url}/v1/"}]
    version = {"id": "v1.0", "status": "CURRENT", "links": links}
    return answers.document({"versions": [version]}, 300)
