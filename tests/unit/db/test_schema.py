from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import bloomery
from bloomery import errors
from bloomery.db import engine, schema, settings, tables
from tests.kit.servers.revisions import Scripts

FIRST = """
    op.create_table("rooms", sa.Column("name", sa.String(9), primary_key=True))
    op.create_table(
        "doors", sa.Column("room", sa.String(9), sa.ForeignKey("rooms.name", ondelete="CASCADE")),
    )
"""
REBUILD = """
    with op.batch_alter_table("rooms") as rooms:
        rooms.alter_column("name", existing_type=sa.String(9), type_=sa.String(99))
    op.add_column("doors", sa.Column("colour", sa.String(9)))
"""
FAIL_MIDWAY = """
    op.create_table("windows", sa.Column("name", sa.String(9)))
    op.execute("INSERT INTO rooms VALUES ('attic')")
    op.execute("SELECT nonsense")
"""
HOME = """
    op.create_table(
        "home", sa.Column("name", sa.String(9), primary_key=True), sa.Column("value", sa.Text)
    )
"""
REVISION_OF_NOTHING = "pass"


@pytest.fixture
def fresh(tmp_path: Path) -> engine.Database:
    return engine.Database(f"sqlite:///{tmp_path}/fresh.sqlite")


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path / "scripts")


def names_in(db: engine.Database) -> set[str]:
    with db.read() as conn:
        return set(conn.exec_driver_sql("SELECT name FROM sqlite_master").scalars())


def test_the_line_names_the_first_and_the_last_of_the_migration_scripts():
    config = Config()
    config.set_main_option("script_location", schema.OURS.scripts)
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_bases() == [schema.FIRST]
    assert scripts.get_heads() == [schema.HEAD]


def test_revisions_are_numbered_so_that_their_names_sort():
    config = Config()
    config.set_main_option("script_location", schema.OURS.scripts)
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert revisions == sorted(revisions, reverse=True)


def is_declared(_item: Any, name: str | None, *_: Any) -> bool:
    """Leave the hosts of BMCs out, which the database computes."""
    return not (name or "").endswith("bmc_host")


def test_the_migrated_schema_is_the_declared_one(db: engine.Database):
    compared = {"compare_type": True, "compare_server_default": True, "include_object": is_declared}
    with db.read() as conn:
        context = MigrationContext.configure(conn, opts=compared)
        assert compare_metadata(context, tables.METADATA) == []


def test_the_triggers_of_migrations_are_the_declared_ones(
    db: engine.Database, fresh: engine.Database
):
    """A revision that rebuilds a table of SQLite drops its triggers, and must create them again."""
    fresh.alter(tables.METADATA.create_all)
    triggers = []
    for each in (db, fresh):
        with each.read() as conn:
            query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            triggers.append(dict(conn.exec_driver_sql(query).tuples().all()))
    assert triggers[0] == triggers[1]
    assert len(triggers[0]) == 3


def test_the_hosts_of_migrations_are_the_declared_ones(db: engine.Database, fresh: engine.Database):
    fresh.alter(tables.METADATA.create_all)
    columns = []
    for each in (db, fresh):
        with each.read() as conn:
            query = "SELECT sql FROM sqlite_master WHERE name = 'nodes'"
            created = conn.exec_driver_sql(query).scalar_one()
            columns.append(created.partition("bmc_host ")[2].partition(" VIRTUAL")[0])
    assert columns[0] == columns[1]
    assert "redfish_address" in columns[0]


def test_sqlite_never_uses_the_number_of_a_trimmed_event_again(db: engine.Database):
    with db.read() as conn:
        created = conn.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'events'")
        assert "AUTOINCREMENT" in created.scalar_one()


def test_a_fresh_database_has_no_schema(fresh: engine.Database):
    assert schema.revision_of(fresh) is None


