"""Numbers read from text and values quoted in messages, both within limits."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from bloomery.orchestration.limits import Limits

_SHOWN: Final = 100  # characters of a value in a message
_NUMERIC: Final = re.compile(r"\s*[-+]?[0-9_.]+([eE][-+]?[0-9]+)?\s*")
_QUOTED_PARTS: Final = 20  # items of a quoted map or list; a longer one is counted


def quoted(value: Any) -> str:
    """Return ``value`` as JSON if possible, shortened for a message."""
    if isinstance(value, list | dict) and len(value) > _QUOTED_PARTS:
        return f"{_kind(value)} of {len(value)}"
    try:
        text = json.dumps(
            value if not isinstance(value, str) else value[: _SHOWN + 1], ensure_ascii=False
        )
    except (TypeError, ValueError, RecursionError):
        return _kind(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _kind(value: Any) -> str:
    return {list: "a list", dict: "a map", int: "a number"}.get(
        type(value), f"a {type(value).__name__}"
    )


def integer_of(text: str, limits: Limits) -> int:
    """Read a whole number; ValueError for other text and for too many digits."""
    if len(text) > limits.scalar_digits:
        raise ValueError(text)
    return int(text)


def number_of(text: str, limits: Limits) -> int | float:
    """Read a number; ValueError for other text, infinity, NaN and too many digits."""
    try:
        return integer_of(text, limits)
    except ValueError:
        if len(text) > limits.scalar_digits:
            raise
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def expected(kind: str, value: Any, limits: Limits) -> str:
    """Return ``kind`` for a message, with the limit if only the length of ``value`` is wrong."""
    if isinstance(value, str):
        is_too_long = len(value) > limits.scalar_digits and bool(_NUMERIC.fullmatch(value))
    elif isinstance(value, float) and not math.isfinite(value):
        is_too_long = False
    else:
        is_too_long = isinstance(value, int | float) and not is_number(value, limits)
    return (
        f"{kind} of at most {limits.scalar_digits} digits (scalar_digits)" if is_too_long else kind
    )


def is_number(value: Any, limits: Limits) -> bool:
    """Return whether ``value`` is a finite number or boolean, within ``scalar_digits``."""
    if not isinstance(value, int | float) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        return False
    return bool(abs(value) < 10**limits.scalar_digits)
