"""``bloomery init``: a configuration that works, written once."""

from __future__ import annotations

from pathlib import Path

import bcrypt
import pytest
from click.testing import CliRunner, Result

from bloomery import conf, htpasswd
from bloomery.cli.main import main
from bloomery.state_dir import StateDir
from tests.invariants.test_docs import ROOT, words_after
from tests.kit.servers import databases

PASSWORD = "correct horse"


def run(*words: object, **more: object) -> Result:
    return CliRunner().invoke(main, ["init", *map(str, words)], **more)  # type: ignore[arg-type]


def places(folder: Path) -> tuple[object, ...]:
    return "--config-dir", folder / "etc", "--state-dir", folder / "state"


def test_a_trial_needs_no_login(tmp_path: Path) -> None:
    result = run("--kind", "trial", *places(tmp_path))
    assert result.exit_code == 0, result.output
    settings = conf.load([str(tmp_path / "etc/bloomery.conf")])
    assert (settings.default.auth_strategy, settings.api.host_ip) == ("noauth", "127.0.0.1")
    assert conf.unknown([str(tmp_path / "etc/bloomery.conf")]) == []
    home = StateDir(tmp_path / "state")
    assert home.key.is_file()
    checked = CliRunner().invoke(main, ["db", "check", "--state-dir", str(home.path)])
    assert checked.exit_code == 0
    refused = run("--kind", "trial", "--host", "0.0.0.0", *places(tmp_path / "b"))
    assert (refused.exit_code, "listens on loopback only" in refused.stderr) == (2, True)


def test_one_host_gets_a_login(tmp_path: Path) -> None:
    words = ("--kind", "host", "--user", "ann", "--host", "0.0.0.0", "--password-file", "-")
    result = run(*words, *places(tmp_path), input=f"{PASSWORD}\n")
    assert result.exit_code == 0, result.output
    assert PASSWORD not in result.output
    settings = conf.load([str(tmp_path / "etc/bloomery.conf")])
    logins = Path(settings.default.http_basic_auth_user_file)
    assert logins.stat().st_mode & 0o777 == 0o600
    hashes = htpasswd.PasswordFile(logins, "test").hashes()
    assert bcrypt.checkpw(PASSWORD.encode(), hashes["ann"])
    assert (settings.default.auth_strategy, settings.api.host_ip) == ("http_basic", "0.0.0.0")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    run("--kind", "trial", *places(tmp_path))
    before = (tmp_path / "etc/bloomery.conf").read_bytes()
    again = run("--kind", "host", "--password-file", "-", *places(tmp_path), input="x\n")
    assert again.exit_code == 1
    assert "bloomery.conf: it is there; move it away" in again.stderr
    assert (tmp_path / "etc/bloomery.conf").read_bytes() == before
    assert not (tmp_path / "etc/htpasswd").exists()


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    with StateDir(tmp_path / "state"):
        result = run("--kind", "trial", *places(tmp_path))
    assert (result.exit_code, "already serves from it" in result.stderr) == (1, True)
    assert not (tmp_path / "etc/bloomery.conf").exists()


def test_many_hosts_share_servers(tmp_path: Path) -> None:
    server = databases.settings(tmp_path).connection or f"sqlite:///{tmp_path}/shared.sqlite"
    urls = {"BLOOMERY_DATABASE": server, "BLOOMERY_TRANSPORT_URL": "rabbit://a:p$w@127.0.0.1:5672/"}
    words = ("--kind", "hosts", "--password-file", "-", *places(tmp_path))
    result = run(*words, input="x\n", env=urls)
    assert result.exit_code == 0, result.output
    settings = conf.load([str(tmp_path / "etc/bloomery.conf")])
    assert settings.database.connection == server
    assert settings.default.transport_url == urls["BLOOMERY_TRANSPORT_URL"]
    missing = run(*words, input="x\n")
    assert (missing.exit_code, "many hosts need --database URL" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("user", "password", "error"),
    [("a:b", "x", "no colon"), ("ann", "", "is empty"), ("ann", "x" * 73, "72 bytes")],
)
def test_a_login_that_could_not_be_used_is_refused(
    tmp_path: Path, user: str, password: str, error: str
) -> None:
    words = ("--kind", "host", "--user", user, "--password-file", "-", *places(tmp_path))
    result = run(*words, input=f"{password}\n")
    assert (result.exit_code, error in result.stderr) == (1, True), result.output
    assert list(tmp_path.rglob("bloomery.conf")) == []


def test_the_commands_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password.txt").write_text(f"{PASSWORD}\n")
    lines = list(words_after(ROOT / "doc/guides/install.md", "bloomery"))
    lines = [words for words in lines if len(words) > 3 and words[0] in ("init", "db")]
    results = [CliRunner().invoke(main, words) for words in lines]
    assert [result.exit_code for result in results] == [0, 0, 0], [each.output for each in results]
