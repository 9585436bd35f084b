"""The file of the keys that seal secrets: one key a line, the newest first.

The first key seals, and all keys open.  The file is replaced as a whole, and running processes read
it again when it has changed.
"""

from __future__ import annotations

import base64
import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bloomery import files

KEY_BYTES: Final = 32


class KeyFile:
    """A key file as its last reading was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version: tuple[int, ...] = ()

    def read(self) -> list[bytes]:
        """Return the keys.  Raises OSError."""
        self._version = self._stat()
        return self.path.read_bytes().split()

    def changed_keys(self) -> list[bytes] | None:
        """Return the keys if the file has changed since the last reading; one ``stat`` if not."""
        return None if self._stat() == self._version else self.read()

    def _stat(self) -> tuple[int, ...]:
        status = self.path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size


def new_key() -> bytes:
    return base64.urlsafe_b64encode(os.urandom(KEY_BYTES))


def make(path: Path) -> None:
    """Create the file with a new key, readable by its owner alone.  Raises FileExistsError."""
    descriptor, name = tempfile.mkstemp(prefix=".new-key-", dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(_content([new_key()]))
        file.flush()
        os.fsync(file.fileno())
    fresh = Path(name)
    try:
        path.hardlink_to(fresh)
    finally:
        fresh.unlink()


def make_missing(path: Path) -> None:
    """Create the file on first use; of two concurrent creations, the first stays."""
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            make(path)


def replace(path: Path, keys: Sequence[bytes]) -> None:
    """Replace the keys at a stroke: readers see the former file or the new one."""
    files.replace(path, _content(keys))


def _content(keys: Sequence[bytes]) -> bytes:
    return b"".join(key + b"\n" for key in keys)
