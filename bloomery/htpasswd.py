"""Password files with lines of ``user:bcrypt``, as ``htpasswd -B`` writes them.

``http_server.login`` checks logins by them.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import hmac
import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import bcrypt

from bloomery import errors, files

LOG = logging.getLogger(__name__)

MAX_REMEMBERED: Final = 1000
_BCRYPT: Final = re.compile(rb"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_LONGEST: Final = 72  # bytes of a password that bcrypt takes
_ROUNDS: Final = range(4, 18)  # higher costs take minutes
_FORM: Final = "each line must be user:hash, the hash made by bcrypt (bloomery user add)"
# The hash for any name of an empty file.
_NOBODY: Final = b"$2b$10$H2c45wk0vXVn80LytPm56ub5vUUmlMN5tCcvqVK9/X/rR8UKBmrNK"


class Unauthorized(Exception):
    """No login, or a wrong one."""


class Malformed(Exception):
    """A malformed Authorization header."""


class Busy(Exception):
    """Too many logins are waiting."""


class PasswordFile:
    """A password file that is reread when it changes; an invalid file keeps the former logins."""

    def __init__(self, path: Path, option: str) -> None:
        """``option`` names the file.  Raises CannotStart: not readable, or no valid line."""
        self._path = path
        self._mutex = threading.Lock()
        try:
            self._signature = _signature(path)
            self._hashes = _read(path)
        except OSError as exc:
            raise errors.CannotStart(
                reason=f"cannot read {path} ({option}): {exc.strerror}",
            ) from exc
        except ValueError as exc:
            raise errors.CannotStart(reason=f"cannot use {path}: {exc}") from exc

    def hashes(self) -> Mapping[str, bytes]:
        """Return hashes by name; the same object while the file is unchanged."""
        try:
            signature = _signature(self._path)
        except OSError as exc:
            signature = (exc.strerror,)
        if signature != self._signature:
            with self._mutex:
                if signature != self._signature:
                    try:
                        self._hashes = _read(self._path)
                    except (OSError, ValueError) as exc:
                        why = exc.strerror if isinstance(exc, OSError) else exc
                        LOG.warning(
                            "cannot use %s: %s; the logins of before stay valid", self._path, why
                        )
                    self._signature = signature
        return self._hashes


def entry(name: str, password: str) -> str:
    """Return the line of a login.  Raises CannotStart for a login that could not be used."""
    if not name or ":" in name or not name.isprintable():
        raise errors.CannotStart(reason=f"cannot use the name {name!r}: it needs text, no colon")
    if not password or len(password.encode()) > _LONGEST or "\0" in password:
        raise errors.CannotStart(
            reason=f"cannot use the password: it is empty, or longer than {_LONGEST} bytes"
        )
    return f"{name}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt()).decode()}"


def change(path: Path, edit: Callable[[dict[str, str]], None]) -> None:
    """Let ``edit`` change the lines of a file, by their names; lines without a name stay as well.

    A missing file is made, for its owner alone.  Changes of several processes come one after
    another.  Raises OSError, and what ``edit`` raises.
    """
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        lines = []
        with contextlib.suppress(FileNotFoundError):
            lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        by_name = {line.partition(":")[0].strip(): line for line in lines if line.strip()}
        edit(by_name)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        text = "".join(f"{line}\n" for line in by_name.values())
        files.replace(path, text.encode("utf-8", errors="surrogateescape"))
    finally:
        os.close(folder)


def proof_of(key: bytes, name: str, password: bytes) -> bytes:
    """Return the cache key of a login."""
    return hmac.new(key, f"{name}\0".encode() + password, hashlib.sha256).digest()


def stand_in(key: bytes, hashes: Mapping[str, bytes], name: str) -> bytes:
    """Return another user's hash for an unknown name, always the same for a name."""
    if not hashes:
        return _NOBODY
    drawn = hmac.new(key, name.encode(), hashlib.sha256).digest()
    return list(hashes.values())[int.from_bytes(drawn[:4], "big") % len(hashes)]


def credentials(header: str) -> tuple[str, bytes]:
    """Return name and password.  Raises Unauthorized if absent, Malformed."""
    if not header:
        raise Unauthorized
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        raise Unauthorized
    try:
        name, colon, password = base64.b64decode(encoded, validate=True).partition(b":")
        if not colon or b"\0" in password:
            raise Malformed
        return name.decode(), password
    except ValueError as exc:  # not ASCII, not base64, not UTF-8
        raise Malformed from exc


def _signature(path: Path) -> tuple[Any, ...]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: Path) -> Mapping[str, bytes]:
    """Read the file.  Raises OSError, and ValueError if all lines are invalid."""
    hashes: dict[str, bytes] = {}
    wrong = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        name, _, stored = line.strip().partition(b":")
        match = _BCRYPT.fullmatch(stored)
        is_used = bool(name) and match is not None and int(match[1]) in _ROUNDS
        try:
            if is_used:
                hashes[name.decode()] = stored
        except UnicodeDecodeError:
            is_used = False
        if line.strip() and not is_used:
            wrong.append(number)
    lines = ", ".join(map(str, wrong[:9]))
    if wrong and not hashes:
        raise ValueError(f"{_FORM}; wrong: line {lines}")
    if wrong:
        LOG.warning("%s: line %s cannot be used, and lets nobody in: %s", path, lines, _FORM)
    return hashes