def test_a_fresh_database_is_refused_with_the_command_to_run(fresh: engine.Database):
    with pytest.raises(errors.SchemaOutdated, match="bloomery db upgrade --state-dir /srv/b"):
        schema.require_head(fresh, state_dir=Path("/srv/b"))


def test_preparing_a_fresh_database_creates_the_schema_without_a_backup(fresh: engine.Database):
    assert schema.prepare(fresh) is None
    assert schema.revision_of(fresh) == schema.HEAD
    schema.require_head(fresh, state_dir=Path("/srv/b"))


def test_a_current_schema_costs_one_statement_and_no_commit(db: engine.Database):
    meter = engine.Meter(db)
    assert schema.prepare(db) is None
    assert len(meter.statements) == 1
    assert meter.commits == 0


def test_a_current_schema_is_recognised_without_alembic(path: Path):
    program = (
        "import sys\nfrom bloomery.db import engine, schema\n"
        f"schema.prepare(engine.Database('sqlite:///{path}'))\n"
        "assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": root()})


def test_dialects_that_are_not_in_use_are_not_imported():
    program = (
        "import sys\nimport bloomery.cmd.service\n"
        "assert 'sqlalchemy.dialects.postgresql' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": root()})


def root() -> str:
    return str(Path(bloomery.__file__).parent.parent)


def test_an_older_schema_is_refused_with_the_command_to_run(
    fresh: engine.Database, scripts: Scripts
):
    schema.upgrade(fresh, line=scripts.add(FIRST))
    with pytest.raises(errors.SchemaOutdated, match=r"its schema is 0001.* needs 0002; run: bloom"):
        schema.require_head(fresh, state_dir=Path("/srv/b"), line=scripts.add(REBUILD))


def test_an_older_schema_is_backed_up_and_brought_up(
    fresh: engine.Database, scripts: Scripts, tmp_path: Path
):
    schema.upgrade(fresh, line=scripts.add(FIRST))
    backup = schema.prepare(fresh, line=scripts.add(REBUILD))
    assert schema.revision_of(fresh) == "0002"
    assert backup is not None
    assert backup.name.startswith("fresh.sqlite.0001-")
    assert schema.revision_of(engine.Database(f"sqlite:///{backup}")) == "0001"


def test_a_table_that_is_rebuilt_keeps_the_rows_that_refer_to_it(
    fresh: engine.Database, scripts: Scripts
):
    schema.upgrade(fresh, line=scripts.add(FIRST))
    fresh.transact(lambda conn: conn.exec_driver_sql("INSERT INTO rooms VALUES ('hall')"))
    fresh.transact(lambda conn: conn.exec_driver_sql("INSERT INTO doors VALUES ('hall')"))
    schema.upgrade(fresh, line=scripts.add(REBUILD))
    with fresh.read() as conn:
        assert conn.exec_driver_sql("SELECT * FROM doors").all() == [("hall", None)]


def test_a_migration_that_fails_midway_leaves_nothing_of_any(
    fresh: engine.Database, scripts: Scripts
):
    scripts.add(FIRST)
    with pytest.raises(errors.CannotStart, match="cannot bring the schema from nothing to 0002"):
        schema.upgrade(fresh, line=scripts.add(FAIL_MIDWAY))
    assert names_in(fresh) == set()
    assert schema.revision_of(fresh) is None


def test_a_migration_that_fails_midway_leaves_the_older_schema_as_it_was(
    fresh: engine.Database, scripts: Scripts
):
    schema.upgrade(fresh, line=scripts.add(FIRST))
    before = names_in(fresh)
    with pytest.raises(errors.CannotStart, match="from 0001 to 0002"):
        schema.prepare(fresh, line=scripts.add(FAIL_MIDWAY))
    assert schema.revision_of(fresh) == "0001"
    assert names_in(fresh) == before
    with fresh.read() as conn:
        assert conn.exec_driver_sql("SELECT * FROM rooms").all() == []


