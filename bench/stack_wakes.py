"""How soon and at what cost a stack goes on when what its resources wait for has changed.

A service runs inside the measuring process, and nobody asks it over HTTP.  Resources of a kind of
its own wait for objects; the program commits the event rows of these objects, as a conductor does
for nodes, and the kind notes when it is asked next.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

from bench import harness
from bench.harness import Line
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.engine import Orchestration
from bloomery.db import events
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.template import kinds
from bloomery.state_dir import StateDir

LARGE, SMALL = 1000, 100
EVENTS: Final = 300
_OBJECT: Final = "object"
_PATIENT_S: Final = 60.0
_REQUEST: Final = Request.new()


class Waiter(base.Resource):
    """Waits until something happens to an object, and ends if that was its end."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        _OBJECT: Schema(Type.STRING, "The UUID of what it waits for.", required=True)
    }
    ended: ClassVar[set[str]] = set()
    waiting: ClassVar[set[str]] = set()
    asked: ClassVar[threading.Event] = threading.Event()
    asked_for: ClassVar[str] = ""  # whose check is waited for
    asked_at: ClassVar[float] = 0.0

    def handle_create(self) -> str:
        return str(self.properties[_OBJECT])

    def check_create_complete(self, token: str) -> bool:
        if token == Waiter.asked_for:
            Waiter.asked_for, Waiter.asked_at = "", time.perf_counter()
            Waiter.asked.set()
        if token in self.ended:
            return True
        self.waiting.add(token)
        raise base.WaitFor(token)


class Site:
    """A service, and stacks in it that wait."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._engine = service.services.engine
        self._groups = service.stacks.engine.groups

    def create(self, count: int) -> list[str]:
        """Make a stack that waits for objects; return them."""
        objects = [str(uuid.uuid4()) for _ in range(count)]
        resources = {
            f"r{number}": {"type": "Bench::Waiter", "properties": {_OBJECT: each}}
            for number, each in enumerate(objects)
        }
        template = {"heat_template_version": "2021-04-16", "resources": resources}
        assert self._engine is not None
        self._engine.create_stack(_REQUEST, f"s{objects[0]}", StackArguments(template=template))
        harness.until(lambda: self._wait(objects), "all resources to wait")
        return objects

    def _wait(self, objects: Sequence[str]) -> bool:
        return Waiter.waiting.issuperset(objects) and not self._groups.busy

    def tell(self, uuid: str) -> float:
        """Commit an event of an object; return how many seconds later its resource was asked."""
        row = events.encode(
            events.Event(object="node", object_uuid=uuid, action="provision_set", status="end")
        )
        Waiter.asked.clear()
        Waiter.asked_for = uuid
        self._service.db.transact(lambda conn: events.insert(conn, [row]))
        committed_at = time.perf_counter()
        self._service.relay.wake()
        if not Waiter.asked.wait(_PATIENT_S):
            raise TimeoutError(f"nobody asked for {uuid}")
        return Waiter.asked_at - committed_at

    def end(self, uuid: str) -> float:
        Waiter.ended.add(uuid)
        return self.tell(uuid)

    def wait(self) -> None:
        """Wait until nobody works on any stack."""
        harness.until(lambda: not self._groups.roots(), "all stacks to rest")


@contextmanager
def site(path: Path) -> Iterator[Site]:
    kinds.offer("Bench::Waiter", Waiter)
    conf = Conf(
        api=Api(port=0),
        conductor=Conductor(sync_power_state_interval=0),
        orchestration=Orchestration(port=0),
    )
    with StateDir(path) as home:
        service = Service(conf, home)
        service.start()
        try:
            yield Site(service)
        finally:
            service.stop()


def measure() -> Sequence[Line]:
    with harness.folder() as folder, site(folder / "home") as running:
        objects = running.create(3)
        for each in objects:
            running.end(each)
        running.wait()
        return [_wakes(running), *_ends(running)]


def _wakes(running: Site) -> Line:
    line = Line(what="event's commit to the handler's next step, p99", unit="ms", at_most=20)
    (only,) = running.create(1)
    for _ in harness.rounds():
        took = sorted(running.tell(only) * 1000 for _ in range(EVENTS))
        line.add(took[len(took) * 99 // 100])
    running.end(only)
    running.wait()
    return line


def _ends(running: Site) -> list[Line]:
    """CPU of the whole process: the event that tells of an end, and the turn that comes of it."""
    cost = Line(what=f"{LARGE} resources, one end after the other, each", unit="ms", at_most=3)
    slope = Line(what=f"cost of such an end, {LARGE} against {SMALL}", unit="", at_most=1.1)
    for _ in harness.rounds():
        small = _each_ms(running, SMALL, LARGE // SMALL)
        large = _each_ms(running, LARGE)
        cost.add(large)
        slope.add(large / small)
    return [cost, slope]


def _each_ms(running: Site, count: int, times: int = 1) -> float:
    used = 0.0
    for _ in range(times):
        objects = running.create(count)
        began = time.process_time()
        for each in objects:
            running.end(each)
        running.wait()
        used += time.process_time() - began
    return used * 1000 / (count * times)


if __name__ == "__main__":
    harness.main(measure)
