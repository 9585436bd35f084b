"""Room for cached files: the least recently used go; files being read stay.

A lock of oslo.concurrency serialises writers of a file across processes.  Readers hold a shared
``flock``, which ends when the file is closed.  A file with a hard link is handed out.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from oslo_concurrency import lockutils

LOG = logging.getLogger(__name__)

PART: Final = ".part"  # of a file being fetched, under the lock of the file
CONVERTED: Final = ".raw"  # of an image being converted, under the same lock
_LOCK: Final = ".lock"
_NOTE: Final = ".json"


def note_path(path: Path) -> Path:
    """Return the path of a file's note."""
    return path.with_suffix(_NOTE)


@contextlib.contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Lock a file against replacement and removal.  Raises BlockingIOError if it is locked.

    The empty lock file stays.
    """
    name, folder = path.stem + _LOCK, str(path.parent)
    try:
        with lockutils.lock(name, external=True, lock_path=folder, blocking=False):
            yield
    except lockutils.AcquireLockFailedException as exc:
        raise BlockingIOError from exc


def share(descriptor: int) -> None:
    """Keep an open file from being removed until it is closed."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def make(path: Path, size: int, most: int, ttl_s: float) -> bool:
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
