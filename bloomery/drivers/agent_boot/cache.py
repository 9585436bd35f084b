"""A cache of files for all nodes, revalidated at each use.

The server's ETag or date decides whether a file has changed; without either, its size does.  A file
is named by the hash of its URL, with the server's headers in a note beside it.

    FileCache(ramdisks(conf), HttpClient(conf.default)).open(url)

A ``Treatment`` checks and converts a file before the cache keeps it.

Room: the least recently used files go, and files being read stay.  A lock of oslo.concurrency
serialises writers of a file across processes.  Readers hold a shared ``flock``, which ends when the
file is closed.  A file with a hard link is handed out.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
import urllib3

from bloomery import errors, secrets
from bloomery.conf import Conf
from bloomery.drivers.agent_boot import http_client, sources
from bloomery.drivers.agent_boot.http_client import HttpClient

LOG = logging.getLogger(__name__)

Json = dict[str, Any]
MakeRoom = Callable[[int], None]  # for so many bytes; raises StepFailure

PART: Final = ".part"  # of a file being fetched, under the lock of the file
CONVERTED: Final = ".raw"  # of an image being converted, under the same lock
_LOCK: Final = ".lock"
_NOTE: Final = ".json"
_PIECE: Final = 1 << 20
_MOST_BYTES: Final = 4 << 30  # of a kernel or a ramdisk
_MIB: Final = 1 << 20
_NOT_MODIFIED: Final = 304
_CONDITIONS: Final = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
_HEADERS: Final = (*_CONDITIONS, "content-length")
_IDENTITY: Final = (*_HEADERS, "inode", "mtime_ns", "bytes")  # names in notes


class BeingFetched(Exception):
    """Another worker is fetching the file, or too many files are being fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConf:
    """A cache's folder and limits; ``path_option`` and ``size_option`` name them in messages."""

    folder: str | None
    path_option: str
    size_mib: int
    size_option: str
    ttl_min: int
    most_bytes: int  # of one file
    most_s: float = 1800.0  # of one download
    allowed: tuple[str, ...] = ()  # folders of files on this host
    at_once: int


def ramdisks(conf: Conf) -> CacheConf:
    deploy = conf.deploy
    return CacheConf(
        folder=deploy.ramdisk_cache_path, path_option="[deploy]ramdisk_cache_path",
        size_mib=deploy.ramdisk_cache_size, size_option="[deploy]ramdisk_cache_size",
        ttl_min=deploy.ramdisk_cache_ttl, most_bytes=_MOST_BYTES,
        at_once=conf.default.image_download_concurrency,
        allowed=conf.conductor.file_url_allowed_paths,
    )  # fmt: skip


