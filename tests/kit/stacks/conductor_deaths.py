"""Stacks of machines whose conductor dies while their engine lives on, and how they end.

An engine over rows works with time of its own, and asks a real conductor over ``operations``.  The
conductor is dead after so many commits: what it is asked then does not reach it, and of the call in
which it died nobody learns what became.  A successor begins when the engine has nothing to do.

calm, commits = live(FLOWS["deploy"], make_floor(path, FLOWS["deploy"]))
check(FLOWS["deploy"], folder)      # dead after each commit, the same end; AssertionError
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import states
from bloomery.conf import Conf
from bloomery.db import rows
from bloomery.db.tables import ALLOCATIONS, EVENTS, NODES, PORTS
from bloomery.drivers.base import DriverTask
from bloomery.model.stacks import Template
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.orders.machines import machines_of
from bloomery.outcome import Again, WaitForCall
from bloomery.rpc.client import Client
from bloomery.rpc.contract import Conductor
from bloomery.rpc.ring import Ring
from tests.kit.machines.scripted import Script, in_turn
from tests.kit.sampling import some
from tests.kit.servers import site
from tests.kit.servers.dying import Dead, Mortal
from tests.kit.servers.site import HOST
from tests.kit.stacks import machine_sites
from tests.kit.stacks.machine_kills import of_group
from tests.kit.stacks.row_engines import Clients, Engine, Killed
from tests.kit.waiting import wait_for

_WAITS = frozenset(map(str, states.WAIT_STATES))
_AT_WORK = frozenset(map(str, states.UNSTABLE_STATES)) - _WAITS


def script(**facts: Any) -> Script:
    """Two steps a phase; one takes a pause, one waits for the agent.  ``facts``: of the first."""
    steps = Script()
    steps.add("clean", "erase", _switch_off)
    steps.add("deploy", "write", in_turn(Again(after_s=0.001, reason="writing"), None), **facts)
    waits = WaitForCall(reason="the agent boots", then="next")
    steps.add("deploy", "boot", lambda task: None if task.turn else waits)
    return steps


def _switch_off(task: DriverTask) -> None:
    """Nobody sets a node aside whose power state is not known."""
    task.node.power_state = states.Power.OFF


class Calls:
    """A transport to the one conductor there is: a call is a call, but for those it dies in."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor

    def proxy(self, host: str) -> Conductor:
        return cast(Conductor, _Proxy(self._floor))

    def close(self) -> None:
        """Nothing to be let go."""


class _Proxy:
    def __init__(self, floor: Floor) -> None:
        self._floor = floor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(self._call, name)

    def _call(self, name: str, *args: Any, **named: Any) -> Any:
        floor = self._floor
        if floor.is_dead:
            raise errors.ConductorUnreached(host=HOST, reason="it is dead")
        try:
            answer = getattr(floor.conductor.service.manager, name)(*args, **named)
        except Dead:
            answer = None
        if floor.dies_now():
            raise errors.ConductorSilent(host=HOST, method=name, reason="the connection broke")
        return answer


