"""Negotiate microversions.

The version is negotiated before routing.  A client that is too new learns the range from the
response headers and asks again, so the refusal carries these headers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors

MIN: Final = 1
MAX: Final = 115
DEFAULT: Final = 1
LATEST: Final = "latest"

NAME: Final = "X-OpenStack-Ironic-API-Version"
_LEGACY: Final = "HTTP_X_OPENSTACK_IRONIC_API_VERSION"
_STANDARD: Final = "HTTP_OPENSTACK_API_VERSION"
_SERVICE: Final = "baremetal"
_NUMBERS: Final = re.compile(r"\s*([+-]?\d{1,9})\s*\.\s*([+-]?\d{1,9})\s*", re.ASCII)
RANGE: Final = (
    ("X-OpenStack-Ironic-API-Minimum-Version", f"1.{MIN}"),
    ("X-OpenStack-Ironic-API-Maximum-Version", f"1.{MAX}"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiated:
    """The agreed minor version; ``explicit``: the client named one."""

    minor: int
    explicit: bool


class Unacceptable(Exception):
    """No common version; ``shows_range``: the refusal carries the range."""

    def __init__(self, version: str, *, shows_range: bool) -> None:
        super().__init__(
            f"cannot answer in version {version!r}: ask with {NAME}: 1.{MIN} to 1.{MAX}, or latest",
        )
        self.shows_range = shows_range


def headers(minor: int) -> list[tuple[str, str]]:
    """Return the three version headers of a handler's answer."""
    return [*RANGE, (NAME, f"1.{minor}")]


def negotiate(environ: Mapping[str, Any]) -> Negotiated:
    """Return the version that the request headers ask for.  Raises Unacceptable."""
    return _negotiated(environ.get(_LEGACY, ""), environ.get(_STANDARD, ""))


@functools.lru_cache(maxsize=256)  # clients repeat the same headers
def _negotiated(legacy: str, standard: str) -> Negotiated:
    text = legacy.strip()
    for entry in standard.split(","):  # as in "compute 2.1, baremetal 1.61"
        words = entry.split()
        if len(words) > 1 and words[0].lower() == _SERVICE:
            text = " ".join(words[1:])  # the last one counts
    same = {each.strip() for each in text.split(",")}
    if len(same) == 1:  # servers join equal headers with commas
        text = same.pop()
    if not text:
        return Negotiated(minor=DEFAULT, explicit=False)
    if text.lower() == LATEST:
        return Negotiated(minor=MAX, explicit=True)
    numbers = _NUMBERS.fullmatch(text)
    if numbers is None:
        several = all(_NUMBERS.fullmatch(each) for each in text.split(","))
        raise Unacceptable(text, shows_range=several)
    major, minor = int(numbers[1]), int(numbers[2])
    if major != 1 or not MIN <= minor <= MAX:
        raise Unacceptable(text, shows_range=True)
    return Negotiated(minor=minor, explicit=True)


def require(version: int, since: int, thing: str) -> None:
    """Raise NotAcceptable if ``thing`` is newer than the client's version."""
    if version < since:
        raise refused(since, thing)


def refused(since: int, thing: str) -> errors.NotAcceptable:
    return errors.NotAcceptable(
        reason=f"cannot use {thing} with this API version: ask with version 1.{since} or newer",
    )
