from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml
from cryptography.fernet import Fernet

import bloomery
from bloomery import errors, state_dir
from bloomery.conf.default import Database as Settings
from bloomery.db import engine, schema, settings
from bloomery.db.site_file import Record, SiteFile
from bloomery.db.tables import SETTINGS
from bloomery.state_dir import StateDir

HOLDER = """
import sys
from pathlib import Path
from bloomery.conf.default import Database
from bloomery.db import schema
from bloomery.state_dir import StateDir
home = StateDir(Path(sys.argv[1]))
home.take()
if sys.argv[2:]:
    db = home.open_database(Database(connection=sys.argv[2] or None))
    schema.prepare(db)
    home.sealer(db)
print("taken", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(path: Path, *database: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has taken the state dir, until its standard input is closed.

    ``database``: the URL of the one that it has opened, "" for that of the state dir.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), *database],
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
def taken(tmp_path: Path) -> Iterator[StateDir]:
    with StateDir(tmp_path / "state") as taken:
        yield taken


@pytest.fixture
def db(taken: StateDir) -> Iterator[engine.Database]:
    database = taken.open_database(Settings())
    schema.prepare(database)
    yield database
    database.close()


def test_the_default_follows_the_xdg_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_dir.default_path() == tmp_path / "bloomery"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert state_dir.default_path() == Path.home() / ".local/state/bloomery"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_dir.default_path() == Path.home() / ".local/state/bloomery"


def test_nothing_is_made_before_it_is_taken(tmp_path: Path):
    StateDir(tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_what_it_makes_is_for_its_owner_alone(taken: StateDir, db: engine.Database):
    taken.sealer(db)
    modes = {path: path.stat().st_mode & 0o777 for path in (taken.path, *taken.path.rglob("*"))}
    assert {modes[path] for path in modes if path.is_dir()} == {0o700}
    assert {modes[path] for path in modes if path.is_file()} == {0o600}


def test_a_second_process_is_told_the_pid_of_the_first(tmp_path: Path):
    with another_process(tmp_path) as first:
        with pytest.raises(errors.StateDirInUse, match=f"process {first.pid} already serves"):
            StateDir(tmp_path).take()
        with pytest.raises(errors.StateDirInUse, match=f"process {first.pid} already serves"):
            StateDir(tmp_path).take()


def test_kill_9_frees_the_state_dir(tmp_path: Path):
    with another_process(tmp_path) as first:
        first.kill()
        first.wait()
        with StateDir(tmp_path):
            assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_whoever_removes_the_lock_file_is_still_refused_the_database(tmp_path: Path):
    with another_process(tmp_path, "") as first:
        (tmp_path / "lock").unlink()
        with (
            StateDir(tmp_path) as second,
            pytest.raises(errors.DatabaseInUse, match=f"{tmp_path}/bloomery.sqlite.* {first.pid} "),
        ):
            second.open_database(Settings())


def test_two_state_dirs_do_not_share_a_database(tmp_path: Path):
    shared = tmp_path / "shared.sqlite"
    with another_process(tmp_path / "one", f"sqlite:///{shared}") as first:
        (tmp_path / "link.sqlite").symlink_to(shared)
        (tmp_path / "hard.sqlite").hardlink_to(shared)
        with StateDir(tmp_path / "two") as second:
            for name in ("shared.sqlite", "link.sqlite", "hard.sqlite"):
                with pytest.raises(errors.DatabaseInUse, match=f"process {first.pid} "):
                    second.open_database(Settings(connection=f"sqlite:///{tmp_path}/{name}"))


def test_the_end_of_a_process_frees_its_database(tmp_path: Path):
    with another_process(tmp_path, "") as first:
        first.kill()
        first.wait()
        with StateDir(tmp_path) as second:
            second.open_database(Settings()).close()
    with StateDir(tmp_path) as third:
        third.open_database(Settings()).close()


def test_a_lock_file_that_was_replaced_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Between opening and locking somebody removes the file: the lock would be on nothing."""
    plain = fcntl.flock

    def removed_first(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", plain)
        (tmp_path / "lock").unlink()
        plain(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    with StateDir(tmp_path), pytest.raises(errors.StateDirInUse, match=f"process {os.getpid()}"):
        StateDir(tmp_path).take()


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that kill -9 leaves, with a commit after the checkpoint; and an earlier backup."""
    folder = tmp_path_factory.mktemp("crashed")
    with StateDir(folder / "live") as home:
        db = home.open_database(Settings())
        schema.prepare(db)
        home.recognise(db)
        home.sealer(db)
        db.backup(home.path / "backup")
        home.site.checkpoint(db)
        db.transact(lambda conn: settings.put(conn, "last", "commit"))
        return Path(shutil.copytree(home.path, folder / "state"))


@pytest.fixture
def state(crashed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(crashed, tmp_path / "state"))


def database_of(path: Path) -> engine.Database:
    return engine.Database(f"sqlite:///{path}/bloomery.sqlite")


def start(path: Path) -> str | None:
    """Start as a service does; return the last commit."""
    with StateDir(path) as home:
        db = home.open_database(Settings())
        schema.prepare(db)
        home.recognise(db)
        home.sealer(db)
        with db.read() as conn:
            last = settings.find(conn, "last")
        db.close()
    return last


def lose_log(path: Path) -> None:
    (path / "bloomery.sqlite-wal").unlink()
    (path / "bloomery.sqlite-shm").unlink()


def put_backup(path: Path) -> None:
    lose_log(path)
    (path / "backup").replace(path / "bloomery.sqlite")


def empty(path: Path) -> None:
    lose_log(path)
    with sqlite3.connect(path / "bloomery.sqlite") as conn:
        conn.execute("PRAGMA writable_schema=ON")
        conn.execute("DELETE FROM sqlite_master")


def forget(path: Path, *names: str) -> None:
    """Turn the database into another one, as if it had been made anew."""
    db = database_of(path)
    db.transact(lambda conn: conn.execute(sa.delete(SETTINGS).where(SETTINGS.c.name.in_(names))))
    db.close()


def make_anew(path: Path) -> None:
    forget(path, "site", "key_id")


def put_another(path: Path) -> None:
    db = database_of(path)
    db.transact(lambda conn: settings.put(conn, "site", "another"))
    db.close()


@pytest.mark.parametrize(
    ("lose", "reason"),
    [
        (lose_log, "lacks the last writes.*-wal.*put that one back.*or move .*/site away"),
        (put_backup, "lacks the last writes, as a backup does"),
        (empty, "which is empty.*put back its backup"),
        (make_anew, "it is empty.*put that one back"),
        (put_another, "that of another site.*put that one back"),
        (lambda path: (path / "site").write_text("{"), "cannot read .*/site.*put it back"),
    ],
    ids=["log", "backup", "empty", "anew", "another", "record"],
)
def test_a_start_refuses_another_database_than_the_last_one(
    state: Path, lose: Callable[[Path], object], reason: str
):
    lose(state)
    with pytest.raises(errors.CannotStart, match=reason):
        start(state)


def fresh_state_dir(path: Path) -> None:
    """Keep what the guide names: the backup as the database, and the key."""
    put_backup(path)
    (path / "site").unlink()


@pytest.mark.parametrize(
    ("change", "last"),
    [
        (lambda _path: None, "commit"),
        (lambda path: database_of(path).close(), "commit"),
        (lambda path: (path / "site").unlink(), "commit"),
        (lambda path: forget(path, "site"), "commit"),
        (fresh_state_dir, None),
    ],
    ids=["kill -9", "opened by a tool", "no record", "of an older release", "backup"],
)
def test_a_start_goes_on_with_the_database_of_the_site(
    state: Path, change: Callable[[Path], object], last: str | None
):
    change(state)
    assert start(state) == last
    assert start(state) == last
    assert (state / "site").exists()


@pytest.mark.parametrize("left", [None, b""], ids=["gone", "empty"])
@pytest.mark.parametrize("url", [None, "sqlite:///{}/elsewhere.sqlite"])
def test_a_lost_database_is_missed_and_not_made_anew(
    taken: StateDir, tmp_path: Path, left: bytes | None, url: str | None
):
    settings = Settings(connection=url and url.format(tmp_path))
    path = tmp_path / "elsewhere.sqlite" if url else taken.database
    first = taken.open_database(settings)
    schema.prepare(first)
    taken.sealer(first)
    first.close()
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    with pytest.raises(errors.CannotStart, match=f"{path}.*{taken.key}.*put back its backup"):
        taken.open_database(settings)
    assert path.exists() == (left is not None)
    taken.key.unlink()
    schema.prepare(taken.open_database(settings))


def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path: Path):
    first = StateDir(tmp_path)
    first.take()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
        first.leave()
        with StateDir(tmp_path):
            pass


def test_who_leaves_lets_the_next_one_in(tmp_path: Path):
    with StateDir(tmp_path):
        pass
    with StateDir(tmp_path) as again:
        with pytest.raises(errors.StateDirInUse, match=f"process {os.getpid()}"):
            StateDir(tmp_path).take()
        again.leave()
        again.leave()
    with StateDir(tmp_path):
        pass


@pytest.mark.parametrize("path", ["/proc/bloomery", "/dev/null", "/dev/null/below"])
def test_a_place_that_cannot_be_a_state_dir_is_named_in_one_sentence(path: str):
    with pytest.raises(errors.CannotStart, match=f"cannot use the state dir {path}: .*state-dir"):
        StateDir(Path(path)).take()


def test_a_full_disk_is_named(taken: StateDir):
    taken.clouds.with_suffix(f".{os.getpid()}.new").symlink_to("/dev/full")
    with pytest.raises(errors.CannotStart, match=r"No space left on .*; free some space, or "):
        taken.write_clouds("http://127.0.0.1:6385", "http://127.0.0.1:8004")
    assert not taken.clouds.exists()


def test_the_configured_database_is_the_one_that_is_opened(taken: StateDir, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/elsewhere.sqlite"
    db = taken.open_database(Settings(connection=url))
    assert str(db.url) == url
    assert not taken.database.exists()


def test_a_path_with_odd_characters_is_a_path(tmp_path: Path):
    with StateDir(tmp_path / "a ?#%41;ü") as odd:
        db = odd.open_database(Settings())
        schema.prepare(db)
        db.close()
        assert odd.database.stat().st_size > 0


def test_a_database_that_is_not_there_is_not_made_by_looking_for_it(taken: StateDir):
    with pytest.raises(errors.CannotStart, match="bloomery db upgrade --state-dir"):
        taken.existing_database(Settings())
    assert not taken.database.exists()


def test_the_key_is_made_once_and_known_to_the_database(taken: StateDir, db: engine.Database):
    sealer = taken.sealer(db)
    assert taken.sealer(db).key_id == sealer.key_id
    assert taken.sealer(db).open(sealer.seal({"password": "x"})) == {"password": "x"}


def test_the_key_of_a_known_database_costs_one_statement(taken: StateDir, db: engine.Database):
    taken.sealer(db)
    meter = engine.Meter(db)
    taken.sealer(db)
    assert len(meter.statements) == 1
    assert meter.commits == 0


def test_a_lost_key_is_missed_and_never_replaced(taken: StateDir, db: engine.Database):
    key_id = taken.sealer(db).key_id
    taken.key.unlink()
    with pytest.raises(errors.KeyMissing, match=f"key {key_id}, but {taken.key} is not there"):
        taken.sealer(db)
    assert not taken.key.exists()


def test_another_key_is_refused_and_kept(taken: StateDir, db: engine.Database):
    key_id = taken.sealer(db).key_id
    other = Fernet.generate_key()
    taken.key.write_bytes(other)
    with pytest.raises(errors.KeyMissing, match=f"key {key_id}, but .* holds key"):
        taken.sealer(db)
    assert taken.key.read_bytes() == other


def test_a_file_that_holds_no_key_is_named(taken: StateDir, db: engine.Database):
    taken.key.write_text("hunter2")
    with pytest.raises(errors.CannotStart, match="does not hold a key"):
        taken.sealer(db)
    assert taken.key.read_text() == "hunter2"


def test_a_key_from_a_backup_is_used_by_a_database_that_knows_none(
    taken: StateDir, db: engine.Database
):
    taken.key.write_bytes(Fernet.generate_key() + b"\n")
    assert taken.sealer(db).key_id == taken.sealer(db).key_id


def test_clouds_without_a_login(taken: StateDir):
    path = taken.write_clouds("http://127.0.0.1:6385", "http://127.0.0.1:8004")
    assert yaml.safe_load(path.read_text())["clouds"]["bloomery"] == {
        "auth_type": "none",
        "auth": {"endpoint": "http://127.0.0.1:8004/v1/admin"},
        "baremetal_endpoint_override": "http://127.0.0.1:6385",
        "orchestration_endpoint_override": "http://127.0.0.1:8004/v1/admin",
    }


def test_clouds_with_a_login_name_the_user_and_no_password(taken: StateDir):
    path = taken.write_clouds("http://[::1]:6385", "http://[::1]:8004", username='odd "name": #1')
    assert yaml.safe_load(path.read_text())["clouds"]["bloomery"] == {
        "auth_type": "http_basic",
        "auth": {"endpoint": "http://[::1]:8004/v1/admin", "username": 'odd "name": #1'},
        "baremetal_endpoint_override": "http://[::1]:6385",
        "orchestration_endpoint_override": "http://[::1]:8004/v1/admin",
    }


def test_clouds_of_an_earlier_start_are_replaced(taken: StateDir):
    taken.write_clouds("http://127.0.0.1:1", "http://127.0.0.1:3")
    text = taken.write_clouds("http://127.0.0.1:2", "http://127.0.0.1:4").read_text()
    assert "127.0.0.1:1" not in text


@pytest.mark.parametrize("name", ["site", "clouds.yaml"])
def test_processes_that_start_at_once_write_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Workers of one API share a state dir: here another writes just before the first is done."""
    pids, replace = iter((1, 2)), Path.replace
    monkeypatch.setattr(os, "getpid", lambda: next(pids))

    def write() -> None:
        if name == "site":
            SiteFile(tmp_path / name)._write(Record(site="one", checkpoint=0))
        else:
            StateDir(tmp_path).write_clouds("http://127.0.0.1:6385", "http://127.0.0.1:8004")

    def replace_late(fresh: Path, path: Path) -> None:
        monkeypatch.setattr(Path, "replace", replace)
        write()
        replace(fresh, path)

    monkeypatch.setattr(Path, "replace", replace_late)
    write()
    assert [each.name for each in tmp_path.iterdir()] == [name]
