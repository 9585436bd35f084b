"""The chain of records: what is changed, cut, moved or torn is named."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from bloomery import audit, errors

RECORDS = 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of four records."""
    path = tmp_path / "orders"
    trail = audit.Trail(path)
    for number in range(RECORDS):
        trail.add("asked", {"request_id": f"req-{number}", "user": "ann"}, is_durable=True)
    return path


def faults(*paths: Path, kept: str | None = None) -> str:
    return "\n".join(audit.check(paths, kept).faults)


def test_a_chain_is_whole(path: Path) -> None:
    chain = audit.check([path])
    assert (chain.first, chain.last, chain.faults) == (1, RECORDS, [])
    assert faults(path, kept=chain.hash) == ""
    last = json.loads(path.read_bytes().splitlines()[-1])
    assert (last["number"], last["hash"], last["user"]) == (RECORDS, chain.hash, "ann")
    assert oct(path.stat().st_mode & 0o777) == "0o600"


def test_each_changed_byte_is_named_with_its_line(path: Path) -> None:
    content = path.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        line = content[:place].count(b"\n") + 1
        assert f"{path}:{line}: " in faults(path), (place, content[place : place + 1])


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ((0, 2, 3), ":2: record 3 comes behind record 1"),
        ((0, 2, 1, 3), ":2: record 3 comes behind record 1"),
        ((0, 1, 1, 2, 3), ":3: record 2 comes behind record 2"),
        ((0, 1, 2), "the end is missing: the last record was 4"),
        ((), "the end is missing: the last record was 4"),
    ],
)
def test_removed_moved_and_repeated_records_are_named(
    path: Path, kept: tuple[int, ...], words: str
) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[each] for each in kept))
    assert words in faults(path)


@pytest.mark.parametrize(
    ("kept", "since", "words"),
    [
        (slice(1, None), None, ":1: the beginning is missing: records 1 to 1;"),
        (slice(3, None), None, ":1: the beginning is missing: records 1 to 3;"),
        (slice(3, None), 2, ""),
        (slice(3, None), 1, "the beginning is missing: records 1 to 3"),
    ],
    ids=["one", "three", "removed on purpose", "more than on purpose"],
)
def test_a_beginning_that_is_cut_off_is_named(
    path: Path, kept: slice, since: int | None, words: str
) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[kept]))
    known = None if since is None else json.loads(lines[since])["hash"]
    found = "\n".join(audit.check([path], since=known).faults)
    assert (words in found) if words else not found


def test_a_chain_made_anew_begins_with_another_record_than_the_database_knows(path: Path) -> None:
    anchor = audit.Trail(path).first_hash()
    assert anchor is not None
    assert audit.check([path], anchors=["other host", anchor]).faults == []
    path.unlink()
    audit.head_of(path).unlink()
    audit.Trail(path).add("asked", {})
    [fault] = audit.check([path], anchors=[anchor]).faults
    assert "record 1 is not the one that the database knows" in fault


def test_the_hash_of_a_first_record_is_in_the_first_file_alone(path: Path) -> None:
    path.rename(path.with_name("orders.1"))
    assert audit.Trail(path).first_hash() is None
    audit.Trail(path).add("asked", {})
    assert audit.Trail(path).first_hash() is None


def test_an_end_that_is_cut_off_is_named_after_more_records(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    audit.Trail(path).add("asked", {})
    assert f"record {RECORDS + 1} comes behind record {RECORDS - 1}" in faults(path)


def test_a_chain_made_anew_has_lost_a_kept_hash(path: Path, tmp_path: Path) -> None:
    kept = audit.check([path]).hash
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / path.name
    for number in range(RECORDS):
        audit.Trail(other).add("asked", {"request_id": f"req-{number}", "user": "eve"})
    assert faults(other) == ""
    assert f"no record has the hash {kept}" in faults(other, kept=kept)
    path.write_bytes(other.read_bytes())
    assert "is not the one that orders.head names" in faults(path)
    audit.head_of(path).write_text("{")
    assert "orders.head was changed" in faults(path)


def test_a_file_that_is_moved_away_is_continued(path: Path) -> None:
    old = path.rename(path.with_name("orders.1"))
    audit.Trail(path).add("asked", {})
    chain = audit.check([old, path])
    assert (chain.first, chain.last, chain.faults) == (1, RECORDS + 1, [])
    assert audit.check([path], since=audit.check([old]).hash).first == RECORDS + 1
    assert f"record 1 comes behind record {RECORDS + 1}" in faults(path, old)


def test_half_a_line_is_marked_by_the_next_writer(path: Path) -> None:
    half = b'{"number":5,"at":"20'
    with path.open("ab") as file:
        file.write(half)
    assert ":5: this line is no record" in faults(path)
    audit.Trail(path).add("asked", {})
    chain = audit.check([path])
    assert (chain.last, chain.faults) == (RECORDS + 2, [])
    mark = json.loads(path.read_bytes().splitlines()[RECORDS + 1])
    assert (mark["kind"], mark["sha256"]) == ("torn", hashlib.sha256(half).hexdigest())
    path.write_bytes(path.read_bytes().replace(half, half[:-1] + b"1"))
    assert ":5: this line is no record" in faults(path)


def test_a_crash_before_the_head_is_written_is_made_up_for(path: Path) -> None:
    before = audit.head_of(path).read_bytes()
    audit.Trail(path).add("asked", {})
    for head in (before, b"", b"{"):
        audit.head_of(path).write_bytes(head)
        audit.Trail(path).add("asked", {})
        assert faults(path) == ""
    assert audit.check([path]).last == RECORDS + 4


def test_several_writers_make_one_chain(path: Path) -> None:
    def write() -> None:
        trail = audit.Trail(path)
        for _ in range(20):
            trail.add("asked", {})

    threads = [threading.Thread(target=write) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    chain = audit.check([path])
    assert (chain.last, chain.faults) == (RECORDS + 80, [])


def test_a_write_that_finds_no_room_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, write = path.read_bytes(), os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:9], at))
    with pytest.raises(errors.AuditUnwritable, match="nothing was done: the disk is full"):
        audit.Trail(path).add("asked", {})
    monkeypatch.undo()
    assert path.read_bytes() == before
    audit.Trail(path).add("asked", {})
    assert faults(path) == ""


def test_orders_have_the_status_of_their_answers(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    trail = audit.Trail(path)
    trail.add("started", {"api": "bare metal"})
    trail.add("asked", {"request_id": "req-1", "user": "ann"})
    trail.add("refused", {"request_id": "req-2", "status": 401})
    trail.add("asked", {"request_id": "req-3"})
    trail.add("answered", {"request_id": "req-1", "status": 202})
    orders = audit.orders([path])
    assert [(each["request_id"], each["status"]) for each in orders] == [
        ("req-1", 202), ("req-2", 401), ("req-3", None),
    ]  # fmt: skip
    assert orders[0]["user"] == "ann"
