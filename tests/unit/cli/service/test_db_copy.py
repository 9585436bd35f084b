"""``bloomery db copy``: what an operator types, reads and is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bloomery.cli import main
from bloomery.conf.default import Database as Settings
from bloomery.db.engine import Database
from bloomery.state_dir import StateDir
from tests.kit.servers import filled


def run(*args: object, **env: str) -> Result:
    return CliRunner(env=env).invoke(main.main, [str(arg) for arg in args], terminal_width=200)


def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    assert run("db", "upgrade", "--state-dir", folder).exit_code == 0
    db = Database(url(folder / "bloomery.sqlite"))
    filled.fill(db, 2)
    db.backup(folder / "filled.sqlite")
    db.close()
    return folder / "filled.sqlite"


@pytest.fixture
def source(filled_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "state" / "bloomery.sqlite"
    path.parent.mkdir()
    return Path(shutil.copy(filled_file, path))


def test_a_file_is_copied_to_a_new_one_for_our_eyes_alone(source: Path, tmp_path: Path):
    target = tmp_path / "target.sqlite"
    result = run("db", "copy", "--from", url(source), "--to", url(target))
    assert result.exit_code == 0, result.output
    assert "equal in both" in result.output
    assert f"{url(target)} has what {url(source)} has" in result.output
    assert target.stat().st_mode & 0o777 == 0o600
    assert filled.contents(Database(url(target))) == filled.contents(Database(url(source)))


def test_urls_may_come_as_variables(source: Path, tmp_path: Path):
    env = {"BLOOMERY_COPY_FROM": url(source), "BLOOMERY_COPY_TO": url(tmp_path / "new.sqlite")}
    assert run("db", "copy", **env).exit_code == 0


def test_a_file_that_a_process_serves_from_is_refused(source: Path, tmp_path: Path):
    with StateDir(source.parent) as home:
        home.open_database(Settings())
        result = run("db", "copy", "--from", url(source), "--to", url(tmp_path / "new.sqlite"))
    assert result.exit_code == 1
    assert f"{source}: process " in result.stderr


def test_a_file_that_is_not_there_is_refused_and_not_made(tmp_path: Path):
    nowhere = tmp_path / "nowhere.sqlite"
    result = run("db", "copy", "--from", url(nowhere), "--to", url(tmp_path / "new.sqlite"))
    assert result.exit_code == 1
    assert f"cannot find the database {nowhere}" in result.stderr
    assert not nowhere.exists()


def test_a_target_that_cannot_be_made_is_named(source: Path, tmp_path: Path):
    result = run("db", "copy", "--from", url(source), "--to", url(tmp_path / "no" / "new.sqlite"))
    assert result.exit_code == 1
    assert "no/new.sqlite: No such file or directory; name another file" in result.stderr


def test_a_password_is_not_repeated(source: Path):
    server = "postgresql+psycopg://bloomery:hunter2@127.0.0.1:1/bloomery"
    result = run("db", "copy", "--from", url(source), "--to", server)
    assert result.exit_code == 1
    assert "bloomery:***@127.0.0.1:1/bloomery" in result.stderr
    assert "hunter2" not in result.output


def test_the_same_file_twice_is_refused(source: Path):
    result = run("db", "copy", "--from", url(source), "--to", url(source))
    assert result.exit_code == 1
