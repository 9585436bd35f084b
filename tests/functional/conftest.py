"""A whole site in one process: database, conductor, API."""

from __future__ import annotations

import dataclasses
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bloomery.api import app
from bloomery.api.versions import MAX
from bloomery.conf import Conf
from bloomery.db import conductors, rows
from bloomery.db import nodes as node_rows
from bloomery.db.engine import Meter
from bloomery.model.conductor import EnabledInterface
from bloomery.model.node import INTERFACES, OBJECTS
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.rpc.client import Client, InProcess
from bloomery.rpc.ring import Ring
from tests.fakes.client import Client as ApiClient
from tests.fakes.conductor import FakeConductor
from tests.kit.clients import documented
from tests.kit.servers import site as kit

HOST = "host-1"
DRIVERS = ("fake-hardware", "redfish")
_LONGEST_SESSION_S = 86_400  # of tests: until then the conductor counts as alive


@dataclass
class World:
    """What a test may hold on to."""

    site: Services
    api: ApiClient
    conductor: Any
    meter: Meter
    app: Any

    def set(self, uuid: str, **values: Any) -> None:
        """Put a node into a state that a test begins with."""
        encoded = rows.encode(values, OBJECTS)
        self.site.db.transact(lambda conn: node_rows.update(conn, uuid, encoded))

    def node(self, **values: Any) -> str:
        """Enrol a node, put it into a state, return its UUID."""
        made = self.api.node(version=MAX)
        if values:
            self.set(made["uuid"], **values)
        return made["uuid"]


def build(path: Path, conf: Conf) -> tuple[Services, Any]:
    """Return a site on a fresh database with one conductor on line, which sends no heartbeat."""
    db = kit.database(path / "bloomery.sqlite")
    interfaces = [
        EnabledInterface(hardware_type=driver, kind=kind, name="fake", default=True)
        for driver in DRIVERS
        for kind in INTERFACES
    ]
    db.transact(
        lambda conn: conductors.register(
            conn,
            hostname=HOST,
            group="",
            drivers=DRIVERS,
            interfaces=interfaces,
        ),
    )
    conductor = FakeConductor(db)
    patient = dataclasses.replace(conf.conductor, heartbeat_timeout=_LONGEST_SESSION_S)
    ring = Ring(db, dataclasses.replace(conf, conductor=patient))
    rpc = Client(ring, InProcess({HOST: conductor}))
    return Services(db=db, rpc=rpc, conf=conf, policies=Policies(conf)), conductor


@pytest.fixture
def conf() -> Conf:
    """Override in a module to configure its site."""
    return Conf()


@pytest.fixture
def world(tmp_path: Path, conf: Conf) -> Iterator[World]:
    site, conductor = build(tmp_path, conf)
    made = app.make_app(site)
    yield World(
        site=site,
        api=documented.Client(made),
        conductor=conductor,
        meter=Meter(site.db),
        app=made,
    )
    site.db.close()


@pytest.fixture
def api(world: World) -> ApiClient:
    return world.api


@pytest.fixture
def files() -> Iterator[str]:
    """A server of one file, whose content is ``firmware``; return its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"firmware")

        def log_message(self, *_args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
