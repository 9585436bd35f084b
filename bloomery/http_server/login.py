"""Logins of a request: names and passwords, checked by threads of their own.

bcrypt costs a quarter of a second by design.  A login that was right is remembered by a keyed
hash, so that it is paid once per process and password, not per request.  Who sends wrong passwords
keeps others from being checked, not from being served.
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

MAX_CHECKS: Final = 32  # that may wait for each other
DEFERRED: Final = "bloomery.login"  # in the environment: the Check, or None before there is one


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


class Logins:
    """What one state of the file says.  Nothing that was learnt of it outlives it."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self.hashes = hashes
        self.right: set[bytes] = set()  # proofs of logins that were right
        self.checks: dict[bytes, Check] = {}  # under way, by proof

    def remember(self, proof: bytes) -> None:
        if len(self.right) >= htpasswd.MAX_REMEMBERED:
            self.right.clear()
        self.right.add(proof)


class HttpBasic:
    """Names and passwords from a file of ``user:bcrypt`` lines, read again when it changes.

    Passwords are checked by ``checkers`` threads of its own, whoever asks.
    """

    def __init__(
        self,
        path: Path,
        checkers: int = 1,
        option: str = "[DEFAULT]http_basic_auth_user_file",
    ) -> None:
        """``option`` names the file.

        Raises CannotStart if the file cannot be read, or nobody in it can log in.
        """
        self._file = htpasswd.PasswordFile(path, option)
        self._key = os.urandom(32)
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=checkers, thread_name_prefix="login")
        self._logins = Logins(self._file.hashes())

    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        return dataclasses.replace(request, user=self.user(environ))

    def user(self, environ: Mapping[str, Any]) -> str:
        """Return the name that goes with the password."""
        name, password = htpasswd.credentials(environ.get("HTTP_AUTHORIZATION", ""))
        proof = htpasswd.proof_of(self._key, name, password)
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
        return htpasswd.stand_in(self._key, logins.hashes, name)

    def _current(self) -> Logins:
        """Return what the file says; nothing that was learnt of it outlives it."""
        hashes = self._file.hashes()
        if hashes is not self._logins.hashes:
            with self._mutex:
                if hashes is not self._logins.hashes:
                    self._logins = Logins(hashes)
        return self._logins
