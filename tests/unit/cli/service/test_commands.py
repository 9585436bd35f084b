from __future__ import annotations

import importlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import bloomery
from bloomery.cli import main
from bloomery.conf.default import Database
from bloomery.db import event_cursors, schema
from bloomery.state_dir import StateDir


def run(*args: object) -> Result:
    return CliRunner().invoke(main.main, [str(arg) for arg in args])


def in_process(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(Path(bloomery.__file__).parent.parent)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    assert run("db", "upgrade", "--state-dir", path).exit_code == 0
    return path


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_of_the_table_is_there(name: str):
    module, function = main.COMMANDS[name].target.split(":")
    found = getattr(importlib.import_module(f"bloomery.cli.{module}"), function)
    assert isinstance(found, click.Command)
    assert found.name == name


def test_help_names_every_command_and_imports_none():
    printed = in_process(
        "import sys\nfrom bloomery.cli import main\n"
        "main.main(['--help'], standalone_mode=False)\n"
        "heavy = {'sqlalchemy', 'oslo_config', 'alembic', 'pecan'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert sys.modules['eventlet'] is None",
    )
    for name, command in main.COMMANDS.items():
        assert f"  {name}" in printed
        assert command.help in printed


@pytest.mark.parametrize("role", ["api", "engine"])
def test_roles_without_a_conductor_import_none(role: str):
    in_process(
        "import sys\nfrom bloomery.cli import main\n"
        f"main.main.get_command(None, {role!r})\n"
        "rooms = ('bloomery.conductor.', 'bloomery.drivers.agent', 'bloomery.drivers.fake')\n"
        "modules = {name for name in sys.modules if name.startswith(rooms)}\n"
        "assert modules == {'bloomery.conductor.states'}, modules",
    )


def test_version_is_printed():
    assert run("--version").output == f"bloomery, version {bloomery.__version__}\n"


def test_an_unknown_command_is_refused():
    result = run("nonsense")
    assert result.exit_code == 2
    assert "nonsense" in result.output


def test_oslo_messaging_finds_threads_and_no_eventlet():
    in_process(
        "import sys\nfrom bloomery.cmd import threads\n"
        "threads.use_threads()\nthreads.use_threads()\n"
        "import oslo_messaging, futurist\nfrom oslo_service import backend\n"
        "assert backend.get_backend_type() is backend.BackendType.THREADING\n"
        "assert sys.modules['eventlet'] is None\n"
        "assert not [name for name in sys.modules if name.startswith('eventlet.')]",
    )


def test_a_refusal_is_one_sentence_on_stderr_and_exit_code_1(tmp_path: Path):
    result = run("db", "check", "--state-dir", tmp_path / "nowhere")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: cannot find a database in {tmp_path}/nowhere")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(main.COMMANDS, "bug", main.Command("no.such:module", ""))
    assert isinstance(run("bug").exception, ModuleNotFoundError)


def test_upgrade_makes_a_database_that_check_accepts(state: Path):
    checked = run("db", "check", "--state-dir", state)
    assert checked.exit_code == 0
    assert schema.HEAD in checked.output
    assert run("db", "upgrade", "--state-dir", state).exit_code == 0


def test_check_and_upgrade_tell_the_newer_schema_that_is_there(state: Path):
    with sqlite3.connect(state / "bloomery.sqlite") as conn:
        conn.execute("UPDATE alembic_version SET version_num = '9998'")
    conn.close()
    checked = run("db", "check", "--state-dir", state)
    assert "the schema is 9998, which this release can use" in checked.output
    assert "the schema is 9998" in run("db", "upgrade", "--state-dir", state).output


def test_version_tells_what_is_there_and_what_is_needed(state: Path):
    printed = run("db", "version", "--state-dir", state).output
    assert printed == f"found {schema.HEAD}, needed {schema.HEAD}\n"


def test_an_upgrade_under_a_running_service_is_refused(state: Path):
    with StateDir(state):
        result = run("db", "upgrade", "--state-dir", state)
    assert result.exit_code == 1
    assert "already serves from it" in result.stderr


def test_a_backup_is_taken_under_a_running_service_and_names_the_key(state: Path, tmp_path: Path):
    with StateDir(state) as home:
        result = run("db", "backup", tmp_path / "copy", "--state-dir", state)
    assert result.exit_code == 0
    assert str(tmp_path / "copy") in result.output
    assert str(home.key) in result.output
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600


def test_a_backup_does_not_overwrite(state: Path, tmp_path: Path):
    (tmp_path / "precious").write_text("mine")
    result = run("db", "backup", tmp_path / "precious", "--state-dir", state)
    assert result.exit_code == 1
    assert (tmp_path / "precious").read_text() == "mine"


def test_the_database_may_be_configured(tmp_path: Path):
    config = tmp_path / "b.conf"
    config.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/elsewhere.sqlite\n")
    where = ("--state-dir", tmp_path / "state", "--config-file", config)
    assert run("db", "upgrade", *where).exit_code == 0
    assert run("db", "check", *where).exit_code == 0
    assert (tmp_path / "elsewhere.sqlite").exists()


def test_a_configured_sqlite_file_is_not_upgraded_under_a_running_service(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/elsewhere.sqlite"
    (tmp_path / "b.conf").write_text(f"[database]\nconnection = {url}\n")
    with StateDir(tmp_path / "one") as home:
        home.open_database(Database(connection=url))
        where = ("--state-dir", tmp_path / "two", "--config-file", tmp_path / "b.conf")
        result = run("db", "upgrade", *where)
    assert result.exit_code == 1
    assert "elsewhere.sqlite" in result.stderr


def test_a_wrong_option_is_one_sentence(tmp_path: Path):
    config = tmp_path / "b.conf"
    config.write_text("[api]\nport = abc\n")
    result = run("db", "check", "--config-file", config)
    assert result.exit_code == 1
    assert "group [api]: Value for option port" in result.stderr


def test_sinks_of_events_are_listed_and_forgotten(state: Path):
    with StateDir(state) as home:
        db = home.open_database(Database())
        db.transact(lambda conn: event_cursors.add_missing(conn, ["log"]))
        db.close()
    listed = run("events", "sinks", "--state-dir", state).output
    assert listed == "log: 0 behind 0, carried by nobody, moved never\n"
    assert "kept for log" in run("events", "forget", "log", "--state-dir", state).output
    none = run("events", "sinks", "--state-dir", state)
    assert (none.stdout, none.stderr.startswith("no sinks: ")) == ("", True)
    again = run("events", "forget", "log", "--state-dir", state)
    assert (again.exit_code, "there is no such sink" in again.stderr) == (1, True)
