"""Secrets: sealed where they are stored, masked where they are shown.

Only the secret values inside an object are sealed, in place, so that the rest stays readable:

    {"redfish_username": "admin", "redfish_password": {"$sealed": "3f2a", "token": "gAAA..."}}

Which keys are secret is decided by name, with the word list of oslo.utils, as Ironic
does.  Masking never decrypts.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import os
import tempfile
import traceback
import urllib.parse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from oslo_utils import strutils

from bloomery import boot_files, errors
from bloomery.model.rules import attributes

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

MASK: Final = attributes.MASK
SEALED: Final = attributes.SEALED
_WORDS: Final = (
    *strutils._SANITIZE_KEYS,  # noqa: SLF001  the list itself is what must agree
    "snmp_auth_key",
    "snmp_priv_key",
    "hex_kg_key",
)
_ALSO_MASKED: Final = frozenset({"image_url"})  # in instance_info only
_MOST_REMEMBERED: Final = 64  # characters: clients choose the keys
_KEY_BYTES: Final = 32
_MOST_LEVELS: Final = 100  # of what is masked; no body nests as deep, and orjson ends at 254


def _shortest(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words that hold no other one: whatever holds any of them holds one of these."""
    folded = sorted({word.casefold() for word in words})
    return tuple(word for word in folded if not any(o in word for o in folded if o != word))


_SECRET_WORDS: Final = _shortest(_WORDS)
_MAYBE: Final = _shortest([*_WORDS, SEALED, *_ALSO_MASKED])


def _holds(text: str, words: tuple[str, ...]) -> bool:
    """Is any of ``words`` in the text, case ignored?  Several times as fast as one expression."""
    folded = text.casefold()
    for word in words:  # noqa: SIM110  a third faster than any()
        if word in folded:
            return True
    return False


def is_secret_key(name: str) -> bool:
    """Does a value under this key look like a password?  By substring, case ignored."""
    return _is_secret(name) if len(name) <= _MOST_REMEMBERED else _holds(name, _SECRET_WORDS)


@functools.lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    return _holds(name, _SECRET_WORDS)


def may_hold_secret(json_text: str) -> bool:
    """False where masking the object could change nothing, told without decoding it."""
    return _holds(json_text, _MAYBE)


def mask(value: Any, *, instance_info: bool = False) -> Any:
    """Return ``value`` with secret values replaced by stars, at any depth.

    What old rows nest deeper than anybody can read or write is stars as a whole.
    """
    return _mask(value, _ALSO_MASKED if instance_info else frozenset(), _MOST_LEVELS)


def _mask(value: Any, also: frozenset[str], levels: int) -> Any:
    if isinstance(value, dict):
        if SEALED in value or not levels:
            return MASK
        return {
            name: MASK if name in also or is_secret_key(name) else _mask(inner, also, levels - 1)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_mask(inner, also, levels - 1) for inner in value] if levels else MASK
    if isinstance(value, str) and _holds(value, _SECRET_WORDS):
        return strutils.mask_password(value, MASK)
    return value


def in_address(address: str) -> tuple[str, ...]:
    """Return what of an address nobody may read.

    A login, the arguments of a signed one, and what a boot CD is called.
    """
    try:
        parts = urllib.parse.urlsplit(address)
        named = (
            parts.netloc.rpartition("@")[0], parts.password, parts.query,
            boot_files.secret_of(parts.path),
        )  # fmt: skip
    except ValueError:  # no address at all
        return ()
    return tuple(part for part in named if part)


def mask_address(address: str) -> str:
    """Return an address with stars in the place of its secrets."""
    for secret in in_address(address):
        address = address.replace(secret, MASK)
    return address


def brief(error: BaseException) -> str:
    """Return what may be told of ``error``: drivers quote what they sent, passwords included."""
    return str(mask(errors.brief(error)))


def trace(error: BaseException) -> str:
    """Return the traceback of ``error`` as a log may keep it."""
    return str(mask("".join(traceback.format_exception(error)).rstrip()))


