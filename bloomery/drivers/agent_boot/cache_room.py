"""Room for fetched files: what was used longest ago goes, and what somebody reads stays.

Whoever fetches, replaces or removes a file holds an external lock of oslo.concurrency: among all
threads and processes of the host.  Whoever reads a file shares it by ``flock``: no lock of
oslo.concurrency belongs to an open file, and ends when that file is closed.
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

PART: Final = ".part"  # of a file that comes, under the lock of the file
_LOCK: Final = ".lock"
_NOTE: Final = ".json"


def note_path(path: Path) -> Path:
    """Return where it stands what the server said of a file."""
    return path.with_suffix(_NOTE)


@contextlib.contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Keep others from replacing or removing a file.  Raises BlockingIOError if one does.

    The lock file is empty, and stays.
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
    """Make room for a file of ``size``, beside what it replaces, where all may have ``most`` bytes.

    Others older than ``ttl_s`` go in any case.  False: those in use leave too little room.
    """
    others = [entry for entry in _entries(path.parent) if entry[0].stem != path.stem]
    used = size + sum(status.st_size for _, status in others)
    old = time.time() - ttl_s
    for other, status in sorted(others, key=lambda entry: entry[1].st_mtime_ns):
        if (used > most or status.st_mtime < old) and _is_removed(other):
            used -= status.st_size
    return used <= most


def _entries(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for path in folder.iterdir():
        if path.suffix in ("", PART):
            with contextlib.suppress(FileNotFoundError):  # removed, or complete by now
                yield path, path.stat()


def _is_removed(path: Path) -> bool:
    """Remove a file that nobody uses, with what is said of it."""
    try:
        with exclusively(path), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            note_path(path).unlink(missing_ok=True)
            path.unlink()
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return True
    LOG.info("removed %s: no node has used it for long, or others need its room", path)
    return True
