"""``bloomery user``: the file of logins, changed in place."""

from __future__ import annotations

import threading
from pathlib import Path

import bcrypt
import pytest
from click.testing import CliRunner, Result

from bloomery import htpasswd
from bloomery.cli.main import main

PASSWORD = "correct horse"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "htpasswd"


def run(file: Path, *words: str, password: str = PASSWORD) -> Result:
    asked = ("--password-file", "-") if words[0] in ("add", "password") else ()
    arguments = ["user", *words, "--file", str(file), *asked]
    return CliRunner().invoke(main, arguments, input=f"{password}\n" if asked else None)


def opens(file: Path, name: str, password: str) -> bool:
    hashes = htpasswd.PasswordFile(file, "test").hashes()
    return name in hashes and bcrypt.checkpw(password.encode(), hashes[name])


def test_logins_come_change_and_go(file: Path) -> None:
    assert run(file, "add", "ann").output == "added ann\n"
    assert file.stat().st_mode & 0o777 == 0o600
    run(file, "add", "ben")
    assert opens(file, "ann", PASSWORD)
    run(file, "password", "ann", password="another horse")
    assert opens(file, "ann", "another horse")
    assert opens(file, "ben", PASSWORD)
    assert run(file, "list").output == "ann\nben\n"
    run(file, "remove", "ann")
    assert run(file, "list").output == "ben\n"


def test_the_logins_of_a_configuration_change_while_it_serves(file: Path, tmp_path: Path) -> None:
    config = tmp_path / "bloomery.conf"
    config.write_text(f"[DEFAULT]\nhttp_basic_auth_user_file = {file}\n")
    run(file, "add", "ann")
    served = htpasswd.PasswordFile(file, "test")
    words = ["user", "add", "ben", "--config-file", str(config), "--password-file", "-"]
    assert CliRunner().invoke(main, words, input=f"{PASSWORD}\n").exit_code == 0
    assert list(served.hashes()) == ["ann", "ben"]


REFUSALS = {
    "name twice": (("add", "ann"), PASSWORD, "bloomery user password ann changes it"),
    "name with a colon": (("add", "a:b"), PASSWORD, "it needs text, no colon"),
    "empty password": (("add", "ben"), "", "cannot use the password: it is empty"),
    "endless password": (("password", "ann"), "x" * 73, "longer than 72 bytes"),
    "password of nobody": (("password", "ben"), PASSWORD, "no such login; there are ann"),
    "removal of nobody": (("remove", "ben"), PASSWORD, "no such login; there are ann"),
    "removal of the last": (("remove", "ann"), PASSWORD, "--yes goes on without asking"),
}


@pytest.mark.parametrize(("words", "password", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_changes_nothing(
    file: Path, words: tuple[str, ...], password: str, reason: str
) -> None:
    run(file, "add", "ann")
    before = file.read_bytes()
    refused = run(file, *words, password=password)
    assert refused.exit_code != 0
    assert reason in refused.stderr
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_file_that_is_not_there_is_named_and_not_made(file: Path) -> None:
    assert "no such login; there are none" in run(file, "remove", "ann").stderr
    assert str(file) in run(file, "list").stderr
    assert str(file) in run(file / "below", "add", "ann").stderr
    assert not file.exists()


def test_a_file_keeps_its_mode_its_link_and_its_other_lines(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "real"
    target.write_bytes(b"caf\xe9:not of ours\n\nold:$apr1$hash\n")
    target.chmod(0o640)
    file.symlink_to(target)
    assert run(file, "add", "ann").exit_code == 0
    assert file.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert target.read_bytes().startswith(b"caf\xe9:not of ours\nold:$apr1$hash\nann:$2b$")


def test_the_last_login_goes_on_request(file: Path) -> None:
    run(file, "add", "ann")
    assert run(file, "remove", "ann", "--yes").exit_code == 0
    assert dict(htpasswd.PasswordFile(file, "test").hashes()) == {}


def test_changes_at_the_same_time_are_all_kept(file: Path) -> None:
    names = [f"user-{number}" for number in range(20)]
    everybody_is_there = threading.Barrier(len(names))

    def add(name: str) -> None:
        everybody_is_there.wait()
        htpasswd.change(file, lambda lines: lines.update({name: f"{name}:hash"}))

    threads = [threading.Thread(target=add, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line.split(":")[0] for line in file.read_text().splitlines()) == sorted(names)
