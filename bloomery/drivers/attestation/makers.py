"""The makers of TPMs that a site trusts: whether an endorsement key's certificate is of one.

    makers = Makers("/etc/bloomery/tpm-makers")     # a file or a folder of CA certificates in PEM
    makers.check(driver_info["attestation_ek"])

Sources: RFC 5280; TCG EK Credential Profile 2.5, 3.2 (key usage tcg-kp-EKCertificate).  Revocation
is not looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.x509 import verification

from bloomery import clock, errors

_IS_EK: Final = x509.ObjectIdentifier("2.23.133.8.1")  # tcg-kp-EKCertificate
_MOST_CHAIN: Final = 8  # certificates between an endorsement key's and the site's
_ANY: Final = verification.Criticality.AGNOSTIC


class Makers:
    """``path``: a file, or a folder whose files are read.  Raises CannotStart."""

    def __init__(self, path: str) -> None:
        file, roots = (place := Path(path)), []
        try:
            for file in sorted(place.iterdir()) if place.is_dir() else [place]:
                roots += x509.load_pem_x509_certificates(file.read_bytes())
            self._store = verification.Store(roots)
        except (OSError, ValueError) as exc:
            raise errors.CannotStart(
                reason=f"cannot use {file} of [agent]attestation_ca: the option takes a file or a "
                f"folder of CA certificates in PEM ({errors.brief(exc)})",
            ) from None

    def check(self, text: Any) -> None:
        """Raise InvalidParameterValue unless a trusted maker has certified the key.

        ``text``: a certificate in PEM, and any others that lead to the maker's after it.
        """
        if not isinstance(text, str) or "-----BEGIN CERTIFICATE-----" not in text:
            raise _refusal("[agent]attestation_ca asks for the certificate of its key, in PEM")
        verifier = (
            verification.PolicyBuilder()
            .store(self._store)
            .time(clock.now())
            .max_chain_depth(_MOST_CHAIN)
            .extension_policies(ca_policy=_AUTHORITY, ee_policy=_ENDORSEMENT)
            .build_client_verifier()
        )
        issuer = ""
        try:
            own, *others = x509.load_pem_x509_certificates(text.encode())
            issuer = f", issued by {own.issuer.rfc4514_string()},"
            verifier.verify(own, others)
        except (ValueError, verification.VerificationError) as exc:
            raise _refusal(
                f"its certificate{issuer} leads to no maker of [agent]attestation_ca: "
                f"{errors.brief(exc)}"
            ) from None


def _refusal(why: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(
        reason=f"driver_info/attestation_ek is not of a trusted TPM: {why}"
    )


def _check_authority(_policy: Any, _certificate: Any, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("the key of a CA may sign no certificates")


def _check_constraints(
    _policy: Any, certificate: x509.Certificate, constraints: x509.BasicConstraints | None
) -> None:
    if constraints is not None and constraints.ca:
        raise ValueError("it is the certificate of a CA")


def _check_usage(_policy: Any, _certificate: Any, usage: x509.ExtendedKeyUsage) -> None:
    if _IS_EK not in usage:
        raise ValueError("it is not the certificate of an endorsement key")


# Makers' certificates have critical names of their own, which are of no account here.
_AUTHORITY: Final = (
    verification.ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, _ANY, None)
    .may_be_present(x509.KeyUsage, _ANY, _check_authority)
)
_ENDORSEMENT: Final = (
    verification.ExtensionPolicy.permit_all()
    .require_present(x509.ExtendedKeyUsage, _ANY, _check_usage)
    .may_be_present(x509.BasicConstraints, _ANY, _check_constraints)
)
