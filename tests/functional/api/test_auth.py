"""Who may ask: nobody's name with noauth, a name and a password with http_basic."""

from __future__ import annotations

import base64
import os
import time

import bcrypt
import pytest

from bloomery import errors
from bloomery.api import auth
from bloomery.conf import Conf
from bloomery.conf.default import Default


def line(user, password):
    return f"{user}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(rounds=4)).decode()}\n"


def login(user, password):
    said = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {said}"}


@pytest.fixture
def htpasswd(tmp_path):
    path = tmp_path / "htpasswd"
    path.write_text(line("ann", "secret") + "\n" + line("bob", "pass:word"))
    return path


@pytest.fixture
def conf(htpasswd):
    return Conf(
        default=Default(auth_strategy="http_basic", http_basic_auth_user_file=str(htpasswd))
    )


@pytest.mark.parametrize(("user", "password"), [("ann", "secret"), ("bob", "pass:word")])
def test_right_password_lets_in(api, user, password):
    assert api.get("/v1/nodes", headers=login(user, password)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        login("ann", "wrong"),
        login("eve", "secret"),
        login("ann", ""),
        {"Authorization": "Bearer x"},
    ],
)
def test_others_are_challenged(api, headers):
    answer = api.get("/v1/nodes", headers=headers)
    assert (answer.status, answer.form) == (401, "page")
    assert answer.headers["www-authenticate"] == 'Basic realm="Baremetal API"'
    assert answer.headers["x-openstack-request-id"].startswith("req-")


@pytest.mark.parametrize("said", ["Basic", "Basic !!!", "Basic YWJj", "Basic /w==", "Basic \xff"])
def test_malformed_login_is_a_bad_request(api, said):
    assert api.get("/v1/nodes", headers={"Authorization": said}).status == 400


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/healthz", "/readyz"])
def test_documents_and_health_ask_for_no_name(api, path):
    assert api.get(path).status == 200


@pytest.mark.parametrize("path", ["//", "/nodes", "/v1/nodes/", "/v1//nodes", "/v1/nonsense"])
def test_all_else_asks_for_a_name(api, path):
    answer = api.get(path)
    assert answer.status == 401 or (path == "//" and answer.json["default_version"])


def test_name_of_the_caller_travels_with_the_request(world):
    seen = []
    world.conductor.create_node = lambda request, _values: seen.append(request.user)
    world.api.post("/v1/nodes", {"driver": "fake-hardware"}, headers=login("ann", "secret"))
    assert seen == ["ann"]


def test_right_password_is_paid_for_once(htpasswd, monkeypatch):
    door = auth.HttpBasic(htpasswd)
    asked = []
    real = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda *a: asked.append(a) or real(*a))
    environ = {"HTTP_AUTHORIZATION": login("ann", "secret")["Authorization"]}
    assert [door.user(environ) for _ in range(3)] == ["ann"] * 3
    assert len(asked) == 1


def test_unknown_name_costs_as_much_as_a_wrong_password(htpasswd, monkeypatch):
    door = auth.HttpBasic(htpasswd)
    asked = []
    monkeypatch.setattr(bcrypt, "checkpw", lambda *a: bool(asked.append(a)))
    with pytest.raises(auth.Unauthorized):
        door.user({"HTTP_AUTHORIZATION": login("eve", "x")["Authorization"]})
    assert len(asked) == 1


def test_changed_file_counts_at_once(htpasswd):
    door = auth.HttpBasic(htpasswd)
    environ = {"HTTP_AUTHORIZATION": login("ann", "secret")["Authorization"]}
    assert door.user(environ) == "ann"
    htpasswd.write_text(line("bob", "x"))
    os.utime(htpasswd, ns=(time.time_ns(), time.time_ns() + 1))
    with pytest.raises(auth.Unauthorized):
        door.user(environ)


@pytest.mark.parametrize(
    "text", ["ann", "ann:plain", "ann:$apr1$x$y", ":" + line("x", "y").split(":")[1]]
)
def test_file_of_other_hashes_is_refused(tmp_path, text):
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(errors.CannotStart, match="bcrypt"):
        auth.HttpBasic(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(errors.CannotStart, match="http_basic_auth_user_file"):
        auth.HttpBasic(tmp_path / "gone")


def test_first_name_of_the_file_is_offered_to_clients(htpasswd):
    default = Default(auth_strategy="http_basic", http_basic_auth_user_file=str(htpasswd))
    assert auth.first_name(Conf(default=default)) == htpasswd.read_text().partition(":")[0]
    assert auth.first_name(Conf()) is None
