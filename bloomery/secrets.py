"""Secrets: sealed in rows, masked in answers.

Only the secret values inside an object are sealed, in place, so that the rest stays readable:

    {"redfish_username": "admin", "redfish_password": {"$sealed": "3f2a", "token": "gAAA..."}}

Names decide which values are secret, by oslo.utils' list of words, as in Ironic, and some more.
URLs with a login or a signature are secrets under any name; ``shown`` beside the sealed value holds
the masked URL.  Masking never decrypts.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import hmac
import os
import re
import traceback
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from bloomery import boot_files, errors, key_file, signatures
from bloomery.model.rules import attributes

if TYPE_CHECKING:
    from cryptography.fernet import Fernet
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MASK: Final = attributes.MASK
SEALED: Final = attributes.SEALED
_SHOWN: Final = "shown"  # of a sealed URL
_SEALED_PARTS: Final = (SEALED, "token", _SHOWN)
_SEALED_TEXT: Final = re.compile(  # in JSON text, or in text inside it: quotes are escaped there
    r'(\\*")' + re.escape(SEALED) + r"\1:\1([0-9a-f]+)\1,\1token\1:\1([\w=-]+)\1"
)
_ADDRESS: Final = re.compile(r"\s*[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_OF_BMC: Final = "redfish_address"  # the only one of these names whose value may have a login
_MAIL: Final = re.compile(r"[^\s:/?#@]+@[^\s:/?#@]+")
_ALSO_MASKED: Final = frozenset({"image_url"})  # in instance_info only
_MOST_REMEMBERED: Final = 64  # characters of a cached key: clients choose keys
_TOKEN_BYTES: Final = 32
_MOST_DIGESTS: Final = 20_000  # of compared secrets, 0.3 KiB each
_MOST_LEVELS: Final = 100  # depth of masking; no body nests as deep, and orjson's limit is 254


# The words of oslo.utils' list without those that hold another one, and some more.  The list itself
# is not imported: 420 regular expressions are compiled beside it.
_SECRET_WORDS: Final = (
    "admin_pass", "adminpass", "barbicansimplecryptokek", "cephadminkey", "cephclientkey",
    "cephclusterfsid", "cephmanilaclientkey", "cephmdskey", "cephmonkey", "cephrgwkey",
    "configdrive", "designaterndckey", "encrypted_key", "fernetkey", "heatauthencryptionkey",
    "migrationsshkey", "new_pass", "octaviaheartbeatkey", "pacemakerremoteauthkey", "passphrase",
    "password", "private_key", "rabbitcookie", "secret", "sslkey", "swifthashsuffix", "sys_pswd",
    "token",
    "api_key", "apikey", "hex_kg_key", "snmp_community",
    # of drivers that are not here, and of users' own keys
    "access_key", "auth_key", "credential", "encryption_key", "passwd", "priv_key", "pwd",
)  # fmt: skip
_MAYBE: Final = (*_SECRET_WORDS, SEALED, *_ALSO_MASKED)


def _holds(text: str, words: tuple[str, ...]) -> bool:
    """Is any of ``words`` in the text, case ignored?  Several times as fast as ``re``."""
    folded = text.casefold()
    for word in words:  # noqa: SIM110  a third faster than any()
        if word in folded:
            return True
    return False


def is_secret_key(name: str) -> bool:
    """Does the key name a password?  By substring, case ignored."""
    return _is_secret(name) if len(name) <= _MOST_REMEMBERED else _holds(name, _SECRET_WORDS)


@functools.lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    return _holds(name, _SECRET_WORDS)


def may_hold_secret(json_text: str) -> bool:
    """Return False where masking could not change the object, without decoding it."""
    return _holds(json_text, _MAYBE) or _may_hold_address(json_text)


def _may_hold_address(text: str) -> bool:
    """Return False where no URL in the text has a secret, as in most texts."""
    return "@" in text or ("://" in text and ("?" in text or boot_files.FOLDER in text))


def mask(value: Any, *, instance_info: bool = False) -> Any:
    """Return ``value`` with masked secrets, at any depth.

    In objects and lists, secrets of URLs are masked too; text around a URL stays. Values nested
    beyond the limit, in old rows, are masked as a whole.
    """
    return _mask(value, _ALSO_MASKED if instance_info else frozenset(), _MOST_LEVELS)


def _mask(value: Any, also: frozenset[str], levels: int) -> Any:
    if isinstance(value, dict):
        if SEALED in value:
            return value.get(_SHOWN, MASK)
        if not levels:
            return MASK
        return {
            name: MASK
            if name in also or is_secret_key(name)
            else _mask_member(name, inner, also, levels)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_mask_member("", inner, also, levels) for inner in value] if levels else MASK
    if isinstance(value, str) and _holds(value, _SECRET_WORDS):
        from oslo_utils import strutils  # late: compiles 420 regular expressions

        masked: str = strutils.mask_password(value, MASK)
        return masked
    return value


def _mask_member(name: str, value: Any, also: frozenset[str], levels: int) -> Any:
    """Return a masked member of an object, under ``name``, or of a list."""
    address = _address_under(name, value) if isinstance(value, str) else ""
    return _shown(address) if address else _mask(value, also, levels - 1)


def _address_under(name: str, value: str) -> str:
    """Return a value with a secret as a URL; "" where it is none.

    BMCs may be named without a scheme, and contacts by their mail addresses.
    """
    if not _may_hold_address(value):
        return ""
    if "://" in value:
        return value if _ADDRESS.match(value) and in_address(value) else ""
    if not name.endswith("_address") or (name != _OF_BMC and _MAIL.fullmatch(value)):
        return ""
    return f"//{value}"


def _shown(address: str) -> str:
    return mask_address(address).removeprefix("//")


def in_address(address: str) -> tuple[str, ...]:
    """Return the secrets in a URL.

    They are a login, the arguments of a signed URL, and the name of a boot file.
    """
    parts = _split(address)
    named = (
        parts.netloc.rpartition("@")[0], parts.password, parts.query,
        boot_files.secret_of(parts.path),
    )  # fmt: skip
    return tuple(part for part in named if part)


def _split(address: str) -> urllib.parse.SplitResult:
    """Split a URL; in a malformed one, the text before the last @ is the login."""
    try:
        parts = urllib.parse.urlsplit(address)
        parts.port  # noqa: B018  raises ValueError, as where a password has a slash
    except ValueError:
        scheme, _, rest = address.partition("//")
        login, at, rest = rest.rpartition("@")
        rest, _, query = rest.partition("?")
        host, slash, path = rest.partition("/")
        netloc = f"{login}{at}{host}"
        return urllib.parse.SplitResult(scheme.rstrip(":"), netloc, slash + path, query, "")
    return parts


def mask_address(address: str) -> str:
    """Return a URL with masked secrets."""
    if not in_address(address):
        return address
    parts = _split(address)
    login, _, host = parts.netloc.rpartition("@")
    name = boot_files.secret_of(parts.path)
    return parts._replace(
        netloc=f"{MASK}@{host}" if login else parts.netloc,
        path=parts.path.replace(name, MASK) if name else parts.path,
        query=MASK if parts.query else "",
    ).geturl()


def hide(words: str, secrets: Iterable[str]) -> str:
    """Return another program's message, with masked ``secrets``.

    A secret of letters alone may be a word: it is masked as a whole word only.  Other secrets are
    masked everywhere.
    """
    for secret in secrets:
        if secret.isalpha() and secret.isascii():
            words = re.sub(rf"(?<![A-Za-z]){secret}(?![A-Za-z])", MASK, words)
        else:
            words = words.replace(secret, MASK)
    return words


def brief(error: BaseException) -> str:
    """Return the masked text of ``error``: drivers quote passwords."""
    return str(mask(errors.brief(error)))


def trace(error: BaseException) -> str:
    """Return the masked traceback of ``error``."""
    return str(mask("".join(traceback.format_exception(error)).rstrip()))


def report(error: BaseException) -> str:
    """Return the log text of ``error``: a named error's sentence, else the traceback."""
    return brief(error) if isinstance(error, errors.Failure) else f"\n{trace(error)}"


