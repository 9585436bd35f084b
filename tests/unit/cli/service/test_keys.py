"""``bloomery keys``: stages of a rotation, and what a kill leaves."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from cryptography.fernet import Fernet

from bloomery import errors, key_file
from bloomery.cli import main
from bloomery.cli.service import key_rotation, keys
from bloomery.cli.service.key_rotation import Rotation, Stage
from bloomery.conf.default import Database as Settings
from bloomery.db import schema, settings
from bloomery.db.sealed_values import COLUMNS
from bloomery.db.tables import NODES, RUNBOOKS
from bloomery.secrets import Sealer
from bloomery.state_dir import StateDir
from tests.kit.servers import filled


class Killed(BaseException): ...


class Site:
    """A state dir whose database has sealed values in some tables."""

    def __init__(self, path: Path) -> None:
        self.home = StateDir(path)
        self.home.create()
        self.db = self.home.open_database(Settings())
        schema.prepare(self.db)
        filled.fill(self.db, rows=5)
        self.sealer = self.home.sealer(self.db)
        self.old = self.sealer.key_id
        sealed = self.sealer.seal_text("hunter2")
        self.db.transact(lambda conn: self._seal(conn, sealed))
        self.home.leave()

    def _seal(self, conn: sa.Connection, text: str) -> None:
        conn.execute(sa.update(NODES).values(driver_info=text, reservation=None))
        conn.execute(sa.update(RUNBOOKS).values(steps=text))

    def rotation(self, **more) -> Rotation:
        values = {
            "db": self.db, "file": key_file.KeyFile(self.home.key),
            "sealer": self.home.sealer(self.db), "wait": lambda seconds: None,
            "say": lambda line: None, "batch": 2,
        }  # fmt: skip
        return Rotation(**(values | more))

    def rotate(self, **more) -> None:
        keys.run(self.rotation(**more), is_shared=True, is_copied=False, settle_s=0)

    def texts(self) -> list[str]:
        with self.db.read() as conn:
            return [
                text
                for column in (NODES.c.driver_info, RUNBOOKS.c.steps)
                for text in conn.execute(sa.select(column)).scalars()
            ]

    def require_rotated(self) -> None:
        """Assert that the old key is gone, and that the new one opens every value."""
        (key,) = self.home.key.read_bytes().split()
        sealer = Sealer(key)
        assert sealer.key_id != self.old
        assert {sealer.open_text(text) for text in self.texts()} == {"hunter2"}
        with self.db.read() as conn:
            assert settings.find(conn, settings.KEY_ID) == sealer.key_id
            assert not settings.find(conn, settings.FORMER_KEY_ID)
            everything = [
                row for table, c in COLUMNS.items() for row in conn.execute(sa.select(*c))
            ]
        assert self.old not in repr(everything)
        assert self.rotation().stage() is Stage.IDLE


@pytest.fixture
def site(tmp_path: Path):
    site = Site(tmp_path / "state")
    yield site
    site.db.close()


def bloomery(*args: object):
    return CliRunner().invoke(main.main, [str(arg) for arg in args])


def test_a_key_is_written_for_its_owner_alone_and_never_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "site.key"
    assert bloomery("keys", "make", path).exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    key = path.read_bytes()
    again = bloomery("keys", "make", path)
    assert (again.exit_code, path.read_bytes()) == (1, key)
    assert "cannot make the key file" in again.output


def test_the_command_replaces_the_key_of_an_sqlite_site(site: Site) -> None:
    answer = bloomery("keys", "rotate", "--state-dir", site.home.path, "--settle", 0)
    assert answer.exit_code == 0, answer.output
    assert f"key {site.old} is gone" in answer.output
    site.require_rotated()


def test_a_key_that_is_not_the_database_s_is_refused(site: Site) -> None:
    wrong = Fernet.generate_key()
    site.home.key.write_bytes(wrong)
    before = site.texts()
    answer = bloomery("keys", "rotate", "--state-dir", site.home.path, "--settle", 0)
    assert answer.exit_code == 1
    assert f"sealed with key {site.old}" in answer.output
    assert site.home.key.read_bytes() == wrong
    assert site.texts() == before


@pytest.mark.parametrize("number", range(1, 7))
def test_a_kill_after_any_batch_is_made_good(site: Site, number: int) -> None:
    """Five rows of two tables, two rows a batch: six batches."""
    batches = itertools.count(1)

    def kill(table: sa.Table, rows: int) -> None:
        if next(batches) == number:
            raise Killed

    with pytest.raises(Killed):
        site.rotate(on_batch=kill)
    both = site.home.sealer(site.db)
    assert {both.open_text(text) for text in site.texts()} == {"hunter2"}
    site.rotate()
    site.require_rotated()


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", [*range(1, 4), *range(11, 13)])
def test_a_kill_around_any_write_of_a_stage_is_made_good(
    site: Site, monkeypatch, step: int, is_done: bool
) -> None:
    """Steps 1 to 3: the key file, as it is prepared, begins to seal, and loses the old key."""
    files, stores = itertools.count(1), itertools.count(11)

    def killing(write, steps):
        def act(*args):
            dies = next(steps) == step
            if not dies or is_done:
                write(*args)
            if dies:
                raise Killed

        return act

    monkeypatch.setattr(key_file, "replace", killing(key_file.replace, files))
    monkeypatch.setattr(key_rotation, "_name_keys", killing(key_rotation._name_keys, stores))
    monkeypatch.setattr(key_rotation, "_forget", killing(key_rotation._forget, itertools.count(12)))
    with pytest.raises(Killed):
        site.rotate()
    monkeypatch.undo()
    both = site.home.sealer(site.db)
    assert {both.open_text(text) for text in site.texts()} == {"hunter2"}
    site.rotate()
    site.require_rotated()


def test_values_that_a_flow_has_read_before_are_waited_for(site: Site) -> None:
    """A flow writes the value that it has read before its row was sealed anew, and ends."""
    old = site.texts()[0]
    with site.db.read() as conn:
        node = conn.execute(sa.select(NODES.c.uuid).limit(1)).scalar_one()
    row = sa.update(NODES).where(NODES.c.uuid == node)
    site.db.transact(lambda conn: conn.execute(row.values(reservation="host-a")))
    ended, lines = row.values(reservation=None, driver_info=old), []

    def end_flow(seconds: float) -> None:
        if seconds:
            site.db.transact(lambda conn: conn.execute(ended))

    site.rotate(wait=end_flow, say=lines.append)
    assert f"waiting for the flows of 1 locked nodes to end, such as {node}" in lines
    site.require_rotated()


def test_hosts_with_copies_get_each_key_before_it_is_used(site: Site) -> None:
    def go_on(is_copied: bool) -> None:
        keys.run(site.rotation(), is_shared=False, is_copied=is_copied, settle_s=0)

    def ids() -> list[str]:
        return [Sealer(key).key_id for key in site.home.key.read_bytes().split()]

    with pytest.raises(errors.KeysNotCopied, match=r"copy it to every host.*--copied"):
        go_on(is_copied=True)  # of the file as it was before
    assert ids()[0] == site.old
    with pytest.raises(errors.KeysNotCopied):
        go_on(is_copied=False)
    assert ids()[0] == site.old
    with pytest.raises(errors.KeysNotCopied):
        go_on(is_copied=True)
    assert ids()[1] == site.old
    assert all(site.old in text for text in site.texts())
    go_on(is_copied=True)
    site.require_rotated()


def test_a_host_that_has_the_old_key_alone_is_refused_once_the_new_one_seals(site: Site) -> None:
    old = site.home.key.read_bytes()
    with pytest.raises(Killed):
        site.rotate(on_batch=lambda table, rows: (_ for _ in ()).throw(Killed))
    site.home.key.write_bytes(old)
    with pytest.raises(errors.KeyMissing, match="copy it from a host"):
        site.home.sealer(site.db)


def test_two_rotations_of_a_site_cannot_run_at_once(site: Site) -> None:
    with StateDir(site.home.path, role="keys"):
        answer = bloomery("keys", "rotate", "--state-dir", site.home.path, "--settle", 0)
    assert answer.exit_code == 1
    with pytest.raises(errors.RotationElsewhere):
        site.db.transact(lambda conn: key_rotation._name_keys(conn, "another", "key"))
