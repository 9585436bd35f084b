from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from cryptography.fernet import Fernet

import bloomery
from bloomery import errors, home
from bloomery.conf.database import Database as Settings
from bloomery.db import engine, schema
from bloomery.home import Home

HOLDER = """
import sys
from pathlib import Path
from bloomery.home import Home
Home(Path(sys.argv[1])).take()
print("taken", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has taken the state dir, until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        env={"PYTHONPATH": str(Path(bloomery.__file__).parent.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        yield process


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path / "state") as taken:
        yield taken


@pytest.fixture
def db(taken: Home) -> Iterator[engine.Database]:
    database = taken.open_database(Settings())
    schema.prepare(database)
    yield database
    database.close()


def test_the_default_follows_the_xdg_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert home.default_path() == tmp_path / "bloomery"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert home.default_path() == Path.home() / ".local/state/bloomery"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert home.default_path() == Path.home() / ".local/state/bloomery"


def test_nothing_is_made_before_it_is_taken(tmp_path: Path):
    Home(tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_what_it_makes_is_for_its_owner_alone(taken: Home, db: engine.Database):
    taken.sealer(db)
    modes = {path: path.stat().st_mode & 0o777 for path in (taken.path, *taken.path.rglob("*"))}
    assert {modes[path] for path in modes if path.is_dir()} == {0o700}
    assert {modes[path] for path in modes if path.is_file()} == {0o600}


def test_a_second_process_is_told_the_pid_of_the_first(tmp_path: Path):
    with another_process(tmp_path) as first:
        with pytest.raises(errors.StateDirInUse, match=f"process {first.pid} already serves"):
            Home(tmp_path).take()
        with pytest.raises(errors.StateDirInUse, match=f"process {first.pid} already serves"):
            Home(tmp_path).take()


def test_kill_9_frees_the_state_dir(tmp_path: Path):
    with another_process(tmp_path) as first:
        first.kill()
        first.wait()
        with Home(tmp_path):
            assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path: Path):
    first = Home(tmp_path)
    first.take()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
        first.leave()
        with Home(tmp_path):
            pass


def test_who_leaves_lets_the_next_one_in(tmp_path: Path):
    with Home(tmp_path):
        pass
    with Home(tmp_path) as again:
        with pytest.raises(errors.StateDirInUse, match=f"process {os.getpid()}"):
            Home(tmp_path).take()
        again.leave()
        again.leave()
    with Home(tmp_path):
        pass


@pytest.mark.parametrize("path", ["/proc/bloomery", "/dev/null", "/dev/null/below"])
def test_a_place_that_cannot_be_a_state_dir_is_named_in_one_sentence(path: str):
    with pytest.raises(errors.CannotStart, match=f"cannot use the state dir {path}: .*state-dir"):
        Home(Path(path)).take()


def test_a_full_disk_is_named(taken: Home):
    taken.clouds.with_suffix(".new").symlink_to("/dev/full")
    with pytest.raises(errors.CannotStart, match=r"No space left on device .*; free some space"):
        taken.write_clouds("http://127.0.0.1:6385")
    assert not taken.clouds.exists()


def test_the_configured_database_is_the_one_that_is_opened(taken: Home, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/elsewhere.sqlite"
    db = taken.open_database(Settings(connection=url))
    assert str(db.url) == url
    assert not taken.database.exists()


def test_a_path_with_odd_characters_is_a_path(tmp_path: Path):
    with Home(tmp_path / "a ?#%41;ü") as odd:
        db = odd.open_database(Settings())
        schema.prepare(db)
        db.close()
        assert odd.database.stat().st_size > 0


def test_a_database_that_is_not_there_is_not_made_by_looking_for_it(taken: Home):
    with pytest.raises(errors.CannotStart, match="bloomery db upgrade --state-dir"):
        taken.existing_database(Settings())
    assert not taken.database.exists()


def test_the_key_is_made_once_and_known_to_the_database(taken: Home, db: engine.Database):
    sealer = taken.sealer(db)
    assert taken.sealer(db).key_id == sealer.key_id
    assert taken.sealer(db).open(sealer.seal({"password": "x"})) == {"password": "x"}


def test_the_key_of_a_known_database_costs_one_statement(taken: Home, db: engine.Database):
    taken.sealer(db)
    meter = engine.Meter(db)
    taken.sealer(db)
    assert len(meter.statements) == 1
    assert meter.commits == 0


def test_a_lost_key_is_missed_and_never_replaced(taken: Home, db: engine.Database):
    key_id = taken.sealer(db).key_id
    taken.key.unlink()
    with pytest.raises(errors.KeyMissing, match=f"key {key_id}, but {taken.key} is not there"):
        taken.sealer(db)
    assert not taken.key.exists()


def test_another_key_is_refused_and_kept(taken: Home, db: engine.Database):
    key_id = taken.sealer(db).key_id
    other = Fernet.generate_key()
    taken.key.write_bytes(other)
    with pytest.raises(errors.KeyMissing, match=f"key {key_id}, but .* holds key"):
        taken.sealer(db)
    assert taken.key.read_bytes() == other


def test_a_file_that_holds_no_key_is_named(taken: Home, db: engine.Database):
    taken.key.write_text("hunter2")
    with pytest.raises(errors.CannotStart, match="does not hold a key"):
        taken.sealer(db)
    assert taken.key.read_text() == "hunter2"


def test_a_key_from_a_backup_is_used_by_a_database_that_knows_none(
    taken: Home, db: engine.Database
):
    taken.key.write_bytes(Fernet.generate_key() + b"\n")
    assert taken.sealer(db).key_id == taken.sealer(db).key_id


def test_clouds_without_a_login(taken: Home):
    path = taken.write_clouds("http://127.0.0.1:6385")
    assert yaml.safe_load(path.read_text())["clouds"]["bloomery"] == {
        "auth_type": "none",
        "auth": {"endpoint": "http://127.0.0.1:6385"},
        "baremetal_endpoint_override": "http://127.0.0.1:6385",
    }


def test_clouds_with_a_login_name_the_user_and_no_password(taken: Home):
    path = taken.write_clouds("http://[::1]:6385", username='odd "name": #1')
    assert yaml.safe_load(path.read_text())["clouds"]["bloomery"] == {
        "auth_type": "http_basic",
        "auth": {"endpoint": "http://[::1]:6385", "username": 'odd "name": #1'},
        "baremetal_endpoint_override": "http://[::1]:6385",
    }


def test_clouds_of_an_earlier_start_are_replaced(taken: Home):
    taken.write_clouds("http://127.0.0.1:1")
    text = taken.write_clouds("http://127.0.0.1:2").read_text()
    assert "127.0.0.1:1" not in text
