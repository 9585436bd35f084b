"""A kind can do and see nothing of a machine that the owner of its stack can't over the API.

Each row is one act of one kind.  It is played through the seam of the engine in the name of every
role, in the project of the node's owner, of its lessee, of a stranger, and on a node that nobody
owns; each call that it makes is then made over HTTP by the same caller, on the same rows, and must
be answered alike.  What was refused is the outcome of the act, and nothing was changed after it.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import tables
from bloomery.model import nouns
from bloomery.model.request import Request
from bloomery.model.stack_views import EventQuery, ResourceQuery, StackArguments
from bloomery.model.stacks import Stack
from bloomery.orchestration.operations import StackOperations
from bloomery.orchestration.orders import machines as service_machines
from bloomery.orchestration.orders.machines import ServiceMachines
from bloomery.orchestration.resources import base, drift, machines, stepwise
from bloomery.orchestration.resources.allocation import Allocation
from bloomery.orchestration.resources.instance import Instance
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.node import Node
from bloomery.orchestration.resources.port import Port
from bloomery.orchestration.resources.runbook import DeployTemplate, Runbook
from bloomery.orchestration.resources.step_run import HardwareConfiguration, RunbookExecution
from bloomery.orchestration.resources.volume import VolumeConnector
from bloomery.outcome import Again
from tests.functional.orchestration.test_machine_rights import become, services_of, stack_of
from tests.kit.clients.callers import LESSEE, OWNER, ROLES, STRANGER, Site
from tests.kit.stacks import kinds
from tests.kit.stacks.row_engines import Clients, Engine

OWN_ID = "0d5a9a63-6d4f-4b43-9c4a-2a8a6f1d1c11"  # of the resource: marks name it
MARK = {"stack": {"stack_id": "1", "id": OWN_ID}}
IMAGE = {"source": "http://images/a.img"}
STEP = {"interface": "power", "step": "reboot"}
PLACES = {
    "owner": (OWNER, OWNER, LESSEE), "lessee": (LESSEE, OWNER, LESSEE),
    "stranger": (STRANGER, OWNER, LESSEE), "unowned": (OWNER, None, None),
}  # the caller's project, the node's owner and lessee  # fmt: skip
CALLERS = ("nobody", "reader", "member", "admin")
CHANGES = ("create", "update", "delete", "set_", "attach", "detach")


@dataclass(frozen=True, kw_only=True)
class Act:
    """``{node}`` and the words of nouns in ``properties`` are things that are there.

    ``before``: properties of an update; ``noun``: of the record that is changed or deleted.
    """

    kind: type[base.Resource]
    properties: Mapping[str, Any]
    handler: str = "create"
    state: str = "available"
    before: Mapping[str, Any] = field(default_factory=dict)
    noun: str = "node"


PORT = {"node": "{node}", "address": "52:54:00:00:00:99"}
NODE = {"driver": "fake-hardware", "name": "n1", "inspect": "none", "target_state": "enroll"}
WEB = {"node": "{node}", "image": IMAGE, "name": "web"}
BOOK = {"name": "CUSTOM_NEW", "traits": ["CUSTOM_A"], "steps": [{**STEP, "order": 1}]}
ACTS: dict[str, Act] = {
    "deploy an instance": Act(kind=Instance, properties=WEB),
    "rebuild an instance": Act(
        kind=Instance, properties={**WEB, "image": {"source": "http://b"}}, before=WEB,
        handler="update", state="active"),
    "switch an instance off": Act(
        kind=Instance, properties=WEB, handler="suspend", state="active"),
    "undeploy an instance": Act(kind=Instance, properties=WEB, handler="delete", state="active"),
    "check an instance": Act(kind=Instance, properties=WEB, handler="check", state="active"),
    "adopt an instance": Act(kind=Instance, properties=WEB, handler="adopt", state="active"),
    "let an instance be": Act(kind=Instance, properties=WEB, handler="retain", state="active"),
    "set a node aside": Act(
        kind=Allocation, properties={"resource_class": "large", "candidate_nodes": ["{node}"]}),
    "set a node aside by name": Act(kind=Allocation, properties={"node": "{node}"}),
    "rename an allocation": Act(
        kind=Allocation, properties={"resource_class": "large", "name": "b"},
        before={"resource_class": "large", "name": "a"}, handler="update", noun="allocation"),
    "give an allocation back": Act(
        kind=Allocation, properties={"resource_class": "large"}, handler="delete",
        noun="allocation"),
    "add a port": Act(kind=Port, properties=PORT),
    "change a port": Act(
        kind=Port, properties=PORT | {"pxe_enabled": True}, before=PORT | {"pxe_enabled": False},
        handler="update", noun="port"),
    "delete a port": Act(kind=Port, properties=PORT, handler="delete", noun="port"),
    "adopt a port": Act(kind=Port, properties=PORT, handler="adopt", noun="port"),
    "add a volume connector": Act(
        kind=VolumeConnector,
        properties={"node": "{node}", "type": "iqn", "connector_id": "iqn.z"}),
    "enrol a node": Act(kind=Node, properties=NODE),
    "change a node": Act(
        kind=Node, properties=NODE | {"description": "d", "traits": ["CUSTOM_A"]},
        before=NODE, handler="update", state="enroll"),
    "let a node boot otherwise": Act(
        kind=Node, properties=NODE | {"target_state": "manageable", "boot_mode": "uefi"},
        before=NODE | {"target_state": "manageable"}, handler="update", state="manageable"),
    "put a node into maintenance": Act(
        kind=Node, properties=NODE | {"maintenance": {"enabled": True}},
        before=NODE, handler="update", state="enroll"),
    "delete a node": Act(kind=Node, properties=NODE, handler="delete", state="enroll"),
    "adopt a node": Act(kind=Node, properties=NODE, handler="adopt", state="enroll"),
    "run steps of one's own": Act(
        kind=RunbookExecution, properties={"node": "{node}", "steps": [STEP]}, state="active"),
    "run a runbook": Act(
        kind=RunbookExecution, properties={"node": "{node}", "runbook": "{runbook}"},
        state="active"),
    "configure hardware": Act(
        kind=HardwareConfiguration, state="manageable",
        properties={"node": "{node}", "bios": {"settings": {"Turbo": "On"}}}),
    "add a deploy template": Act(
        kind=DeployTemplate,
        properties={"name": "CUSTOM_NEW", "steps": [{**STEP, "priority": 1}]}),
    "delete a deploy template": Act(
        kind=DeployTemplate, properties={"name": "CUSTOM_1", "steps": []}, handler="delete",
        noun="deploytemplate"),
    "add a runbook": Act(kind=Runbook, properties=BOOK),
    "change a runbook": Act(
        kind=Runbook, properties=BOOK | {"description": "b"}, before=BOOK, handler="update",
        noun="runbook"),
    "add a runbook for all": Act(kind=Runbook, properties=BOOK | {"public": True}),
    "let all use a runbook": Act(
        kind=Runbook, properties=BOOK | {"public": True}, before=BOOK, handler="update",
        noun="runbook"),
    "give a runbook away": Act(
        kind=Runbook, properties=BOOK | {"owner": "x"}, before=BOOK, handler="update",
        noun="runbook"),
    "delete a runbook": Act(kind=Runbook, properties=BOOK, handler="delete", noun="runbook"),
}  # fmt: skip
Stacks = dict[str, Stack]
Call = tuple[str, tuple[Any, ...], dict[str, Any], int, Any]  # name, arguments, status, result


class Recorder:
    """Machines that note what they were asked, and how it was answered."""

    def __init__(self, service: ServiceMachines) -> None:
        self._service = service
        self.calls: list[Call] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            status, result = 200, None
            try:
                result = getattr(self._service, name)(*arguments, **more)
            except errors.Failure as exc:
                status = exc.status
                raise
            finally:
                self.calls.append((name, arguments, more, status, result))
            return result

        return call


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("rights")
    verb = "baremetal:node:set_provision_state"
    rules = {f"{verb}:{steps}_steps": "role:admin" for steps in ("clean", "service")}
    (folder / "policy.yaml").write_text(json.dumps(rules))
    made = Site(folder)
    yield made
    made.db.close()


@pytest.fixture(scope="module")
def stacks(site: Site) -> Stacks:
    return {project: stack_of(site, project) for project in (OWNER, LESSEE, STRANGER)}


@dataclass
class Table:
    """What all cells share: one node, whose row is put back before each, and stacks."""

    site: Site
    stacks: Stacks  # by project
    act: Act

    def put_back(self, place: str) -> dict[str, str]:
        """Make the things of a cell as they are at its beginning; return their UUIDs."""
        _, owner, lessee = PLACES[place]
        beat = sa.update(tables.CONDUCTORS).values(heartbeat=tables.CONDUCTORS.c.heartbeat + 1)
        self.site.db.transact(lambda conn: conn.execute(beat))
        self.site.db.transact(lambda conn: conn.execute(sa.delete(tables.NODES)))
        for noun in (nouns.ALLOCATION, nouns.DEPLOY_TEMPLATE, nouns.RUNBOOK):
            table = tables.METADATA.tables[noun.table]
            self.site.db.transact(lambda conn, table=table: conn.execute(sa.delete(table)))
        self.site.made.clear()
        words = json.dumps([dict(self.act.properties), f"{{{self.act.noun}}}"])
        things = self.site.idents(words)
        info = MARK if self.act.kind is Instance and self.act.handler != "create" else {}
        self.site.set(
            things["node"], owner=owner, lessee=lessee, provision_state=self.act.state,
            instance_info=json.dumps(info), extra=json.dumps(MARK), power_state="power on",
            last_error="the BMC at 10.9.9.9 refuses", driver_info='{"redfish_address": "10.9.9.9"}',
            resource_class="large", name="n1",
        )  # fmt: skip
        if self.act.noun != "node":
            self._mark(things)
        return things

    def _mark(self, things: Mapping[str, str]) -> None:
        table = tables.METADATA.tables[nouns.BY_NAME[self.act.noun].table]
        change = sa.update(table).where(table.c.uuid == things[self.act.noun])
        self.site.db.transact(lambda conn: conn.execute(change.values(extra=json.dumps(MARK))))

    def play(self, things: Mapping[str, str], place: str, role: str) -> tuple[list[Call], Any]:
        """Do the act in the name of a caller; return its calls, and how it was refused."""
        project = PLACES[place][0]
        become(self.site, self.stacks[project], role)
        recorder = Recorder(ServiceMachines(services_of(self.site), self.stacks[project]))
        resource = kinds.made(
            self.act.kind, filled(self.act.properties, things), uuid=OWN_ID,
            machines=recorder, siblings=kinds.Siblings(),
        )  # fmt: skip
        record = resource.record
        before = kinds.made(self.act.kind, filled(self.act.before, things)).properties
        record.properties = before if self.act.before else resource.properties
        if self.act.handler != "create":
            record.physical_id = things[self.act.noun]
            record.data |= {"instance": None, "attempt": 1}
        return recorder.calls, refusal(lambda: perform(resource, self.act))

    def over_http(self, call: Call, place: str, role: str) -> tuple[int, Any]:
        method, path, body = request_of(call)
        self.site.become(PLACES[place][0], role)
        answer = self.site.ask(method, path, body)
        return (200 if answer.status < 300 else answer.status), answer


def perform(resource: Any, act: Act) -> None:
    """Do an act up to where it waits; a node that obeys nobody has failed, which is no refusal."""
    arguments: tuple[Any, ...] = ()
    if act.handler == "update":
        changed = {name: value for name, value in resource.properties.items()
                   if resource.record.properties.get(name) != value}  # fmt: skip
        arguments = (None, {}, changed)
    elif act.handler == "adopt":
        arguments = ({"resource_id": resource.record.physical_id},)
    token = getattr(resource, f"handle_{act.handler}")(*arguments)
    check = getattr(resource, f"check_{act.handler}_complete", lambda token: True)
    for _ in range(10):
        if check(token) != Again(after_s=0, reason=""):
            return


def refusal(work: Callable[[], None]) -> errors.Failure | None:
    try:
        work()
    except errors.Failure as exc:
        return exc
    except (stepwise.MachineRefused, base.UpdateReplace) as exc:
        return exc.__cause__ if isinstance(exc.__cause__, errors.Failure) else None
    except (machines.Busy, stepwise.MachineFailed, drift.Drifted):
        return None
    return None


def filled(properties: Mapping[str, Any], things: Mapping[str, str]) -> Json:
    text = json.dumps(dict(properties))
    for name, value in things.items():
        text = text.replace("{" + name + "}", value)
    return dict(json.loads(text))


PATHS = {"volumeconnector": "volume/connectors", "deploytemplate": "deploy_templates"}


def request_of(call: Call) -> tuple[str, str, Any]:
    """Return the request over HTTP that asks the same."""
    name, arguments, more, _, _ = call
    node = f"/v1/nodes/{arguments[0]}"
    requests: dict[str, Callable[[], tuple[str, str, Any]]] = {
        "get_node": lambda: ("GET", node, None),
        "find_flow": lambda: ("GET", node, None),  # who may see the node may ask
        "has_aborted_cleaning": lambda: ("GET", node, None),
        "create_node": lambda: ("POST", "/v1/nodes", arguments[0] | {"uuid": str(uuid.uuid4())}),
        "update_node": lambda: ("PATCH", node, list(arguments[1])),
        "delete_node": lambda: ("DELETE", node, None),
        "set_traits": lambda: ("PUT", f"{node}/traits", {"traits": list(arguments[1])}),
        "set_runbook_traits": lambda: (
            "PUT", f"/v1/runbooks/{arguments[0]}/traits", {"traits": list(arguments[1])}),
        "set_maintenance": lambda: ("PUT", f"{node}/maintenance", {}),
        "set_provision_state": lambda: (
            "PUT", f"{node}/states/provision",
            {"target": arguments[1]} | {
                    k: v for k, v in more.items() if v is not None and k != "order_id"}),
        "set_boot": lambda: ("PUT", f"{node}/states/{arguments[1]}", {"target": arguments[2]}),
        "set_power_state": lambda: ("PUT", f"{node}/states/power", {"target": arguments[1]}),
        "find": lambda: ("GET", f"{_plural(arguments[0])}/{arguments[1]}", None),
        "create": lambda: ("POST", _plural(arguments[0]), dict(arguments[1])),
        "update": lambda: (
            "PATCH", f"{_plural(arguments[0])}/{arguments[1]}", list(arguments[2])),
        "delete": lambda: ("DELETE", f"{_plural(arguments[0])}/{arguments[1]}", None),
    }  # fmt: skip
    return requests[name]()


def _plural(noun: str) -> str:
    return f"/v1/{PATHS.get(noun, f'{noun}s')}"


@pytest.mark.parametrize("name", ACTS)
def test_each_call_of_a_kind_is_answered_as_the_api_answers(
    site: Site, stacks: Stacks, name: str
) -> None:
    table = Table(site, stacks, ACTS[name])
    for place in PLACES:
        for role in CALLERS:
            things = table.put_back(place)
            calls, refused = table.play(things, place, role)
            assert calls, name
            _check_outcome(calls, refused, f"{name} as {role} of {place}")
            things_again = table.put_back(place) if any(map(_changed, calls)) else things
            renamed = dict(zip(things.values(), things_again.values(), strict=True))
            for call in calls:
                again = _renamed(call, renamed)
                status, answer = table.over_http(again, place, role)
                found = 404 if (call[0], call[3], call[4]) == ("find", 200, None) else call[3]
                assert found == status, f"{name} as {role} of {place}: {call}, {answer.body}"
                if call[0] == "get_node" and status == 200:
                    _check_seen(call[4], answer.json)


def _check_outcome(calls: list[Call], refused: errors.Failure | None, cell: str) -> None:
    """The act ends with the refusal, after which nothing was changed."""
    statuses = [status for name, _, _, status, _ in calls if name != "find"]
    first = next((at for at, (_, _, _, status, _) in enumerate(calls) if status == 403), None)
    if refused is None:
        assert 403 not in statuses, cell
        return
    if isinstance(refused, errors.Forbidden):
        assert first is not None, cell
        assert "baremetal:" in str(refused), cell  # the rule, so that it can be asked for
        after = [name for name, *_ in calls[first + 1 :] if name.startswith(CHANGES)]
        assert after == [], cell
    elif refused.status == 404:
        assert not any(map(_changed, calls)), cell


def _changed(call: Call) -> bool:
    """Has a call changed anything?"""
    return call[0].startswith(CHANGES) and call[3] == 200


def _check_seen(node: Json, document: Json) -> None:
    """What the API hides of a node, the kind has not seen."""
    for name in ("last_error", "driver_info"):
        shown = document[name]
        if shown is None or "10.9.9.9" not in json.dumps(shown):
            assert "10.9.9.9" not in json.dumps(node[name]), name


def _renamed(call: Call, renamed: Mapping[str, str]) -> Call:
    text = json.dumps([call[1], call[2]])
    for before, after in renamed.items():
        text = text.replace(before, after)
    arguments, more = json.loads(text)
    return (call[0], tuple(arguments), more, call[3], call[4])


def test_inline_steps_without_the_right_name_their_rule(site: Site, stacks: Stacks) -> None:
    """Whoever may order a runbook's steps may not give steps of one's own for that."""
    for name, rule in (("run steps of one's own", "service_steps"),
                       ("configure hardware", "clean_steps"), ("run a runbook", None)):  # fmt: skip
        table = Table(site, stacks, ACTS[name])
        _, refused = table.play(table.put_back("owner"), "owner", "manager")
        if rule is None:
            assert not isinstance(refused, errors.Forbidden)
        else:
            assert isinstance(refused, errors.Forbidden)
            assert f"baremetal:node:set_provision_state:{rule}" in str(refused)


@pytest.mark.parametrize("name", [name for name, act in ACTS.items() if act.noun == "node"])
def test_what_is_anothers_is_told_as_what_never_was(site: Site, stacks: Stacks, name: str) -> None:
    """The same words, with the other ident."""
    act = ACTS[name]
    if "{node}" not in json.dumps(dict(act.properties)) and act.handler == "create":
        return
    table, texts = Table(site, stacks, act), []
    for is_there in (True, False):
        things = table.put_back("stranger")
        if not is_there:
            site.db.transact(lambda conn: conn.execute(sa.delete(tables.NODES)))
        _, refused = table.play(things, "stranger", "admin")
        texts.append(str(refused).replace(things["node"], "NODE"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("kind", "unread"), [(Instance, "steps"), (Node, "inventory")])
def test_an_attribute_that_may_not_be_read_is_null(
    site: Site, stacks: Stacks, kind: type[base.Resource], unread: str
) -> None:
    """And hides none of the others."""
    table = Table(site, stacks, ACTS["check an instance"])
    things = table.put_back("lessee")
    become(site, stacks[LESSEE], "reader")
    resource = kinds.made(
        kind, ATTRIBUTED[kind], uuid=OWN_ID, siblings=kinds.Siblings(),
        machines=ServiceMachines(services_of(site), stacks[LESSEE]),
    )  # fmt: skip
    resource.record.physical_id = things["node"]
    assert resource.all_attributes()[unread] is None


ATTRIBUTED: dict[type[base.Resource], Json] = {
    Instance: {"node": "n1", "image": IMAGE},
    Node: NODE,
}
STACKS: dict[str, Json] = {
    "node by uuid": {"type": "OS::Ironic::Instance",
                     "properties": {"node": "{node}", "image": IMAGE}},
    "node by name": {"type": "OS::Ironic::Instance", "properties": {"node": "n1", "image": IMAGE}},
    "external id": {"type": "OS::Ironic::Instance", "external_id": "{node}"},
    "external port": {"type": "OS::Ironic::Port", "external_id": "{port}"},
    "candidates": {"type": "OS::Ironic::Allocation",
                   "properties": {"resource_class": "large", "candidate_nodes": ["{node}"]}},
    "steps": {"type": "OS::Ironic::RunbookExecution",
              "properties": {"node": "{node}", "steps": [STEP]}},
}  # fmt: skip


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_tells_of_anothers_machine_as_of_none(
    site: Site, stacks: Stacks, name: str
) -> None:
    """Reasons, events and ``why`` of the stack have the same words, and no word of the owner's."""
    texts = []
    for is_there in (True, False):
        table = Table(site, stacks, Act(kind=Port, properties={}, noun="port"))
        things = table.put_back("stranger")
        if not is_there:
            site.db.transact(lambda conn: conn.execute(sa.delete(tables.NODES)))
        text = told_by_a_stack(site, filled(STACKS[name], things))
        for ident in (things["node"], things["port"]):
            text = text.replace(ident, "THING")
        assert OWNER not in text
        assert "10.9.9.9" not in text
        texts.append(text)
    assert texts[0] == texts[1]
    assert "THING" in texts[0] or "n1" in texts[0]


def told_by_a_stack(site: Site, resource: Json) -> str:
    """Run a stack of one resource to its end; return all that it tells a project's admin."""
    caller = Request(request_id="r", user="eve", project=STRANGER, roles=ROLES["admin"])
    services = services_of(site)
    runtime = dataclasses.replace(
        Clients(site.db).runtime(), machines=service_machines.machines_of(services)
    )
    engine = StackOperations(services, runtime, lambda root: None)
    template = {"heat_template_version": "2021-04-16", "resources": {"r": resource}}
    try:
        identity = engine.create_stack(
            caller, f"s{uuid.uuid4().hex}", StackArguments(template=template)
        )
    except errors.Failure as exc:
        return str(exc)
    Engine(site.db, runtime).run(identity.uuid)
    listed = engine.list_stack_resources(caller, identity, ResourceQuery())
    reasons = [each.resource.reason for each in listed]
    events = engine.list_events(caller, identity, EventQuery())
    reasons += [each.event.reason for each in events]
    shown = engine.explain_stack(caller, identity)
    reasons += [shown["stack_status_reason"], *(each["reason"] for each in shown["failed"])]
    reasons += [str(each["node"]) for each in shown["failed"]]
    return "\n".join(sorted(set(reasons)))
