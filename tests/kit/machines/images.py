"""Images of disks as bytes, and a qemu-img that is a script.

write_qemu_img(folder)                    # put the folder first in PATH
qcow2(64)                                 # a header of qcow2 that promises 64 MiB
"""

from __future__ import annotations

import struct
from pathlib import Path

RAW = b"a disk" * 100
CONVERTED = b"a raw disk"  # what the script makes of any image

_QCOW2 = struct.Struct(">4sIQIIQIIQQIIQQQQII")
_SCRIPT = """#!/bin/sh
echo "$1" >> {log}
[ "$1" = check ] && exit {check}
for target in "$@"; do :; done
{convert}
"""


def qcow2(size: int, *, backing: bool = False, data_file: bool = False) -> bytes:
    """Return a file of qcow2 for a disk of ``size`` bytes; it may name others."""
    header = _QCOW2.pack(
        b"QFI\xfb", 3, 200 if backing else 0, 8 if backing else 0, 16, size, 0, 1, 0x30000,
        0x10000, 1, 0, 0, 4 if data_file else 0, 0, 0, 4, 104,
    )  # fmt: skip
    return header.ljust(200, b"\0") + b"base.img".ljust(65_336, b"\0")


def write_qemu_img(folder: Path, *, convert: str | None = None, check: int = 0) -> Path:
    """Write the script; return the list of what was asked of it.  ``convert``: what it runs."""
    folder.mkdir(exist_ok=True)
    log = folder / "asked"
    log.touch()
    done = convert or f"printf '{CONVERTED.decode()}' > $target"
    script = folder / "qemu-img"
    script.write_text(_SCRIPT.format(log=log, check=check, convert=done))
    script.chmod(0o755)
    return log
