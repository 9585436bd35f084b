"""A conductor in this process, on a database of its own, and a look into its rows.

    site = Site(tmp_path / "site.sqlite")
    node = site.enrol()
    site.provision(node, "manage")
    site.wait_for_state(node, "manageable")

``another_host`` gives a second conductor with node locks of its own on the same database, and
``restarted`` a conductor that finds what the first one left.
"""

from __future__ import annotations

import contextlib
import dataclasses
import uuid as uuids
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest import mock

import sqlalchemy as sa
from cryptography.fernet import Fernet

from bloomery.conductor import flows, lifecycle, task_manager
from bloomery.conductor.lifecycle import ConductorService
from bloomery.conductor.node_lock import NodeLocks
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.drivers import Console
from bloomery.db import event_numbers, nodes
from bloomery.db.engine import Database
from bloomery.db.tables import EVENTS, NODE_HISTORY, NODES, STEP_RUNS
from bloomery.drivers import registry
from bloomery.drivers.base import Heartbeat
from bloomery.drivers.ipmi import tool as ipmi_tool
from bloomery.drivers.registry import Registry
from bloomery.model.node import INTERFACES, Node
from bloomery.model.request import Request
from bloomery.secrets import Sealer
from tests.kit.servers import databases
from tests.kit.waiting import wait_for

KEY = Fernet.generate_key()
HOST = "host-a"
_GROUP = "bloomery.hardware.interfaces."


def database(path: Path, kind: type[Database] = Database) -> Database:
    """Open the database of a site; it is made, empty, where there is none."""
    return databases.open_at(path, kind)


def conf(host: str = HOST, **conductor: Any) -> Conf:
    """The defaults, but for what is said of the conductor; nobody waits long.

    Names that begin with ``enabled_`` are options of [DEFAULT].
    """
    enabled = {"enabled_hardware_types": ("fake-hardware",)} | {
        name: conductor.pop(name) for name in list(conductor) if name.startswith("enabled_")
    }
    said: dict[str, Any] = {
        "workers_pool_size": 20, "graceful_shutdown_timeout": 5, "bmc_outage_budget": 0,
        "preflight_timeout": 0,
    } | conductor  # fmt: skip
    default = Default(host=host, **enabled)
    return Conf(default=default, conductor=Conductor(**said))


