"""Every endpoint lets those pass whom its rule names, and nobody else.

A row is an endpoint.  Each is tried without a token, and with one for each role in each place: the
system, the project that owns the node, the one that it is lent to, and a third.  Tokens are issued
by an identity service and checked as in a service.  Whom a rule lets pass is what Ironic says
(``tests/kit/probes/ironic_roles.py``), not our table; a rule that has no row there fails.
"""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from bloomery.api.declare import REFUSED
from bloomery.operations.policy_rules import RULES
from tests.kit.clients.callers import PLACES, ROLES, STEP, Site
from tests.kit.probes import door_probes
from tests.kit.probes.door_probes import ENDPOINTS, OF_AGENTS, PUBLIC
from tests.kit.probes.ironic_roles import allows
from tests.kit.servers.identity import Identity

# What is asked below a node shows nothing of a node that the caller may not read.
OF_A_NODE = re.compile(r"/nodes/(\{node\}|validate)")
ACTION = {"op": "set-attribute", "args": {"path": "extra/rack", "value": "{inventory[rack]}"}}
SECRET = "whsec_" + "A" * 40
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
    "PUT /v1/nodes/{node}/management/indicators/{indicator}": {"state": "on"},
    "POST /v1/nodes/{node}/vmedia": {
        "device_type": "cdrom",
        "image_url": "http://images.test/a.iso",
    },
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
    "POST /v1/inspection_rules": {"actions": [ACTION]},
    "PATCH /v1/inspection_rules/{inspectionrule}": [
        {"op": "replace", "path": "/priority", "value": 5}
    ],
    "POST /v1/runbooks": {
        "name": "book-{node}",
        "steps": [{"interface": "power", "step": "reboot", "order": 1}],
    },
    "PATCH /v1/runbooks/{runbook}": PATCH,
    "PUT /v1/nodes/{node}/traits": {"traits": []},
    "PUT /v1/runbooks/{runbook}/traits": {"traits": []},
    "POST /v1/allocations": {"resource_class": "large"},
    "PATCH /v1/allocations/{allocation}": PATCH,
    "POST /v1/events": {
        "events": [
            {
                "event": "network.bind_port",
                "port_id": "00000000-0000-4000-8000-000000000001",
                "mac_address": "52:54:00:00:00:01",
                "status": "ACTIVE",
            },
        ],
    },
    "POST /v1/chassis": {"description": "x"},
    "PATCH /v1/chassis/{chassis}": PATCH,
    "POST /ext/v1/nodes:batch": {"nodes": [{"driver": "fake-hardware", "name": "batch-1"}]},
    "POST /ext/v1/nodes:act": {"nodes": ["unknown"], "provision": {"target": "manage"}},
    "POST /ext/v1/nodes/{node}/past": {"history": []},
    "PUT /ext/v1/firmware/catalogue": {
        "catalogue": "- {model: m, component: bios, version: '1', url: 'http://files.test/1'}",
    },
    "POST /ext/v1/webhooks": {"url": "http://hooks.test/", "secret": SECRET},
    "PATCH /ext/v1/webhooks/{webhook}": [{"op": "add", "path": "/description", "value": "x"}],
}


OF_IMPORTED_NODES = "POST /ext/v1/nodes/{node}/past"  # and the node is none


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Identity() as identity:
        made = Site(tmp_path_factory.mktemp("policies"), identity)
        yield made
        made.db.close()


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    with door_probes.open_doors(tmp_path_factory.mktemp("doors")) as opened:
        yield opened


def filled(text, idents):
    return re.sub(r"\{(\w+)\}", lambda name: idents[name[1]], text)


def query(path, idents):
    if path.endswith("/drain"):  # of the one conductor that there is
        return "?force=true"
    if path.endswith("/vendor_passthru"):
        return "?method=" + idents["driver_method"]
    return f"?node={idents['node']}" if path == "/v1/nodes/validate" else ""


