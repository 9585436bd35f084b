"""Every endpoint lets those pass whom its rule names, and nobody else.

A row is an endpoint and a role; each is tried with a token of the system, of the project that owns
the node, of the one that it is lent to, and of a third.  Whom a rule lets pass is written down here
a second time, from Ironic's documentation, not from our table.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from bloomery.api import routing
from bloomery.api.controllers import root
from bloomery.operations.policy_rules import RULES
from tests.kit.callers import PLACES, ROLES, STEP, Site

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
    "baremetal:volume:get": ("reader", "reader", "reader", NEVER),
    "baremetal:volume:list": ("reader", "reader", "reader", "reader"),
    "baremetal:volume:create": ("member", "admin", "admin", NEVER),
    "baremetal:volume:update": ("member", "member", "admin", NEVER),
    "baremetal:volume:delete": ("member", "admin", "admin", NEVER),
    "baremetal:deploy_template:get": ("reader", NEVER, NEVER, NEVER),
    "baremetal:deploy_template:create": ("admin", NEVER, NEVER, NEVER),
    "baremetal:deploy_template:update": ("admin", NEVER, NEVER, NEVER),
    "baremetal:deploy_template:delete": ("admin", NEVER, NEVER, NEVER),
    "baremetal:runbook:get": ("reader", "reader", NEVER, NEVER),
    "baremetal:runbook:list": ("reader", "reader", "reader", "reader"),
    "baremetal:runbook:create": ("member", "admin", "admin", "admin"),
    "baremetal:runbook:update": ("member", "admin", NEVER, NEVER),
    "baremetal:runbook:delete": ("member", "admin", NEVER, NEVER),
    "baremetal:chassis:get": ("reader", NEVER, NEVER, NEVER),
    "baremetal:chassis:create": ("admin", NEVER, NEVER, NEVER),
    "baremetal:chassis:update": ("member", NEVER, NEVER, NEVER),
    "baremetal:chassis:delete": ("admin", NEVER, NEVER, NEVER),
    "baremetal:driver:get": ("reader", NEVER, NEVER, NEVER),
    "baremetal:driver:get_properties": ("reader", NEVER, NEVER, NEVER),
    "baremetal:shards:get": ("reader", NEVER, NEVER, NEVER),
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
    "POST /v1/volume/connectors": {"node_uuid": "{node}", "type": "iqn", "connector_id": "{mac}"},
    "PATCH /v1/volume/connectors/{volumeconnector}": PATCH,
    "POST /v1/volume/targets": {
        "node_uuid": "{node}",
        "volume_type": "iscsi",
        "volume_id": "{mac}",
        "boot_index": 1,
    },
    "PATCH /v1/volume/targets/{volumetarget}": PATCH,
    "POST /v1/deploy_templates": {"name": "CUSTOM_X", "steps": [STEP]},
    "PATCH /v1/deploy_templates/{deploytemplate}": PATCH,
    "POST /v1/runbooks": {
        "name": "book-{node}",
        "steps": [{"interface": "power", "step": "reboot", "order": 1}],
    },
    "PATCH /v1/runbooks/{runbook}": PATCH,
    "PUT /v1/runbooks/{runbook}/traits": {"traits": []},
    "POST /v1/chassis": {"description": "x"},
    "PATCH /v1/chassis/{chassis}": PATCH,
}
# Paths that answer 400 to everybody and do nothing: Ironic has them, and so have we.
_BELOW = r"/v1/\w+/\{\w+\}/(ports|portgroups|nodes|volume/connectors|volume/targets)"
REFUSED = re.compile(rf"POST {_BELOW}|\w+ {_BELOW}/\{{\w+\}}")


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
    if "{runbook}" in path:
        return passes("baremetal:runbook:get", place, role)
    part = re.search(r"\{(port|portgroup|volumeconnector|volumetarget)\}", path)
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
    functions = [each for each in tree.body if getattr(each, "name", None) == name]
    if not functions and name.isupper():
        return  # a constant
    (function,) = functions
    if isinstance(function, ast.ClassDef):
        return  # a value that is handed over
    asked = {
        call.func.attr
        for call in ast.walk(first_statement(function))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    }
    assert asked & ASKING, ast.unparse(first_statement(function))


def test_the_api_takes_no_operation_out_of_its_module():
    """It would escape the test above."""
    taken = {
        alias.name
        for file in API.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("bloomery.operations.")
        for alias in node.names
    }
    values = {"Admit", "Context", "HeavyJobs", "Policies", "Services", "UpdateTerms"}
    assert taken <= values  # which ask nothing


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
