"""No project learns of what is another's: not that it is there, what it is called, what it holds.

Every endpoint is asked by a stranger twice: with the idents of somebody else's objects, and with
idents that nobody has.  Status and words must be the same.  Then every list is asked with each of
its filters, with values out of those objects: nothing of them may be in the answer.
"""

from __future__ import annotations

import itertools
import json
import re
import uuid

import pytest
import sqlalchemy as sa

from bloomery.db import tables
from tests.invariants.test_policy import BODIES, ENDPOINTS, body_of, filled
from tests.kit.clients import callers
from tests.kit.clients.callers import OWNER, PLACES, STRANGER, Site

# Of a site, not of a project.
SHARED = ("driver", "hostname", "conductor", "setting", "trait", "vif", "indicator",
          "driver_method", "deploytemplate", "chassis", "mac")  # fmt: skip
SECRET = "a-secret-of-the-owner"
ROLES = ("reader", "admin", "service")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("tenants"))
    yield made
    made.db.close()


def unknown(idents):
    return {name: value if name in SHARED else str(uuid.uuid4()) for name, value in idents.items()}


NAMED = [
    pytest.param(method, path, role, id=f"{method} {path} {role}")
    for method, path, _ in ENDPOINTS
    for role in ROLES
    if set(re.findall(r"\{(\w+)\}", path + str(BODIES.get(f"{method} {path}", "")))) - set(SHARED)
    # The body holds a name, not something that is there.
    if f"{method} {path}" != "POST /v1/runbooks"
    # Role service of any project uses every runbook, as in Ironic.
    if not ("/runbooks/" in path and role == "service")
]


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "path", "role"), NAMED)
def test_what_is_hidden_and_what_is_not_there_get_the_same_answer(site, method, path, role):
    name = f"{method} {path}"
    hidden = site.idents(path + str(BODIES.get(name, "")))
    missing = unknown(hidden)
    before = contents(site)
    site.become(STRANGER, role)
    answers = [
        site.ask(method, filled(path, idents), body_of(name, idents))
        for idents in (hidden, missing)
    ]
    first, second = (plain(a, i) for a, i in zip(answers, (hidden, missing), strict=True))
    assert first == second
    assert contents(site) == before


