from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bloomery import key_file, secrets


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "secrets.key"


def test_a_key_is_made_once_for_its_owner_alone(path: Path):
    key_file.make_missing(path)
    key = path.read_bytes()
    key_file.make_missing(path)
    assert path.read_bytes() == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    secrets.Sealer(*key_file.KeyFile(path).read())


def test_a_key_that_is_there_is_never_replaced_by_a_new_one(path: Path):
    path.write_bytes(b"a key")
    with pytest.raises(FileExistsError):
        key_file.make(path)
    assert path.read_bytes() == b"a key"
    assert list(path.parent.iterdir()) == [path]


def test_of_concurrent_creations_the_first_stays(path: Path):
    def make(_number: int) -> bytes:
        key_file.make_missing(path)
        return path.read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(make, range(8)))) == 1


def test_keys_are_read_again_when_the_file_has_changed(path: Path):
    key_file.make(path)
    file = key_file.KeyFile(path)
    (key,) = file.read()
    assert file.changed_keys() is None
    key_file.replace(path, [b"new", key])
    assert file.changed_keys() == [b"new", key]
    assert file.changed_keys() is None
    assert path.stat().st_mode & 0o777 == 0o600