class Sealer:
    """Seals and opens secret values with one key."""

    def __init__(self, key: bytes) -> None:
        """Raises ValueError for what is no key."""
        if len(base64.urlsafe_b64decode(key)) != _KEY_BYTES:
            raise ValueError(f"a key has {_KEY_BYTES} bytes")
        self._key = key
        self.key_id = hashlib.sha256(key).hexdigest()[:8]

    @functools.cached_property
    def _fernet(self) -> Fernet:
        """What works with the key; loaded with the first secret, for it takes 6 MiB."""
        from cryptography.fernet import Fernet

        return Fernet(self._key)

    def seal(self, value: Any, *, addresses: bool = False) -> Any:
        """Return ``value`` with each secret in it sealed; what is sealed already stays.

        ``addresses``: those with a login or a signature are secrets, too, whatever they are called.
        Asked of what a client sends only after ``attributes.refuse_sealed``.  Raises
        InvalidParameterValue for a mask that came back: it would replace the real secret.
        """
        if isinstance(value, dict):
            return {
                name: self.seal_under(name, inner, addresses=addresses)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self.seal(inner, addresses=addresses) for inner in value]
        if addresses and isinstance(value, str) and "://" in value and in_address(value):
            return self.seal_whole(value)
        return value

    def seal_under(self, name: str, value: Any, *, addresses: bool = False) -> Any:
        """Return ``value`` as it is stored under the key ``name``."""
        if value is None:
            return value
        if isinstance(value, dict) and SEALED in value:
            return {part: value[part] for part in (SEALED, "token") if part in value}
        if not is_secret_key(name):
            return self.seal(value, addresses=addresses)
        if value == MASK:
            raise errors.InvalidParameterValue(
                reason=f"the value of {attributes.shortened(name)} is the mask that answers show "
                "in place of a secret; leave it out to keep the secret",
            )
        return self.seal_whole(value)

    def seal_whole(self, value: Any) -> dict[str, str]:
        """Return ``value`` sealed as a whole, whatever its names are."""
        token = self._fernet.encrypt(orjson.dumps(value)).decode()
        return {SEALED: self.key_id, "token": token}

    def seal_text(self, text: str) -> str:
        """Return the JSON text of a sealed ``text``: for columns that are secret as a whole."""
        token = self._fernet.encrypt(text.encode()).decode()
        return f'{{"{SEALED}":"{self.key_id}","token":"{token}"}}'

    def open_text(self, sealed: str) -> str:
        """Return the text that ``seal_text`` was given.  Raises KeyMissing."""
        return self._decrypted(orjson.loads(sealed)).decode()

    def open(self, value: Any) -> Any:
        """Return ``value`` with every sealed secret in it readable.  Raises KeyMissing."""
        if isinstance(value, dict):
            if SEALED in value:
                return self._opened(value)
            return {name: self.open(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.open(inner) for inner in value]
        return value

    def _opened(self, sealed: dict[str, Any]) -> Any:
        return orjson.loads(self._decrypted(sealed))

    def _decrypted(self, sealed: dict[str, Any]) -> bytes:
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(sealed.get("token", ""))
        except InvalidToken as exc:
            raise errors.KeyMissing(
                key_id=sealed[SEALED],
                path="the key file",
                problem=f"holds key {self.key_id}",
            ) from exc


def load_or_make_key(path: Path) -> bytes:
    """Return the key in ``path``, made on first use, readable by its owner alone.

    The file appears whole or not at all; of two that make it at once, both return the winner's.
    """
    if not path.exists():
        fresh = _write_key(path.parent)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(fresh)
        fresh.unlink()
    return path.read_bytes().strip()


def _write_key(folder: Path) -> Path:
    """Write a new key into a file of its own, readable by its owner alone."""
    key = base64.urlsafe_b64encode(os.urandom(_KEY_BYTES))
    descriptor, name = tempfile.mkstemp(prefix=".new-key-", dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return Path(name)
