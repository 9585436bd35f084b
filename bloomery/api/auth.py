"""Who is asking: nobody in particular, someone in an htpasswd file, or the bearer of a token.

bcrypt costs a quarter of a second by design.  A login that was right is remembered by a keyed
hash, so that it is paid once per process and password, not per request.  Checks are made by
threads of their own: who sends wrong passwords keeps others from being checked, not from being
served.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import hmac
import logging
import os
import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import bcrypt
import webob

from bloomery import errors
from bloomery.model.request import Request

LOG = logging.getLogger(__name__)

CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="Baremetal API"')
# Routes that ask nobody's name: documents, and the calls of agents, as Ironic has them.
DOCUMENTS: Final = re.compile(r"/|/v1/?|/ext/v1/openapi\.json")
AGENT_CALLS: Final = re.compile(
    r"/v1/(lookup|heartbeat/[a-z0-9-]+|continue_inspection)(\.json|\.xml)?/?"
)
PUBLIC: Final = re.compile(f"{DOCUMENTS.pattern}|{AGENT_CALLS.pattern}")
MAX_REMEMBERED: Final = 1000
MAX_CHECKS: Final = 32  # that may wait for each other
DEFERRED: Final = "bloomery.login"  # in the environment: the Check, or None before there is one
_BCRYPT: Final = re.compile(rb"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_ROUNDS: Final = range(4, 18)  # more take minutes
_FORM: Final = "each line must be user:hash, the hash made by bcrypt (htpasswd -nbB user password)"
# What any name is checked against when nobody may log in.
_NOBODY: Final = b"$2b$10$H2c45wk0vXVn80LytPm56ub5vUUmlMN5tCcvqVK9/X/rR8UKBmrNK"


class Unauthorized(Exception):
    """No login, or a wrong one."""


class Malformed(Exception):
    """An Authorization header that is none."""


class Refused(Exception):
    """No token, or one that is worth nothing; ``response`` says so as identity services do."""

    def __init__(self, response: webob.Response) -> None:
        super().__init__()
        self.response = response


class Busy(Exception):
    """Too many logins wait to be checked."""


class IdentityUnavailable(Exception):
    """The identity service cannot say whether a token is worth something."""


UNAVAILABLE: Final = (
    "cannot check the token: the identity service does not answer as it should; retry later, and "
    "see the log of this service if it lasts"
)
RETRY_S: Final = "5"


@dataclass(frozen=True, slots=True)
class Check:
    """A login that is being checked; ``outcome`` raises what ``identify`` does.

    ``subject``: what is checked; a check of another is of no use.
    """

    subject: Any
    outcome: Future[Any]


class Deferred(Exception):
    """The login is being checked.  Ask again when it is, with ``check`` in the environment.

    Raised only where the environment has DEFERRED: such a caller need not wait.
    """

    def __init__(self, check: Check) -> None:
        super().__init__()
        self.check = check


class Auth(Protocol):
    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        """Return the request with who asks.

        Raises Unauthorized, Malformed, Refused, Busy, IdentityUnavailable, Deferred.

        User, project, roles and scope come from here only; headers that claim them are ignored.
        """


class NoAuth:
    """Whoever reaches us is an operator; the server listens on loopback."""

    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        return request


class Logins:
    """What one state of the file says.  Nothing that was learnt of it outlives it."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self.hashes = hashes
        self.right: set[bytes] = set()  # proofs of logins that were right
        self.checks: dict[bytes, Check] = {}  # under way, by proof

    def remember(self, proof: bytes) -> None:
        if len(self.right) >= MAX_REMEMBERED:
            self.right.clear()
        self.right.add(proof)


