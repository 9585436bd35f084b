"""Who may ask: nobody's name with noauth, a name and a password with http_basic."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import bcrypt
import pytest

from bloomery import errors
from bloomery.api import app, auth, auth_strategy
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.http_server import login
from tests.fakes.client import Client
from tests.kit.clients import slow_clients
from tests.kit.waiting import wait_for


def line(user, password):
    return f"{user}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(rounds=4)).decode()}\n"


def basic(user, password):
    said = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {said}"}


def asking(user, password):
    return {"HTTP_AUTHORIZATION": basic(user, password)["Authorization"]}


def change(path, text):
    path.write_text(text, errors="surrogateescape")
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 1))


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
    assert api.get("/v1/nodes", headers=basic(user, password)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("ann", "wrong"),
        basic("eve", "secret"),
        basic("ann", ""),
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


@pytest.mark.parametrize("path", ["//", "/nodes", "/v1/nodes/", "/v1/nonsense"])
def test_all_else_asks_for_a_name(api, path):
    answer = api.get(path)
    assert answer.status == 401 or (path == "//" and answer.json["default_version"])


@pytest.mark.parametrize(
    "path",
    [
        "//v1/nodes",
        "/v1//nodes",
        "///v1",
        "//ext/v1/states",
        "/ext/v1/orchestration//v1",
        "//healthz",
    ],
)
def test_a_path_with_an_empty_segment_is_no_way_around_rules_of_proxies(api, path):
    for headers in ({}, basic("ann", "secret")):
        answer = api.get(path, headers=headers)
        assert (answer.status, b"empty segment" in answer.body) == (404, True)


def test_name_of_the_caller_travels_with_the_request(world):
    seen = []
    world.conductor.create_node = lambda request, _values: seen.append(request.user)
    world.api.post("/v1/nodes", {"driver": "fake-hardware"}, headers=basic("ann", "secret"))
    assert seen == ["ann"]


CLAIMS = {
    "X-Roles": "admin", "X-Project-Id": "p", "X-Project-Name": "service", "X-User-Id": "eve",
    "OpenStack-System-Scope": "all", "X-Identity-Status": "Confirmed",
}  # fmt: skip


@pytest.mark.parametrize("strategy", ["noauth", "http_basic"])
def test_headers_that_claim_roles_are_ignored(world, conf, strategy):
    seen = []
    if strategy == "noauth":
        conf = Conf()
    services = dataclasses.replace(world.site, conf=conf)
    world.conductor.create_node = lambda request, _values: seen.append(request)
    client = Client(app.make_app(services))
    client.post("/v1/nodes", {"driver": "fake-hardware"}, headers=basic("ann", "secret") | CLAIMS)
    (request,) = seen
    assert request.user == ("ann" if strategy == "http_basic" else None)
    assert (request.project, request.project_name, request.roles) == (None, None, ())
    assert request.system_scope is None


def test_right_password_is_paid_for_once(htpasswd, monkeypatch):
    door = login.HttpBasic(htpasswd)
    asked = []
    real = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda *a: asked.append(a) or real(*a))
    environ = {"HTTP_AUTHORIZATION": basic("ann", "secret")["Authorization"]}
    assert [door.user(environ) for _ in range(3)] == ["ann"] * 3
    assert len(asked) == 1


@pytest.mark.parametrize("user", ["ann", "eve"])
def test_unknown_name_costs_as_much_as_a_wrong_password(htpasswd, monkeypatch, user):
    door = login.HttpBasic(htpasswd)
    asked = []
    monkeypatch.setattr(bcrypt, "checkpw", lambda _, stored: bool(asked.append(stored[:7])))
    with pytest.raises(auth.Unauthorized):
        door.user(asking(user, "x"))
    assert asked == [b"$2b$04$"]


def test_changed_file_counts_at_once(htpasswd):
    door = login.HttpBasic(htpasswd)
    environ = {"HTTP_AUTHORIZATION": basic("ann", "secret")["Authorization"]}
    assert door.user(environ) == "ann"
    change(htpasswd, line("bob", "x"))
    with pytest.raises(auth.Unauthorized):
        door.user(environ)


def test_password_withdrawn_while_its_check_is_waited_for_is_withdrawn(htpasswd):
    door = login.HttpBasic(htpasswd)
    environ = asking("ann", "secret") | {login.DEFERRED: None}
    with pytest.raises(login.Deferred) as deferred:
        door.user(environ)
    deferred.value.check.outcome.result(10)
    change(htpasswd, line("bob", "x"))
    with pytest.raises(login.Deferred) as again:
        door.user(environ | {login.DEFERRED: deferred.value.check})
    with pytest.raises(auth.Unauthorized):
        again.value.check.outcome.result(10)


def test_password_withdrawn_during_its_first_login_is_withdrawn(htpasswd, monkeypatch):
    door = login.HttpBasic(htpasswd)
    begun, go_on, real = threading.Event(), threading.Event(), bcrypt.checkpw

    def check(*given):
        begun.set()
        return go_on.wait(10) and real(*given)

    monkeypatch.setattr(bcrypt, "checkpw", check)
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(door.user, asking("ann", "secret"))
        assert begun.wait(10)
        change(htpasswd, line("bob", "x"))
        other = callers.submit(door.user, asking("eve", "x"))
        wait_for(lambda: door.names == ("bob",), "the file to be read again")
        go_on.set()
        assert isinstance(other.exception(10), auth.Unauthorized)
        assert first.exception(10) is None  # it began before the change
    with pytest.raises(auth.Unauthorized):
        door.user(asking("ann", "secret"))


@pytest.mark.parametrize(
    "wrong", ["ann:plain", "ann", ":", "ann:" + "$2b$99$" + "x" * 53, "\udcff:x", "ann:$2b$04$x"]
)
def test_bad_line_concerns_that_user_alone_and_is_told_once(htpasswd, wrong, caplog):
    door = login.HttpBasic(htpasswd)
    change(htpasswd, line("bob", "pass:word") + wrong)
    for _ in range(3):
        assert door.user(asking("bob", "pass:word")) == "bob"
        with pytest.raises(auth.Unauthorized):
            door.user(asking("ann", "secret"))
    (told,) = caplog.messages
    assert "line 2" in told
    assert "x" * 53 not in told


def no_file(path):
    path.unlink()


def no_good_line(path):
    change(path, "ann:plain")


@pytest.mark.parametrize("spoil", [no_file, no_good_line])
def test_file_of_no_use_leaves_the_last_one_in_force(htpasswd, spoil, caplog):
    door = login.HttpBasic(htpasswd)
    spoil(htpasswd)
    for _ in range(3):
        assert door.user(asking("ann", "secret")) == "ann"
    assert len(caplog.messages) == 1
    change(htpasswd, line("bob", "x"))
    assert door.user(asking("bob", "x")) == "bob"
    with pytest.raises(auth.Unauthorized):
        door.user(asking("ann", "secret"))


def test_who_guesses_passwords_holds_nobody_up(world, monkeypatch):
    go_on = threading.Event()
    assert world.api.get("/v1/nodes", headers=basic("ann", "secret")).status == 200
    monkeypatch.setattr(bcrypt, "checkpw", lambda *_: not go_on.wait(10))
    guess = b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n"
    with slow_clients.serving(world.app) as serving, contextlib.ExitStack() as stack:
        guesses = [basic("ann", f"guess {n}")["Authorization"].encode() for n in range(8)]
        clients = [
            stack.enter_context(slow_clients.clients(serving, guess % each))[0] for each in guesses
        ]
        assert slow_clients.status(serving, headers=basic("ann", "secret")) == 200
        go_on.set()
        assert [client.recv(12) for client in clients] == [b"HTTP/1.1 401"] * 8


def test_too_many_guesses_are_told_to_wait(htpasswd, monkeypatch):
    go_on = threading.Event()
    monkeypatch.setattr(bcrypt, "checkpw", lambda *_: not go_on.wait(10))
    door = login.HttpBasic(htpasswd)
    for number in range(login.MAX_CHECKS):
        with pytest.raises(login.Deferred):
            door.user(asking("ann", f"guess {number}") | {login.DEFERRED: None})
    with pytest.raises(login.Deferred):  # the same guess is checked once
        door.user(asking("ann", "guess 0") | {login.DEFERRED: None})
    with pytest.raises(auth.Busy):
        door.user(asking("ann", "one more") | {login.DEFERRED: None})
    go_on.set()


def test_busy_is_a_503(world, monkeypatch):
    monkeypatch.setattr(login, "MAX_CHECKS", 0)
    answer = world.api.get("/v1/nodes", headers=basic("ann", "secret"))
    assert (answer.status, answer.form, answer.headers["retry-after"]) == (503, "second", "1")


@pytest.mark.parametrize(
    "text",
    ["ann", "ann:plain", "ann:$apr1$x$y", ":" + line("x", "y").split(":")[1]],
    ids=["no hash", "plain", "md5", "no user"],
)
def test_file_of_other_hashes_is_refused(tmp_path, text):
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(errors.CannotStart, match="bcrypt"):
        login.HttpBasic(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(errors.CannotStart, match="http_basic_auth_user_file"):
        login.HttpBasic(tmp_path / "gone")


def test_first_name_of_the_file_is_offered_to_clients(htpasswd):
    default = Default(auth_strategy="http_basic", http_basic_auth_user_file=str(htpasswd))
    assert auth_strategy.first_name(Conf(default=default)) == htpasswd.read_text().partition(":")[0]
    assert auth_strategy.first_name(Conf()) is None


def test_the_names_that_may_log_in_are_listed_as_they_are_now(api, htpasswd):
    def listed(user: str, password: str) -> object:
        return api.get("/ext/v1/users", headers=basic(user, password)).json

    assert listed("ann", "secret") == {"auth_strategy": "http_basic", "users": ["ann", "bob"]}
    change(htpasswd, line("bob", "pass:word") + "\n" + line("cid", "third"))
    assert listed("bob", "pass:word")["users"] == ["bob", "cid"]
    assert api.get("/ext/v1/users", headers=basic("ann", "secret")).status == 401
    change(htpasswd, "broken")  # the logins of before stay valid
    assert listed("bob", "pass:word")["users"] == ["bob", "cid"]
