"""Every endpoint lets those pass whom its rule names, and nobody else.

A row is an endpoint and a role; each is tried with a token of the system, of the project that owns
the node, of the one that it is lent to, and of a third.  Whom a rule lets pass is written down here
a second time, from Ironic's documentation, not from our table.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.api import app, routing
from bloomery.api.controllers import root
from bloomery.conf import Conf
from bloomery.db import tables
from bloomery.model.request import Request
from bloomery.operations.policy_engine import Policies
from bloomery.operations.policy_rules import RULES
from tests.fakes.client import Client
from tests.functional import conftest as functional

OWNER, LESSEE, STRANGER = "owner", "lessee", "stranger"
PLACES = ("system", OWNER, LESSEE, STRANGER)
ROLES: dict[str, tuple[str, ...]] = {
    "nobody": (),
    "reader": ("reader",),
    "member": ("member", "reader"),
    "admin": ("admin", "manager", "member", "reader"),
}
RANKS = list(ROLES)
NEVER = "never"
ENDPOINTS = list(routing.endpoints(root.Root()))
PUBLIC = "public"
# The least role that a rule lets pass, with a token of each place.
PASSES: dict[str, tuple[str, str, str, str]] = {
    "baremetal:node:create": ("admin", "admin", "admin", "admin"),  # a project's: of its own
    "baremetal:node:list": ("reader", "reader", "reader", "reader"),
    "baremetal:node:get": ("reader", "reader", "reader", NEVER),
    "baremetal:node:get_states": ("reader", "reader", "reader", NEVER),
    "baremetal:node:vif:list": ("reader", "reader", "reader", NEVER),
    "baremetal:node:traits:list": ("reader", "reader", "reader", NEVER),
    "baremetal:node:bios:get": ("reader", "reader", "reader", NEVER),
    "baremetal:node:firmware:get": ("reader", "reader", "reader", NEVER),
    "baremetal:node:history:get": ("reader", "reader", NEVER, NEVER),
    "baremetal:node:inventory:get": ("reader", "reader", NEVER, NEVER),
    "baremetal:node:update": ("member", "member", "member", NEVER),
    "baremetal:node:set_power_state": ("member", "member", "member", NEVER),
    "baremetal:node:set_boot_mode": ("member", "member", "member", NEVER),
    "baremetal:node:set_secure_boot": ("member", "member", "member", NEVER),
    "baremetal:node:validate": ("member", "member", "admin", NEVER),
    "baremetal:node:set_maintenance": ("member", "member", "admin", NEVER),
    "baremetal:node:clear_maintenance": ("member", "member", "admin", NEVER),
    "baremetal:node:set_provision_state": ("member", "member", "admin", NEVER),
    "baremetal:node:vif:attach": ("member", "member", "admin", NEVER),
    "baremetal:node:vif:detach": ("member", "member", "admin", NEVER),
    "baremetal:node:get_console": ("member", "member", NEVER, NEVER),
    "baremetal:node:set_console_state": ("member", "member", NEVER, NEVER),
    "baremetal:node:get_boot_device": ("member", "admin", NEVER, NEVER),
    "baremetal:node:set_boot_device": ("member", "admin", NEVER, NEVER),
    "baremetal:node:traits:set": ("member", "admin", NEVER, NEVER),
    "baremetal:node:traits:delete": ("member", "admin", NEVER, NEVER),
    "baremetal:node:delete": ("admin", "admin", NEVER, NEVER),
    "baremetal:port:get": ("reader", "reader", "reader", NEVER),
    "baremetal:port:list": ("reader", "reader", "reader", "reader"),
    "baremetal:port:create": ("admin", "admin", NEVER, NEVER),
    "baremetal:port:update": ("member", "admin", NEVER, NEVER),
    "baremetal:port:delete": ("admin", "admin", NEVER, NEVER),
    "baremetal:portgroup:get": ("reader", "reader", "reader", NEVER),
    "baremetal:portgroup:list": ("reader", "reader", "reader", "reader"),
    "baremetal:portgroup:create": ("admin", "admin", NEVER, NEVER),
    "baremetal:portgroup:update": ("member", "admin", NEVER, NEVER),
    "baremetal:portgroup:delete": ("admin", "admin", NEVER, NEVER),
    "baremetal:chassis:get": ("reader", NEVER, NEVER, NEVER),
    "baremetal:chassis:create": ("admin", NEVER, NEVER, NEVER),
    "baremetal:chassis:update": ("member", NEVER, NEVER, NEVER),
    "baremetal:chassis:delete": ("admin", NEVER, NEVER, NEVER),
    "baremetal:driver:get": ("reader", NEVER, NEVER, NEVER),
    "baremetal:driver:get_properties": ("reader", NEVER, NEVER, NEVER),
    "baremetal:conductor:get": ("reader", NEVER, NEVER, NEVER),
}
# What is asked below a node shows nothing of a node that the caller may not read.
OF_A_NODE = re.compile(r"/nodes/(\{node\}|validate)")
PATCH = [{"op": "replace", "path": "/extra", "value": {"a": 1}}]
BODIES: dict[str, Any] = {
    "POST /v1/nodes": {"driver": "fake-hardware"},
    "PATCH /v1/nodes/{node}": [{"op": "add", "path": "/description", "value": "x"}],
    "PUT /v1/nodes/{node}/states/power": {"target": "power on"},
    "PUT /v1/nodes/{node}/states/provision": {"target": "manage"},
    "PUT /v1/nodes/{node}/states/boot_mode": {"target": "uefi"},
    "PUT /v1/nodes/{node}/states/secure_boot": {"target": True},
    "PUT /v1/nodes/{node}/states/console": {"enabled": True},
    "PUT /v1/nodes/{node}/management/boot_device": {"boot_device": "pxe"},
    "POST /v1/nodes/{node}/vifs": {"id": "a-vif"},
    "POST /v1/ports": {"address": "{mac}", "node_uuid": "{node}"},
    "PATCH /v1/ports/{port}": PATCH,
    "POST /v1/portgroups": {"node_uuid": "{node}"},
    "PATCH /v1/portgroups/{portgroup}": PATCH,
    "POST /v1/chassis": {"description": "x"},
    "PATCH /v1/chassis/{chassis}": PATCH,
}
# Paths that answer 400 to everybody and do nothing: Ironic has them, and so have we.
_BELOW = r"/v1/\w+/\{\w+\}/(ports|portgroups|nodes)"
REFUSED = re.compile(rf"POST {_BELOW}|\w+ {_BELOW}/\{{\w+\}}")


class Claims:
    """Stands where keystone's middleware will: it says who calls."""

    def __init__(self) -> None:
        self.caller: dict[str, Any] = {}

    def identify(self, request: Request, environ: Any) -> Request:
        return dataclasses.replace(request, **self.caller)


