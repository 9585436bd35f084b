"""The service of ``bloomery template run``: a conductor on fake hardware, in the caller's thread.

Nodes, allocations and flows pass the code of ``bloomery serve``, in an SQLite file that is deleted
at the end.  Three parts differ:

- Workers and timers run when the simulation asks for it, on the clock of the simulation.
- Each interface of each hardware type is fake.  It offers the steps that the template names.
- Nodes and runbooks that the template expects to exist are created when they are looked for.
"""

from __future__ import annotations

import logging
import uuid as uuids
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Final

from cryptography.fernet import Fernet
from oslo_utils import uuidutils

from bloomery import errors
from bloomery.conductor import lifecycle
from bloomery.conductor.states import Power, State
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Database as Settings
from bloomery.conf.default import Default
from bloomery.db import allocations
from bloomery.db.allocations import Criteria
from bloomery.db.engine import Database
from bloomery.db.tables import METADATA
from bloomery.drivers import steps
from bloomery.drivers.base import DriverTask, Interface
from bloomery.drivers.fake.behaviour import FakeInterface
from bloomery.drivers.noop import NoopNetwork
from bloomery.drivers.registry import Registry
from bloomery.model.node import INTERFACES
from bloomery.model.request import Request
from bloomery.model.stacks import Stack
from bloomery.model.step import Step
from bloomery.operations import nodes
from bloomery.operations.context import Context, Services
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.orders.machines import ServiceMachines
from bloomery.orchestration.orders.software import RowSoftware
from bloomery.orchestration.resources.machines import ALLOCATION, RUNBOOK, Json, Patch
from bloomery.outcome import DONE, Again, Outcome, WaitForCall
from bloomery.rpc.client import Client, InProcess
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer

# The events of a stack have the reasons of its failures.
logging.getLogger("bloomery.conductor").addHandler(logging.NullHandler())

_HOST: Final = "simulated"
_WORKERS: Final = 100_000
_FOREVER_S: Final = 10**8
_ADDED: Final = "simulated-"  # prefix of the names of nodes that are added here
_TRAIT: Final = "CUSTOM_SIMULATED"  # of runbooks that are created here, and of their nodes
_STEP: Final = {"interface": "deploy", "step": "simulated", "args": {}, "order": 1}  # of runbooks


class _Work(Future[Any]):
    """The result of queued work; the caller that waits for it runs the queue."""

    def __init__(self, run_next: Callable[[], object]) -> None:
        super().__init__()
        self._run_next = run_next

    def result(self, timeout: float | None = None) -> Any:
        while not self.done():
            self._run_next()
        return super().result()


