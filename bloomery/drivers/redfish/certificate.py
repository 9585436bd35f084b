"""The TLS of a BMC: version, and the certificate with its end, whether or not it is verified."""

from __future__ import annotations

import dataclasses
import socket
import ssl
import urllib.parse
from typing import Any, Final

from cryptography import x509

from bloomery.drivers.redfish import wire
from bloomery.drivers.redfish.driver_info import Account

_TIMEOUT_S: Final = 5.0
_PORT: Final = 443


def describe(account: Account) -> dict[str, Any] | None:
    """Return what a handshake shows; None for plain HTTP, or where it fails.

    No request is sent.  The check of the certificate is left to the requests.
    """
    parts = urllib.parse.urlsplit(account.address)
    if parts.scheme != "https":
        return None
    context = wire.tls_context(dataclasses.replace(account, verify=False))
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or _PORT), _TIMEOUT_S) as sock,
            context.wrap_socket(sock, server_hostname=parts.hostname) as tls,
        ):
            return _facts(tls, account)
    except (OSError, ValueError):
        return None


def _facts(tls: ssl.SSLSocket, account: Account) -> dict[str, Any]:
    certificate = x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"")
    return {
        "version": tls.version(),
        "verified": bool(account.verify),
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "expires_at": certificate.not_valid_after_utc.isoformat(),
    }
