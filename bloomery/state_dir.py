"""The state dir: database, key and clouds.yaml of one process.

    with StateDir(path) as state_dir:                 # creates it; one process at a time
        db = state_dir.open_database(conf.database)
        schema.prepare(db)
        sealer = state_dir.sealer(db)                 # creates the key once
        state_dir.write_clouds("http://127.0.0.1:6385", "http://127.0.0.1:8004")

Kernel locks end with the process: one on the file ``lock``, and one on the SQLite file itself,
because a lock file can be removed, and two state dirs can name one database.  SQLite's own locks
are of another kind, and are not disturbed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import sqlalchemy as sa

from bloomery import errors, key_file, secrets
from bloomery.conf.default import Database as Settings
from bloomery.db import engine, schema, settings
from bloomery.db.site_file import SiteFile

CLOUD: Final = "bloomery"
_PROJECT: Final = "admin"  # for clients without a project of their own
_HEADING: Final = (
    "# Written at each start. Point OS_CLIENT_CONFIG_FILE here and set OS_CLOUD=bloomery.\n"
)
_CONDUCTOR: Final = "conductor"
_ADVICE: Final = {
    errno.ENOSPC: "free some space, or choose another --state-dir",
    errno.EDQUOT: "free some space, or choose another --state-dir",
    errno.ENOTDIR: "remove the file that is in the way, or choose another --state-dir",
    errno.EEXIST: "remove the file that is in the way, or choose another --state-dir",
}
_LOGIN_HINT: Final = """\
# The password: the variable OS_PASSWORD, or a file of your own that OS_CLIENT_SECURE_FILE names:
# {"clouds": {"bloomery": {"auth": {"password": "..."}}}}
"""


def default_path() -> Path:
    """Return the XDG state directory: $XDG_STATE_HOME, else ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME", "")
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
    return root / "bloomery"


