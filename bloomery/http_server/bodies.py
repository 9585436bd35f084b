"""Read and parse request bodies within limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from bloomery import errors, parsing

KIB: Final = 1024
_NUL: Final = b"\\u0000"
_LONG_NUMBER: Final = re.compile(rb"\d{19}")
_LENGTH: Final = re.compile(r"\d{1,18}", re.ASCII)


class TooLarge(Exception):
    """The body exceeds the endpoint's limit."""


class Awaited(Exception):
    """The body is incomplete: retry with ``size`` bytes of it, or at its end.

    Raised by the stream of a request whose head alone has arrived, so that login and limits are
    checked by the head, and no thread waits for the rest.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def read(environ: dict[str, Any], limit: int, levels: int) -> bytes:
    """Return the body: ``limit`` bytes at most, ``levels`` of nesting at most.

    Raises TooLarge, by the declared length and by the real one, parsing.TooMuch, and Awaited.
    """
    body = read_bytes(environ, limit)
    parsing.check_depth(body, levels)
    return body


def read_bytes(environ: dict[str, Any], limit: int) -> bytes:
    """Return the body, ``limit`` bytes at most.  Raises TooLarge, Awaited."""
    declared = environ.get("CONTENT_LENGTH") or ""
    if _LENGTH.fullmatch(declared) is None:
        if "chunked" not in environ.get("HTTP_TRANSFER_ENCODING", "").lower():
            return b""
        body = bytes(environ["wsgi.input"].read(limit + 1))
        if len(body) > limit:
            raise TooLarge
        return body
    if int(declared) > limit:
        raise TooLarge
    return bytes(environ["wsgi.input"].read(int(declared))) if int(declared) else b""


def parse(body: bytes, *, keeps_big_integers: bool = False) -> Any:
    """Parse a JSON body.  Raises Invalid: no JSON, or values that no database can store.

    ``keeps_big_integers``: False refuses integers beyond 64 bits.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise errors.Invalid(reason=f"Schema error for body: not JSON: {exc}") from None
    if _LONG_NUMBER.search(body):  # orjson would turn them into floats
        value = json.loads(body, parse_int=int if keeps_big_integers else _integer)
    if _NUL in body:
        for where, text in _texts(value, ""):
            if "\0" in text:
                raise errors.Invalid(
                    reason=f"Schema error for {where.strip('/') or 'body'}: "
                    "a text must not hold the character NUL",
                )
    return value


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise errors.Invalid(
            reason=f"Schema error for body: the integer {digits[:24]} does not fit into 64 bits",
        )
    return int(digits)


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield every text in ``value``, keys included, with its path."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, where)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield where, name
            yield from _texts(inner, f"{where}/{name}".replace("\0", ""))
