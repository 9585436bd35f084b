"""Every endpoint of stacks lets those pass whom its rule names, and nobody else.

A row of ``LEAST`` is an endpoint; each is tried with every role, in the project of the stack and in
another one.  Whom a rule lets pass is written down here a second time, from Heat's defaults, not
from our table.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from bloomery.api.orchestration import app, routes
from tests.fakes.client import Answer, Client
from tests.kit.clients.callers import Claims
from tests.kit.clients.stack_calls import StackCalls, template

ROLES: dict[str, tuple[str, ...]] = {
    "nobody": (),
    "instance": ("heat_stack_user",),
    "reader": ("reader",),
    "member": ("member", "reader"),
    "project admin": ("admin", "member", "reader"),
}
READER = {"reader", "member", "project admin"}
MEMBER = {"member", "project admin"}
INSTANCE = {"instance"}
S = "stacks/{stack_name}/{stack_id}"
R = f"{S}/resources/{{resource_name}}"
PASS: dict[str, set[str]] = {
    "GET stacks": READER,
    "POST stacks": MEMBER,
    "GET stacks/detail": READER,
    "POST stacks/preview": READER,
    **{f"{method} stacks/{{stack}}": READER | INSTANCE
       for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
    **{f"{method} stacks/{{stack}}/{part}": READER | INSTANCE
       for method in ("GET", "POST") for part in ("resources", "events", "template", "actions")},
    **{f"GET stacks/{{stack}}/{part}": READER | INSTANCE for part in ("environment", "files")},
    f"GET {S}": READER,
    f"PUT {S}": MEMBER,
    f"PATCH {S}": MEMBER,
    f"DELETE {S}": MEMBER,
    f"PUT {S}/preview": MEMBER,
    f"PATCH {S}/preview": MEMBER,
    f"DELETE {S}/abandon": MEMBER,
    f"GET {S}/export": MEMBER,
    f"GET {S}/template": READER,
    f"GET {S}/environment": READER,
    f"GET {S}/files": READER,
    f"GET {S}/outputs": READER,
    f"GET {S}/outputs/{{output_key}}": READER,
    f"POST {S}/actions": MEMBER,
    f"GET {S}/snapshots": READER,
    f"POST {S}/snapshots": MEMBER,
    f"GET {S}/snapshots/{{snapshot_id}}": READER,
    f"DELETE {S}/snapshots/{{snapshot_id}}": MEMBER,
    f"POST {S}/snapshots/{{snapshot_id}}/restore": MEMBER,
    f"GET {S}/resources": READER,
    f"GET {R}": READER | INSTANCE,
    f"PATCH {R}": MEMBER,
    f"GET {R}/metadata": READER | INSTANCE,
    f"POST {R}/signal": MEMBER | INSTANCE,
    f"GET {R}/events": READER,
    f"GET {R}/events/{{event_id}}": READER,
    f"GET {S}/events": READER,
    "POST validate": MEMBER,
    "GET resource_types": READER,
    "GET resource_types/{type_name}": READER,
    "GET resource_types/{type_name}/template": READER,
    "GET template_versions": READER,
    "GET template_versions/{version}/functions": READER,
    "GET software_configs": READER,
    "POST software_configs": MEMBER,
    "GET software_configs/{config_id}": READER,
    "DELETE software_configs/{config_id}": MEMBER,
    "GET software_deployments": READER,
    "POST software_deployments": MEMBER,
    "GET software_deployments/{deployment_id}": READER,
    "PUT software_deployments/{deployment_id}": MEMBER,
    "DELETE software_deployments/{deployment_id}": MEMBER,
    "GET software_deployments/metadata/{server_id}": READER | INSTANCE,
    "GET build_info": READER,
    "GET services": set(),  # of the whole system
    "GET stacks/{stack}/template_text": READER,  # below /ext/v1
    "GET stacks/{stack}/graph": READER,  # below /ext/v1
    "GET stacks/{stack}/why": READER,  # below /ext/v1
    "GET stacks/{stack}/revisions": READER,  # below /ext/v1
    "GET stacks/{stack}/revisions/{revision}": READER,  # below /ext/v1
    "GET stacks/{stack}/revisions/{revision}/diff/{other}": READER,  # below /ext/v1
    "GET openapi.json": set(ROLES),  # below /ext/v1, for whoever has a login
}  # fmt: skip
BODIES: dict[str, Any] = {
    "stacks": {"stack_name": "new", "template": template()},
    "actions": {"check": None},
    "validate": {"template": template()},
    "preview": {"stack_name": "new", "template": template()},
    S: {"template": template()},
    R: {"mark_unhealthy": True},
}
WAIT = {"type": "OS::Heat::WaitConditionHandle"}


class World:
    """A stack ``web`` of project p1, and a caller who changes."""

    def __init__(self, folder: Any) -> None:
        self.calls = StackCalls(folder, enforced=True, enable_stack_abandon=True)
        self.claims = Claims()
        self.api = Client(
            app.make_app(self.calls.services, self.calls.operations, self.claims), version=None
        )
        self.web = self.calls.create("web", outputs={"o": {"value": 1}})
        self.calls.finish(self.web)
        self.calls.add_resource(self.web, "a")

    def ask(self, endpoint: str, role: str, *, project: str = "p1", path: str = "") -> Answer:
        method, route = endpoint.split()
        where = {"system_scope": "all"} if role == "system admin" else {"project": project}
        roles = ROLES.get(role, ("admin", "member", "reader"))
        self.claims.caller = {"user": "eve", "roles": roles} | where
        body = next((body for end, body in BODIES.items() if route.endswith(end)), {})
        sent = None if method in ("GET", "DELETE") else body
        root = "/ext/v1" if endpoint in EXTENSIONS else f"/v1/{path or project}"
        return self.api.ask(method, f"{root}/{self.place(route)}", sent)

    def place(self, route: str) -> str:
        names = {
            "stack": "web", "stack_name": "web", "stack_id": self.web.uuid, "resource_name": "a",
            "revision": "1", "other": "1", "output_key": "o", "type_name": "OS::Heat::Value",
            "version": "heat_template_version.2021-04-16",
        }  # fmt: skip
        return re.sub(r"\{(\w+)\}", lambda name: names.get(name[1], "unknown"), route)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.calls.db.close()


def endpoints_below(prefix):
    return [
        f"{each.method} {each.path.removeprefix(prefix)}"
        for each in routes.ENDPOINTS
        if each.path.startswith(prefix)
    ]


EXTENSIONS = endpoints_below("/ext/v1/")
OF_PROJECTS = endpoints_below(routes.PREFIX)
ENDPOINTS = [*OF_PROJECTS, *EXTENSIONS]


def test_every_endpoint_has_its_row():
    assert set(ENDPOINTS) == set(PASS)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_those_pass_whom_the_rule_names(world, endpoint):
    statuses = {role: world.ask(endpoint, role).status for role in ROLES}
    assert {role for role, status in statuses.items() if status != 403} == PASS[endpoint], statuses
    assert world.ask(endpoint, "system admin").status != 403
    assert not [status for status in statuses.values() if status >= 500 and status != 503]


@pytest.mark.parametrize("endpoint", OF_PROJECTS)
def test_another_project_has_no_such_address(world, endpoint):
    answer = world.ask(endpoint, "member", project="p2", path="p1")
    assert (answer.status, answer.json["error"]["type"]) == (403, "HTTPForbidden")
    assert b"web" not in answer.body


@pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS if "{stack" in each or "arn" in each]
)
def test_stack_of_another_project_is_not_there(world, endpoint):
    before = world.calls.row(world.web)
    answer = world.ask(endpoint, "member", project="p2")
    assert (answer.status, answer.json["error"]["type"]) == (404, "EntityNotFound"), answer.body
    assert world.calls.row(world.web) == before


def test_lists_show_the_own_project_alone(world):
    assert world.ask("GET stacks", "member").json["stacks"] != []
    assert world.ask("GET stacks", "member", project="p2").json["stacks"] == []


@pytest.mark.parametrize("role", ["member", "project admin", "system admin"])
def test_nobody_lists_the_stacks_of_everybody(world, role):
    world.ask("GET stacks", role)
    answer = world.api.get("/v1/p1/stacks?global_tenant=True")
    assert (answer.status, answer.json["error"]["type"]) == (403, "Forbidden")
    assert "stacks:global_index" in answer.json["error"]["message"]


def test_name_of_a_stack_of_another_project_is_free(world):
    answer = world.ask("POST stacks", "member", project="p2")
    assert answer.status == 201
    assert world.ask("POST stacks", "member").status == 201
    assert world.ask("POST stacks", "member").status == 409