class QueuedWorkers(Workers):
    """Workers without threads: ``run_next`` runs the oldest work."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.queue: deque[tuple[_Work, Callable[[], Any]]] = deque()

    def submit(self, work: Callable[..., Any], *args: Any, **more: Any) -> Future[Any]:
        future = _Work(self.run_next)
        self.queue.append((future, lambda: work(*args, **more)))
        return future

    def run_next(self) -> None:
        future, work = self.queue.popleft()
        try:
            future.set_result(work())
        except Exception as exc:  # noqa: BLE001  the future carries it, as any executor's
            future.set_exception(exc)


class SimulatedSite:
    """A site (``orchestration.simulation.Site``) whose rows are in ``folder``.

    ``clock``: of the simulation.  ``is_live`` tells whether a stack of the simulation exists.
    """

    def __init__(
        self, folder: Path, clock: Callable[[], float], is_live: Callable[[str], bool]
    ) -> None:
        self.is_live = is_live
        self.steps: dict[tuple[str, str], Json] = {}  # by interface and name: the arguments
        self.added: set[str] = set()  # UUIDs of nodes that no resource has created
        self.deleted: set[str] = set()  # UUIDs and names of nodes and runbooks
        self.db = Database(f"sqlite:///{folder / 'site.sqlite'}", Settings(synchronous="OFF"))
        self.db.alter(METADATA.create_all)
        conf = Conf(
            default=Default(host=_HOST, enabled_hardware_types=("fake-hardware",)),
            conductor=Conductor(
                workers_pool_size=_WORKERS, heartbeat_timeout=_FOREVER_S, bmc_outage_budget=0,
                preflight_timeout=0,
            ),
        )  # fmt: skip
        self._sealer = Sealer(Fernet.generate_key())
        self._workers, self._timers = QueuedWorkers(_WORKERS), Timers(clock)
        runtime = lifecycle.build(
            conf, self.db, self._sealer, workers=self._workers, timers=self._timers,
            hardware=_hardware(conf, self.steps),
        )  # fmt: skip
        conductor = lifecycle.ConductorService(runtime)
        conductor.registration.begin(alone=True)
        self._conductor, self._has_run = conductor, False
        self.services = Services(
            db=self.db, conf=conf, policies=Policies(conf, []), sealer=self._sealer,
            rpc=Client(Ring(self.db, conf), InProcess({_HOST: conductor.manager})),
        )  # fmt: skip

    def close(self) -> None:
        self._conductor.registration.close()
        self.db.close()

    def machines_of(self, stack: Stack) -> SimulatedMachines:
        return SimulatedMachines(self, stack)

    def software_of(self, project: str) -> RowSoftware:
        return RowSoftware(self.db, self._sealer, project)

    def run_due(self) -> bool:
        """Run the queued work and the due timers; return whether any ran since the last call."""
        self.run_work()
        has_run, self._has_run = self._has_run, False
        return has_run

    def run_work(self) -> None:
        while self._workers.queue or self._timers.call_next():
            self._has_run = True
            while self._workers.queue:
                self._workers.run_next()

    def due_at(self) -> float | None:
        return self._timers.due_at()


class SimulatedMachines(ServiceMachines):
    """The machines of one stack, in a site that has whatever the stack expects to be there."""

    def __init__(self, site: SimulatedSite, stack: Stack) -> None:
        super().__init__(site.services, stack)
        self._site = site

    def get_node(self, ident: str) -> Json:
        try:
            return super().get_node(ident)
        except errors.NodeNotFound:
            if ident in self._site.deleted:
                raise
            field = "uuid" if uuidutils.is_uuid_like(ident) else "name"
            self._add_node(**{field: ident})
            return super().get_node(ident)

    def _add_node(self, traits: Sequence[str] = (), **fields: Any) -> str:
        """Add a node that is available, and off; return its UUID."""
        uuid = str(uuids.uuid4())
        name = f"{_ADDED}{uuid[:8]}"
        fields = {"driver": "fake-hardware", "uuid": uuid, "name": name} | fields
        context = Context(services=self._site.services, request=Request.new())
        nodes.create(context, fields, State.AVAILABLE, {"power_state": Power.OFF})
        self._site.added.add(fields["uuid"])
        if traits:
            self.set_traits(fields["uuid"], traits)
        return str(fields["uuid"])

    def list_available(self, resource_class: str) -> list[Json]:
        if not (available := super().list_available(resource_class)):
            self._add_node(resource_class=resource_class)
            available = super().list_available(resource_class)
        return available

    def delete_node(self, uuid: str) -> None:
        self._site.deleted |= {uuid, super().get_node(uuid)["name"]}
        super().delete_node(uuid)

    def set_provision_state(
        self, uuid: str, verb: str, *, order_id: str | None = None, **arguments: Any
    ) -> None:
        self._note_steps(arguments)
        if runbook := arguments.get("runbook"):
            # the node gets a trait of the runbook, where one of them was added here
            record, traits = self.find(RUNBOOK, runbook), self.get_node(uuid)["traits"]
            required = [] if record is None else record["traits"]
            is_ours = uuid in self._site.added or required == [_TRAIT]
            if required and is_ours and not {*required} & {*traits}:
                self.set_traits(uuid, [*traits, required[0]])
        super().set_provision_state(uuid, verb, order_id=order_id, **arguments)

    def find(self, noun: str, ident: str) -> Json | None:
        record = super().find(noun, ident)
        if record is None and noun == RUNBOOK and ident not in self._site.deleted:
            names = {"name": ident}
            if uuidutils.is_uuid_like(ident):
                names = {"uuid": ident, "name": f"CUSTOM_{ident.replace('-', '_').upper()}"}
            self.create(noun, names | {"steps": [_STEP], "traits": [_TRAIT]})
            record = super().find(noun, ident)
        return record

    def create(self, noun: str, fields: Json) -> None:
        self._note_steps(fields)
        super().create(noun, self._with_node(fields) if noun == ALLOCATION else fields)

    def _with_node(self, allocation: Json) -> Json:
        """Return the body of an allocation, with a new node if no node of the site fits it.

        Candidates that the stack has read from the site, not named, get the new one as well.
        """
        resource_class, traits = allocation.get("resource_class"), allocation.get("traits") or ()
        candidates = [self.get_node(each) for each in allocation.get("candidate_nodes") or ()]
        for node in candidates:
            if node["resource_class"] is None:  # it was added by its name
                patch = {"op": "add", "path": "/resource_class", "value": resource_class}
                self.update_node(node["uuid"], [patch])
                self.set_traits(node["uuid"], traits)
        self._site.run_work()  # earlier allocations take their nodes
        idents = [node["uuid"] for node in candidates]
        criteria = Criteria(resource_class=resource_class, traits=traits, candidate_nodes=idents)
        with self._site.db.read() as conn:
            is_free = allocations.find_free(conn, criteria) is not None
        if is_free or not all(node["name"].startswith(_ADDED) for node in candidates):
            return allocation
        uuid = self._add_node(traits, resource_class=resource_class)
        return allocation | {"candidate_nodes": [*idents, uuid]} if idents else allocation

    def update(self, noun: str, uuid: str, patch: Patch) -> None:
        self._note_steps(patch)
        super().update(noun, uuid, patch)

    def delete(self, noun: str, uuid: str) -> None:
        self._site.deleted.add(uuid)
        super().delete(noun, uuid)

    def is_live_stack(self, stack_id: str) -> bool:
        return self._site.is_live(stack_id)

    def _note_steps(self, body: Any) -> None:
        """Let interfaces offer the steps that are anywhere in the body of an order."""
        if isinstance(body, Mapping) and {"interface", "step"} <= body.keys():
            offered = self._site.steps.setdefault((body["interface"], body["step"]), {})
            offered |= {name: {"required": False} for name in body.get("args") or ()}
        elif isinstance(body, Mapping):
            self._note_steps([*body.values()])
        elif isinstance(body, list | tuple):
            for each in body:
                self._note_steps(each)


class _Simulated(Interface):
    """A fake interface that offers the steps in ``noted``, too, and whose agent calls at once."""

    noted: ClassVar[Mapping[tuple[str, str], Json]]

    def steps(self, phase: str) -> tuple[Step, ...]:
        noted = (
            Step(interface=kind, step=step, argsinfo=args, resumable=True)
            for (kind, step), args in self.noted.items() if kind == self.kind
        )  # fmt: skip
        return (*noted, *super().steps(phase))  # the own steps replace noted ones of their name

    def run_step(self, task: DriverTask, step: Step) -> Outcome:
        if steps.is_step(getattr(self, step.step, None)):
            return super().run_step(task, step)
        return DONE

    def act(self, task: DriverTask, method: str, limit_s: float | None = None) -> Outcome | None:
        outcome: Outcome | None = super().act(task, method, limit_s)  # type: ignore[misc]
        if isinstance(outcome, WaitForCall):
            return Again(after_s=0, reason=outcome.reason)
        return outcome


def _hardware(conf: Conf, noted: Mapping[tuple[str, str], Json]) -> Registry:
    """Return all installed hardware types, with fake interfaces under all their names."""
    types = {each.name: each.load()() for each in entry_points(group="bloomery.hardware.types")}
    fakes: dict[str, type[FakeInterface]] = {
        each.kind: type(each.__name__, (_Simulated, each), {"noted": noted})
        for each in FakeInterface.__subclasses__()
    }
    interfaces: dict[str, dict[str, Interface]] = {}
    for kind in INTERFACES:
        names = (name for each in types.values() for name in each.supported[kind])
        interfaces[kind] = dict.fromkeys(names, fakes.get(kind, NoopNetwork)(conf))
    return Registry(types, interfaces, {})
