"""Replace a file at a stroke: readers see the former content or the new one."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Replace the content of a file, which keeps its mode and its owner.

    A loss of power leaves the one or the other, whole.  Raises OSError: no such file, or one that
    this user may not give back to its owner.
    """
    path = path.resolve()  # a link stays one
    former = path.stat()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            own = os.fstat(descriptor)
            if (own.st_uid, own.st_gid) != (former.st_uid, former.st_gid):
                os.fchown(descriptor, former.st_uid, former.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(former.st_mode))
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # its entries outlive a loss of power
    finally:
        os.close(folder)
