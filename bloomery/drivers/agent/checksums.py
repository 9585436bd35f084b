"""The checksums of an image: those that its user names, and those of a file.

A checksum file has lines of coreutils (``DIGEST  NAME``), of BSD (``SHA256 (NAME) = DIGEST``), or
one checksum alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.drivers.agent import image
from bloomery.drivers.agent_boot.http_client import HttpClient

_PIECE: Final = 1 << 20
_MOST_BYTES: Final = 1 << 20  # of a checksum file
_BSD: Final = re.compile(r"[\w/-]+ ?\((?P<name>.+)\) ?= ?(?P<digest>[0-9a-f]+)", re.IGNORECASE)
_COREUTILS: Final = re.compile(r"(?P<digest>[0-9a-f]+)(?:\s+\*?(?P<name>.+))?", re.IGNORECASE)


def of_file(path: Path) -> dict[str, str]:
    """Return the checksums of a file, by algorithm."""
    hashes = {name: hashlib.new(name, usedforsecurity=False) for name in image.DIGITS}
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            for each in hashes.values():
                each.update(piece)
    return {name: each.hexdigest() for name, each in hashes.items()}


def named(info: Mapping[str, Any], client: HttpClient, *, allows_md5: bool) -> list[str]:
    """Return the checksums that an instance_info names; files of checksums are fetched.

    Raises StepFailure.
    """
    name = image.name_of(str(info["image_source"]))
    values = (info.get("image_checksum"), info.get("image_os_hash_value"))
    algorithms = (None, info.get("image_os_hash_algo"))
    digests = [
        _fetch(str(value), name, algorithm, client) if "://" in str(value) else str(value).lower()
        for value, algorithm in zip(values, algorithms, strict=True)
        if value
    ]
    if not allows_md5 and any(len(digest) == image.DIGITS["md5"] for digest in digests):
        raise errors.StepFailure(
            reason="the file of checksums has MD5 alone, and [agent]allow_md5_checksum is false: "
            "take sha256 or sha512",
        )
    return digests


def are_of(digests: Mapping[str, str], named: list[str]) -> bool:
    """Return whether a file with the checksums ``digests`` has all that are named."""
    return set(named) <= set(digests.values())


def check(digests: Mapping[str, str], named: list[str]) -> None:
    """Raise StepFailure unless a file with the checksums ``digests`` has all that are named.

    The message has no checksum of the file: whoever names a URL need not be able to read it.
    """
    if not are_of(digests, named):
        raise errors.StepFailure(
            reason=f"the image has other checksums than the node names: {', '.join(named)}",
        )


def _fetch(url: str, name: str, algorithm: str | None, client: HttpClient) -> str:
    """Return the checksum of the image ``name`` from a checksum file.  Raises StepFailure."""
    status, _headers, body = client.read(url, {}, _MOST_BYTES)
    address = secrets.mask_address(url)
    if status != 200:
        raise errors.StepFailure(reason=f"cannot fetch {address}: HTTP {status}")
    texts = [line.strip() for line in body.decode("utf-8", "replace").splitlines()]
    matches = [_BSD.fullmatch(text) or _COREUTILS.fullmatch(text) for text in texts]
    lines = [(match["digest"].lower(), match["name"] or "") for match in matches if match]
    digits = [image.DIGITS[algorithm]] if algorithm else sorted(image.DIGITS.values())
    alone = len(lines) == 1
    fitting = [
        digest for digest, of in lines
        if len(digest) in digits and (alone or of.rpartition("/")[2] == name)
    ]  # fmt: skip
    if not fitting:
        raise errors.StepFailure(reason=f"{address} has no checksum of {name} of a known algorithm")
    return max(fitting, key=len)