ALL = "{chassis} {node} {port} {portgroup} {volumeconnector} {volumetarget} {runbook} {allocation}"
OWN_PORT, OWN_TARGET = "PATCH /v1/ports/{own_port}", "PATCH /v1/volume/targets/{own_target}"
ADD = {"op": "add"}
PROVISION = "PUT /v1/nodes/{own_node}/states/provision"
REFERENCES = [  # what a stranger may do to its own objects, with somebody else's in the body
    ("POST /v1/nodes", {"driver": "fake-hardware", "parent_node": "{node}"}),
    ("POST /v1/nodes", {"driver": "fake-hardware", "parent_node": "{node_name}"}),
    ("PATCH /v1/nodes/{own_node}", [ADD | {"path": "/parent_node", "value": "{node}"}]),
    ("POST /v1/ports", {"node_uuid": "{own_node}", "address": "{mac}",
                        "portgroup_uuid": "{portgroup}"}),
    (OWN_PORT, [ADD | {"path": "/portgroup_uuid", "value": "{portgroup}"}]),
    (OWN_PORT, [ADD | {"path": "/node_uuid", "value": "{node}"}]),
    (OWN_TARGET, [ADD | {"path": "/node_uuid", "value": "{node}"}]),
    ("POST /v1/allocations", {"resource_class": "large", "candidate_nodes": ["{node}"]}),
    ("POST /v1/allocations", {"resource_class": "large", "candidate_nodes": ["{node_name}"]}),
    ("POST /v1/allocations", {"node": "{node}"}),
    ("POST /v1/allocations", {"node": "{node_name}"}),
    (PROVISION, {"target": "clean", "runbook": "{runbook}"}),
    (PROVISION, {"target": "service", "runbook": "{runbook}"}),
    ("PUT /v1/nodes/{own_node}/vifs", {"id": "x", "port_uuid": "{port}"}),
    ("POST /v1/nodes/{own_node}/vifs", {"id": "x", "port_uuid": "{port}"}),
    ("POST /v1/nodes/{own_node}/vifs", {"id": "x", "portgroup_uuid": "{portgroup}"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body"), REFERENCES)
def test_a_body_finds_nothing_of_others(site, name, body):
    own = own_idents(site)
    hidden = named(site)
    missing = {each: f"no-{each.replace('_', '-')}" if each.endswith("_name") else value
               for each, value in unknown(hidden).items()}  # fmt: skip
    before = contents(site)
    site.become(STRANGER, "admin")
    method, _, path = name.partition(" ")
    answers = [
        plain(site.ask(method, filled(path, own | idents), fill_in(body, own | idents)), idents)
        for idents in (hidden | {"mac": site.mac()}, missing | {"mac": site.mac()})
    ]
    assert answers[0] == answers[1]
    assert contents(site) == before


def named(site):
    """Return the idents of one object of each kind, with names and secrets, of the owner."""
    idents = site.idents(ALL)
    site.set(idents["node"], name="node-of-the-owner", provision_state="active",
             driver_info=json.dumps({"ipmi_password": SECRET}), shard="shard-of-the-owner",
             instance_uuid=str(uuid.uuid4()), description=SECRET, resource_class="rc-of-the-owner",
             extra=json.dumps({"a": SECRET}), conductor_group="")  # fmt: skip
    return idents | {"node_name": "node-of-the-owner"}


def own_idents(site):
    idents = site._make({"port", "volumetarget"})
    site.set(idents["node"], owner=STRANGER, lessee=None, provision_state="manageable",
             power_state="power off")  # fmt: skip
    return {"own_node": idents["node"], "own_port": idents["port"],
            "own_target": idents["volumetarget"]}  # fmt: skip


def fill_in(body, idents):
    return json.loads(filled(json.dumps(body), idents))


def plain(answer, idents):
    """Return status and text, with each ident by its name."""
    text = answer.body.decode()
    for name, value in idents.items():
        if name not in SHARED:
            text = text.replace(value, f"<{name}>")
    return answer.status, text


def contents(site):
    """Return how many rows each table has, and when nodes were changed last."""
    with site.db.read() as conn:
        counts = {
            table.name: conn.execute(sa.select(sa.func.count()).select_from(table)).scalar()
            for table in tables.METADATA.sorted_tables
        }
        return counts, conn.execute(sa.select(tables.NODES.c.updated_at)).all()


# ----------------------------------------------------------------------------------- lists

LISTS = [
    (path, endpoint.query)
    for method, path, endpoint in ENDPOINTS
    if method == "GET" and "marker" in endpoint.query and path.startswith("/v1/")
]


# Where one object of a kind is read: {"port": "/v1/ports/{port}"}.
SINGLES = {
    path.rpartition("{")[2][:-1]: path
    for method, path, endpoint in ENDPOINTS
    if method == "GET" and re.fullmatch(r"/v1/[\w/]+/\{\w+\}", path) and endpoint.status == 200
}
MEMBERS = {  # the kind of what a list holds, by the end of its path
    "nodes": "node", "ports": "port", "portgroups": "portgroup", "connectors": "volumeconnector",
    "targets": "volumetarget", "chassis": "chassis", "allocations": "allocation",
    "runbooks": "runbook", "deploy_templates": "deploytemplate", "conductors": "hostname",
    "inspection_rules": "inspectionrule",
}  # fmt: skip


def test_every_list_has_a_kind():
    ends = {path.removesuffix("/detail").rpartition("/")[2] for path, _ in LISTS}
    assert ends - MEMBERS.keys() == {"history"}  # whose entries are read below their node alone


@pytest.mark.parametrize("path", [path for path, _ in LISTS if not path.endswith("/history")])
def test_a_list_holds_what_may_be_read_alone_and_nothing_else(site, path):
    """For each role in each place; who may not list gets no list at all.

    But role service: by Ironic's rules it lists what is lent to its project and may not read it
    alone, and reads each runbook and does not list it.
    """
    kind = MEMBERS[path.removesuffix("/detail").rpartition("/")[2]]
    single = SINGLES[kind]
    idents = site.idents(path + single)
    join(site, idents)
    wrong = []
    for place, role in itertools.product(PLACES, callers.ROLES.keys() - {"service"}):
        site.become(place, role)
        listed = site.ask("GET", filled(path, idents) + "?limit=1000")
        alone = site.ask("GET", filled(single, idents)).status == 200
        if (idents[kind] in listed.body.decode()) != alone:
            wrong.append((place, role, listed.status, alone))
    assert not wrong, "\n".join(map(str, wrong))


def join(site, idents):
    """Put the node into the chassis, and the port into the group, where there is one."""
    ports = sa.update(tables.PORTS).where(tables.PORTS.c.uuid == idents.get("port"))
    if "chassis" in idents:
        site.set(idents["node"], chassis_uuid=idents["chassis"])
    if "portgroup" in idents:
        ports = ports.values(portgroup_uuid=idents["portgroup"], node_uuid=idents["node"])
        site.db.transact(lambda conn: conn.execute(ports))


def questions(site):
    """Yield each list with each of its filters, with a value of the owner's and with another's."""
    idents = named(site)
    with site.db.read() as conn:
        node = conn.execute(
            sa.select(tables.NODES).where(tables.NODES.c.uuid == idents["node"])
        ).one()
        mac = conn.execute(sa.select(tables.PORTS.c.address)).first()[0]
    values = {
        "node": [idents["node"], node.name], "node_uuid": [idents["node"]],
        "portgroup": [idents["portgroup"]], "address": [mac], "shard": [node.shard],
        "conductor_groups": ["none"], "project": [OWNER], "owner": [OWNER], "lessee": ["lessee"],
        "instance_uuid": [node.instance_uuid], "parent_node": [node.uuid, node.name],
        "resource_class": [node.resource_class], "provision_state": [node.provision_state],
        "description_contains": [SECRET[:8]], "driver": [node.driver], "associated": ["true"],
        "include_children": ["true"], "sharded": ["true"], "detail": ["true"],
        "state": ["allocating", "active"], "conductor": ["host-1"],
        "marker": [value for name, value in idents.items() if name not in SHARED],
        "sort_key": ["id", "driver", "updated_at"],
    }  # fmt: skip
    for path, query in LISTS:
        for name in query.keys() & values.keys():
            for value in values[name]:
                yield filled(path, idents), name, value


def test_no_filter_of_a_list_tells_of_others(site):
    own_idents(site)
    wrong = []
    ours = {value for name, value in named(site).items() if name not in SHARED}
    marks = {*ours, SECRET, f':"{OWNER}"', "rc-of-the-owner", "shard-of-the-owner"}
    for (path, name, value), role in itertools.product(list(questions(site)), ("reader", "admin")):
        site.become(STRANGER, role)
        answer = site.ask("GET", f"{path}?{name}={value}")
        text = answer.body.decode() + str(answer.headers)
        leaked = [mark for mark in marks if mark in text and mark not in f"{path}?{value}"]
        if leaked or answer.status >= 500:
            wrong.append((path, name, value, answer.status, leaked, text))
    assert not wrong


def test_no_filter_and_no_marker_tells_whether_something_is_there(site):
    wrong = []
    idents = named(site)
    for path, name, value in questions(site):
        finds = ("node", "node_uuid", "portgroup", "parent_node", "marker")
        if name not in finds or value in path:
            continue
        other = str(uuid.uuid4()) if value in idents.values() and "-of-" not in value else "no-node"
        site.become(STRANGER, "admin")
        hidden, missing = (site.ask("GET", f"{path}?{name}={each}") for each in (value, other))
        texts = [hidden.body.decode().replace(value, ""), missing.body.decode().replace(other, "")]
        if hidden.status != missing.status or texts[0] != texts[1]:
            wrong.append((path, name, value, hidden.status, missing.status, *texts))
    assert not wrong
