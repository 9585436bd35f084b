"""How soon and at what cost a stack goes on when what its resources wait for has changed.

A service runs inside the measuring process, and nobody asks it over HTTP.  Resources of a kind of
its own wait for objects; the program commits the event rows of these objects, as a conductor does
for nodes, and the kind notes when it is asked next.  On servers another process commits them: this
program, called with a URL, to which the objects are told one by one.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import sqlalchemy as sa

from bench import event_relay, harness
from bench.harness import ROOT, Line
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Database as Settings
from bloomery.conf.engine import Orchestration
from bloomery.db import events
from bloomery.db.engine import Database
from bloomery.events.relay import Relay
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.template import kinds
from bloomery.state_dir import StateDir

LARGE, SMALL = 1000, 100
EVENTS: Final = 300
FROM_ELSEWHERE: Final = 100  # events on a server
AT_MOST_MS: Final = {"PostgreSQL": 200, "MariaDB": 300}  # numbers come ten times a second
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

    def check_create_complete(self, token: str) -> base.Progress:
        if token == Waiter.asked_for:
            Waiter.asked_for, Waiter.asked_at = "", time.time()
            Waiter.asked.set()
        if token in self.ended:
            return True
        self.waiting.add(token)
        return base.wait_for(token)


class Site:
    """A service, and stacks in it that wait."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._engine = service.stacks.operations()
        self._groups = service.stacks.engine.groups

    def create(self, count: int) -> list[str]:
        """Make a stack that waits for objects; return them."""
        objects = [str(uuid.uuid4()) for _ in range(count)]
        resources = {
            f"r{number}": {"type": "Bench::Waiter", "properties": {_OBJECT: each}}
            for number, each in enumerate(objects)
        }
        template = {"heat_template_version": "2021-04-16", "resources": resources}
        self._engine.create_stack(_REQUEST, f"s{objects[0]}", StackArguments(template=template))
        harness.until(lambda: self._wait(objects), "all resources to wait")
        return objects

    def _wait(self, objects: Sequence[str]) -> bool:
        return Waiter.waiting.issuperset(objects) and not self._groups.busy

    def tell(self, uuid: str, commit: Callable[[str], float] | None = None) -> float:
        """Commit an event of an object; return how many seconds later its resource was asked.

        ``commit``: does it in another process, and returns when it was done.
        """
        Waiter.asked.clear()
        Waiter.asked_for = uuid
        committed_at = (commit or self._commit)(uuid)
        if not Waiter.asked.wait(_PATIENT_S):
            raise TimeoutError(f"nobody asked for {uuid}")
        return Waiter.asked_at - committed_at

    def _commit(self, uuid: str) -> float:
        return _committed(self._service.db, self._service.relay, uuid)

    def end(self, uuid: str) -> None:
        Waiter.ended.add(uuid)
        self.tell(uuid)

    def wait(self) -> None:
        """Wait until nobody works on any stack."""
        harness.until(lambda: not self._groups.roots(), "all stacks to rest")


def _committed(db: Database, relay: Relay, uuid: str) -> float:
    """Commit an event of an object; return when that was."""
    event = events.Event(object="node", object_uuid=uuid, action="provision_set", status="end")
    row = events.encode(event)
    db.transact(lambda conn: events.insert(conn, [row]))
    committed_at = time.time()
    relay.wake()
    return committed_at


@contextmanager
def site(path: Path, url: str | None = None) -> Iterator[Site]:
    """Run a service on an SQLite file, or on a database of a server."""
    kinds.offer("Bench::Waiter", Waiter)
    conf = Conf(
        database=Settings(connection=url),
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
        lines = [_wakes(running), *_ends(running)]
    return [*lines, *map(_on_server, event_relay.SERVERS)]


def _on_server(each: tuple[Callable[[], Any], str]) -> Line:
    find, variable = each
    with (
        find() as server,
        event_relay.database(sa.make_url(server.env[variable])) as db,
        harness.folder() as folder,
    ):
        name, url = server.name.split()[0], db.url.render_as_string(hide_password=False)
        what = f"the same from another process, {name}, p99"
        line = Line(what=what, unit="ms", at_most=AT_MOST_MS[name])
        line.synchronous = None
        with site(folder / "home", url) as running, _writer(url) as commit:
            (only,) = running.create(1)
            for _ in harness.rounds():
                took = []
                for _ in range(FROM_ELSEWHERE):
                    time.sleep(random.uniform(0.05, 0.15))
                    took.append(running.tell(only, commit) * 1000)
                line.add(sorted(took)[len(took) * 99 // 100])
            Waiter.ended.add(only)
            running.tell(only, commit)
            running.wait()
        return line


@contextmanager
def _writer(url: str) -> Iterator[Callable[[str], float]]:
    """Run a process that commits an event of each object that it is told; it returns when."""
    command = [sys.executable, "-m", "bench.stack_wakes", "--write", url]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def commit(uuid: str) -> float:
            print(uuid, file=requests, flush=True)
            return float(answers.readline())

        yield commit
        process.stdin.close()


def write(url: str) -> None:
    """Commit events as another conductor does, with a relay beside that numbers them."""
    db = Database(url)
    relay = Relay(db, [], holder="there:2", keep_hours=1)
    relay.start()
    for line in sys.stdin:
        print(_committed(db, relay, line.strip()), flush=True)
    relay.stop()
    db.close()


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
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2])
    else:
        harness.main(measure)
