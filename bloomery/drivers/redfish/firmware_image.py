"""The checksum of a firmware file, verified before a BMC gets its URL."""

from __future__ import annotations

import hashlib
import time
import urllib.parse
from typing import Final

import urllib3

from bloomery import errors, secrets

_ALGORITHMS: Final = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}
_TIMEOUT: Final = urllib3.Timeout(connect=10, read=30)
_MOST_S: Final = 600.0
_CHUNK: Final = 1 << 20


def check_url(url: object) -> str:
    """Return a URL that a BMC may fetch.  Raises InvalidParameterValue."""
    if isinstance(url, str):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return url
    raise errors.InvalidParameterValue(reason="settings: url takes an address of http or https")


def check_form(checksum: object) -> None:
    """Raise InvalidParameterValue for an invalid checksum."""
    is_hex = isinstance(checksum, str) and not set(checksum.lower()) - set("0123456789abcdef")
    if is_hex and len(str(checksum)) in _ALGORITHMS:
        return
    raise errors.InvalidParameterValue(
        reason=f"settings: checksum takes the digits of {', '.join(_ALGORITHMS.values())}",
    )


def check_content(url: str, checksum: str) -> None:
    """Read the file; raise StepFailure unless it has this checksum."""
    algorithm = _ALGORITHMS[len(checksum)]
    digest = hashlib.new(algorithm, usedforsecurity=False)
    shown, give_up_at = secrets.mask_address(url), time.monotonic() + _MOST_S
    try:
        with urllib3.PoolManager() as pool:
            answer = pool.request("GET", url, timeout=_TIMEOUT, preload_content=False)
            if answer.status != 200:
                raise errors.StepFailure(reason=f"cannot check {shown}: HTTP {answer.status}")
            while chunk := answer.read(_CHUNK):
                digest.update(chunk)
                if time.monotonic() > give_up_at:
                    answer.close()
                    raise errors.StepFailure(
                        reason=f"cannot check {shown}: it was not read within {_MOST_S:g} s",
                    )
    except (urllib3.exceptions.HTTPError, OSError) as exc:
        why = type(exc).__name__
        raise errors.StepFailure(reason=f"cannot check {shown}: it cannot be read ({why})") from exc
    if digest.hexdigest() != checksum.lower():
        raise errors.StepFailure(
            reason=f"{shown} does not match its checksum: its {algorithm} is {digest.hexdigest()}",
        )
