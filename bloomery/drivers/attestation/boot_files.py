"""The digests of boot files: as firmware and boot loaders measure them.

An EFI program is measured by its Authenticode digest, which leaves out its signatures; any other
file by the SHA-256 of its bytes.  EFI programs are also found in the image of an EFI system
partition.

Source: Windows Authenticode Portable Executable Signature Format, 2008; UEFI 2.10, 13.3 (FAT).
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import cachetools

from bloomery import errors

_PIECE: Final = 1 << 20
_MOST_PROGRAM: Final = 1 << 30  # bytes of an EFI program
_LINE: Final = re.compile(r"([0-9A-Fa-f]{64})(?:\s+\*?(.*))?")
_DIRECTORY, _VOLUME = 0x10, 0x08  # attributes of FAT entries; both of long names have _VOLUME
_DEEPEST: Final = 8  # folders
_CACHE: Final[cachetools.LRUCache[tuple[int, ...], Digests]] = cachetools.LRUCache(64)
_MUTEX: Final = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """``file``: SHA-256 of the bytes.  ``programs``: (name, Authenticode digest) of its programs.

    The file itself, where it is an EFI program, has the name "".
    """

    file: bytes
    programs: tuple[tuple[str, bytes], ...]


def digests_of(file: BinaryIO) -> Digests:
    """Return the digests of an open file on disk, which is read once for all nodes."""
    facts = os.fstat(file.fileno())
    key = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
    with _MUTEX:
        if (digests := _CACHE.get(key)) is not None:
            return digests
    file.seek(0)
    start, hashed = file.read(_PIECE), hashlib.sha256()
    file.seek(0)
    while piece := file.read(_PIECE):
        hashed.update(piece)
    programs: tuple[tuple[str, bytes], ...] = ()
    if start.startswith(b"MZ"):
        file.seek(0)
        digest = authenticode(file.read(_MOST_PROGRAM))
        programs = () if digest is None else (("", digest),)
    elif start[510:512] == b"\x55\xaa":
        found = ((name, authenticode(data)) for name, data in _Fat(file, start[:512]).programs())
        programs = tuple((name, digest) for name, digest in found if digest is not None)
    digests = Digests(file=hashed.digest(), programs=programs)
    with _MUTEX:
        _CACHE[key] = digests
    return digests


def read_list(path: str | None) -> dict[bytes, str]:
    """Return the digests of a file in the form of sha256sum, each with its name.

    Raises StepFailure.
    """
    if path is None:
        return {}
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, ValueError) as exc:
        raise errors.StepFailure(
            reason=f"cannot read [agent]attestation_digests {path}: {exc}"
        ) from exc
    digests = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        if (match := _LINE.fullmatch(line.strip())) is None:
            raise errors.StepFailure(
                reason=f"[agent]attestation_digests {path}, line {number}: a line is a SHA-256 in "
                "hexadecimal and a name, as sha256sum prints them",
            )
        digests[bytes.fromhex(match[1])] = match[2] or f"line {number} of {path}"
    return digests


def authenticode(program: bytes) -> bytes | None:
    """Return the Authenticode digest (SHA-256) of an EFI program; None: it is none."""
    try:
        (at,) = struct.unpack_from("<I", program, 0x3C)
        if program[:2] != b"MZ" or program[at : at + 4] != b"PE\0\0":
            return None
        sections, optional_size = struct.unpack_from("<H12xH", program, at + 6)
        optional = at + 24
        (magic,) = struct.unpack_from("<H", program, optional)
        (header_size,) = struct.unpack_from("<I", program, optional + 60)
        checksum = optional + 64
        certificates = optional + (112 if magic == 0x20B else 96) + 4 * 8
        (certificates_size,) = struct.unpack_from("<I", program, certificates + 4)
        table = optional + optional_size
        areas = []
        for number in range(sections):
            size, start = struct.unpack_from("<II", program, table + 40 * number + 16)
            if size:
                areas.append((start, size))
    except struct.error:
        return None
    hashed = hashlib.sha256(program[:checksum])
    hashed.update(program[checksum + 4 : certificates])
    hashed.update(program[certificates + 8 : header_size])
    done = header_size
    for start, size in sorted(areas):
        hashed.update(program[start : start + size])
        done += size
    hashed.update(program[done : max(len(program) - certificates_size, done)])
    return hashed.digest()


class _Fat:
    """The files of a FAT12, FAT16 or FAT32 image; a broken image has fewer."""

    def __init__(self, file: BinaryIO, boot: bytes) -> None:
        self._file = file
        sector, self._per, reserved, fats, roots, few, _, size = struct.unpack_from(
            "<HBHBHHBH", boot, 11
        )
        many, big, _, _, root = struct.unpack_from("<IIHHI", boot, 32)
        size = size or big
        self._sector = sector
        root_sectors = -(-roots * 32 // sector) if sector else 0
        self._root_at = (reserved + fats * size) * sector
        self._data_at = self._root_at + root_sectors * sector
        self._root_size = roots * 32
        self._root = 0 if roots else root
        clusters = (
            ((few or many) - self._data_at // sector) // self._per if sector * self._per else 0
        )
        self._bits = 12 if clusters < 4085 else 16 if clusters < 65525 else 32
        self._clusters = clusters
        file.seek(reserved * sector)
        self._table = file.read(size * sector)

    def programs(self) -> Iterator[tuple[str, bytes]]:
        """Yield the path and the bytes of each file named .EFI."""
        if self._clusters <= 0:
            return
        if self._root:
            root = self._read(self._root)
        else:
            self._file.seek(self._root_at)
            root = self._file.read(self._root_size)
        yield from self._list(root, "", 0)

    def _list(self, folder: bytes, path: str, depth: int) -> Iterator[tuple[str, bytes]]:
        for at in range(0, len(folder) - 31, 32):
            entry = folder[at : at + 32]
            if entry[0] == 0:
                return
            if entry[0] in (0xE5, ord(".")) or entry[11] & _VOLUME:
                continue
            stem, suffix = (
                part.decode("ascii", "replace").strip() for part in (entry[:8], entry[8:11])
            )
            first = (
                struct.unpack_from("<H", entry, 20)[0] << 16
                | struct.unpack_from("<H", entry, 26)[0]
            )
            (size,) = struct.unpack_from("<I", entry, 28)
            if entry[11] & _DIRECTORY and depth < _DEEPEST:
                yield from self._list(self._read(first), f"{path}/{stem}", depth + 1)
            elif suffix == "EFI":
                yield f"{path}/{stem}.{suffix}", self._read(first, size)

    def _read(self, cluster: int, size: int | None = None) -> bytes:
        """Return the bytes of a chain of clusters."""
        pieces: list[bytes] = []
        length = self._per * self._sector
        while 2 <= cluster < self._clusters + 2 and len(pieces) <= self._clusters:
            self._file.seek(self._data_at + (cluster - 2) * length)
            pieces.append(self._file.read(length))
            cluster = self._next(cluster)
        return b"".join(pieces)[:size]

    def _next(self, cluster: int) -> int:
        if self._bits == 12:
            (pair,) = struct.unpack_from("<H", self._table, cluster * 3 // 2)
            return int(pair >> 4 if cluster & 1 else pair & 0xFFF)
        width, form = (2, "<H") if self._bits == 16 else (4, "<I")
        (value,) = struct.unpack_from(form, self._table, cluster * width)
        return int(value) & 0x0FFFFFFF