class Site:
    """A conductor that runs here.  ``changes`` replace parts of its runtime."""

    def __init__(
        self,
        path: Path,
        *,
        db: Database | None = None,
        host: str = HOST,
        patience_s: float | None = None,
        registry: Registry | None = None,
        on_events_written: Callable[[], None] = lambda: None,
        snapshots: bool = False,
        **conductor: Any,
    ) -> None:
        self.path = path
        self.db = db or database(path)
        runtime = lifecycle.build(conf(host, **conductor), self.db, Sealer(KEY))
        changes: dict[str, Any] = {
            "node_locks": NodeLocks(1000, 1000), "on_events_written": on_events_written,
            "wants_snapshots": lambda: snapshots,
        }  # fmt: skip
        if registry is not None:
            changes["registry"] = registry
        self.runtime = dataclasses.replace(runtime, **changes)
        self.patience_s = patience_s
        self.service = ConductorService(self.runtime)
        self.service.start()
        wait_for(self._has_looked_around, "the jobs of the start")
        self.closed = False
        self.until_closed = contextlib.ExitStack()  # what others have opened for this site

    def _has_looked_around(self) -> bool:
        """Have the jobs run that each start begins with?  They would be seen in what is tested."""
        if not self.runtime.conf.conductor.check_provision_state_interval:
            return True
        return self.service.periodics.states["take_over_consoles"].runs > 0

    def close(self) -> None:
        """End its threads; the database stays."""
        if self.closed:
            return
        self.closed = True
        self.until_closed.close()
        self.service._stopping = True
        self.service.periodics.stop()
        self.runtime.pulse.stop()
        self.runtime.timers.stop()
        self.service._heart.stop()
        self.service.registration.close()
        wait_for(lambda: not self.runtime.workers.busy, "the workers to end")
        self.runtime.workers._pool.shutdown(wait=False)  # an idle thread takes a second to notice
        self.db.close()

    # ----------------------------------------------------------------------------- asking

    def request(self, **more: Any) -> Request:
        return dataclasses.replace(Request.new(), **({"wait_s": self.patience_s} | more))

    def context(self, **more: Any) -> Context:
        return Context(runtime=self.runtime, request=self.request(**more))

    def acquire(self, node: str, **more: Any) -> TaskManager:
        return task_manager.acquire(self.context(), node, **more)

    def order(self, method: str, *args: Any, request: Request | None = None) -> str:
        """Call a method of the contract; return the request id."""
        request = request or self.request()
        getattr(self.service.manager, method)(request, *args)
        return request.request_id

    def enrol(self, **values: Any) -> str:
        """Create a node; return its UUID."""
        said = {
            "uuid": str(uuids.uuid4()), "driver": "fake-hardware", "provision_state": "enroll",
        }  # fmt: skip
        said |= values
        self.order("create_node", said)
        return str(said["uuid"])

    def deploy(self, node: str, **more: Any) -> str:
        return self.provision(node, "active", steps=more.get("deploy_steps") or [])

    def provision(self, node: str, verb: str, **arguments: Any) -> str:
        """Ask for a provision verb; return the request id."""
        return self.order("do_provisioning_action", node, verb, arguments)

    def agent_calls(self, node: str, **more: Any) -> str:
        """Let a driver say that the node's agent called; return the request id."""
        context = self.context()
        said = {"callback_url": "https://agent", "agent_version": "1.2"} | more
        flows.heartbeat(context, node, Heartbeat(**said))
        return context.request.request_id

    # ---------------------------------------------------------------------------- polling

    def node(self, node: str) -> Node:
        with self.db.read() as conn:
            return nodes.get(conn, node)

    def rows(self, table: sa.Table, **equal: Any) -> list[Mapping[str, Any]]:
        wanted = sa.select(table).where(*(table.c[k] == v for k, v in equal.items()))
        with self.db.read() as conn:
            return [dict(row) for row in conn.execute(wanted.order_by(table.c.id)).mappings()]

    def history(self, node: str) -> list[Mapping[str, Any]]:
        return self.rows(NODE_HISTORY, node_uuid=node)

    def events(self, node: str) -> list[Mapping[str, Any]]:
        return self.rows(EVENTS, object_uuid=node)

    def runs(self, node: str) -> list[Mapping[str, Any]]:
        return self.rows(STEP_RUNS, node_uuid=node)

    def everything(self) -> dict[str, list[Mapping[str, Any]]]:
        """Every row that a task could write."""
        return {table.name: self.rows(table) for table in (NODES, NODE_HISTORY, STEP_RUNS, EVENTS)}

    # ---------------------------------------------------------------------------- waiting

    def is_free(self, node: str) -> bool:
        """Whether nobody holds the row, nor the gate, which is left a moment after the row."""
        return self.node(node).reservation is None and node not in self.runtime.node_locks._users

    def wait_for_state(self, node: str, *states: str, timeout_s: float = 10.0) -> Node:
        """Wait until nobody holds the node and it stands in one of ``states``."""

        def arrived() -> Node | None:
            found = self.node(node)
            is_free = found.reservation is None and node not in self.runtime.node_locks._users
            return found if found.provision_state in states and is_free else None

        try:
            return wait_for(arrived, f"{node} to be {' or '.join(states)}", timeout_s=timeout_s)
        except AssertionError as late:
            now = self.node(node)
            late.add_note(
                f"it is {now.provision_state}, held by {now.reservation}, {now.last_error}"
            )
            raise

    def number_events(self) -> None:
        """Number the events, as the relay of a running service does."""
        if not self.db.is_sqlite:  # whose rows need none
            self.db.transact(event_numbers.settle)
            self.db.transact(event_numbers.assign)

    def set(self, node: str, **values: Any) -> None:
        """Put values into the node's row, past every rule."""
        self.db.transact(
            lambda conn: conn.execute(
                sa.update(NODES).where(NODES.c.uuid == node).values(**values),
            ),
        )

    # ---------------------------------------------------------------------- other processes

    def another_host(self, host: str, **conductor: Any) -> ConductorRuntime:
        """The runtime of a conductor in another process, with node locks of its own."""
        ours = lifecycle.build(conf(host, **conductor), self.db, Sealer(KEY))
        return dataclasses.replace(
            ours, node_locks=NodeLocks(1000, 1000), timers=self.runtime.timers
        )

    def restarted(self, **more: Any) -> Site:
        """The conductor of the next process, on what this one left."""
        self.close()
        said = {"registry": self.runtime.registry, "patience_s": self.patience_s} | more
        return Site(self.path, **said)

    @staticmethod
    def all_interfaces() -> Mapping[str, Mapping[str, Any]]:
        """Every interface that this package brings, loaded; no program of theirs is needed."""
        installed = entry_points()  # all groups at once: each call reads every package's file
        enabled: dict[str, Any] = {
            f"enabled_{kind}_interfaces": tuple(sorted(installed.select(group=_GROUP + kind).names))
            for kind in INTERFACES
        }
        types = tuple(sorted(installed.select(group="bloomery.hardware.types").names))
        settings = Conf(
            default=Default(enabled_hardware_types=types, **enabled),
            console=Console(ssh_known_hosts="/none", ssh_host_keys="accept-new"),
        )
        with mock.patch.object(ipmi_tool, "require"):
            loaded = registry.load(settings)
        return loaded.interfaces
