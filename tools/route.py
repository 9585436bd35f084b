#!/usr/bin/env python3
"""Print the files that one request walks through, in order, and how often it moves between them.

The service runs in this process, on fake hardware; calls of its own functions are traced from the
first line of the WSGI application until the answer is there, in the thread that asks.  A verb is
answered when its flow has been handed to a worker, whose steps are not traced.  The engine's
threads are traced until the stack is complete.  A move is a call from one file into another.
``doc/explanation/architecture.md`` shows the same way.

    tools/route.py                 GET a node, PUT a verb, create and update a stack: counts
    tools/route.py put             the files of the PUT in order, with the functions entered
    tools/route.py create          the same of a stack's POST, and then of the engine
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bloomery.cmd.service import Service

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.pop("OS_CLOUD", None)
PACKAGE: Final = str(ROOT / "bloomery") + os.sep
PATH: Final = "/v1/admin/stacks"
VERSION: Final = {"HTTP_X_OPENSTACK_IRONIC_API_VERSION": "1.115"}


class Route:
    """Calls between files of the package, noted by a profiler while ``active``."""

    def __init__(self) -> None:
        self.active = False
        self.moves: list[tuple[str, str, str]] = []  # from file, into file, function

    def note(self, frame: FrameType, event: str, _arg: Any) -> None:
        if event != "call" or not self.active or not _is_ours(frame.f_code):
            return
        caller = frame.f_back
        while caller is not None and not _is_ours(caller.f_code):
            caller = caller.f_back
        source = "" if caller is None else _file(caller.f_code)
        if source != _file(frame.f_code):
            self.moves.append((source, _file(frame.f_code), frame.f_code.co_name))

    @property
    def files(self) -> dict[str, list[str]]:
        """The functions by which each file was entered, files in the order of their first."""
        entered: dict[str, list[str]] = {}
        for _source, target, function in self.moves:
            names = entered.setdefault(target, [])
            if function not in names:
                names.append(function)
        return entered

    def summary(self) -> str:
        return f"{len(self.files)} files, {len(self.moves)} moves"


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(PACKAGE)


def _file(code: CodeType) -> str:
    return code.co_filename[len(PACKAGE) :]


def walk() -> dict[str, Route]:
    """Serve one request of each kind on a fresh service, and note what each walks through."""
    import bloomery.cmd  # noqa: F401  keeps eventlet out
    from bloomery.cmd.service import Service
    from bloomery.conf import Conf
    from bloomery.conf.api import Api
    from bloomery.state_dir import StateDir

    conf = Conf(api=Api(port=0))
    with (
        tempfile.TemporaryDirectory() as folder,
        StateDir(Path(folder)) as state_dir,
        Service(conf, state_dir) as service,
    ):
        ask = _Client(service.api._app)  # noqa: SLF001  the HTTP server is threads and sockets
        uuid = ask("POST", "/v1/nodes", {"driver": "fake-hardware"})["uuid"]
        provision = f"/v1/nodes/{uuid}/states/provision"
        for verb in ("manage", "provide"):
            ask("PUT", provision, {"target": verb})
            _rest(service)
        routes = {"get": Route(), "put": Route()}
        _traced(routes["get"], lambda: ask("GET", f"/v1/nodes/{uuid}"))
        _traced(routes["put"], lambda: ask("PUT", provision, {"target": "active"}))
        _rest(service)
        _live(service, "first")  # fills caches
        return routes | _live(service, "second")


def _live(service: Service, stack_name: str) -> dict[str, Route]:
    """Create a stack and update it; return the routes of the API and of the engine."""
    ask = _Client(service.orchestration_api._app)  # noqa: SLF001

    def state() -> str:
        stacks = ask("GET", PATH)["stacks"]
        return next(
            str(each["stack_status"]) for each in stacks if each["stack_name"] == stack_name
        )

    def order(method: str, path: str, salt: str) -> tuple[Any, Route, Route]:
        body = {"stack_name": stack_name, "template": _template(salt)}
        in_api, in_engine = Route(), Route()
        with _engine_traced(in_engine):
            answer = _traced(in_api, lambda: ask(method, path, body))
            _wait(lambda: state().endswith("_COMPLETE"))
            _wait(lambda: not service.stacks.engine.groups.busy)
        return answer, in_api, in_engine

    answer, created, made = order("POST", PATH, "a")
    _, updated, remade = order("PUT", f"{PATH}/{stack_name}/{answer['stack']['id']}", "b")
    return {
        "create": created, "engine's create": made, "update": updated, "engine's update": remade,
    }  # fmt: skip


def _template(salt: str) -> dict[str, Any]:
    """Return the template of a stack with two resources, one of which refers to the other."""
    return {
        "heat_template_version": "2021-04-16",
        "resources": {
            "word": {"type": "OS::Heat::RandomString", "properties": {"salt": salt}},
            "copy": {
                "type": "OS::Heat::Value",
                "properties": {"value": {"get_attr": ["word", "value"]}},
            },
        },
    }


@contextlib.contextmanager
def _engine_traced(route: Route) -> Iterator[None]:
    """Note the calls of the engine's threads while they step trees of stacks."""
    from bloomery.orchestration.engine_host.threads import ThreadGroupManager

    work = ThreadGroupManager._work  # noqa: SLF001  what a thread of the pool is given

    def traced(manager: ThreadGroupManager, group: Any) -> None:
        if group.is_timer:
            work(manager, group)
        else:
            _traced(route, lambda: work(manager, group))

    ThreadGroupManager._work = traced  # type: ignore[method-assign, assignment]  # noqa: SLF001
    try:
        yield
    finally:
        ThreadGroupManager._work = work  # type: ignore[method-assign]  # noqa: SLF001


class _Client:
    """Asks a WSGI application."""

    def __init__(self, app: Callable[..., Any]) -> None:
        self._app = app

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        environ = VERSION | {
            "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": "", "SCRIPT_NAME": "",
            "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(data)),
            "SERVER_NAME": "localhost", "SERVER_PORT": "6385", "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(data), "wsgi.errors": sys.stderr,
        }  # fmt: skip
        answer = b"".join(self._app(environ, lambda *_status: None))
        return json.loads(answer) if answer else None


def _traced(route: Route, work: Callable[[], Any]) -> Any:
    """Note this thread's calls while it works, and return its result."""
    sys.setprofile(route.note)
    route.active = True
    try:
        return work()
    finally:
        route.active = False
        sys.setprofile(None)


def _rest(service: Service) -> None:
    """Wait until nobody has the node, nor leaves it just now: whoever waits walks a longer way."""
    _wait(lambda: not service.conductor.runtime.node_locks.in_use)


def _wait(condition: Callable[[], bool]) -> None:
    while not condition():
        threading.Event().wait(0.02)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("request", nargs="?", choices=("get", "put", "create", "update"))
    chosen = parser.parse_args().request
    for name, route in walk().items():
        print(f"{name}: {route.summary()}")
        if chosen is not None and name.endswith(chosen):
            for file, functions in route.files.items():
                print(f"  {file}: {', '.join(functions)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