class Asked(Policies):
    """Notes each rule that was granted."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.granted: set[str] = set()

    def allow(self, request: Request, rule: str, target: Any) -> bool:
        granted = super().allow(request, rule, target)
        if granted:
            self.granted.add(rule)
        return granted


class Site:
    """A service whose callers have roles."""

    def __init__(self, path: Path) -> None:
        services, self.conductor = functional.build(path, Conf())
        self.policies = Asked(Conf(), [path], enforced=True)
        services = dataclasses.replace(services, policies=self.policies)
        self.claims = Claims()
        self.db = services.db
        self.api = Client(app.make_app(services, logins=self.claims))
        self.numbers = itertools.count(1)
        self.made: dict[str, dict[str, str]] = {}

    def become(self, place: str, role: str) -> None:
        self.policies.granted.clear()
        where = {"system_scope": "all"} if place == "system" else {"project": place}
        self.claims.caller = {"roles": ROLES[role], **where}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self.api.ask(method, path, body)

    def as_admin(self, method: str, path: str, body: Any = None) -> Any:
        self.become("system", "admin")
        answer = self.ask(method, path, body)
        assert answer.status < 300, answer.body
        return answer

    def idents(self, text: str) -> dict[str, str]:
        """Return by name what the braces of ``text`` name; made once until it is changed."""
        if text not in self.made:
            self.made[text] = self._make(set(re.findall(r"\{(\w+)\}", text)))
        return self.made[text]

    def _make(self, names: set[str]) -> dict[str, str]:
        found = {"driver": "fake-hardware", "hostname": functional.HOST, "setting": "Proc",
                 "trait": "HW_CPU_X86_VMX", "vif": "a-vif", "mac": self.mac()}  # fmt: skip
        node = found["node"] = self.node()
        if "trait" in names:
            self.as_admin("PUT", f"/v1/nodes/{node}/traits/{found['trait']}")
        if "entry" in names:
            found["entry"] = self._entry(node)
        for noun, plural, body in (
            ("port", "ports", {"node_uuid": node, "address": self.mac()}),
            ("portgroup", "portgroups", {"node_uuid": node}),
            ("chassis", "chassis", {}),
        ):
            if noun in names:
                found[noun] = self.as_admin("POST", f"/v1/{plural}", body).json["uuid"]
        return found

    def mac(self) -> str:
        number = next(self.numbers)
        return f"02:00:00:00:{number // 256:02x}:{number % 256:02x}"

    def node(self) -> str:
        node = self.as_admin("POST", "/v1/nodes", {"driver": "fake-hardware"}).json["uuid"]
        owned = sa.update(tables.NODES).where(tables.NODES.c.uuid == node)
        self.db.transact(lambda conn: conn.execute(owned.values(owner=OWNER, lessee=LESSEE)))
        self._insert("BIOS_SETTINGS", node_uuid=node, name="Proc", value="x")
        self._insert("NODE_INVENTORY", node_uuid=node)
        return str(node)

    def _insert(self, table: str, **values: Any) -> None:
        found = getattr(tables, table)
        for column in found.c:
            needed = not column.nullable and not column.primary_key and column.default is None
            if needed and column.name not in values:
                values[column.name] = _anything(column)
        self.db.transact(lambda conn: conn.execute(sa.insert(found).values(**values)))

    def _entry(self, node: str) -> str:
        entry = "5a3b6c1e-8d5b-4b43-8d0e-0f7b6c1d2e3f"
        self.db.transact(lambda conn: conn.execute(sa.delete(tables.NODE_HISTORY)))
        self._insert("NODE_HISTORY", uuid=entry, node_uuid=node)
        return entry


def _anything(column: Any) -> Any:
    if isinstance(column.type, tables.UtcTime):
        return datetime.now(UTC)
    return {str: "{}", int: 0, bool: False}[column.type.python_type]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("policies"))
    yield made
    made.db.close()


def filled(text, idents):
    return re.sub(r"\{(\w+)\}", lambda name: idents[name[1]], text)


def query(name, path, idents):
    return f"?node={idents['node']}" if path == "/v1/nodes/validate" else ""


def body_of(name, idents):
    body = BODIES.get(name)
    if isinstance(body, dict):
        return {k: filled(v, idents) if isinstance(v, str) else v for k, v in body.items()}
    return body


def passes(rule, place, role):
    least = PASSES[rule][PLACES.index(place)]
    return least != NEVER and RANKS.index(role) >= RANKS.index(least)


ROWS = [
    pytest.param(method, path, endpoint, role, id=f"{method} {path} {role}")
    for method, path, endpoint in ENDPOINTS
    for role in ROLES
]


@pytest.mark.parametrize(("method", "path", "endpoint", "role"), ROWS)
def test_endpoint_asks_its_rule(site, method, path, endpoint, role):
    name, rule = f"{method} {path}", endpoint.rule
    for place in PLACES:
        text = path + str(BODIES.get(name, ""))
        idents = site.idents(text)
        site.become(place, role)
        where = filled(path, idents) + query(name, path, idents)
        answer = site.ask(method, where, body_of(name, idents))
        if method != "GET" and answer.status < 300:
            del site.made[text]
        told = (place, role, answer.status, answer.body)
        if rule == PUBLIC:
            assert answer.status in (200, 405), told
        elif REFUSED.fullmatch(name):
            assert answer.status == 400, told
        elif passes(rule, place, role) and reads(place, role, path):
            assert answer.status == endpoint.status, told
            assert granted(rule, site.policies.granted), (told, site.policies.granted)
        else:
            assert answer.status == (403 if reads(place, role, path) else 404), told


def granted(rule, rules):
    """A rule has variants: of all nodes or one's own."""
    own = {
        "baremetal:node:create": "baremetal:node:create:self_owned_node",
        "baremetal:node:delete": "baremetal:node:delete:self_owned_node",
    }
    return bool({rule, f"{rule}_all", own.get(rule)} & rules)