def body_of(name, idents):
    body = BODIES.get(name)
    if isinstance(body, dict):
        return {k: filled(v, idents) if isinstance(v, str) else v for k, v in body.items()}
    return body


# A rule has variants: of all objects or of one's own.
VARIANTS = {
    "baremetal:node:create": "baremetal:node:create:self_owned_node",
    "baremetal:node:delete": "baremetal:node:delete:self_owned_node",
    "baremetal:allocation:create": "baremetal:allocation:create_restricted",
}
ROWS = [
    pytest.param(method, path, endpoint, id=f"{method} {path}")
    for method, path, endpoint in ENDPOINTS
]


def passes(rule, place, role):
    rules = [rule, *([VARIANTS[rule]] if rule in VARIANTS else [])]
    return any(allows(each, place, role) for each in rules)


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "path", "endpoint"), ROWS)
def test_endpoint_asks_its_rule(site, method, path, endpoint):
    wrong = []
    for place, role in itertools.product(PLACES, ROLES):
        answer = asked(site, method, path, place, role)
        expected = expected_status(f"{method} {path}", endpoint, place, role)
        if answer.status not in expected:
            wrong.append((place, role, answer.status, expected, answer.body))
        if answer.status == endpoint.status < 400 and endpoint.rule != PUBLIC:
            assert granted(endpoint.rule, site.policies.granted), site.policies.granted
    assert not wrong


def asked(site, method, path, place, role):
    """Ask as one caller; what an earlier one has changed is made anew first."""
    name = f"{method} {path}"
    text = path + str(BODIES.get(name, ""))
    idents = site.idents(text)
    site.become(place, role)
    answer = site.ask(method, filled(path, idents) + query(path, idents), body_of(name, idents))
    if method != "GET" and answer.status < 300:
        del site.made[text]
    return answer


def expected_status(name, endpoint, place, role):
    path = name.partition(" ")[2]
    if endpoint.rule == PUBLIC:
        return (200, 400, 405)  # 400: heard, without the login that POST session wants
    if endpoint.rule in OF_AGENTS:  # none runs here: whoever calls is heard, and told so
        return (400, 404)
    if endpoint.status == REFUSED:  # does nothing for anybody: Ironic has it, and so have we
        return (REFUSED,)
    if not reads(place, role, path):
        return (hidden(name, place, role),)
    if not passes(endpoint.rule, place, role):
        return (403,)
    return (409,) if name == OF_IMPORTED_NODES else (endpoint.status,)


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "path", "endpoint"), ROWS)
def test_whoever_has_no_login_is_sent_to_get_one(doors, method, path, endpoint):
    door_probes.heard(doors, method, path, endpoint, BODIES.get(f"{method} {path}"))


def hidden(name, place, role):
    """Return the status of what the caller may not know of; an odd one is Ironic's."""
    odd = name == "GET /v1/nodes/{node}/allocation"
    return 400 if odd and not passes("baremetal:node:get", place, role) else 404


def granted(rule, rules):
    return bool({rule, f"{rule}_all", VARIANTS.get(rule)} & rules)


def reads(place, role, path):
    """May the caller know that what the path names is there?"""
    if "allocation}" in path or path.endswith("{node}/allocation"):
        return passes("baremetal:allocation:get", place, role)
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
    "authorize", "authorize_node", "authorize_record", "authorize_new_record", "get_node",
    "get_uuid", "visible_project", "visible_records",
}  # fmt: skip
# A fact of a node that is shown, as the caller may read it; what the probes of the process ask.
PARTS = {("nodes", "find_host"), ("status", "readiness_checks")}
UNASKED = {
    "agent_callers", "context", "lookup", "policy", "policy_engine", "policy_rules",
}  # fmt: skip


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
    return function.body[1 if ast.get_docstring(function) else 0]


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
    imported = re.compile(r"from bloomery\.operations import (\([^)]*|.*)\blookup\b")
    assert [file for file in API.rglob("*.py") if imported.search(file.read_text())] == []
