"""The audit log: one JSON object per line, each with the hash of the line before it.

    Trail(path).add("asked", {"user": "ann", "method": "PUT"}, is_durable=True)
    check([path]).faults        # ["audit.jsonl:17: record 17 was changed"]

The hash of the first record is kept in the database, too: a chain that was made anew has another.

``FILE.head`` holds number and hash of the last record.  A new or empty FILE continues the chain
from there, so FILE may be moved away at any time.  Several processes of a host may write one FILE.

A crash may leave half a line.  The next writer ends it, and records ``torn`` with its hash.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bloomery import errors

TORN: Final = "torn"
FIRST: Final = "0" * 64  # the hash before the first record
_LINE: Final = re.compile(rb'(\{.*),"hash":"([0-9a-f]{64})"\}\n?')
_LONGEST: Final = 1 << 17  # bytes of a line
_MODE: Final = 0o600

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain.  ``size``: that of FILE behind its last record."""

    number: int = 0
    hash: str = FIRST
    size: int = -1


class Trail:
    """Writes records.  Raises AuditUnwritable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()

    def add(self, kind: str, facts: Mapping[str, Any], *, is_durable: bool = False) -> None:
        """Append a record.  ``is_durable``: return when it is on the disk."""
        try:
            with self._mutex, _opened(head_of(self._path)) as beside, _opened(self._path) as file:
                fcntl.flock(beside, fcntl.LOCK_EX)
                try:
                    head = Head(**json.loads(os.pread(beside, _LONGEST, 0)))
                except (ValueError, TypeError):  # it is new, or a loss of power has damaged it
                    head = Head()
                size, half = os.fstat(file).st_size, b""
                if size != head.size:  # a crash may have left half a line behind the last record
                    *lines, half = os.pread(file, _LONGEST, max(size - _LONGEST, 0)).split(b"\n")
                    last = lines and _parsed(lines[-1])
                    if last and last["number"] > head.number:
                        head = Head(last["number"], last["hash"], size)
                if half:
                    mark = {"bytes": len(half), "sha256": hashlib.sha256(half).hexdigest()}
                    head = _append(file, head, TORN, mark, end_of_half=b"\n")
                head = _append(file, head, kind, facts)
                if is_durable:
                    os.fdatasync(file)
                content = json.dumps(dataclasses.asdict(head)).encode()
                os.pwrite(beside, content, 0)
                os.ftruncate(beside, len(content))
        except OSError as exc:
            raise errors.AuditUnwritable(reason=exc.strerror, log=str(self._path)) from exc

    def first_hash(self) -> str | None:
        """Return the hash of the chain's first record; None: it is in another file by now."""
        try:
            _place, line = next(_lines([self._path]))
        except (OSError, StopIteration):
            return None
        record = _parsed(line)
        return str(record["hash"]) if record is not None and record["number"] == 1 else None


def head_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.head")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _append(
    file: int, head: Head, kind: str, facts: Mapping[str, Any], end_of_half: bytes = b""
) -> Head:
    """Write a record behind ``head``; a write that fails leaves nothing, or half a line."""
    record = {"number": head.number + 1, "at": datetime.now(UTC).isoformat(), "kind": kind}
    body = json.dumps({**record, **facts, "previous": head.hash}, separators=(",", ":"))[:-1]
    own = hashlib.sha256(body.encode()).hexdigest()
    line = end_of_half + f'{body},"hash":"{own}"}}\n'.encode()
    size = os.fstat(file).st_size
    written = os.pwrite(file, line, size)
    if written < len(line):
        with contextlib.suppress(OSError):
            os.ftruncate(file, size)
        raise OSError(0, "the disk is full")
    return Head(head.number + 1, own, size + written)