def reads(place, role, path):
    """May the caller know that what the path names is there?"""
    part = re.search(r"\{(port|portgroup)\}", path)
    if not (OF_A_NODE.search(path) or part):
        return True
    return passes("baremetal:node:get", place, role)


def test_every_rule_has_a_name_of_the_table():
    assert {endpoint.rule for *_, endpoint in ENDPOINTS} - {PUBLIC} <= {rule.name for rule in RULES}


OPERATIONS = Path(__file__).parents[2] / "bloomery" / "operations"
API = OPERATIONS.parent / "api"
ASKING = {
    "authorize", "authorize_node", "authorize_record", "authorize_new_record", "readable_node",
    "visible_project", "visible_records",
}  # fmt: skip
# A fact of a node that is shown; it was asked whether the caller may read that.
PARTS = {("conductors", "find_host")}
UNASKED = {"context", "health", "lookup", "policy", "policy_engine", "policy_rules"}


def called_by_the_api():
    """Yield each function of operations that a file of the API names, as (module, name)."""
    for file in sorted(API.rglob("*.py")):
        tree = ast.parse(file.read_text())
        modules = {
            alias.asname or alias.name: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "bloomery.operations"
            for alias in node.names
        }
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
                continue
            if modules.get(node.value.id, "context") not in UNASKED:
                yield modules[node.value.id], node.attr


def first_statement(function):
    body = [each for each in function.body if not _is_text(each)]
    return body[0]


def _is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@pytest.mark.parametrize(("module", "name"), sorted(set(called_by_the_api()) - PARTS))
def test_operation_asks_before_all_else(module, name):
    tree = ast.parse((OPERATIONS / f"{module}.py").read_text())
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == name:
            asked = {
                call.func.attr
                for call in ast.walk(first_statement(function))
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            }
            assert asked & ASKING, ast.unparse(first_statement(function))


def test_the_api_reaches_no_node_past_the_rules():
    """``lookup`` asks nobody: it is for operations."""
    users = [file for file in API.rglob("*.py") if "lookup" in _names(file)]
    assert users == []


def _names(file):
    tree = ast.parse(file.read_text())
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "bloomery.operations"
        for alias in node.names
    }
