"""Files as bodies of answers, read piece by piece by a thread of their own."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PIECE: Final = 256 << 10


class FilePieces:
    """The bytes of a file from ``start`` to ``stop``, read as they are sent."""

    def __init__(self, path: Path, start: int, stop: int) -> None:
        self._path, self._start, self._stop = path, start, stop

    def app_iter_range(self, start: int, stop: int) -> FilePieces:
        """Return a range of the file: WebOb's name."""
        return FilePieces(self._path, start, stop)

    def __iter__(self) -> Iterator[bytes]:
        """Raises OSError where the file is gone, or shorter than declared."""
        left = self._stop - self._start
        with self._path.open("rb") as file:
            file.seek(self._start)
            while left and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                yield piece
        if left:
            raise OSError(errno.ESTALE, "a file became shorter while it was sent")