def _parsed(line: bytes) -> Json | None:
    """Return a record, whether its hash is right or not; None: the line is no record."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    is_record = isinstance(record, dict) and isinstance(record.get("number"), int)
    return record if is_record and _LINE.fullmatch(line) else None


# ---------------------------------------------------------------------------------- checking


@dataclass(slots=True)
class Check:
    """The result of a check.  ``first``, ``last``: numbers of records, 0 where there is none."""

    first: int = 0
    last: int = 0
    hash: str = FIRST
    faults: list[str] = field(default_factory=list)


def check(
    paths: Sequence[Path],
    kept_hash: str | None = None,
    *,
    since: str | None = None,
    anchors: Collection[str] = (),
) -> Check:
    """Check the files of one chain, the oldest first.  Raises OSError.

    ``kept_hash``: a hash that somebody has kept elsewhere; a rewritten chain has lost it.
    ``since``: the hash of the last record that was removed on purpose.  ``anchors``: hashes that
    the first record may have; empty: unknown.
    """
    chain, link, half, is_kept = Check(), {FIRST}, None, kept_hash in (None, FIRST)
    for place, line in _lines(paths):
        record, parts = _parsed(line), _LINE.fullmatch(line)
        if record is None or parts is None:
            _blame(chain, half)
            half = place, line.rstrip(b"\n")
            continue
        if half and not (record["kind"] == TORN and record.get("sha256") == _hash(half[1])):
            _blame(chain, half)
        half = None
        own, stored = _hash(parts[1]), parts[2].decode()
        number, is_changed = record["number"], own != stored
        if not chain.last and (missing := _beginning(record, since, anchors)):
            chain.faults.append(f"{place}: {missing}")
        chain.first = chain.first or number
        if is_changed:
            number = chain.last + 1
            chain.faults.append(f"{place}: record {number} was changed")
        elif chain.last and number != chain.last + 1:
            chain.faults.append(f"{place}: record {number} comes behind record {chain.last}")
        elif (chain.last or number == 1) and record.get("previous") not in link:
            chain.faults.append(f"{place}: record {number} does not belong behind the one before")
        is_kept = is_kept or kept_hash == stored
        chain.last, chain.hash, link = number, stored, {own, stored}
    _blame(chain, half)
    if paths and (missing := _missing_end(paths[-1], chain)):
        chain.faults.append(missing)
    if not is_kept:
        chain.faults.append(f"no record has the hash {kept_hash}: the chain was made anew, or cut")
    return chain


def _beginning(record: Json, since: str | None, anchors: Collection[str]) -> str | None:
    """Return why the first record of the files is not the one that it should be."""
    number = record["number"]
    if number == 1 and anchors and record["hash"] not in anchors:
        return "record 1 is not the one that the database knows: the chain was made anew"
    if number == 1 or since == record.get("previous"):
        return None
    return (
        f"the beginning is missing: records 1 to {number - 1}; name their files, too, or the hash "
        "of the last one that was removed on purpose (--since)"
    )


def _blame(chain: Check, half: tuple[str, bytes] | None) -> None:
    if half:
        chain.faults.append(f"{half[0]}: this line is no record: it was changed or cut off")


def _missing_end(path: Path, chain: Check) -> str | None:
    """Return that the end is missing, where FILE.head is there to tell."""
    try:
        head = Head(**json.loads(head_of(path).read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        return f"{head_of(path)} was changed"
    if head.number > chain.last:
        return f"{path}: the end is missing: the last record was {head.number}"
    if head.number == chain.last and head.hash != chain.hash:
        return f"{path}: the last record is not the one that {head_of(path).name} names"
    return None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _lines(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield f"{path}:{number}", line


def orders(paths: Iterable[Path]) -> list[Json]:
    """Return each order with the status of its answer; None: it was not answered.

    Refused logins are among them, without user.  Raises OSError.
    """
    return _orders(line for _place, line in _lines(paths))


def newest(path: Path, most_bytes: int = 1 << 21) -> tuple[list[Json], bool]:
    """Return the orders at the end of FILE, newest first, and whether these are all.

    Raises OSError.  1 MiB has about 2000 orders.
    """
    with path.open("rb") as file:
        begin = max(file.seek(0, os.SEEK_END) - most_bytes, 0)
        file.seek(begin)
        lines = file.read(most_bytes).splitlines()
    return _orders(lines[bool(begin) :])[::-1], not begin  # the first line may be half of one


def _orders(lines: Iterable[bytes]) -> list[Json]:
    by_request: dict[str, Json] = {}
    for line in lines:
        record = _parsed(line) or {}
        if record.get("kind") == "answered":
            by_request.get(record["request_id"], {})["status"] = record["status"]
        elif record.get("kind") in ("asked", "refused"):
            by_request[record["request_id"]] = {"status": None} | {
                key: value for key, value in record.items() if key not in ("kind", "previous")
            }
    return list(by_request.values())
