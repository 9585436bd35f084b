"""Keys and quotes of a TPM 2.0, checked without one.

    ek, ak = tpm.read_public(answer_ek), tpm.read_public(answer_ak)
    challenge = tpm.challenge(ek, ak)            # only the TPM that has both keys learns its secret
    quoted = tpm.read_quote(ak, quote, signature)
    quoted.nonce, quoted.pcr_digest

Each fault of a document is a StepFailure, for documents come from agents.
Source: TCG TPM 2.0 Library 1.59, part 1 (11.4.10 KDFs, 24 credential protection, annexes B and C),
part 2 (11.2.4 TPMT_SIGNATURE, 12.2.4 TPMT_PUBLIC, 10.12.8 TPMS_ATTEST).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from bloomery import errors

PREFIX: Final = "sha256:"  # of a key's fingerprint
_RSA, _ECC, _NULL, _AES, _CFB = 0x0001, 0x0023, 0x0010, 0x0006, 0x0043
_RSASSA, _RSAPSS, _ECDSA = 0x0014, 0x0016, 0x0018
_SHA256: Final = 0x000B
_HASHES: Final[dict[int, tuple[str, type[hashes.HashAlgorithm]]]] = {
    _SHA256: ("sha256", hashes.SHA256), 0x000C: ("sha384", hashes.SHA384),
    0x000D: ("sha512", hashes.SHA512),
}  # fmt: skip
_CURVES: Final[dict[int, type[ec.EllipticCurve]]] = {0x0003: ec.SECP256R1, 0x0004: ec.SECP384R1}
_GENERATED: Final = 0xFF544347  # a TPM signs no other document that begins so
_QUOTE: Final = 0x8018
_FIXED_TPM, _SENSITIVE_ORIGIN = 1 << 1, 1 << 5
_RESTRICTED, _DECRYPT, _SIGN = 1 << 16, 1 << 17, 1 << 18
_ATTESTS: Final = _FIXED_TPM | _SENSITIVE_ORIGIN | _RESTRICTED | _SIGN
_CLOCK_BYTES: Final = 17 + 8  # TPMS_CLOCK_INFO and the version of the firmware
_SECRET_BYTES: Final = 32
_LEAST_RSA: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Public:
    """The public area of a key; ``raw``: as the TPM hashes it for its ``name``."""

    raw: bytes
    name_alg: int
    attributes: int
    symmetric_bits: int  # of the cipher that protects children and credentials; 0: none
    scheme: int
    scheme_hash: int
    key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey

    @property
    def name(self) -> bytes:
        return struct.pack(">H", self.name_alg) + _digest(self.name_alg, self.raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """A credential as TPM2B_ID_OBJECT and TPM2B_ENCRYPTED_SECRET, and the secret within."""

    credential: bytes
    encrypted_secret: bytes
    secret: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a TPM has signed: the caller's nonce, and the SHA-256 of these PCRs' values."""

    nonce: bytes
    pcrs: tuple[int, ...]
    pcr_digest: bytes


