"""``bloomery status check``: what to see to before an upgrade."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from bloomery import conf
from bloomery.cli.main import main
from bloomery.conductor import process_identity
from bloomery.db import conductors, schema, settings
from bloomery.db.engine import Database
from bloomery.rpc import ring
from bloomery.state_dir import StateDir

SITE_CHECKS = ["configuration", "database schema", "conductors", "options of the site",
               "database connections"]  # fmt: skip


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    assert CliRunner().invoke(main, ["db", "upgrade", "--state-dir", str(path)]).exit_code == 0
    return path


@pytest.fixture
def db(state: Path) -> Database:
    return StateDir(state).existing_database(conf.load().database)


def check(state: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["status", "check", "--state-dir", str(state), *more])


def results(result: Result) -> dict[str, tuple[str, str]]:
    return {each["name"]: (each["result"], each["text"]) for each in json.loads(result.stdout)}


def register(db: Database, host: str, release: str) -> None:
    identity = dataclasses.replace(process_identity.ours(), release=release)
    db.transact(
        lambda conn: conductors.register(
            conn, hostname=host, group="", drivers=[], interfaces=[], process=identity.encoded()
        )
    )


def test_a_site_that_is_ready_is_exit_code_0(state: Path) -> None:
    result = check(state, "--json")
    assert result.exit_code == 0
    assert [name for name, (code, _) in results(result).items() if code == "success"] == SITE_CHECKS
    assert check(state).stdout.count("success") == len(SITE_CHECKS)


def test_an_option_without_effect_is_a_warning(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "site.conf"
    file.write_text("[conductor]\nworkers_pool_sizes = 4\n")
    result = check(state, "--json", "--config-file", str(file))
    assert result.exit_code == 1
    assert "workers_pool_size'" in results(result)["configuration"][1]


def test_an_option_that_cannot_be_used_is_a_failure(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "site.conf"
    file.write_text("[api]\nport = x\n")
    result = check(state, "--json", "--config-file", str(file))
    assert (result.exit_code, list(results(result))) == (2, ["configuration"])


def test_a_missing_database_is_a_failure(tmp_path: Path) -> None:
    result = check(tmp_path / "nowhere", "--json")
    assert result.exit_code == 2
    assert results(result)["database"][0] == "failure"


@pytest.mark.parametrize(
    ("revision", "contracted_at", "exit_code", "text"),
    [
        ("0001", "", 2, "run bloomery db upgrade of an earlier release, which brings it to"),
        ("9999", "", 1, "of a newer release"),
        ("9999", "9999", 2, "start that one, or put back a backup"),
        ("heat", "", 2, "no release of Bloomery calls a schema heat"),
    ],
)
@pytest.mark.sqlite
def test_schemas_of_other_releases(
    state: Path, db: Database, revision: str, contracted_at: str, exit_code: int, text: str
) -> None:
    update = sa.text("UPDATE alembic_version SET version_num = :revision")
    db.transact(lambda conn: conn.execute(update, {"revision": revision}))
    if contracted_at:
        db.transact(lambda conn: settings.put(conn, "contracted_at", contracted_at))
    result = check(state, "--json")
    assert result.exit_code == exit_code
    assert text in results(result)["database schema"][1]
    assert set(results(result)) == {"configuration", "database schema"}
    assert schema.revision_of(db) == revision


@pytest.mark.sqlite
def test_an_older_schema_is_backed_up_by_the_start(
    state: Path, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "FIRST", "0001")
    db.transact(lambda conn: conn.exec_driver_sql("UPDATE alembic_version SET version_num='0001'"))
    result = check(state, "--json")
    assert result.exit_code == 0
    assert "the start backs it up" in results(result)["database schema"][1]


def test_a_conductor_of_another_release_is_named_with_the_option_to_pin(
    state: Path, db: Database
) -> None:
    register(db, "old", "0.0.9")
    register(db, "new", process_identity.ours().release)
    result = check(state, "--json")
    code, text = results(result)["conductors"]
    assert (result.exit_code, code) == (1, "warning")
    assert text.startswith("old runs 0.0.9; set [DEFAULT]pin_release_version")
    assert "new runs" not in text


def test_other_options_than_those_of_the_running_conductors_are_a_failure(
    state: Path, db: Database
) -> None:
    ours = conf.Conf()
    other = dataclasses.replace(ours.default, hash_partition_exponent=7)
    theirs = dataclasses.replace(ours, default=other)
    db.transact(lambda conn: ring.store_options(conn, theirs))
    result = check(state, "--json")
    assert result.exit_code == 2
    assert "hash_partition_exponent" in results(result)["options of the site"][1]


def test_an_identity_of_a_newer_release_is_read_without_its_further_facts() -> None:
    text = json.dumps({"pid": 1, "machine": "m", "release": "2.0", "mood": "good"})
    identity = process_identity.decoded(text)
    assert identity is not None
    assert (identity.pid, identity.release) == (1, "2.0")


def test_the_release_does_not_make_another_process() -> None:
    ours = process_identity.ours()
    assert dataclasses.replace(ours, release="0.0.1") == ours
