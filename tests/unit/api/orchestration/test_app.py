"""What every request meets: versions, projects, methods, errors; no engine has a part in it."""

from __future__ import annotations

import base64

import bcrypt
import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.engine import Orchestration
from bloomery.operations.policy_engine import Policies
from tests.fakes.stack_operations import STACK
from tests.kit.clients.callers import Claims
from tests.unit.api.orchestration.conftest import BASE, URL, S, World, fault

VERSIONS = {
    "versions": [
        {
            "id": "v1.0",
            "status": "CURRENT",
            "links": [{"rel": "self", "href": "http://localhost/v1/"}],
        }
    ]
}


# ------------------------------------------------------------------------------------ versions


@pytest.mark.parametrize("path", ["", "/", "/versions", "/v1", "/v1/", "/v2/p1/stacks", "/v1.1/x"])
def test_versions_are_told_without_a_login(path, tmp_path):
    api = with_logins(tmp_path).api
    answer = api.get(path)
    assert (answer.status, answer.json) == (300, VERSIONS)


@pytest.mark.parametrize("path", ["/v1/p1/stacks", "/v1.0/p1/stacks", "/v1/p1/stacks/"])
def test_version_one_has_two_spellings(api, path):
    assert api.get(path).status == 200


def test_version_may_stand_in_the_media_type(api):
    accept = {"Accept": "application/vnd.openstack.orchestration-v1"}
    assert api.get("/p1/stacks", headers=accept).status == 200
    newer = {"Accept": "application/vnd.openstack.orchestration-v2"}
    assert api.get("/p1/stacks", headers=newer).status == 300
    assert api.get("/p1/stacks").status == 404


@pytest.mark.parametrize("path", ["/v1/p1", "/v1/p1/nonsense", "/v1/p1/stacks/a/b/c/d", "/vx/p1"])
def test_path_that_leads_nowhere_has_an_error_of_another_shape(api, path):
    answer = api.get(path)
    assert answer.status == 404
    assert (answer.json["code"], answer.json["title"]) == ("404 Not Found", "Not Found")
    assert "error" not in answer.json


def test_health_is_told_without_a_login(tmp_path):
    answer = with_logins(tmp_path).api.get("/healthcheck")
    assert (answer.status, answer.body) == (200, b"OK")


