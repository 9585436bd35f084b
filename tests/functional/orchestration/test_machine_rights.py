"""What kinds may ask of machines is what the owner of the stack may ask of the API, and no more.

Each row is asked twice, over HTTP and through the seam of the kinds, with every role, in the
project of the node's owner, of its lessee, and of a stranger; both answer alike.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.db import credentials
from bloomery.db import stacks as stack_rows
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments
from bloomery.model.stacks import Stack
from bloomery.operations.context import Services
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.operations import StackOperations
from bloomery.orchestration.orders.machines import ServiceMachines
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.outputs import stacks_of
from bloomery.orchestration.resources.machines import Machines
from tests.functional import conftest as functional
from tests.kit.clients.callers import LESSEE, OWNER, ROLES, STRANGER, Site
from tests.kit.stacks import trees

N = "/v1/nodes/{node}"
EXTRA = [{"op": "add", "path": "/extra/a", "value": 1}]
INSTANCE = [{"op": "add", "path": "/instance_info/image_source", "value": "http://a"}]
RETIRED = [
    {"op": "add", "path": "/retired", "value": True},
    {"op": "add", "path": "/retired_reason", "value": "r"},
]
TEXT = [{"op": "replace", "path": "/description", "value": "d"}]
Row = tuple[str, str, Any, Callable[[Machines, dict[str, str]], Any]]
ROWS: dict[str, Row] = {
    "read": ("GET", N, None, lambda m, i: m.get_node(i["node"])),
    "extra": ("PATCH", N, EXTRA, lambda m, i: m.update_node(i["node"], EXTRA)),
    "instance": ("PATCH", N, INSTANCE, lambda m, i: m.update_node(i["node"], INSTANCE)),
    "description": ("PATCH", N, TEXT, lambda m, i: m.update_node(i["node"], TEXT)),
    "retire": ("PATCH", N, RETIRED, lambda m, i: m.update_node(i["node"], RETIRED)),
    "traits": ("PUT", f"{N}/traits", {"traits": ["CUSTOM_A"]},
               lambda m, i: m.set_traits(i["node"], ["CUSTOM_A"])),
    "verb": ("PUT", f"{N}/states/provision", {"target": "manage"},
             lambda m, i: m.set_provision_state(i["node"], "manage")),
    "power": ("PUT", f"{N}/states/power", {"target": "power on"},
              lambda m, i: m.set_power_state(i["node"], "power on")),
    "maintenance": ("PUT", f"{N}/maintenance", {"reason": "r"},
                    lambda m, i: m.set_maintenance(i["node"], True, "r")),
    "vif": ("POST", f"{N}/vifs", {"id": "v"}, lambda m, i: m.attach_vif(i["node"], {"id": "v"})),
    "port": ("POST", "/v1/ports", {"node_uuid": "{node}", "address": "{mac}"},
             lambda m, i: m.create("port", {"node_uuid": i["node"], "address": _mac(),
                                            "uuid": _uuid()})),
    "read port": ("GET", "/v1/ports/{port}", None, lambda m, i: _there(m, "port", i["port"])),
    "change port": ("PATCH", "/v1/ports/{port}", EXTRA,
                    lambda m, i: m.update("port", i["port"], EXTRA)),
    "delete port": ("DELETE", "/v1/ports/{port}", None, lambda m, i: m.delete("port", i["port"])),
    "enrol": ("POST", "/v1/nodes", {"driver": "fake-hardware"},
              lambda m, i: m.create_node({"driver": "fake-hardware", "uuid": _uuid()})),
    "delete": ("DELETE", N, None, lambda m, i: m.delete_node(i["node"])),
    "allocation": ("POST", "/v1/allocations", {"resource_class": "large"},
                   lambda m, i: m.create("allocation", {"resource_class": "large",
                                                        "uuid": _uuid()})),
    "candidates": ("POST", "/v1/allocations",
                   {"resource_class": "large", "candidate_nodes": ["{node}"]},
                   lambda m, i: m.create("allocation", {"resource_class": "large",
                                                        "candidate_nodes": [i["node"]],
                                                        "uuid": _uuid()})),
    "template": ("GET", "/v1/deploy_templates/{deploytemplate}", None,
                 lambda m, i: _there(m, "deploytemplate", i["deploytemplate"])),
    "read runbook": ("GET", "/v1/runbooks/{runbook}", None,
                     lambda m, i: _there(m, "runbook", i["runbook"])),
    "delete runbook": ("DELETE", "/v1/runbooks/{runbook}", None,
                       lambda m, i: m.delete("runbook", i["runbook"])),
}  # fmt: skip


def _uuid() -> str:
    return str(uuid.uuid4())


def _mac() -> str:
    digits = uuid.uuid4().hex
    return ":".join(["02", *(digits[at : at + 2] for at in range(0, 10, 2))])


def _there(machines: Machines, noun: str, uuid: str) -> None:
    """As a GET: who may not read it does not find it."""
    if machines.find(noun, uuid) is None:
        raise errors.NotFound(reason="not there")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.db.close()


def services_of(site: Site) -> Services:
    rpc = functional.Client(functional.Ring(site.db), functional.InProcess(
        {functional.HOST: site.conductor}))  # fmt: skip
    return Services(db=site.db, rpc=rpc, conf=functional.Conf(), policies=site.policies,
                    sealer=trees.SEALER)  # fmt: skip


def stack_of(site: Site, project: str) -> Stack:
    """A stack of a project; its caller is changed by ``become``."""
    engine = StackOperations(services_of(site), EngineRuntime(), lambda root: None)
    caller = Request(request_id="r", user="ann", project=project, roles=ROLES["member"])
    arguments = StackArguments(template={"heat_template_version": "2021-04-16"})
    identity = engine.create_stack(caller, f"s-{project}", arguments)
    with site.db.read() as conn:
        stack = stack_rows.find(conn, identity.uuid)
    assert stack is not None
    return stack


def become(site: Site, stack: Stack, role: str) -> None:
    with site.db.read() as conn:
        root = stack_rows.find(conn, stack.root_uuid)
    assert root is not None
    uuid = root.credentials_uuid
    assert uuid is not None
    site.db.transact(lambda conn: credentials.renew(
        conn, uuid, user="ann", project=stack.project, roles=ROLES[role]))  # fmt: skip


def status_of(call: Callable[[], Any]) -> int:
    try:
        call()
    except errors.Failure as exc:
        return exc.status
    return 200


def over_http(site: Site, row: Row, project: str, role: str) -> int:
    """Return the status of the request; 200 for any that says yes."""
    method, path, body, _ = row
    found, text = things_of(site, row), json.dumps(body)
    for name, value in found.items():
        text = text.replace("{" + name + "}", value)
    site.become(project, role)
    status = int(site.ask(method, path.format(**found), json.loads(text)).status)
    return 200 if status < 300 else status


def things_of(site: Site, row: Row) -> dict[str, str]:
    """Make anew what a row names."""
    site.made.clear()
    return site.idents(f"{row[1]} {json.dumps(row[2])}")


@pytest.mark.parametrize("name", ROWS)
def test_the_seam_answers_as_the_api(site: Site, name: str) -> None:
    row = ROWS[name]
    for project in (OWNER, LESSEE, STRANGER):
        stack = stack_of(site, project)
        machines = ServiceMachines(services_of(site), stack)
        for role in ROLES:
            expected = over_http(site, row, project, role)
            found = things_of(site, row)
            become(site, stack, role)
            status = status_of(lambda i=found, m=machines: row[3](m, i))
            assert status == expected, f"{name} as {role} of {project}"


def test_a_node_of_others_is_told_as_one_that_never_was(site: Site) -> None:
    stack = stack_of(site, STRANGER)
    become(site, stack, "member")
    machines = ServiceMachines(services_of(site), stack)
    for ident in (site.node(), trees.ident("never")):
        with pytest.raises(errors.NodeNotFound, match=f"Node {ident} could not be found"):
            machines.get_node(ident)


def test_a_lookup_sees_the_nodes_and_stacks_of_its_project(site: Site) -> None:
    uuid = site.node()
    outputs = {"a": {"value": "b"}}
    for project, nodes in ((OWNER, [uuid]), (LESSEE, [uuid]), (STRANGER, [])):
        stack = stack_of(site, project)
        become(site, stack, "member")
        listed = ServiceMachines(services_of(site), stack).list_nodes({})
        assert [each["uuid"] for each in listed] == nodes
        caller = Request(request_id="r", user="ann", project=project, roles=ROLES["member"])
        engine = StackOperations(services_of(site), EngineRuntime(), lambda root: None)
        document = {"heat_template_version": "2021-04-16", "outputs": outputs}
        engine.create_stack(caller, f"net-{project}", StackArguments(template=document))
        for name in (f"net-{OWNER}", f"net-{STRANGER}"):
            others = stacks_of(services_of(site))(EngineRuntime(), stack)
            if name == f"net-{project}":
                assert not others.read(name, None).is_at_rest  # no engine works here
            else:
                with pytest.raises(errors.EntityNotFound):
                    others.read(name, None)
    become(site, stack, "nobody")
    with pytest.raises(errors.Forbidden):
        stacks_of(services_of(site))(EngineRuntime(), stack).read(f"net-{STRANGER}", None)


def test_a_caller_of_another_project_gives_no_roles(site: Site) -> None:
    stack = stack_of(site, OWNER)
    with site.db.read() as conn:
        root = stack_rows.find(conn, stack.root_uuid)
    assert root is not None
    uuid = str(root.credentials_uuid)
    site.db.transact(lambda conn: credentials.renew(
        conn, uuid, user="eve", project=STRANGER, roles=ROLES["admin"]))  # fmt: skip
    assert access.stored_caller(services_of(site), stack).roles == ()
