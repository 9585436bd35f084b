"""Who is asking: nobody in particular, or someone in an htpasswd file.

bcrypt costs a quarter of a second by design.  A login that was right is remembered by a keyed
hash, so that it is paid once per process and password, not per request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import bcrypt

from bloomery import errors
from bloomery.conf import Conf

CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="Baremetal API"')
PUBLIC: Final = re.compile(r"/|/v1/?|/ext/v1/openapi\.json")  # routes that ask nobody's name
MAX_REMEMBERED: Final = 1000
_BCRYPT: Final = re.compile(rb"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")
# What an unknown name is checked against, so that it takes as long as a known one.
_NOBODY: Final = b"$2b$10$H2c45wk0vXVn80LytPm56ub5vUUmlMN5tCcvqVK9/X/rR8UKBmrNK"


class Unauthorized(Exception):
    """No login, or a wrong one."""


class Malformed(Exception):
    """An Authorization header that is none."""


class Auth(Protocol):
    def user(self, environ: Mapping[str, Any]) -> str | None:
        """Return who asks.  Raises Unauthorized, Malformed."""


class NoAuth:
    """Whoever reaches us is an operator; the server listens on loopback."""

    def user(self, environ: Mapping[str, Any]) -> str | None:
        return None


class HttpBasic:
    """Names and passwords from a file of ``user:bcrypt`` lines, read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = os.urandom(32)
        self._mutex = threading.Lock()
        self._read_at: int | None = None
        self._hashes: dict[str, bytes] = {}
        self._right: set[bytes] = set()
        self._refresh()

    def user(self, environ: Mapping[str, Any]) -> str | None:
        name, password = _credentials(environ.get("HTTP_AUTHORIZATION", ""))
        self._refresh()
        proof = hmac.new(self._key, f"{name}\0".encode() + password, hashlib.sha256).digest()
        if proof not in self._right:
            self._verify(name, password)
            self._remember(proof)
        return name

    @property
    def names(self) -> tuple[str, ...]:
        """Who may log in, in the order of the file."""
        return tuple(self._hashes)

    def _verify(self, name: str, password: bytes) -> None:
        """Raise Unauthorized unless it is the password; unknown names take as long."""
        stored = self._hashes.get(name)
        right = bcrypt.checkpw(password[:72], stored or _NOBODY)
        if stored is None or not right:
            raise Unauthorized

    def _remember(self, proof: bytes) -> None:
        with self._mutex:
            if len(self._right) >= MAX_REMEMBERED:
                self._right.clear()
            self._right.add(proof)

    def _refresh(self) -> None:
        """Read the file if it changed.  Raises CannotStart if it can't be read."""
        try:
            changed_at = self._path.stat().st_mtime_ns
            if changed_at == self._read_at:
                return
            lines = self._path.read_bytes().splitlines()
        except OSError as exc:
            raise errors.CannotStart(
                reason=f"cannot read {self._path} ([DEFAULT]http_basic_auth_user_file): "
                f"{exc.strerror}",
            ) from exc
        with self._mutex:
            self._hashes = dict(_entry(line, self._path) for line in lines if line.strip())
            self._right.clear()
            self._read_at = changed_at


def _entry(line: bytes, path: Path) -> tuple[str, bytes]:
    name, _, stored = line.strip().partition(b":")
    if not name or _BCRYPT.fullmatch(stored) is None:
        raise errors.CannotStart(
            reason=f"cannot use {path}: each line must be user:hash, the hash made by bcrypt "
            "(htpasswd -nbB user password)",
        )
    return name.decode(), stored


def _credentials(header: str) -> tuple[str, bytes]:
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


def chosen(conf: Conf) -> Auth:
    """Return what [DEFAULT]auth_strategy asks for."""
    if conf.default.auth_strategy == "http_basic":
        return HttpBasic(Path(conf.default.http_basic_auth_user_file))
    return NoAuth()


def first_name(conf: Conf) -> str | None:
    """Return the first name that may log in, for a client to begin with; None: nobody must."""
    found = chosen(conf)
    return next(iter(found.names), None) if isinstance(found, HttpBasic) else None