def new_token() -> str:
    """Return a token for one agent, in hexadecimal digits."""
    return os.urandom(_TOKEN_BYTES).hex()


def _refuse_mask(name: str, values: Iterable[Any]) -> None:
    if MASK in values:
        raise errors.InvalidParameterValue(
            reason=f"the value of {attributes.shortened(name)} is the mask that answers show "
            "in place of a secret, or has it in it; leave it out to keep the secret",
        )


class Key:
    """One key.  Raises ValueError for a malformed one."""

    def __init__(self, key: bytes) -> None:
        if len(base64.urlsafe_b64decode(key)) != key_file.KEY_BYTES:
            raise ValueError(f"a key has {key_file.KEY_BYTES} bytes")
        self._key = key
        self.id = hashlib.sha256(key).hexdigest()[:8]

    @functools.cached_property
    def fernet(self) -> Fernet:
        """Return the cipher, loaded on first use: it takes 6 MiB."""
        from cryptography.fernet import Fernet

        return Fernet(self._key)

    @functools.cached_property
    def signer(self) -> Ed25519PrivateKey:
        return signatures.signer(self._key)


class Sealer:
    """Seal secret values with the first key; unseal those of every key.

    ``changed_keys`` returns the keys if they have changed: before a value is sealed, and where a
    value names an unknown key.
    """

    def __init__(
        self, *keys: bytes, changed_keys: Callable[[], Sequence[bytes] | None] = lambda: None
    ) -> None:
        """Raises ValueError for a malformed key, or none."""
        self._changed_keys = changed_keys
        self._keys = _by_id(keys)
        self._digests: dict[bytes, bytes] = {}  # of a sealed value -> of its secret

    @property
    def key_ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    @property
    def key_id(self) -> str:
        """Return the id of the key that seals."""
        return next(iter(self._keys))

    def refresh(self) -> None:
        """Take over changed keys; a file that is missing or half copied changes nothing."""
        with contextlib.suppress(OSError, ValueError):
            keys = self._changed_keys()
            if keys is not None:
                self._keys = _by_id(keys)

    def sign(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the signature of a JSON document by the newest key."""
        self.refresh()
        return signatures.sign(document, next(iter(self._keys.values())).signer)

    def public_keys(self) -> list[str]:
        """Return the public keys of signatures as PEM, the newest first."""
        return [signatures.public_key(key.signer) for key in self._keys.values()]

    def _sealed(self, value: bytes) -> tuple[str, str]:
        """Return the id of the newest key, and the token."""
        self.refresh()
        key = next(iter(self._keys.values()))
        return key.id, key.fernet.encrypt(value).decode()

    def seal(self, value: Any) -> Any:
        """Return ``value`` with sealed secrets; sealed ones stay.

        ``attributes.refuse_sealed`` checks clients' values before.  Raises InvalidParameterValue
        for a mask from a client, which would replace the real secret.
        """
        if isinstance(value, dict):
            if SEALED in value:
                return {part: value[part] for part in _SEALED_PARTS if part in value}
            return {name: self.seal_under(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.seal_under("", inner) for inner in value]
        return value

    def seal_under(self, name: str, value: Any) -> Any:
        """Return ``value`` as it is stored under the key ``name``; "": in a list."""
        if value is None or (isinstance(value, dict) and SEALED in value):
            return self.seal(value)
        if is_secret_key(name):
            _refuse_mask(name, (value,))
            return self.seal_whole(value)
        address = _address_under(name, value) if isinstance(value, str) else ""
        if address:
            _refuse_mask(name, in_address(address))
            return self.seal_whole(value) | {_SHOWN: _shown(address)}
        return self.seal(value)

    def seal_whole(self, value: Any) -> dict[str, str]:
        """Return ``value`` sealed as a whole, under any name."""
        key_id, token = self._sealed(orjson.dumps(value))
        return {SEALED: key_id, "token": token}

    def seal_text(self, text: str) -> str:
        """Return the JSON text of a sealed ``text``, for secret columns."""
        key_id, token = self._sealed(text.encode())
        return f'{{"{SEALED}":"{key_id}","token":"{token}"}}'

    def reseal(self, text: str, former: str) -> str:
        """Return JSON text whose values of the key ``former`` are sealed with the newest key.

        Text inside text is JSON, too.  A forged value, which no key opens, stays.  Raises
        KeyMissing without the former key.
        """
        from cryptography.fernet import InvalidToken

        def resealed(match: re.Match[str]) -> str:
            if match[2] != former:
                return match[0]
            try:
                key_id, token = self._sealed(self._key(former).fernet.decrypt(match[3]))
            except InvalidToken:
                return match[0]
            quote = match[1]
            return quote.join(("", SEALED, ":", key_id, ",", "token", ":", token, ""))

        return _SEALED_TEXT.sub(resealed, text)

    def open_text(self, sealed: str) -> str:
        """Return the text of ``seal_text``.  Raises KeyMissing."""
        return self._decrypted(orjson.loads(sealed)).decode()

    def open(self, value: Any) -> Any:
        """Return ``value`` with unsealed secrets.  Raises KeyMissing."""
        if isinstance(value, dict):
            if SEALED in value:
                return orjson.loads(self._decrypted(value))
            return {name: self.open(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.open(inner) for inner in value]
        return value

    def is_of(self, sealed: Any, text: str) -> bool:
        """Return whether ``text`` is the secret in ``sealed``.  Raises KeyMissing.

        Sealed values that were compared are known by digests, so that the next comparison of the
        same one decrypts nothing: agents send their token twice a minute.
        """
        seal = hashlib.sha256(orjson.dumps(sealed)).digest()
        digest = self._digests.get(seal)
        if digest is None:
            opened = self.open(sealed)
            if not isinstance(opened, str):
                return False
            digest = hashlib.sha256(opened.encode()).digest()
            if len(self._digests) >= _MOST_DIGESTS:
                self._digests.clear()
            self._digests[seal] = digest
        return hmac.compare_digest(digest, hashlib.sha256(text.encode()).digest())

    def _decrypted(self, sealed: dict[str, Any]) -> bytes:
        from cryptography.fernet import InvalidToken

        try:
            return self._key(sealed[SEALED]).fernet.decrypt(sealed.get("token", ""))
        except InvalidToken as exc:
            raise self._missing(sealed[SEALED]) from exc

    def _key(self, key_id: str) -> Key:
        if key_id not in self._keys:
            self.refresh()
        try:
            return self._keys[key_id]
        except KeyError as exc:
            raise self._missing(key_id) from exc

    def _missing(self, key_id: str) -> errors.KeyMissing:
        problem = f"holds key {', '.join(self._keys)}"
        return errors.KeyMissing(key_id=key_id, path="the key file", problem=problem)


def _by_id(keys: Iterable[bytes]) -> dict[str, Key]:
    """Return the keys by their ids, in their order.  Raises ValueError."""
    by_id = {key.id: key for key in map(Key, keys)}
    if not by_id:
        raise ValueError("there is no key")
    return by_id
