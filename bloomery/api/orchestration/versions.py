"""Which versions there are: one.

openstacksdk asks ``/v1`` for this document before anything else, without a login, where it has no
identity service; Heat has it at ``/`` only.
"""

from __future__ import annotations

import re
from typing import Final

import webob

from bloomery.api.orchestration import answers, routing

_VERSION: Final = re.compile(r"v(\d+)(?:\.(\d+))?", re.ASCII)
_MEDIA_TYPE: Final = re.compile(r"application/vnd\.openstack\.orchestration-(v[\d.]+)")
_OURS: Final = (1, 0)


class OtherVersion(Exception):
    """Whoever asks is to be told which versions there are."""


def cut(path: str, accept: str) -> str:
    """Return what of the path is below the version, which the header Accept may name instead.

    Raises OtherVersion, and NoPath where nothing names a version.
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
    raise routing.NoPath


def _check(version: re.Match[str]) -> None:
    if (int(version[1][:9]), int((version[2] or "0")[:9])) != _OURS:
        raise OtherVersion


def document(url: str) -> webob.Response:
    """Answer with the versions; 300 because there is a choice, if only of one."""
    links = [{"rel": "self", "href": f"{url}/v1/"}]
    version = {"id": "v1.0", "status": "CURRENT", "links": links}
    return answers.document({"versions": [version]}, 300)