def _keep(source: Path, _target: Path, _make_room: MakeRoom) -> tuple[Path, Json]:
    return source, {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """Changes to a file before it is cached; by default it stays as the server sent it.

    ``headers``: of the request.  ``accepts``: whether the file of this note is of use.  ``work``
    gets the source and the path of a possible target; it returns the path to keep and the facts
    of its note.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    accepts: Callable[[Json], bool] = lambda _note: True
    work: Callable[[Path, Path, MakeRoom], tuple[Path, Json]] = _keep


AS_IT_IS: Final = Treatment()


class FileCache:
    """The files of one folder; an open file stays readable after its replacement."""

    def __init__(self, conf: CacheConf, client: HttpClient) -> None:
        self._conf, self._client = conf, client
        self._most = conf.size_mib * _MIB
        self._slots = threading.BoundedSemaphore(conf.at_once)

    def open(self, url: str) -> BinaryIO:
        """Return the current file.  Raises StepFailure, BeingFetched."""
        with self._faults(url):
            local = sources.open_local(url, self._conf.allowed)
        if local is not None:
            return local
        with self.current(url, AS_IT_IS) as (path, _note):
            file = path.open("rb")
            share(file.fileno())
            return file

    @contextlib.contextmanager
    def current(self, url: str, treatment: Treatment) -> Iterator[tuple[Path, Json]]:
        """Yield the current file and its note, locked.  Raises StepFailure, BeingFetched.

        A hard link to the file keeps it from being removed.
        """
        with self._faults(url):
            if self._conf.folder is None:
                raise errors.Unavailable(reason=f"{self._conf.path_option} names no folder")
            path = Path(self._conf.folder) / hashlib.sha256(url.encode()).hexdigest()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with exclusively(path):
                self._refresh(url, path, treatment)
                yield path, _read_note(path)

    @contextlib.contextmanager
    def _faults(self, url: str) -> Iterator[None]:
        address = secrets.mask_address(url)
        try:
            yield
        except BlockingIOError as exc:
            raise BeingFetched from exc
        except urllib3.exceptions.HTTPError as exc:
            raise errors.StepFailure(
                reason=f"cannot fetch {address}: {http_client.why(exc)}"
            ) from exc
        except OSError as exc:
            raise errors.StepFailure(
                reason=f"cannot store {address} in {self._conf.folder} ({self._conf.path_option}): "
                f"{exc.strerror}"
            ) from exc

    def _refresh(self, url: str, path: Path, treatment: Treatment) -> None:
        """Update the file from its source, unless it has not changed."""
        note = _read_note(path)
        if not treatment.accepts(note):
            note = {}
        local = sources.open_local(url, self._conf.allowed)
        if local is not None:
            with local:
                status = os.fstat(local.fileno())
                facts = {
                    "inode": status.st_ino, "mtime_ns": status.st_mtime_ns, "bytes": status.st_size,
                }  # fmt: skip
                if note and _is_of(note, facts):
                    _mark_used(path)
                    return
                with self._slot():
                    self._treat(sources.path_of(local), path, treatment, facts)
                return
        address = secrets.mask_address(url)
        conditions = {header: note[name] for name, header in _CONDITIONS.items() if note.get(name)}
        with self._client.get(url, {**treatment.headers, **conditions}) as answer:
            if answer.status == _NOT_MODIFIED or (note and _is_of(note, _note_of(answer))):
                _mark_used(path)
            elif answer.status == 200:
                with self._slot():
                    self._store(answer, path, treatment, address)
            else:
                raise errors.StepFailure(reason=f"cannot fetch {address}: HTTP {answer.status}")

    @contextlib.contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._slots.acquire(blocking=False):
            raise BeingFetched
        try:
            yield
        finally:
            self._slots.release()

    def _store(self, answer: Any, path: Path, treatment: Treatment, address: str) -> None:
        """Fetch the file within its limits of size and time, and treat it.

        No half of a download stays.  A ``Content-Encoding`` is kept: web servers send it for
        compressed ramdisks.
        """
        length, conf = answer.headers.get("content-length", ""), self._conf
        self._make_room(path, int(length) if length.isdecimal() else 0, f"cannot fetch {address}")
        fresh = path.with_suffix(PART)
        fresh.touch(0o600)
        give_up_at, size = time.monotonic() + conf.most_s, 0
        most = min(conf.most_bytes, self._most)
        try:
            with fresh.open("wb") as part:
                while piece := answer.read(_PIECE, decode_content=False):
                    size += len(piece)
                    if size > most or time.monotonic() > give_up_at:
                        raise errors.StepFailure(
                            reason="cannot fetch a file for the agent: it takes more than "
                            f"{conf.most_s:g} s, or has more than {_mib(most)} MiB "
                            f"({conf.size_option})",
                        )
                    part.write(piece)
            self._treat(fresh, path, treatment, _note_of(answer))
        finally:
            fresh.unlink(missing_ok=True)

    def _treat(self, source: Path, path: Path, treatment: Treatment, facts: Json) -> None:
        """Replace the file atomically; the old note goes before, the new one comes afterwards."""
        target = path.with_suffix(CONVERTED)
        target.unlink(missing_ok=True)  # a converter that outlived its conductor may write to it

        def make_room(size: int) -> None:
            self._make_room(path, source.stat().st_size + size, "cannot convert the image")

        try:
            file, more_facts = treatment.work(source, target, make_room)
            if file.parent != path.parent:
                raise errors.StepFailure(reason="the image changed while it was read: try again")
            with file.open("rb") as complete:
                os.fsync(complete.fileno())
            note_path(path).unlink(missing_ok=True)
            file.replace(path)
        finally:
            target.unlink(missing_ok=True)
        note_path(path).write_bytes(orjson.dumps(facts | more_facts))
        size = path.stat().st_size
        free_room(path, size, self._most, self._conf.ttl_min * 60.0)

    def _make_room(self, path: Path, needed: int, refusal: str) -> None:
        """Remove old files for files of the announced size."""
        if not free_room(path, needed, self._most, self._conf.ttl_min * 60.0):
            raise errors.StepFailure(
                reason=f"{refusal}: it has {_mib(needed)} MiB, and {self._conf.size_option} "
                f"leaves no room for it ({_mib(self._most)} MiB, some of which other nodes may "
                "use just now)",
            )


def _mib(size: int) -> int:
    return -(-size // _MIB)


def _mark_used(path: Path) -> None:
    for each in (path, note_path(path)):
        os.utime(each)


def _read_note(path: Path) -> Json:
    """Return the note of a file, or {} where the file or the note is missing."""
    try:
        note: Json = orjson.loads(note_path(path).read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}
    return note if path.is_file() else {}


def _is_of(note: Json, facts: Json) -> bool:
    """Return whether a note is of the version with these facts."""
    return bool(facts) and {name: note[name] for name in _IDENTITY if name in note} == facts


def _note_of(answer: Any) -> Json:
    """Return the headers that identify a version of a file, or {} where there are none."""
    note = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
    return note if answer.status == 200 else {}


# ---------------------------------------------------------------------------------------- room


def note_path(path: Path) -> Path:
    """Return the path of a file's note."""
    return path.with_suffix(_NOTE)


@contextlib.contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Lock a file against replacement and removal.  Raises BlockingIOError if it is locked.

    The empty lock file stays.
    """
    from oslo_concurrency import lockutils  # late: nothing is fetched at a start

    name, folder = path.stem + _LOCK, str(path.parent)
    try:
        with lockutils.lock(name, external=True, lock_path=folder, blocking=False):
            yield
    except lockutils.AcquireLockFailedException as exc:
        raise BlockingIOError from exc


def share(descriptor: int) -> None:
    """Keep an open file from being removed until it is closed."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def free_room(path: Path, size: int, most: int, ttl_s: float) -> bool:
    """Make room for a file of ``size`` within ``most`` bytes, not counting the file it replaces.

    Files older than ``ttl_s`` are removed in any case.  False: files in use leave too little room.
    """
    others: list[tuple[Path, os.stat_result]] = []
    for other in path.parent.iterdir():
        if other.suffix in ("", PART, CONVERTED) and other.stem != path.stem:
            with contextlib.suppress(FileNotFoundError):  # removed, or complete by now
                others.append((other, other.stat()))
    used = size + sum(status.st_size for _, status in others)
    old = time.time() - ttl_s
    for other, status in sorted(others, key=lambda entry: entry[1].st_mtime_ns):
        if (used > most or status.st_mtime < old) and _is_removed(other):
            used -= status.st_size
    return used <= most


def _is_removed(path: Path) -> bool:
    """Remove an unused file with its note; return whether it is gone."""
    try:
        with exclusively(path), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink > 1:
                return False
            if not path.suffix:
                note_path(path).unlink(missing_ok=True)
            path.unlink()
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return True
    LOG.info("removed %s from its cache: unused for long, or its room is needed", path)
    return True
