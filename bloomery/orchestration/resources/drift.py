"""Drift: where a machine is not as its resource says.

A kind yields each difference between what its properties say and what the API answers; it asks, and
changes nothing.  Fields that nobody has set a value for are not compared, and in maps the keys that
others have added are not.

    list(drift.compare({"power_state": "power on"}, node))
    # [Difference("power_state", "power_state is 'power off' and is to be 'power on'")]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from bloomery import errors
from bloomery.model.rules.attributes import MASK

_ADDRESS: Final = "://"


class Drifted(Exception):
    """The machine is not as its resource says: each difference, in one sentence."""


class Difference(NamedTuple):
    """``field``: as the API calls it, with a path inside of it, such as ``extra/rack``."""

    field: str
    sentence: str


def refuse(differences: Iterable[Difference]) -> None:
    sentences = [each.sentence for each in differences]
    if sentences:
        raise Drifted("; ".join(sentences))


def compare(
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    within: str = "",
    *,
    secret: bool = False,
) -> Iterator[Difference]:
    """Yield the fields of ``actual`` that differ from those of ``expected``.

    ``secret``: values are not told.  Secrets that the API has masked are taken to be as they were.
    """
    for name, value in expected.items():
        field, real = f"{within}{name}", actual.get(name)
        if isinstance(value, Mapping) and isinstance(real, Mapping):
            yield from compare(value, real, f"{field}/", secret=secret)
        elif not _same(name, value, real):
            yield Difference(field, _sentence(field, value, real, secret=secret))


def missing(field: str, thing: str) -> Difference:
    return Difference(field, f"{thing} is gone")


def _same(name: str, expected: Any, actual: Any) -> bool:
    """Compare what stands under ``name``, or in a list ("")."""
    if isinstance(actual, str) and MASK in actual:
        return actual in (MASK, _masked(name, expected))
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return all(_same(key, value, actual.get(key)) for key, value in expected.items())
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(_same("", one, other) for one, other in pairs)
    return bool(expected == actual)


def _masked(name: str, value: Any) -> Any:
    from bloomery import secrets  # late: what reads templates alone does not pay for it

    return secrets.mask({name: value})[name]


def _sentence(field: str, expected: Any, actual: Any, *, secret: bool) -> str:
    if secret:
        return f"{field} is not what it is to be"
    return f"{field} is {_shown(actual)} and is to be {_shown(expected)}"


def _shown(value: Any) -> str:
    from bloomery import secrets  # late, as above

    if isinstance(value, str):
        value = secrets.mask_address(value) if _ADDRESS in value else str(value)
    return errors.shortened(repr(secrets.mask(value)))
