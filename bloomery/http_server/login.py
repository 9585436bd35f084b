"""HTTP basic authentication; threads of its own check passwords.

bcrypt costs a quarter of a second by design.  A valid login is cached under a keyed hash, so that
each process pays once per password.  Wrong passwords delay other checks, but no other request.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import bcrypt

from bloomery import htpasswd
from bloomery.htpasswd import Busy, Unauthorized
from bloomery.model.request import Request

MAX_CHECKS: Final = 32  # that may wait
DEFERRED: Final = "bloomery.login"  # in the environment: the Check, or None before the first


@dataclass(frozen=True, slots=True)
class Check:
    """A running check; ``outcome`` raises the errors of ``identify``.

    ``subject``: the checked login; the check serves no other one.
    """

    subject: Any
    outcome: Future[Any]


class Deferred(Exception):
    """The login is being checked: retry with ``check`` in the environment when it is done.

    Raised only where the environment has DEFERRED, since such a caller need not wait.
    """

    def __init__(self, check: Check) -> None:
        super().__init__()
        self.check = check


class Logins:
    """The logins of one version of the file, with their cache."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self.hashes = hashes
        self.right: set[bytes] = set()  # cache keys of valid logins
        self.checks: dict[bytes, Check] = {}  # running, by cache key

    def remember(self, proof: bytes) -> None:
        if len(self.right) >= htpasswd.MAX_REMEMBERED:
            self.right.clear()
        self.right.add(proof)


class HttpBasic:
    """Names and passwords from a file of ``user:bcrypt`` lines, reread when it changes.

    ``checkers`` threads check the passwords.
    """

    def __init__(
        self,
        path: Path,
        checkers: int = 1,
        option: str = "[DEFAULT]http_basic_auth_user_file",
    ) -> None:
        """``option`` names the file.

        Raises CannotStart if the file cannot be read, or has no valid line.
        """
        self._file = htpasswd.PasswordFile(path, option)
        self._key = os.urandom(32)
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=checkers, thread_name_prefix="login")
        self._logins = Logins(self._file.hashes())

    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        return dataclasses.replace(request, user=self.user(environ))

    def user(self, environ: Mapping[str, Any]) -> str:
        """Return the authenticated name."""
        name, password = htpasswd.credentials(environ.get("HTTP_AUTHORIZATION", ""))
        proof = htpasswd.proof_of(self._key, name, password)
        hashes = self._file.hashes()
        if hashes is not self._logins.hashes:  # the file has changed
            with self._mutex:
                if hashes is not self._logins.hashes:
                    self._logins = Logins(hashes)
        logins = self._logins
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
        """Return the names in the order of the file."""
        return tuple(self._logins.hashes)

    def _begin(self, logins: Logins, name: str, password: bytes, proof: bytes) -> Check:
        """Start the check of a login; equal logins share one check."""
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
        """Raise Unauthorized for a wrong password; unknown names take the same time."""
        stored = logins.hashes.get(name)
        used = stored or htpasswd.stand_in(self._key, logins.hashes, name)
        right = bcrypt.checkpw(password[:72], used)
        if stored is None or not right:
            raise Unauthorized
        with self._mutex:
            logins.remember(proof)
