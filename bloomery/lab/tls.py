"""A self-signed certificate for servers on loopback."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_DAYS: Final = 31


def certificate(folder: Path, serial: int = 1, *, starts_in_days: int = -1) -> tuple[str, str]:
    """Make a self-signed certificate for loopback; return the files of certificate and key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bmc")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now + dt.timedelta(days=starts_in_days))
        .not_valid_after(now + dt.timedelta(days=starts_in_days + _DAYS))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    unsealed = serialization.NoEncryption()
    files = folder / "bmc.crt", folder / "bmc.key"
    files[0].write_bytes(signed.public_bytes(pem))
    files[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, unsealed))
    return str(files[0]), str(files[1])