class StateDir:
    """Paths in a state dir, and the lock.  ``take`` creates it.

    ``role``: of a process that is not a whole service: roles may share a state dir, with a lock
    each, since their database is a server's.
    """

    def __init__(self, path: Path, *, role: str | None = None) -> None:
        self.path = path.expanduser().absolute()
        self.database = self.path / "bloomery.sqlite"
        self.key = self.path / "keys" / "secrets.key"
        self.clouds = self.path / "clouds.yaml"
        self.site = SiteFile(self.path / "site")
        self._lock_path = self.path / ("lock" if role is None else f"{role}.lock")
        self._lock: int | None = None
        self._databases: list[int] = []  # descriptors of locked SQLite files

    def create(self) -> None:
        """Create the directory, if missing.  Raises CannotStart."""
        with self._writing():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.key.parent.mkdir(mode=0o700, exist_ok=True)

    def take(self) -> None:
        """Create the directory and lock it for this process.

        Raises StateDirInUse with the pid of the other process; CannotStart if it can't be written.
        """
        self.create()
        with self._writing():
            while True:
                descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if not _is_at(descriptor, self._lock_path):
                        os.close(descriptor)
                        continue  # it was replaced meanwhile, so that the lock is void
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
                except BlockingIOError as exc:
                    pid = os.pread(descriptor, 20, 0).decode().strip() or "unknown"
                    os.close(descriptor)
                    raise errors.StateDirInUse(path=str(self.path), pid=pid) from exc
                except BaseException:
                    os.close(descriptor)
                    raise
                self._lock = descriptor
                return

    def leave(self) -> None:
        """Release the state dir, if locked."""
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None
        while self._databases:
            os.close(self._databases.pop())

    def disown(self) -> None:
        """Close the copies of the parent's locks in a forked process; the parent keeps them."""
        for descriptor in (self._lock, *self._databases):
            if descriptor is not None:
                os.close(descriptor)
        self._lock, self._databases = None, []

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.leave()

    def open_database(self, settings: Settings) -> engine.Database:
        """Return the configured database: by default the SQLite file here, for its owner alone.

        A missing SQLite file is created, and locked until the process leaves. Raises DatabaseInUse;
        CannotStart for a lost database.
        """
        path = self.sqlite_file(settings)
        if path is None:
            return self._database(settings)
        former = [each for each in (self.key, self.site.path) if each.exists()]
        if former and not (path.exists() and path.stat().st_size):
            raise _database_lost(f"cannot find the database {path}", former)
        self._lock_database(path)
        database = self._database(settings)
        if former and schema.revision_of(database) is None:
            database.close()
            raise _database_lost(f"cannot use the database {path}, which is empty", former)
        return database

    def recognise(self, db: engine.Database) -> None:
        """Refuse a database of another site, or one that lost commits.  Raises CannotStart."""
        with self._writing():
            self.site.recognise(db)

    def sqlite_file(self, settings: Settings) -> Path | None:
        """Return the file of the configured database, None for a server or memory."""
        if not settings.connection:
            return self.database
        return sqlite_file(settings.connection)

    def _lock_database(self, path: Path) -> None:
        if any(_is_at(ours, path) for ours in self._databases):
            return  # closing a second descriptor would void SQLite's own locks
        with self._writing():
            self._databases.append(_locked(path))

    def existing_database(self, settings: Settings) -> engine.Database:
        """Return the configured database.  Raises CannotStart if its file is missing."""
        if not settings.connection and not self.database.is_file():
            raise errors.CannotStart(
                reason=f"cannot find a database in {self.path}: make one with "
                f"bloomery db upgrade --state-dir {self.path}, or name another --state-dir",
            )
        return self._database(settings)

    def _database(self, settings: Settings) -> engine.Database:
        own = sa.URL.create("sqlite", database=str(self.database))
        return engine.Database(settings.connection or own, settings)

    def sealer(self, db: engine.Database, path: str | None = None) -> secrets.Sealer:
        """Return the sealer with this database's keys.

        ``path``: of the key file; None: in the state dir.  The key is created on first use, when
        the database has no key id yet.  Raises KeyMissing when the file is gone or lacks the key
        that seals, since sealed values could not be read.
        """
        if path is not None:
            self.key = Path(path).expanduser().absolute()
        with db.read() as conn:
            key_id = settings.find(conn, settings.KEY_ID)
        is_new = not self.key.exists()
        if is_new and key_id is not None:
            raise self._key_missing(key_id, "is not there")
        file = key_file.KeyFile(self.key)
        with self._writing():
            key_file.make_missing(self.key)
            keys = file.read()
        try:
            sealer = secrets.Sealer(*keys, changed_keys=file.changed_keys)
        except ValueError as exc:
            raise errors.CannotStart(
                reason=f"cannot use the key file {self.key}: it does not hold a key; "
                "put it back from its backup",
            ) from exc
        if key_id is None:
            key_id = db.transact(lambda conn: settings.settle(conn, settings.KEY_ID, sealer.key_id))
        if key_id not in sealer.key_ids:
            if is_new:  # another process was first: nothing is sealed with this key
                self.key.unlink(missing_ok=True)
            raise self._key_missing(key_id, f"holds key {', '.join(sealer.key_ids)}")
        return sealer

    @staticmethod
    def name_conductor(db: engine.Database, configured: str | None) -> str:
        """Return the name of the conductor that serves from ``db``.

        An SQLite database keeps the name of its one conductor, since a container has a new host
        name at each start.  A configured name takes precedence, and is stored; otherwise the first
        host name.
        """
        name = configured or socket.gethostname()
        if not db.is_sqlite:
            return name
        with db.read() as conn:
            hostname = settings.find(conn, _CONDUCTOR)
        if hostname is not None and configured in (None, hostname):
            return hostname
        db.transact(lambda conn: settings.put(conn, _CONDUCTOR, name))
        return name

    def _key_missing(self, key_id: str, problem: str) -> errors.KeyMissing:
        return errors.KeyMissing(key_id=key_id, path=str(self.key), problem=problem)

    def write_clouds(
        self,
        url: str,
        orchestration_url: str,
        *,
        username: str | None = None,
        auth_url: str | None = None,
    ) -> Path:
        """Write clouds.yaml for openstacksdk with these URLs; return the file.

        With ``username`` clients log in with HTTP basic authentication and their own password.
        With ``auth_url`` they log in at that identity service, with their own name, password and
        project. Without either, there is no login.
        """
        with self._writing():
            fresh = self.clouds.with_suffix(f".{os.getpid()}.new")  # workers of an API write too
            fresh.write_text(_clouds(url, orchestration_url, username, auth_url))
            fresh.replace(self.clouds)
        return self.clouds

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn errors of writing into CannotStart."""
        try:
            yield
        except OSError as exc:
            advice = _ADVICE.get(exc.errno or 0, "choose another --state-dir")
            raise errors.CannotStart(
                reason=f"cannot use the state dir {self.path}: "
                f"{exc.strerror} ({exc.filename or 'lock'}); {advice}",
            ) from exc


def _database_lost(problem: str, former: list[Path]) -> errors.CannotStart:
    """Return the refusal to begin anew beside the key, or the site file, of a former database."""
    names = " and ".join(str(each) for each in former)
    return errors.CannotStart(
        reason=f"{problem}: {names} of a former one are here; put back its backup, or its file "
        "with the -wal file, or move them away to begin anew",
    )


def sqlite_file(connection: str) -> Path | None:
    """Return the file of an SQLite URL, None for a server or memory."""
    url = engine.parse_url(connection)
    name = url.database or ":memory:"
    is_file = url.get_backend_name() == "sqlite" and not name.startswith((":memory:", "file:"))
    return Path(name) if is_file else None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock an SQLite file, created for its owner alone if missing, against serving processes.

    Close the database before you leave.  Raises DatabaseInUse, CannotStart.
    """
    try:
        descriptor = _locked(path)
    except OSError as exc:
        raise errors.CannotStart(
            reason=f"cannot use the database {path}: {exc.strerror}; name another file",
        ) from exc
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int:
    """Open and lock the file; return the descriptor of the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        pid, inode = "unknown", os.fstat(descriptor).st_ino
        with contextlib.suppress(OSError):  # the kernel's list of locks names it
            for line in Path("/proc/locks").read_text().splitlines():
                words = line.split()  # 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
                if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
                    pid = words[4] if int(words[4]) > 0 else "in another container"
                    break
        os.close(descriptor)
        raise errors.DatabaseInUse(path=str(path), pid=pid) from exc
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    """Is the open file still the one at ``path``?"""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _clouds(url: str, orchestration_url: str, username: str | None, auth_url: str | None) -> str:
    """Return clouds.yaml; an identity service's catalog has the orchestration API.

    The URL of that API contains the project.
    """
    if auth_url is not None:
        return (
            f"{_HEADING}"
            "# Name, password and project are yours to add: username, password, project_name,\n"
            "# user_domain_name and project_domain_name below auth, or as OS_USERNAME and so on.\n"
            "clouds:\n"
            f"  {CLOUD}:\n"
            "    auth_type: password\n"
            "    auth:\n"
            f"      auth_url: {auth_url}\n"
            f"    baremetal_endpoint_override: {url}\n"
        )
    stacks = f"{orchestration_url}/v1/{_PROJECT}"  # heatclient takes the endpoint of the login
    kind = "none" if username is None else "http_basic"
    login = "" if username is None else f"      username: {json.dumps(username)}\n"
    hint = "" if username is None else _LOGIN_HINT
    return (
        f"{_HEADING}{hint}"
        "clouds:\n"
        f"  {CLOUD}:\n"
        f"    auth_type: {kind}\n"
        "    auth:\n"
        f"      endpoint: {stacks}\n"
        f"{login}"
        f"    baremetal_endpoint_override: {url}\n"
        f"    orchestration_endpoint_override: {stacks}\n"
    )