# ------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (f"{BASE}/stacks", "GET,POST"),
        (S, "DELETE,GET,PATCH,PUT"),
        (f"{S}/actions", "POST"),
        (f"{S}/resources/a", "GET,PATCH"),
        (f"{BASE}/services", "GET"),
        (f"{BASE}/stacks/detail", "DELETE,GET,PATCH,POST,PUT"),
        (f"{BASE}/stacks/web/template", "DELETE,GET,PATCH,POST,PUT"),
    ],
)
def test_methods_of_a_path_are_told(api, path, allowed):
    answer = api.ask("OPTIONS", path)
    assert (answer.status, answer.body, answer.headers["allow"]) == (204, b"", allowed)
    refused = api.ask("HEAD", path)
    assert (refused.status, refused.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("method", ["BREW", "TRACE", "get", ""])
def test_method_that_nobody_knows_is_refused(api, method):
    assert fault(api.ask(method, S)) == (405, "HTTPMethodNotAllowed")


def test_options_of_nothing_is_not_there(api):
    assert api.ask("OPTIONS", f"{BASE}/nonsense").status == 404


# ------------------------------------------------------------------------------------- callers


def with_logins(tmp_path) -> World:
    users = tmp_path / "htpasswd"
    users.write_text("ann:" + bcrypt.hashpw(b"pw", bcrypt.gensalt(4)).decode())
    default = Default(auth_strategy="http_basic", http_basic_auth_user_file=str(users))
    return World(conf=Conf(default=default))


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.mark.parametrize("headers", [{}, basic("ann", "x"), basic("eve", "pw"),
                                     {"X-Auth-Token": "notused"}])  # fmt: skip
def test_whoever_has_no_login_is_asked_for_one(tmp_path, headers):
    answer = with_logins(tmp_path).api.get(S, headers=headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="Orchestration API"'
    assert answer.json["error"] | {"message": ""} == {
        "code": 401, "title": "Unauthorized", "message": "",
    }  # fmt: skip


def test_login_that_cannot_be_read_is_refused(tmp_path):
    answer = with_logins(tmp_path).api.get(S, headers={"Authorization": "Basic %%%"})
    assert fault(answer) == (400, "HTTPBadRequest")


def test_login_names_the_user_and_the_path_the_project(tmp_path):
    world = with_logins(tmp_path)
    headers = basic("ann", "pw") | {"X-Auth-User": "root", "X-Auth-Project": "other"}
    assert world.api.get(S, headers=headers).status == 200
    request = world.engine.requests[-1]
    assert (request.user, request.project) == ("ann", "p1")


@pytest.mark.parametrize(
    ("headers", "user"),
    [({}, "admin"), ({"X-Auth-Token": "notused"}, "admin"), ({"X-Auth-User": "ann"}, "ann")],
)
def test_without_logins_the_path_names_the_project(api, engine, headers, user):
    assert api.get(S, headers=headers).status == 200
    assert (engine.requests[-1].user, engine.requests[-1].project) == (user, "p1")


def with_roles(**caller) -> World:
    claims = Claims()
    claims.caller = caller
    return World(policies=Policies(Conf(), enforced=True), logins=claims)


def test_path_of_another_project_is_forbidden():
    world = with_roles(project="p2", roles=("member",))
    assert fault(world.api.get(S)) == (403, "HTTPForbidden")
    assert world.engine.asked == []


def test_own_project_is_admitted():
    assert with_roles(project="p1", roles=("member",)).api.get(S).status == 200


def test_admin_of_the_whole_system_takes_the_project_of_the_path():
    world = with_roles(system_scope="all", roles=("admin",))
    assert world.api.get(S).status == 200
    assert world.engine.requests[-1].project == "p1"


@pytest.mark.parametrize(
    "caller", [{"roles": ("admin",)}, {"roles": ("reader",), "system_scope": "all"}, {}]
)
def test_login_without_project_is_forbidden(caller):
    assert fault(with_roles(**caller).api.get(S)) == (403, "HTTPForbidden")


TOKEN = "signal-0123456789abcdef"


@pytest.mark.parametrize(
    ("query", "headers"), [(f"?token={TOKEN}", {}), ("?a=b", {"X-Auth-Token": TOKEN})]
)
def test_signal_with_a_token_needs_no_login(tmp_path, query, headers):
    world = with_logins(tmp_path)
    answer = world.api.post(f"{S}/resources/a/signal{query}", {"n": 1}, headers=headers)
    assert (answer.status, answer.body) == (200, b"null")
    asked = ("resource_signal", (STACK, "a", {"n": 1}), {"token": TOKEN})
    assert world.engine.asked == [asked]
    assert (world.engine.requests[-1].user, world.engine.requests[-1].roles) == (None, ())


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_metadata_by_a_token_need_no_login_and_are_as_agents_read_them(tmp_path, method):
    """The operation compares the token, and finds metadata of a DeployedServer only."""
    world = with_logins(tmp_path)
    answer = world.api.ask(method, f"{S}/resources/a/metadata?token={TOKEN}")
    assert answer.status == 200
    assert method == "HEAD" or answer.json == {"k": "v"}
    assert world.engine.asked == [("get_resource_metadata", (STACK, "a"), {"token": TOKEN})]
    header = world.api.ask("GET", f"{S}/resources/a/metadata", headers={"X-Auth-Token": TOKEN})
    assert header.json == {"metadata": {"k": "v"}}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{S}/resources/a/signal?token=other"),
        ("GET", f"{S}/resources/a/signal?token={TOKEN}"),
        ("PUT", f"{S}/resources/a/metadata?token={TOKEN}"),
        ("POST", f"{S}/actions?token={TOKEN}"),
        ("POST", f"{BASE}/stacks?token={TOKEN}"),
        ("DELETE", f"{S}?token={TOKEN}"),
    ],
)
def test_token_of_a_signal_opens_nothing_else(tmp_path, method, path):
    world = with_logins(tmp_path)
    assert world.api.ask(method, path, {}).status == 401
    assert world.engine.asked == []


# -------------------------------------------------------------------------------------- errors


def test_error_of_the_engine_has_its_class_and_its_words(world):
    world.engine.answers["show_stack"] = errors.StackValidationFailed(reason="no good")
    answer = world.api.get(S)
    assert answer.json == {
        "code": 400,
        "title": "Bad Request",
        "explanation": answer.json["explanation"],
        "error": {"type": "StackValidationFailed", "message": "no good", "traceback": None},
    }
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-openstack-request-id"].startswith("req-")


def test_error_that_is_called_otherwise_on_the_wire_is_called_so(world):
    world.engine.answers["show_stack"] = errors.TemplateUnreadable(reason="no")
    assert fault(world.api.get(S)) == (400, "HTTPBadRequest")


def test_bug_of_ours_is_500_and_says_nothing(world, caplog):
    world.engine.answers["show_stack"] = KeyError("secret")
    answer = world.api.get(S)
    assert fault(answer) == (500, "KeyError")
    assert "message" not in answer.json["error"]
    assert b"secret" not in answer.body


def test_an_api_that_is_busy_says_when_to_come_back(world):
    world.engine.answers["show_stack"] = errors.ApiThreadsBusy(
        reason="x", count=1, option="[api]threads", size=2
    )
    answer = world.api.get(S)
    assert (fault(answer), answer.headers["retry-after"]) == ((503, "ApiThreadsBusy"), "5")


# ---------------------------------------------------------------------------------------- URLs


def test_links_have_the_host_that_the_client_used(api):
    assert api.get(S).json["stack"]["links"] == [{"rel": "self", "href": URL}]


def test_links_have_the_public_address_where_there_is_one(world):
    world.conf = Conf(orchestration=Orchestration(public_endpoint="https://heat.example/o/"))
    href = world.api.get(S).json["stack"]["links"][0]["href"]
    assert href == f"https://heat.example/o{S}"


def test_explanation_of_a_stack_needs_no_project(api, engine):
    engine.answers["explain_stack"] = {"id": STACK.uuid}
    answer = api.get(f"/ext/v1/stacks/{STACK.uuid}/why")
    assert (answer.status, answer.json) == (200, {"id": STACK.uuid})
    assert engine.requests[-1].project is None
