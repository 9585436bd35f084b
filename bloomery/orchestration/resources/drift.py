"""Drift: differences between a machine and the properties of its resource.

A kind yields each difference between its properties and the API, and changes nothing.  Fields
without a value in the properties are not compared, nor keys that others have added to maps.

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
    """The machine differs from its properties; the argument lists the differences."""


class Difference(NamedTuple):
    """``field``: the field of the API, with a path into its value, such as ``extra/rack``."""

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

    ``secret``: sentences leave values out.  Secrets that the API has masked count as equal.
    """
    for name, value in expected.items():
        field, real = f"{within}{name}", actual.get(name)
        if isinstance(value, Mapping) and isinstance(real, Mapping):
            yield from compare(value, real, f"{field}/", secret=secret)
        elif _same(name, value, real):
            continue
        elif secret:
            yield Difference(field, f"{field} is not what it is to be")
        else:
            yield Difference(field, f"{field} is {text(real)} and is to be {text(value)}")


def missing(field: str, subject: str) -> Difference:
    return Difference(field, f"{subject} is gone")


def _same(name: str, expected: Any, actual: Any) -> bool:
    """Compare two values of the key ``name``, or two items of a list ("")."""
    if isinstance(actual, str) and MASK in actual:
        from bloomery import secrets  # late: saves this import where only templates are read

        return actual in (MASK, secrets.mask({name: expected})[name])
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return all(_same(key, value, actual.get(key)) for key, value in expected.items())
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(_same("", one, other) for one, other in pairs)
    return bool(expected == actual)


def text(value: Any) -> str:
    from bloomery import secrets  # late, as above

    if isinstance(value, str):
        value = secrets.mask_address(value) if _ADDRESS in value else str(value)
    return errors.shortened(repr(secrets.mask(value)))
