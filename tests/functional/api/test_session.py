"""A page gets a token for a password, where callers need tokens."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from bloomery import conf as settings
from bloomery.api import app, auth_strategy, keystone
from bloomery.operations.policy_engine import Policies
from tests.fakes.client import Client
from tests.kit.servers.identity import SYSTEM, Identity, password

SESSION = "/ext/v1/session"


@pytest.fixture
def site(world, tmp_path):
    with Identity() as identity:
        identity.grant("ann", "web", "reader")
        identity.grant("root", SYSTEM, "admin")
        file = identity.write_options(tmp_path / "bloomery.conf")
        conf = settings.load([file])
        services = dataclasses.replace(world.site, conf=conf, policies=Policies(conf))
        logins = auth_strategy.logins(conf, [file])
        api = Client(app.make_app(services, logins=logins), version=None)
        yield SimpleNamespace(identity=identity, logins=logins, api=api)


def log_in(api: Client, user: str = "ann", **more):
    return api.post(SESSION, {"user": user, "password": password(user)} | more)


@pytest.mark.parametrize(
    ("user", "scope", "project"),
    [("ann", {"project": "web"}, "web-id"), ("root", {"system": True}, None)],
)
def test_a_password_gives_a_token_of_its_scope(site, user, scope, project) -> None:
    answer = log_in(site.api, user, **scope)
    assert answer.status == 201
    me = site.api.get("/ext/v1/me", headers={"X-Auth-Token": answer.json["token"]}).json
    assert (me["user"], me["project"]) == (user, project)
    assert answer.json["expires_at"]


def test_a_wrong_password_gives_none(site) -> None:
    answer = log_in(site.api, password="wrong-one", project="web")
    assert answer.status == 401
    assert "wrong-one" not in answer.said


def test_an_identity_service_that_is_away_is_told_from_a_wrong_password(site) -> None:
    site.logins._protocol._www_authenticate_uri = "http://127.0.0.1:9/v3"
    assert log_in(site.api, project="web").status == 503


def test_logins_beyond_the_limit_are_refused(site) -> None:
    for _ in range(keystone.MAX_LOGINS):
        assert site.logins._logins.acquire(blocking=False)
    assert log_in(site.api, project="web").status == 503


@pytest.mark.parametrize(
    "body",
    [{}, {"user": "ann"}, {"user": "ann", "password": 5}, {"user": "a", "password": "b", "x": 1}],
)
def test_other_bodies_are_refused(site, body) -> None:
    assert site.api.post(SESSION, body).status == 400


def test_without_tokens_the_strategy_is_named(api) -> None:
    assert api.get(SESSION).json == {"auth_strategy": "noauth"}
    answer = api.post(SESSION, {"user": "ann", "password": "secret"})
    assert answer.status == 400
    assert "auth_strategy is noauth" in answer.said
    assert "secret" not in answer.said
