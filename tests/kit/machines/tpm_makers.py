"""A maker of TPMs: its CA, and certificates of endorsement keys as it issues them."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

IS_EK: Final = x509.ObjectIdentifier("2.23.133.8.1")
IS_CLIENT: Final = ExtendedKeyUsageOID.CLIENT_AUTH
_TCG: Final = {"2.23.133.2.1": "id:4C414220", "2.23.133.2.2": "lab", "2.23.133.2.3": "id:1"}


class Maker:
    """``above``: the maker that certifies its CA; None: it certifies itself."""

    def __init__(self, name: str, above: Maker | None = None, *, signs: bool = True) -> None:
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(True, False, False, False, False, signs, signs, False, False)
        extensions = [(x509.BasicConstraints(ca=True, path_length=None), True), (usage, True)]
        self.certificate = (above or self).issue(self.name, self.key.public_key(), extensions)

    def issue(
        self, name: x509.Name, key: Any, extensions: list[Any], *, ends_in_days: int = 9
    ) -> str:
        now = dt.datetime.now(dt.UTC)
        day = dt.timedelta(days=1)
        builder = (
            x509.CertificateBuilder().subject_name(name)
            .issuer_name(self.name).public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 99 * day).not_valid_after(now + ends_in_days * day)
        )  # fmt: skip
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        certificate = builder.sign(self.key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM).decode()

    def certify(
        self, key: str, usage: x509.ObjectIdentifier | None = IS_EK, *, is_ca: bool = False,
        ends_in_days: int = 9,
    ) -> str:  # fmt: skip
        """Return the certificate in PEM of an endorsement key in PEM, without a subject."""
        names = [x509.NameAttribute(x509.ObjectIdentifier(oid), v) for oid, v in _TCG.items()]
        extensions: list[Any] = [
            (x509.BasicConstraints(ca=is_ca, path_length=None), True),
            (x509.SubjectAlternativeName([x509.DirectoryName(x509.Name(names))]), True),
        ]
        if usage is not None:
            extensions.append((x509.ExtendedKeyUsage([usage]), False))
        public = serialization.load_pem_public_key(key.encode())
        return self.issue(x509.Name([]), public, extensions, ends_in_days=ends_in_days)
