"""Logins from a file of bcrypt hashes, checked in the calling thread."""

from __future__ import annotations

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bcrypt
import pytest

from bloomery import errors, htpasswd
from tests.kit.waiting import wait_for


def header(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def write(path: Path, **passwords: str) -> None:
    hashes = {
        name: bcrypt.hashpw(word.encode(), bcrypt.gensalt(4)) for name, word in passwords.items()
    }
    path.write_text("".join(f"{name}:{hashed.decode()}\n" for name, hashed in hashes.items()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "passwords", caller="right", other="word")
    return tmp_path / "passwords"


@pytest.fixture
def checker(path: Path) -> htpasswd.Checker:
    return htpasswd.Checker(htpasswd.PasswordFile(path, "[json_rpc]http_basic_auth_user_file"))


def test_a_right_login_is_paid_for_once(checker, monkeypatch):
    assert checker.user(header("caller", "right")) == "caller"
    monkeypatch.setattr(bcrypt, "checkpw", lambda *_: pytest.fail("it was remembered"))
    assert checker.user(header("caller", "right")) == "caller"


@pytest.mark.parametrize(
    "login",
    ["", "Bearer x", header("caller", "wrong"), header("caller", "word"), header("no", "x")],
)
def test_a_wrong_login_is_refused_each_time(checker, login):
    for _ in range(2):
        with pytest.raises(htpasswd.Unauthorized):
            checker.user(login)


@pytest.mark.parametrize("login", ["Basic ?", "Basic " + base64.b64encode(b"no colon").decode()])
def test_what_is_no_login_is_told_apart(checker, login):
    with pytest.raises(htpasswd.Malformed):
        checker.user(login)


def test_a_password_that_was_changed_is_good_no_more(checker, path):
    checker.user(header("caller", "right"))
    write(path, caller="a new one, and longer")
    with pytest.raises(htpasswd.Unauthorized):
        checker.user(header("caller", "right"))
    checker.user(header("caller", "a new one, and longer"))


def test_guesses_wait_for_each_other_and_are_few(checker, monkeypatch):
    go_on, checked = threading.Event(), []

    def check(*_arguments: bytes) -> bool:
        checked.append(1)
        return not go_on.wait(10)

    monkeypatch.setattr(bcrypt, "checkpw", check)
    with ThreadPoolExecutor(4) as guessers:
        guesses = [guessers.submit(checker.user, header("caller", str(n))) for n in range(4)]
        wait_for(lambda: checker._waiting._value == 0, "the guesses to wait")
        with pytest.raises(htpasswd.Busy):
            checker.user(header("caller", "one more"))
        assert len(checked) == 1
        go_on.set()
    assert {type(guess.exception()) for guess in guesses} == {htpasswd.Unauthorized}


def test_a_file_of_no_use_names_its_option(tmp_path):
    with pytest.raises(errors.CannotStart, match=r"\[json_rpc\]http_basic_auth_user_file"):
        htpasswd.PasswordFile(tmp_path / "gone", "[json_rpc]http_basic_auth_user_file")