class _Reader:
    """Big-endian fields of one structure, each read once."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._at, self._what = data, 0, what

    def take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise self.fault("it ends too early")
        self._at += size
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def sized(self) -> bytes:
        return self.take(self.number(2))

    def end(self) -> None:
        if self._at != len(self._data):
            raise self.fault("it has more than it may")

    def fault(self, why: str) -> errors.StepFailure:
        return errors.StepFailure(reason=f"the agent's {self._what} cannot be read: {why}")


# ---------------------------------------------------------------------------------------- keys


def read_public(document: bytes, what: str) -> Public:
    """Return the key of a TPM2B_PUBLIC; ``what`` names it in errors.  Raises StepFailure."""
    outer = _Reader(document, what)
    raw = outer.sized()
    outer.end()
    area = _Reader(raw, what)
    kind, name_alg, attributes = area.number(2), area.number(2), area.number(4)
    area.sized()  # the policy
    if kind not in (_RSA, _ECC) or name_alg not in _HASHES:
        raise area.fault(f"its type {kind:#06x} with hash {name_alg:#06x} is neither RSA nor ECC")
    symmetric_bits = 0
    if (cipher := area.number(2)) != _NULL:
        symmetric_bits, mode = area.number(2), area.number(2)
        if (cipher, mode) != (_AES, _CFB) or symmetric_bits not in (128, 192, 256):
            raise area.fault(f"its cipher {cipher:#06x} of {symmetric_bits} bits is not AES-CFB")
    scheme_hash = 0
    if (scheme := area.number(2)) != _NULL:
        scheme_hash = area.number(2)
    key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    try:
        if kind == _RSA:
            bits, exponent = area.number(2), area.number(4) or 65537
            modulus = area.sized()
            if bits < _LEAST_RSA or len(modulus) * 8 != bits:
                raise area.fault(f"its RSA key has {bits} bits, and at least {_LEAST_RSA} count")
            key = rsa.RSAPublicNumbers(exponent, int.from_bytes(modulus, "big")).public_key()
        else:
            curve, kdf = area.number(2), area.number(2)
            if kdf != _NULL:
                area.number(2)
            if curve not in _CURVES:
                raise area.fault(f"its curve {curve:#06x} is neither P-256 nor P-384")
            x, y = (int.from_bytes(area.sized(), "big") for _ in range(2))
            key = ec.EllipticCurvePublicNumbers(x, y, _CURVES[curve]()).public_key()
    except ValueError as exc:
        raise area.fault("its numbers are no key") from exc
    area.end()
    return Public(
        raw=raw, name_alg=name_alg, attributes=attributes, symmetric_bits=symmetric_bits,
        scheme=scheme, scheme_hash=scheme_hash, key=key,
    )  # fmt: skip


def check_attestation_key(ak: Public) -> None:
    """Raise StepFailure unless the key signs what its TPM made, and cannot leave its TPM."""
    is_fit = ak.attributes & _ATTESTS == _ATTESTS and not ak.attributes & _DECRYPT
    if not is_fit or ak.scheme not in (_RSASSA, _RSAPSS, _ECDSA) or ak.scheme_hash != _SHA256:
        raise errors.StepFailure(
            reason="the agent's attestation key may sign what no TPM made: it must be a restricted "
            f"signing key of its TPM with SHA-256, and has attributes {ak.attributes:#010x} and "
            f"scheme {ak.scheme:#06x}",
        )


def fingerprint(key: Any) -> str:
    """Return the SHA-256 of a public key's SubjectPublicKeyInfo, as ``sha256:HEX``."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return PREFIX + hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


def enrolled_fingerprint(text: Any) -> str:
    """Return the fingerprint of what an operator gives: itself, or a key or certificate in PEM.

    Raises InvalidParameterValue.
    """
    if isinstance(text, str) and text.startswith(PREFIX):
        digits = text.removeprefix(PREFIX).replace(":", "").lower()
        if len(digits) == 64 and not set(digits) - set("0123456789abcdef"):
            return PREFIX + digits
    elif isinstance(text, str) and "-----BEGIN " in text:
        try:
            if "-----BEGIN CERTIFICATE-----" in text:
                return fingerprint(x509.load_pem_x509_certificate(text.encode()).public_key())
            return fingerprint(serialization.load_pem_public_key(text.encode()))
        except (ValueError, UnsupportedAlgorithm):
            pass  # told below
    raise errors.InvalidParameterValue(
        reason="driver_info/attestation_ek takes the endorsement key of the machine's TPM: its "
        f"public key or its certificate in PEM, or {PREFIX} and the 64 hexadecimal digits of the "
        "SHA-256 of its public key in DER",
    )


def read_certificate(data: bytes) -> str:
    """Return a certificate in PEM; ``data``: DER, and what fills the TPM's memory after it."""
    size = 4 + int.from_bytes(data[2:4], "big")  # of a sequence of 256 bytes and more
    try:
        certificate = x509.load_der_x509_certificate(data[:size])
    except ValueError as exc:
        raise errors.StepFailure(reason="the TPM's certificate cannot be read") from exc
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


# ----------------------------------------------------------------------------------- challenge


