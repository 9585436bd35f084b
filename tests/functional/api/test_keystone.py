"""Who asks, by tokens of an identity service: auth_strategy = keystone."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import conf as settings
from bloomery import errors
from bloomery.api import app, auth_strategy, keystone
from bloomery.api.orchestration import app as orchestration
from bloomery.http_server import login
from bloomery.operations.policy_engine import Policies
from tests.fakes.client import Client
from tests.fakes.stack_operations import FakeStackOperations
from tests.kit.servers.identity import SYSTEM, Identity

NODE = {"driver": "fake-hardware"}


@pytest.fixture(scope="module")
def identity():
    with Identity() as made:
        made.serve("baremetal", "http://127.0.0.1:6385")
        made.serve("orchestration", "http://127.0.0.1:8004/v1/{project}")
        made.grant("root", SYSTEM, "admin")
        made.grant("ann", "web", "admin")
        made.grant("bob", "web", "reader")
        made.grant("nova", "service", "service")
        made.grant("nova", SYSTEM, "reader")
        yield made


@pytest.fixture
def guarded(world, identity, tmp_path):
    """A service whose callers come with tokens."""
    return guard(world, identity.write_options(tmp_path / "bloomery.conf"))


def guard(world, file):
    conf = settings.load([file])
    services = dataclasses.replace(world.site, conf=conf, policies=Policies(conf))
    logins = auth_strategy.logins(conf, [file])
    of_stacks = auth_strategy.for_stacks(conf, logins, [file])
    return SimpleNamespace(
        logins=logins,
        api=Client(app.make_app(services, logins=logins)),
        stacks=Client(orchestration.make_app(services, FakeStackOperations(), of_stacks)),
        conductor=world.conductor,
    )


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"X-Auth-Token": token, **more}


def test_a_token_says_who_asks(guarded, identity):
    requests = []
    guarded.conductor.create_node = lambda request, values: requests.append(request)
    guarded.api.post("/v1/nodes", NODE, headers=bearer(identity.token("ann", "web")))
    (request,) = requests
    assert (request.user, request.user_name, request.user_domain) == ("ann-id", "ann", "default")
    assert (request.project, request.project_name) == ("web-id", "web")
    assert (request.project_domain, request.domain) == ("default", None)
    assert request.roles == ("admin", "manager", "member", "reader")
    assert request.system_scope is None


def test_rules_are_asked_of_whoever_has_a_token(guarded, identity):
    owned = NODE | {"owner": "web-id"}
    root = bearer(identity.token("root", SYSTEM))
    bob = bearer(identity.token("bob", "web"))
    node = guarded.api.post("/v1/nodes", owned, headers=root).json["uuid"]
    assert guarded.api.get(f"/v1/nodes/{node}", headers=bob).status == 200
    assert guarded.api.delete(f"/v1/nodes/{node}", headers=bob).status == 403
    other = guarded.api.post("/v1/nodes", NODE, headers=root).json["uuid"]
    assert guarded.api.get(f"/v1/nodes/{other}", headers=bob).status == 404


@pytest.mark.parametrize("token", ["", "token-of-nobody", "mal\x07formed", "ümlaut"])
def test_without_a_valid_token_clients_are_sent_to_the_identity_service(guarded, identity, token):
    for client, path in ((guarded.api, "/v1/nodes"), (guarded.stacks, "/v1/web-id/stacks")):
        answer = client.get(path, headers=bearer(token))
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == f'Keystone uri="{identity.url}"'
        assert answer.headers["x-openstack-request-id"].startswith("req-")
        assert answer.json["error"]["code"] == 401


def test_a_token_of_a_user_comes_in_one_header_only(guarded, identity):
    """The package would take it from an older one, too."""
    right = identity.token("root", SYSTEM)
    assert guarded.api.get("/v1/nodes", headers={"X-Storage-Token": right}).status == 401
    both = bearer("token-of-nobody", **{"X-Storage-Token": right})
    assert guarded.api.get("/v1/nodes", headers=both).status == 401


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/healthz", "/readyz"])
def test_documents_and_health_ask_for_no_token(guarded, path):
    assert guarded.api.get(path).status == 200


CLAIMS = {
    "X-Roles": "admin", "X-Role": "admin", "X-Project-Id": "p", "X-Tenant-Id": "p",
    "X-User-Id": "eve", "OpenStack-System-Scope": "all", "X-Identity-Status": "Confirmed",
    "X-Service-Roles": "service", "X-Is-Admin-Project": "True",
}  # fmt: skip


def test_headers_that_claim_an_identity_never_pass(guarded, identity):
    assert guarded.api.get("/v1/nodes", headers=CLAIMS).status == 401
    bob = bearer(identity.token("bob", "web"), **CLAIMS)
    assert guarded.api.post("/v1/nodes", NODE, headers=bob).status == 403
    assert guarded.api.get("/v1/chassis", headers=bob).status == 403


def test_a_service_token_lends_nothing_to_the_user(guarded, identity):
    """The package writes the scope of a service's token where that of the user's belongs."""
    identity.grant("nova", SYSTEM, "service")
    service = identity.token("nova", SYSTEM)
    bob = bearer(identity.token("bob", "web"), **{"X-Service-Token": service})
    assert guarded.api.get("/v1/nodes", headers=bob).status == 200
    assert guarded.api.get("/v1/chassis", headers=bob).status == 403


def test_a_service_may_finish_what_an_expired_token_began(guarded, identity):
    expired = identity.token("bob", "web", lasts_s=-1)
    assert guarded.api.get("/v1/nodes", headers=bearer(expired)).status == 401
    service = identity.token("nova", "service")
    both = bearer(expired, **{"X-Service-Token": service})
    assert guarded.api.get("/v1/nodes", headers=both).status == 200
    assert guarded.api.get("/v1/nodes", headers=bearer(expired)).status == 401
    user_as_service = bearer(expired, **{"X-Service-Token": identity.token("bob", "web")})
    assert guarded.api.get("/v1/nodes", headers=user_as_service).status == 401


def test_a_token_is_checked_once(guarded, identity):
    headers = bearer(identity.token("bob", "web"))
    before = identity.checks
    for path in ("/v1/nodes", "/v1/ports", "/v1/nodes"):
        assert guarded.api.get(path, headers=headers).status == 200
    assert identity.checks == before + 1


def test_a_token_is_forgotten_when_it_expires(guarded, identity):
    token = identity.token("bob", "web", lasts_s=60)
    assert guarded.api.get("/v1/nodes", headers=bearer(token)).status == 200
    identity.revoke(token)
    assert guarded.api.get("/v1/nodes", headers=bearer(token)).status == 200
    guarded.logins.now = lambda: datetime.now(UTC) + timedelta(seconds=61)
    assert guarded.api.get("/v1/nodes", headers=bearer(token)).status == 401


def test_a_revoked_token_is_forgotten_after_its_time(world, identity, tmp_path):
    file = identity.write_options(tmp_path / "bloomery.conf", token_cache_time=0)
    api = guard(world, file).api
    token = identity.token("bob", "web")
    assert api.get("/v1/nodes", headers=bearer(token)).status == 200
    identity.revoke(token)
    assert api.get("/v1/nodes", headers=bearer(token)).status == 401


def test_access_rules_of_a_credential_are_kept(guarded, identity):
    rules = [{"service": "baremetal", "method": "GET", "path": "/v1/nodes"}]
    token = identity.token("ann", "web", application_credential={"access_rules": rules})
    for _ in range(2):
        assert guarded.api.get("/v1/nodes", headers=bearer(token)).status == 200
        assert guarded.api.get("/v1/ports", headers=bearer(token)).status == 401
        assert guarded.api.post("/v1/nodes", NODE, headers=bearer(token)).status == 401
        assert guarded.stacks.get("/v1/web-id/stacks", headers=bearer(token)).status == 401


def test_a_token_with_access_rules_orders_nothing_that_goes_on_after_the_request(guarded, identity):
    """The engine acts with the caller's roles, and no access rule is asked there."""
    token = restricted(identity, "GET", "POST")
    body = {"stack_name": "s", "template": {"heat_template_version": "2021-04-16"}}
    for _ in range(2):
        answer = guarded.stacks.post("/v1/web-id/stacks", body, headers=bearer(token))
        assert (answer.status, answer.json["error"]["type"]) == (403, "Forbidden")
        assert "access rules" in answer.json["error"]["message"]
        assert guarded.stacks.get("/v1/web-id/stacks", headers=bearer(token)).status == 200
    plain = bearer(identity.token("ann", "web"))
    assert guarded.stacks.post("/v1/web-id/stacks", body, headers=plain).status == 201


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "validate"), ("POST", "stacks/preview"), ("PUT", "stacks/a/b/preview"),
     ("PATCH", "stacks/a/b/preview")],
)  # fmt: skip
def test_a_token_with_access_rules_previews_and_validates(guarded, identity, method, path):
    headers = bearer(restricted(identity, method))
    body = {"stack_name": "s", "template": {"heat_template_version": "2021-04-16"}}
    answer = guarded.stacks.ask(method, f"/v1/web-id/{path}", body, headers=headers)
    assert answer.status == 200
    other = bearer(restricted(identity, "GET"))
    assert guarded.stacks.ask(method, f"/v1/web-id/{path}", {}, headers=other).status == 401