class HttpBasic:
    """Names and passwords from a file of ``user:bcrypt`` lines, read again when it changes.

    Passwords are checked by ``checkers`` threads of its own, whoever asks.
    """

    def __init__(self, path: Path, checkers: int = 1) -> None:
        """Raises CannotStart if the file cannot be read, or nobody in it can log in."""
        self._path = path
        self._key = os.urandom(32)
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=checkers, thread_name_prefix="login")
        try:
            self._signature = _signature(path)
            self._logins = _read(path)
        except OSError as exc:
            raise errors.CannotStart(
                reason=f"cannot read {path} ([DEFAULT]http_basic_auth_user_file): {exc.strerror}",
            ) from exc
        except ValueError as exc:
            raise errors.CannotStart(reason=f"cannot use {path}: {exc}") from exc

    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        return dataclasses.replace(request, user=self.user(environ))

    def user(self, environ: Mapping[str, Any]) -> str:
        """Return the name that goes with the password."""
        name, password = _credentials(environ.get("HTTP_AUTHORIZATION", ""))
        proof = hmac.new(self._key, f"{name}\0".encode() + password, hashlib.sha256).digest()
        logins = self._current()
        if proof in logins.right:
            return name
        check = environ.get(DEFERRED)
        if check is None or check.subject is not logins:
            check = self._begin(logins, name, password, proof)
        if DEFERRED in environ and not check.outcome.done():
            raise Deferred(check)
        check.outcome.result()
        return name

    @property
    def names(self) -> tuple[str, ...]:
        """Who may log in, in the order of the file."""
        return tuple(self._logins.hashes)

    def _begin(self, logins: Logins, name: str, password: bytes, proof: bytes) -> Check:
        """Have a login checked; one that is being checked is not checked twice."""
        with self._mutex:
            check = logins.checks.get(proof)
            if check is not None:
                return check
            if len(logins.checks) >= MAX_CHECKS:
                raise Busy
            work = functools.partial(self._verify, logins, name, password, proof)
            check = Check(subject=logins, outcome=self._pool.submit(work))
            logins.checks[proof] = check
        check.outcome.add_done_callback(lambda _: logins.checks.pop(proof, None))
        return check

    def _verify(self, logins: Logins, name: str, password: bytes, proof: bytes) -> None:
        """Raise Unauthorized unless it is the password; unknown names take as long as known."""
        stored = logins.hashes.get(name)
        right = bcrypt.checkpw(password[:72], stored or self._stand_in(logins, name))
        if stored is None or not right:
            raise Unauthorized
        with self._mutex:
            logins.remember(proof)

    def _stand_in(self, logins: Logins, name: str) -> bytes:
        """Return somebody's hash: each costs what the file says, and always the same one."""
        if not logins.hashes:
            return _NOBODY
        drawn = hmac.new(self._key, name.encode(), hashlib.sha256).digest()
        return list(logins.hashes.values())[int.from_bytes(drawn[:4], "big") % len(logins.hashes)]

    def _current(self) -> Logins:
        """Return what the file says; one that is of no use leaves the last one in force."""
        try:
            signature = _signature(self._path)
        except OSError as exc:
            signature = (exc.strerror,)
        if signature != self._signature:
            with self._mutex:
                if signature != self._signature:
                    self._logins = self._reread()
                    self._signature = signature
        return self._logins

    def _reread(self) -> Logins:
        try:
            return _read(self._path)
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            LOG.warning("cannot use %s: %s; the logins of before stay valid", self._path, why)
            return self._logins


def _signature(path: Path) -> tuple[Any, ...]:
    """Return what changes when the file does."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: Path) -> Logins:
    """Read the file.  Raises OSError, and ValueError if there are lines but none can be used."""
    hashes: dict[str, bytes] = {}
    wrong = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        name, _, stored = line.strip().partition(b":")
        if name and _is_hash(stored) and _is_text(name):
            hashes[name.decode()] = stored
        elif line.strip():
            wrong.append(number)
    lines = ", ".join(map(str, wrong[:9]))
    if wrong and not hashes:
        raise ValueError(f"{_FORM}; wrong: line {lines}")
    if wrong:
        LOG.warning("%s: line %s cannot be used, and lets nobody in: %s", path, lines, _FORM)
    return Logins(hashes)


def _is_hash(stored: bytes) -> bool:
    match = _BCRYPT.fullmatch(stored)
    return match is not None and int(match[1]) in _ROUNDS


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


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