@dataclass
class Floor(Clients):
    """Clients of stacks, and a conductor whose machines they are of.

    ``absence``: how often the engine waits before the next conductor begins.
    """

    path: Path = field(default_factory=Path)
    script: Script = field(default_factory=script)
    absence: int = 1
    pool: int = 2
    agents_call: bool = True  # False: an engine that waits for one is killed

    def __post_init__(self) -> None:
        self.conductor = self._begin()
        self._away = self.absence
        conf = Conf()
        self.services = Services(
            db=self.db, rpc=Client(Ring(self.db, conf), Calls(self)), conf=conf,
            policies=Policies(conf),
        )  # fmt: skip

    def _begin(self) -> site.Site:
        db, registry = site.database(self.path, Mortal), self.script.registry()
        return site.Site(self.path, db=db, registry=registry, patience_s=0)

    def runtime(self) -> EngineRuntime:
        machines = machines_of(self.services)
        return dataclasses.replace(Clients.runtime(self), machines=machines)

    def enrol(self) -> None:
        for number in range(self.pool):
            node = self.conductor.enrol(
                name=f"p{number}", resource_class="pool", provision_state="available"
            )
            self.conductor.set(node, power_state="power off")

    def close(self) -> None:
        self.conductor.close()
        self.db.close()

    def run(self, on_commit: Callable[[int], object] = lambda _commits: None) -> None:
        """Let an engine work until the stack rests."""
        Engine(self.db, self.runtime(), on_commit=on_commit).run(self.root)

    # ------------------------------------------------------------------------------- its death

    @property
    def mortal(self) -> Mortal:
        assert isinstance(self.conductor.db, Mortal)
        return self.conductor.db

    @property
    def is_dead(self) -> bool:
        return self.mortal.died.is_set()

    def dies_now(self) -> bool:
        """Is the conductor dead, or has it made its last commit in this very call?"""
        db = self.mortal
        if db.lives is not None and db.commits >= db.lives:
            db.died.set()
        return self.is_dead

    def pass_time(self, until_s: float) -> None:
        """Let the conductor do what it can in the meantime; where it is dead, begin the next."""
        self.settle()
        super().pass_time(until_s)

    def settle(self) -> None:
        wait_for(lambda: self.is_dead or self.is_idle(), "the conductor to rest")
        if self.is_dead and self._away:
            self._away -= 1
        elif self.is_dead:
            self.conductor.close()
            self.conductor = self._begin()

    def is_idle(self) -> bool:
        """Does nobody work?  Agents that are waited for call."""
        if self.conductor.runtime.workers.busy:
            return False
        nodes = self.table(NODES)
        waiting = [node for node in nodes if node["provision_state"] in _WAITS]
        if waiting and not self.agents_call:
            raise Killed
        for node in waiting:
            if node["reservation"] is None and not self.is_dead:
                self._call_back(node["uuid"])
        at_work = [node for node in nodes if node["provision_state"] in _AT_WORK]
        return not (waiting or at_work or any(node["reservation"] for node in nodes))

    def _call_back(self, uuid: str) -> None:
        try:
            self.conductor.agent_calls(uuid)
        except (Dead, errors.NodeLocked):
            return

    # ------------------------------------------------------------------------------ what is there

    def table(self, table: sa.Table) -> list[Mapping[str, Any]]:
        with self.db.read() as conn:
            return [dict(row) for row in conn.execute(sa.select(table)).mappings()]

    def end(self) -> dict[str, Any]:
        """What has become of everything that could be left over, made twice or ordered twice."""
        tree, nodes = self.tree(), self.table(NODES)
        begun = Counter(
            event for row in self.table(EVENTS)
            if row["action"] == "provision_set"
            and (event := rows.load(row["facts"]).get("event")) in VERBS
        )  # fmt: skip
        return {
            "stack": f"{tree.stacks[0].action}_{tree.stacks[0].status}",
            "resources": sorted(
                (row.name, row.action, row.status, row.reason) for row in tree.resources
            ),
            "orders": begun,
            "nodes": Counter(
                (node["provision_state"], node["power_state"], bool(node["instance_uuid"]),
                 node["reservation"], node["maintenance"], node["last_error"],
                 "stack" in node["instance_info"], "stack" in node["extra"])
                for node in nodes
            ),
            "allocations": sorted(row["state"] for row in self.table(ALLOCATIONS)),
            "ports": len(self.table(PORTS)),
        }  # fmt: skip


VERBS = frozenset({"manage", "provide", "deploy", "rebuild", "delete"})


# ------------------------------------------------------------------------------------------ flows


@dataclass(frozen=True)
class Flow:
    """What is ordered, how it ends, and what is done before it, undisturbed."""

    order: Callable[[Floor], Any]
    ends: str
    before: Callable[[Floor], None] = lambda _floor: None
    pool: int = 2  # nodes that are there already


def of_one(image: str = "http://images/a", **more: Any) -> Template:
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"selector": {"resource_class": "pool"}, "image": {"source": image}} | more,
    }
    return machine_sites.template({"web": web}, f"{image} {more}")