def test_a_token_with_access_rules_changes_no_stack_that_is_named_like_a_preview(guarded, identity):
    headers = bearer(restricted(identity, "PUT", "PATCH", "DELETE", "POST"))
    for method, path in (("PUT", "stacks/validate/preview"), ("DELETE", "stacks/a/b"),
                         ("POST", "stacks/a/b/actions"), ("POST", "software_configs")):  # fmt: skip
        answer = guarded.stacks.ask(method, f"/v1/web-id/{path}", {}, headers=headers)
        assert answer.status == 403


def restricted(identity, *methods):
    rules = [{"service": "orchestration", "method": each, "path": "/**"} for each in methods]
    return identity.token("ann", "web", application_credential={"access_rules": rules})


def test_an_identity_service_that_is_down_is_said_so(guarded, identity):
    headers = bearer(identity.token("bob", "web"))
    identity.is_down = True
    try:
        answer = guarded.api.get("/v1/nodes", headers=headers)
        assert (answer.status, answer.form) == (503, "second")
        assert "identity service" in answer.said
        assert answer.headers["retry-after"] == "5"
        answer = guarded.stacks.get("/v1/web-id/stacks", headers=headers)
        assert (answer.status, answer.json["error"]["type"]) == (503, "HTTPServiceUnavailable")
    finally:
        identity.is_down = False
    assert guarded.api.get("/v1/nodes", headers=headers).status == 200


