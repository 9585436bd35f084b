"""TLS where a server speaks plain HTTP, and the other way round, told by the words of the error."""

from __future__ import annotations

from typing import Final

PLAIN_HTTP: Final = "it speaks plain HTTP at this port, and no TLS"
ONLY_TLS: Final = "it speaks TLS at this port, and no plain HTTP"
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "wrong version number")
_TLS_ALERT: Final = "\x15\x03"  # how the record begins by which TLS refuses what is none


def explain(words: str) -> str | None:
    """Return which of the two the server speaks; None where the error is about neither."""
    if any(part in words for part in _NO_TLS):
        return PLAIN_HTTP
    return ONLY_TLS if _TLS_ALERT in words else None
