"""Secrets: sealed where they are stored, masked where they are shown.

Only the secret values inside an object are sealed, in place, so that the rest stays readable:

    {"redfish_username": "admin", "redfish_password": {"$sealed": "3f2a", "token": "gAAA..."}}

Which keys are secret is decided by name, with the word list of oslo.utils, as Ironic does.
Addresses with a login or a signature are secrets, too, whatever they are called; beside such a
sealed one stands ``shown``, the same with stars.  Masking never decrypts.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import os
import re
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
    "snmp_community",
    "api_key",
)
_SHOWN: Final = "shown"  # of a sealed address
_SEALED_PARTS: Final = (SEALED, "token", _SHOWN)
_ADDRESS: Final = re.compile(r"\s*[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_OF_BMC: Final = "redfish_address"  # the one of these names that takes a login
_MAIL: Final = re.compile(r"[^\s:/?#@]+@[^\s:/?#@]+")
_ALSO_MASKED: Final = frozenset({"image_url"})  # in instance_info only
_MOST_REMEMBERED: Final = 64  # characters: clients choose the keys
_KEY_BYTES: Final = 32
_TOKEN_BYTES: Final = 32
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
    return _holds(json_text, _MAYBE) or _may_hold_address(json_text)


def _may_hold_address(text: str) -> bool:
    """False where no address in the text has a secret; most have none, and are not split."""
    return "@" in text or ("://" in text and ("?" in text or boot_files.FOLDER in text))


def mask(value: Any, *, instance_info: bool = False) -> Any:
    """Return ``value`` with secret values replaced by stars, at any depth.

    In objects and lists so are the secrets of addresses; a text that quotes some stays as it is.
    What old rows nest deeper than anybody can read or write is stars as a whole.
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
        return strutils.mask_password(value, MASK)
    return value


def _mask_member(name: str, value: Any, also: frozenset[str], levels: int) -> Any:
    """Return what stands in an object under ``name``, or in a list, masked."""
    address = _address_under(name, value) if isinstance(value, str) else ""
    return _shown(address) if address else _mask(value, also, levels - 1)


def _address_under(name: str, value: str) -> str:
    """Return an address with a secret in it as URL; "" where the value is none.

    BMCs are named without a scheme, too, and persons to contact by their mail addresses.
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
    """Return what of an address nobody may read.

    A login, the arguments of a signed one, and what a boot CD is called.
    """
    parts = _split(address)
    named = (
        parts.netloc.rpartition("@")[0], parts.password, parts.query,
        boot_files.secret_of(parts.path),
    )  # fmt: skip
    return tuple(part for part in named if part)


def _split(address: str) -> urllib.parse.SplitResult:
    """Split an address; in one that cannot be a URL, all before the last @ is the login."""
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
    """Return an address with stars in the place of its secrets, and there alone."""
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
    """Return what somebody outside says, with stars for the secrets that it may repeat.

    A secret of letters alone may be a word: it is hidden where it stands by itself, and not as a
    part of a longer word.  Others are hidden wherever they stand.
    """
    for secret in secrets:
        if secret.isalpha() and secret.isascii():
            words = re.sub(rf"(?<![A-Za-z]){secret}(?![A-Za-z])", MASK, words)
        else:
            words = words.replace(secret, MASK)
    return words


def brief(error: BaseException) -> str:
    """Return what may be told of ``error``: drivers quote what they sent, passwords included."""
    return str(mask(errors.brief(error)))


def trace(error: BaseException) -> str:
    """Return the traceback of ``error`` as a log may keep it."""
    return str(mask("".join(traceback.format_exception(error)).rstrip()))


def report(error: BaseException) -> str:
    """Return what a log says of ``error``: the sentence of a named one, else its traceback."""
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

    def seal(self, value: Any) -> Any:
        """Return ``value`` with each secret in it sealed; what is sealed already stays.

        Asked of what a client sends only after ``attributes.refuse_sealed``.  Raises
        InvalidParameterValue for a mask that came back: it would replace the real secret.
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