def set_revision(db: engine.Database, revision: str) -> None:
    update = sa.text("UPDATE alembic_version SET version_num = :r")
    db.transact(lambda conn: conn.execute(update, {"r": revision}))


def test_a_newer_schema_that_only_added_something_is_used_and_not_touched(
    db: engine.Database, caplog: pytest.LogCaptureFixture
):
    set_revision(db, "9998")
    db.transact(lambda conn: settings.put(conn, "contracted_at", schema.HEAD))
    schema.require_head(db, state_dir=Path("/srv/b"))
    schema.upgrade(db)
    assert schema.prepare(db) is None
    assert schema.revision_of(db) == "9998"
    assert caplog.messages[0].startswith("the schema is 9998: a newer release brought it up")


def test_a_revision_that_takes_something_away_is_noted(fresh: engine.Database, scripts: Scripts):
    old = scripts.add(HOME)
    schema.upgrade(fresh, line=scripts.add(REVISION_OF_NOTHING))
    schema.require_head(fresh, state_dir=Path("/srv/b"), line=old)
    schema.upgrade(fresh, line=scripts.add(REVISION_OF_NOTHING, kind="contract"))
    schema.upgrade(fresh, line=scripts.add(REVISION_OF_NOTHING))
    with fresh.read() as conn:
        assert settings.find(conn, "contracted_at") == "0003"
    with pytest.raises(errors.SchemaOutdated, match=r"schema is 0004.* a newer release wrote it"):
        schema.require_head(fresh, state_dir=Path("/srv/b"), line=old)


def test_every_revision_says_whether_older_releases_can_use_it():
    config = Config()
    config.set_main_option("script_location", schema.OURS.scripts)
    for script in ScriptDirectory.from_config(config).walk_revisions():
        assert script.module.kind in ("expand", "contract"), script.path


def test_the_command_to_run_repeats_what_was_asked(fresh: engine.Database):
    files = ["/etc/bloomery.conf", "/etc/my secrets.conf"]
    told = r"--state-dir /srv/b --config-file /etc/bloomery.conf --config-file '/etc/my secrets.c"
    with pytest.raises(errors.SchemaOutdated, match=told):
        schema.require_head(fresh, state_dir=Path("/srv/b"), config_files=files)


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        ("9999", "a newer release wrote it"),
        ("d163df1bab88", "no release of Bloomery calls a schema d163df1bab88: name a database"),
        ("0003abcdef12", "no release of Bloomery calls a schema 0003abcdef12: name a database"),
        ("0001", "schema is 0001, .* run bloomery db upgrade of an earlier release"),
        ("0012", "schema is 0012, .* an earlier release, which brings it to 0013, then start this"),
    ],
)
def test_a_schema_that_no_upgrade_makes_usable_is_refused_and_not_touched(
    db: engine.Database, revision: str, message: str
):
    set_revision(db, revision)
    db.transact(lambda conn: settings.put(conn, "contracted_at", "9999"))
    for refuse in (schema.prepare, schema.upgrade):
        with pytest.raises(errors.SchemaOutdated, match=message):
            refuse(db)
    with pytest.raises(errors.SchemaOutdated, match=message):
        schema.require_head(db, state_dir=Path("/srv/b"))
    assert schema.revision_of(db) == revision


def test_a_database_of_somebody_else_is_refused_and_not_touched(fresh: engine.Database):
    fresh.transact(lambda conn: conn.exec_driver_sql("CREATE TABLE nodes (mine TEXT)"))
    with pytest.raises(errors.CannotStart, match=r"table nodes already exists; if .* an empty one"):
        schema.prepare(fresh)
    assert names_in(fresh) == {"nodes"}


def test_a_settled_fact_stays(db: engine.Database):
    assert db.transact(lambda conn: settings.settle(conn, "name", "first")) == "first"
    assert db.transact(lambda conn: settings.settle(conn, "name", "second")) == "first"
