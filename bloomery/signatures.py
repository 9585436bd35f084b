"""Ed25519 signatures of JSON documents, by a key that is derived from a sealing key.

    signer = signatures.signer(sealing_key)
    signature = signatures.sign(document, signer)
    signatures.is_valid(document, signature, signature["public_key"])

Anybody can check a signature with the public key: what is signed is ``content(document)``.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PURPOSE: Final = b"bloomery: signatures"

Json = dict[str, Any]


def content(document: Json) -> bytes:
    """Return what is signed: JSON with sorted keys, without spaces, in UTF-8."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def signer(sealing_key: bytes) -> Ed25519PrivateKey:
    """Derive the key of signatures from a key in base64; imports are slow, so they are late."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derivation = HKDF(SHA256(), 32, salt=None, info=_PURPOSE)
    secret = derivation.derive(base64.urlsafe_b64decode(sealing_key))
    return Ed25519PrivateKey.from_private_bytes(secret)


def public_key(signer: Ed25519PrivateKey) -> str:
    """Return the public key as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = signer.public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def sign(document: Json, signer: Ed25519PrivateKey) -> Json:
    value = base64.b64encode(signer.sign(content(document))).decode()
    return {"algorithm": "Ed25519", "value": value, "public_key": public_key(signer)}


def is_valid(document: Json, signature: Json, public_key: str) -> bool:
    """Return whether this key has signed the document.  Raises ValueError for no Ed25519 key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = load_pem_public_key(public_key.encode())
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("it is no Ed25519 key")  # noqa: TRY004  as for any other text
    try:
        key.verify(base64.b64decode(signature["value"]), content(document))
    except InvalidSignature:
        return False
    return True
