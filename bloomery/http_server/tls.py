"""TLS of servers: non-blocking handshakes, and certificates that can be reloaded.

tls = Tls(Settings(...))            # raises CannotStart for unusable files
connection = tls.secure(client)     # a non-blocking socket; nothing is sent yet
tls.reload()                        # new connections get the current certificate
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.conf.web import Ssl

LOG = logging.getLogger(__name__)

_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_WAITS: Final = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Socket(ssl.SSLSocket):
    """A non-blocking server socket with the errors of a plain socket.

    A read performs the handshake.  Its rare wait for room to write ends when the client sends, or
    at the deadline.
    """

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        try:
            return super().recv(buflen, flags)
        except _WAITS:
            raise BlockingIOError from None

    def send(self, data: Any, flags: int = 0) -> int:
        try:
            return super().send(data, flags)
        except _WAITS:
            raise BlockingIOError from None

    def shutdown(self, how: int) -> None:
        """Send close_notify; further input is not decrypted."""
        with contextlib.suppress(OSError, ValueError):
            self.unwrap()
        super().shutdown(how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Files of a server: options of its own ``group``, or those of [ssl].

    ``switch``: the option of the group that enables TLS.  ``asks_clients``: [ssl]ca_file and
    ciphers apply, too.
    """

    group: str
    switch: str
    cert_file: str | None
    key_file: str | None
    ssl: Ssl
    minimum_version: str = "1.2"
    asks_clients: bool = False


class Tls:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._context = _context(settings)

    def secure(self, client: socket.socket) -> socket.socket:
        return self._context.wrap_socket(client, server_side=True, do_handshake_on_connect=False)

    def reload(self) -> None:
        """Reload the files; unusable files keep the former ones."""
        try:
            self._context = _context(self._settings)
        except (errors.CannotStart, OSError, ValueError) as exc:
            LOG.warning("certificates were not read again: %s", exc)
        else:
            LOG.info("certificates were read again")


def _context(settings: Settings) -> ssl.SSLContext:
    """Return the TLS context.  Raises CannotStart."""
    cert_option, certificate = _file(settings, "cert_file")
    key_option, key = _file(settings, "key_file")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.sslsocket_class = Socket
    context.minimum_version = _VERSIONS[settings.minimum_version]
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    with _ssl_errors_of(f"{cert_option} {certificate} with {key_option} {key}"):
        context.load_cert_chain(certificate, key, password="")  # never prompt on a terminal
    if settings.asks_clients and settings.ssl.ca_file:
        context.verify_mode = ssl.CERT_REQUIRED
        ca_option, authorities = _file(settings, "ca_file")
        with _ssl_errors_of(f"{ca_option} {authorities}"):
            context.load_verify_locations(authorities)
    if settings.asks_clients and (ciphers := settings.ssl.ciphers):
        with _ssl_errors_of(f"[ssl]ciphers {ciphers}"):
            context.set_ciphers(ciphers)
    return context


def _file(settings: Settings, option: str) -> tuple[str, str]:
    """Return the option of a file with its group, and the path, which is readable."""
    own, of_ssl = getattr(settings, option, None), getattr(settings.ssl, option)
    name = own or of_ssl
    group = "ssl" if of_ssl and not own else settings.group
    if not name:
        raise errors.CannotStart(
            reason=f"cannot speak TLS without [{group}]{option}: set it, or unset "
            f"[{settings.group}]{settings.switch}",
        )
    try:
        with Path(name).open("rb"):
            return f"[{group}]{option}", name
    except (OSError, ValueError) as exc:  # a name with a NUL
        why = getattr(exc, "strerror", None) or exc
        raise errors.CannotStart(reason=f"cannot use [{group}]{option} {name}: {why}") from exc


@contextlib.contextmanager
def _ssl_errors_of(option: str) -> Any:
    """Name the option in OpenSSL's errors."""
    try:
        yield
    except ssl.SSLError as exc:
        why = getattr(exc, "reason", None) or "; ".join(map(str, exc.args))
        why = why.replace("_", " ").lower()
        if "pem lib" in why:  # OpenSSL's whole message
            why = "one of them is not PEM, or its key has a password"
        raise errors.CannotStart(reason=f"cannot use {option}: {why}") from exc
