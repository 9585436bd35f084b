"""TLS spoken to a plain HTTP server, or plain HTTP to a TLS server, recognised by the error."""

from __future__ import annotations

from typing import Final

PLAIN_HTTP: Final = "it speaks plain HTTP at this port, and no TLS"
ONLY_TLS: Final = "it speaks TLS at this port, and no plain HTTP"
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "wrong version number")
_TLS_ALERT: Final = "\x15\x03"  # the first bytes of a TLS alert


def explain(message: str) -> str | None:
    """Return what the server speaks; None where the error has another cause."""
    if any(part in message for part in _NO_TLS):
        return PLAIN_HTTP
    return ONLY_TLS if _TLS_ALERT in message else None