def of_node_and_all() -> Template:
    """A machine from its enrolment to the system on it."""
    node = {
        "type": "OS::Ironic::Node",
        "properties": {"name": "n1", "driver": "fake-hardware", "resource_class": "bm",
                       "inspect": "none", "ports": [{"address": "52:54:00:00:00:01"}]},
    }  # fmt: skip
    slot = {
        "type": "OS::Ironic::Allocation", "depends_on": "node",
        "properties": {"resource_class": "bm"},
    }  # fmt: skip
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"allocation": {"get_resource": "slot"},
                       "image": {"source": "http://images/a"}},
    }  # fmt: skip
    return machine_sites.template({"node": node, "slot": slot, "web": web}, "all")


def deploy(floor: Floor) -> None:
    floor.create(of_one())


def deployed(floor: Floor) -> None:
    deploy(floor)
    floor.run()


def grouped(floor: Floor) -> None:
    floor.create(of_group())
    floor.run()


def enrolled(floor: Floor) -> None:
    floor.create(of_node_and_all())
    floor.run()


def waiting(floor: Floor) -> None:
    """Let a deployment wait for its agent."""
    floor.agents_call = False
    with contextlib.suppress(Killed):
        deployed(floor)
    floor.agents_call = True


FLOWS = {
    "deploy": Flow(deploy, "CREATE_COMPLETE"),
    "rebuild": Flow(
        lambda floor: floor.update(of_one("http://images/b")), "UPDATE_COMPLETE", deployed
    ),
    "replace": Flow(
        lambda floor: floor.update(of_one("http://images/b", image_update_policy="replace")),
        "UPDATE_COMPLETE", deployed,
    ),
    "delete": Flow(lambda floor: floor.delete(), "DELETE_COMPLETE", deployed),
    "delete what is being deployed": Flow(
        lambda floor: floor.delete(), "DELETE_COMPLETE", waiting
    ),
    "rebuild what is being deployed": Flow(
        lambda floor: floor.update(of_one("http://images/b")), "UPDATE_COMPLETE", waiting
    ),
    "deploy from the enrolment on": Flow(
        lambda floor: floor.create(of_node_and_all()), "CREATE_COMPLETE"
    ),
    "delete to the last": Flow(lambda floor: floor.delete(), "DELETE_COMPLETE", enrolled),
    "create a group": Flow(lambda floor: floor.create(of_group()), "CREATE_COMPLETE", pool=3),
    "roll out over a group": Flow(
        lambda floor: floor.update(of_group("http://images/b")),
        "UPDATE_COMPLETE", grouped, pool=3,
    ),
    "delete a group": Flow(
        lambda floor: floor.delete(), "DELETE_COMPLETE", grouped, pool=3
    ),
}  # fmt: skip


def live(flow: Flow, floor: Floor, lives: int | None = None) -> tuple[dict[str, Any], int]:
    """Let a flow end, the conductor being dead after so many commits; return its end.

    And how many commits the flow took the first conductor.
    """
    try:
        floor.enrol()
        flow.before(floor)
        first = floor.mortal
        commits = first.commits
        first.lives = None if lives is None else commits + lives
        flow.order(floor)
        floor.run()
        while floor.is_dead or not floor.is_idle():
            floor.settle()
        return floor.end(), first.commits - commits
    finally:
        floor.close()


def make_floor(path: Path, flow: Flow, **more: Any) -> Floor:
    return Floor(site.database(path), path=path, pool=flow.pool, **more)


def check(flow: Flow, folder: Path, every: int = 1) -> None:
    """Let the conductor die after each of its commits; each time the end is that without a death.

    ``every``: only after one in so many.  The next one begins at once, or some time later.
    """
    calm, commits = live(flow, make_floor(folder / "calm.sqlite", flow))
    assert calm["stack"] == flow.ends
    for number in some(range(0, commits, every)):
        floor = make_floor(folder / f"{number}.sqlite", flow, absence=number % 3)
        end, _ = live(flow, floor, number)
        assert end == calm, f"the conductor died after commit {number} of {commits}"