def challenge(ek: Public, ak: Public) -> Challenge:
    """Encrypt a new secret so that only the TPM with both keys can read it (TPM2_MakeCredential).

    Raises StepFailure for an endorsement key that cannot protect a secret.
    """
    if not ek.symmetric_bits or not ek.attributes & _DECRYPT:
        raise errors.StepFailure(reason="the agent's endorsement key is no storage key of a TPM")
    name, hash_type = _HASHES[ek.name_alg]
    size = hashlib.new(name).digest_size
    bits = size * 8
    if isinstance(ek.key, rsa.RSAPublicKey):
        seed = os.urandom(size)
        oaep = padding.OAEP(padding.MGF1(hash_type()), hash_type(), b"IDENTITY\0")
        sent = ek.key.encrypt(seed, oaep)
    else:
        own = ec.generate_private_key(ek.key.curve)
        width = (ek.key.curve.key_size + 7) // 8
        ours, theirs = own.public_key().public_numbers(), ek.key.public_numbers()
        x, y = ours.x.to_bytes(width, "big"), ours.y.to_bytes(width, "big")
        shared = own.exchange(ec.ECDH(), ek.key)
        seed = _kdf_e(name, shared, b"IDENTITY", x, theirs.x.to_bytes(width, "big"), bits)
        sent = _sized(x) + _sized(y)
    secret = os.urandom(_SECRET_BYTES)
    key = kdf_a(name, seed, b"STORAGE", ak.name, ek.symmetric_bits)
    identity = cfb(key, _sized(secret))
    integrity = hmac.digest(kdf_a(name, seed, b"INTEGRITY", b"", bits), identity + ak.name, name)
    return Challenge(
        credential=_sized(_sized(integrity) + identity), encrypted_secret=_sized(sent),
        secret=secret,
    )  # fmt: skip


def kdf_a(name: str, key: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    """Return so many bits of key (SP 800-108 in counter mode with HMAC)."""
    made, count = b"", 0
    while len(made) * 8 < bits:
        count += 1
        text = struct.pack(">I", count) + label + b"\0" + context + struct.pack(">I", bits)
        made += hmac.digest(key, text, name)
    return made[: bits // 8]


def _kdf_e(name: str, shared: bytes, label: bytes, ours: bytes, theirs: bytes, bits: int) -> bytes:
    """Return so many bits, which one digest of ``name`` has, of a shared secret (SP 800-56A)."""
    text = struct.pack(">I", 1) + shared + label + b"\0" + ours + theirs
    return hashlib.new(name, text).digest()[: bits // 8]


def cfb(key: bytes, text: bytes) -> bytes:
    """Encrypt with AES in CFB mode and a zero vector."""
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  CFB is made of it
    last, out = bytes(16), b""
    for at in range(0, len(text), 16):
        piece = text[at : at + 16]
        last = bytes(a ^ b for a, b in zip(piece, block.update(last), strict=False))
        out += last
    return out


# --------------------------------------------------------------------------------------- quote


def read_quote(ak: Public, document: bytes, signature: bytes) -> Quote:
    """Return what a TPMS_ATTEST says, once its TPMT_SIGNATURE is the key's.

    Raises StepFailure.
    """
    _check_signature(ak, document, signature)
    attest = _Reader(document, "quote")
    if attest.number(4) != _GENERATED or attest.number(2) != _QUOTE:
        raise attest.fault("no TPM made it, or it quotes no PCRs")
    attest.sized()  # the signer's name, which the signature shows
    nonce = attest.sized()
    attest.take(_CLOCK_BYTES)
    pcrs: list[int] = []
    for _ in range(attest.number(4)):
        bank, size = attest.number(2), attest.number(1)
        bits = int.from_bytes(attest.take(size), "little")
        if bits and bank != _SHA256:
            raise attest.fault(f"it has PCRs of bank {bank:#06x}, and those of SHA-256 count")
        pcrs += [pcr for pcr in range(size * 8) if bits >> pcr & 1]
    digest = attest.sized()
    attest.end()
    return Quote(nonce=nonce, pcrs=tuple(pcrs), pcr_digest=digest)


def _check_signature(ak: Public, document: bytes, signature: bytes) -> None:
    fields = _Reader(signature, "signature of the quote")
    scheme, hash_alg = fields.number(2), fields.number(2)
    if (scheme, hash_alg) != (ak.scheme, _SHA256):
        raise fields.fault(f"its scheme {scheme:#06x} is not that of the attestation key")
    try:
        if isinstance(ak.key, rsa.RSAPublicKey):
            padded: padding.AsymmetricPadding = padding.PKCS1v15()
            if scheme == _RSAPSS:
                padded = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.AUTO)
            ak.key.verify(fields.sized(), document, padded, hashes.SHA256())
        else:
            r, s = (int.from_bytes(fields.sized(), "big") for _ in range(2))
            ak.key.verify(
                utils.encode_dss_signature(r, s), document, ec.ECDSA(hashes.SHA256())
            )  # fmt: skip
    except InvalidSignature as exc:
        raise errors.StepFailure(
            reason="the signature of the agent's quote is not that of its attestation key: the "
            "quote was altered, or another TPM made it",
        ) from exc
    fields.end()


def _sized(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


def _digest(alg: int, data: bytes) -> bytes:
    return hashlib.new(_HASHES[alg][0], data).digest()