def test_nobody_waits_in_a_thread_of_the_api(guarded, identity):
    identity.gate.clear()
    try:
        environ: dict[str, Any] = {
            "HTTP_X_AUTH_TOKEN": identity.token("bob", "web"), "PATH_INFO": "/v1/nodes",
            "REQUEST_METHOD": "GET", login.DEFERRED: None,
        }  # fmt: skip
        with pytest.raises(login.Deferred) as deferred:
            guarded.logins.identify(SimpleNamespace(), environ)
        with pytest.raises(login.Deferred) as again:
            guarded.logins.identify(SimpleNamespace(), environ)
        assert again.value.check is deferred.value.check
    finally:
        identity.gate.set()
    assert deferred.value.check.outcome.result().facts["user"] == "bob-id"


def test_others_are_told_to_come_back_when_too_many_wait(guarded, identity, monkeypatch):
    monkeypatch.setattr(keystone, "MAX_CHECKS", 0)
    answer = guarded.api.get("/v1/nodes", headers=bearer(identity.token("bob", "web")))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


def test_a_start_without_credentials_names_what_is_missing(tmp_path: Path):
    file = tmp_path / "bloomery.conf"
    file.write_text("[DEFAULT]\nauth_strategy = keystone\n")
    with pytest.raises(errors.CannotStart, match=r"\[keystone_authtoken\]auth_type is not set"):
        auth_strategy.logins(settings.load([str(file)]), [str(file)])


@pytest.mark.parametrize(
    ("option", "value"),
    [("auth_type", "pasword"), ("token_cache_time", "soon"), ("memcache_security_strategy", "x")],
)
def test_options_that_cannot_be_used_are_named(identity, tmp_path: Path, option, value):
    file = identity.write_options(tmp_path / "bloomery.conf", **{option: value})
    with pytest.raises(errors.CannotStart, match=r"\[keystone_authtoken\]"):
        auth_strategy.logins(settings.load([file]), [file])


def test_memcached_needs_its_package(identity, tmp_path: Path):
    file = identity.write_options(tmp_path / "bloomery.conf", memcached_servers="127.0.0.1:1")
    with pytest.raises(errors.CannotStart, match="python-memcached"):
        auth_strategy.logins(settings.load([file]), [file])


def test_options_without_effect_are_named(identity, tmp_path: Path, caplog):
    more = {"passwrd": "x", "tenant-name": "service", "user-domain-name": "Default"}
    file = identity.write_options(tmp_path / "bloomery.conf", **more)
    auth_strategy.logins(settings.load([file]), [file])
    (told,) = [line for line in caplog.messages if line.startswith("no effect")]
    assert told == "no effect: [keystone_authtoken]passwrd"


# ----------------------------------------------------------------------- stacks of projects


def test_the_project_of_the_path_is_that_of_the_token(guarded, identity):
    bob = bearer(identity.token("bob", "web"))
    assert guarded.stacks.get("/v1/web-id/stacks", headers=bob).status == 200
    answer = guarded.stacks.get("/v1/db-id/stacks", headers=bob)
    assert (answer.status, answer.json["error"]["type"]) == (403, "HTTPForbidden")


def test_admins_of_the_cloud_reach_every_project(guarded, identity):
    """A Keystone without an admin project does not say of a token whether it is of that."""
    unsaid = identity.token("ann", "web")
    of_cloud = identity.token("ann", "web", is_admin_project=True)
    of_system = identity.token("root", SYSTEM)
    for token in (unsaid, of_cloud, of_system):
        for path in ("stacks", "services"):
            answer = guarded.stacks.get(f"/v1/db-id/{path}", headers=bearer(token))
            assert answer.status == 200
    of_project = identity.token("ann", "web", is_admin_project=False)
    assert guarded.stacks.get("/v1/db-id/stacks", headers=bearer(of_project)).status == 403
    member = identity.token("bob", "web", is_admin_project=True)
    assert guarded.stacks.get("/v1/db-id/stacks", headers=bearer(member)).status == 403
