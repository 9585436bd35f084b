"""A whole site for stories: REST API, conductor and SQLite in one process, fake hardware.

    stage = Stage(make_site())
    node = stage.enrol()
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    assert stage.moves(node)[-1] == "verifying -> manageable"

Whoever tells the story asks through the API and reads what clients read; beside that he may
look at history, steps and events, and let a periodic run when the story says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import sqlalchemy as sa

from bloomery.api import app
from bloomery.conductor.periodics import agents, timeouts
from bloomery.db import rows
from bloomery.db.tables import NODES
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.rpc.client import Client as RpcClient
from tests.fakes.client import Answer
from tests.kit.clients.documented import Client
from tests.kit.servers import rpc
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

Json = dict[str, Any]

OWN_EVENTS: Final = ("step", "changed")  # of nodes; Ironic has no such notifications


@contextlib.contextmanager
def full_pool(site: Site) -> Iterator[None]:
    """Let every worker be busy meanwhile; periodics run no more, so that none gets free."""
    site.service.periodics.stop()
    workers = site.runtime.workers
    wait_for(lambda: not workers.busy, "the workers to be free")
    with contextlib.ExitStack() as taken:
        while workers.busy < workers.size:
            taken.enter_context(workers.slot())
        yield


class Stage:
    """One site and a client of its API."""

    def __init__(self, site: Site) -> None:
        self.site = site
        runtime = site.runtime
        conductors = {runtime.host: site.service.manager}
        client = RpcClient(runtime.ring, rpc.carried(conductors, site.until_closed))
        self.services = Services(
            db=site.db, rpc=client, conf=runtime.conf, policies=Policies(runtime.conf),
            sealer=runtime.sealer,
        )  # fmt: skip
        self.api = Client(app.make_app(self.services))

    def configure(self, group: str, **options: Any) -> None:
        """Change options while everything runs, as no operator can."""
        conf = self.services.conf
        changed = dataclasses.replace(getattr(conf, group), **options)
        conf = dataclasses.replace(conf, **{group: changed})
        for holder in (self.services, self.site.service.runtime, self.site.runtime):
            object.__setattr__(holder, "conf", conf)

    # ----------------------------------------------------------------------------- asking

    def enrol(self, fake: Mapping[str, Any] | None = None, **values: Any) -> str:
        """Create a node through the API; ``fake`` says how its hardware behaves."""
        if fake is not None:
            values["driver_info"] = values.get("driver_info", {}) | {"fake": dict(fake)}
        return str(self.api.node(**values)["uuid"])

    def try_to(self, node: str, verb: str, **along: Any) -> Answer:
        """Ask for a verb, whatever the answer."""
        return self.api.put(f"/v1/nodes/{node}/states/provision", {"target": verb} | along)

    def ask(self, node: str, verb: str, **along: Any) -> str:
        """Ask for a verb that is taken; return the request id."""
        answer = self.try_to(node, verb, **along)
        assert (answer.status, answer.body) == (202, b""), answer.body
        return answer.headers["openstack-request-id"]

    def try_power(self, node: str, target: str, **along: Any) -> Answer:
        return self.api.put(f"/v1/nodes/{node}/states/power", {"target": target} | along)

    def power(self, node: str, target: str, **along: Any) -> Json:
        """Ask for a power state and wait until nothing is asked of the node any more."""
        answer = self.try_power(node, target, **along)
        assert (answer.status, answer.body) == (202, b""), answer.body
        self.wait_until_free(node)
        return self.show(node)

    def patch(self, node: str, **values: Any) -> Json:
        """Replace fields of the node; dots in names stand for slashes."""
        operations = [
            {"op": "add", "path": f"/{name.replace('.', '/')}", "value": value}
            for name, value in values.items()
        ]
        answer = self.api.patch(f"/v1/nodes/{node}", operations)
        assert answer.status == 200, answer.body
        return dict(answer.json)

    def behave(self, node: str, **fake: Any) -> None:
        """Let the hardware behave otherwise from now on."""
        self.patch(node, **{"driver_info.fake": fake})

    def misconfigure(self, node: str) -> None:
        """Let a row hold what no client could write any more, and no driver can follow."""
        self.site.set(node, driver_info=rows.dump({"fake": {"nonsense": 1}}))

    def bring_to(self, state: str, fake: Mapping[str, Any] | None = None, **values: Any) -> str:
        """Return a new node in ``manageable``, ``available`` or ``active``."""
        node = self.enrol(fake, **values)
        for verb, there in (
            ("manage", "manageable"), ("provide", "available"), ("active", "active"),
        ):  # fmt: skip
            self.ask(node, verb)
            self.wait_for(node, there)
            if there == state:
                return node
        raise AssertionError(f"nobody said how to bring a node to {state}")

    # ---------------------------------------------------------------------------- looking

    def show(self, node: str) -> Json:
        answer = self.api.get(f"/v1/nodes/{node}")
        assert answer.status == 200, answer.body
        return dict(answer.json)

    def why(self, node: str) -> Json:
        answer = self.api.get(f"/ext/v1/nodes/{node}/why")
        assert answer.status == 200, answer.body
        return dict(answer.json)

    def standing(self, node: str) -> tuple[str | None, ...]:
        """State and target, as clients see them."""
        shown = self.show(node)
        return shown["provision_state"], shown["target_provision_state"]

    def care(self, node: str) -> tuple[bool, str | None]:
        """Maintenance and fault."""
        shown = self.show(node)
        return shown["maintenance"], shown["fault"]

    def power_of(self, node: str) -> tuple[str | None, str | None]:
        """Power state and target."""
        shown = self.show(node)
        return shown["power_state"], shown["target_power_state"]

    def told(self, node: str) -> list[str]:
        """The node's events that Ironic has, in order, as ``provision_set.start``."""
        return [
            f"{row['action']}.{row['status']}" for row in self.site.events(node)
            if row["action"] not in OWN_EVENTS
        ]  # fmt: skip

    def facts(self, node: str, action: str) -> list[Json]:
        """What the events of one action told, in order."""
        found = [row for row in self.site.events(node) if row["action"] == action]
        return [json.loads(row["facts"]) for row in found]

    def moves(self, node: str) -> list[str]:
        """Every edge that the node has moved along, in order, by its events."""
        return [
            f"{told['previous_provision_state']} -> {told['provision_state']}"
            for told in self.facts(node, "provision_set")
        ]

    def steps(self, node: str, phase: str | None = None) -> list[tuple[str, str]]:
        """The rows of its steps in order: name and how it ended."""
        runs = [run for run in self.site.runs(node) if phase in {None, run["phase"]}]
        return [(f"{run['interface']}.{run['step']}", run["state"]) for run in runs]

    def errors(self, node: str) -> list[str]:
        """What the history keeps of failures, in order."""
        answer = self.api.get(f"/v1/nodes/{node}/history?detail=true")
        assert answer.status == 200, answer.body
        return [row["event"] for row in answer.json["history"] if row["severity"] == "ERROR"]

    # ---------------------------------------------------------------------------- waiting

    def wait_for(self, node: str, state: str) -> Json:
        """Wait until the node stands in ``state`` and nobody holds it."""
        self.site.wait_for_state(node, state)
        self.wait_until_free(node)
        return self.show(node)

    def wait_until_free(self, node: str) -> None:
        """Wait until its row names no holder and its gate, which opens a moment later, is open."""
        node_locks = self.site.runtime.node_locks
        wait_for(
            lambda: self.site.is_free(node) and node not in node_locks._users, f"{node} to be free"
        )

    def let_agents_call(self, node: str, state: str) -> Json:
        """Let the fake agents call, as the periodic does, until the node stands in ``state``."""
        ask_agents = agents.make(self.site.runtime)

        def there() -> bool:
            ask_agents()
            found = self.site.node(node)
            return found.reservation is None and found.provision_state == state

        wait_for(there, f"{node} to be {state}")
        return self.show(node)

    def let_time_pass(self, node: str, seconds: float = 7200) -> None:
        """Make the node's last change older, and look for those whose time is up."""
        now = self.site.node(node)
        back = timedelta(seconds=seconds)
        self.site.set(
            node,
            provision_updated_at=(now.provision_updated_at or rows.now()) - back,
            inspection_started_at=(now.inspection_started_at or rows.now()) - back,
        )
        timeouts.run(self.site.runtime)
        self.wait_until_free(node)

    def nothing_is_left(self) -> bool:
        """No reservation, no worker, no step that goes on."""
        runtime = self.site.runtime
        wait_for(
            lambda: not runtime.node_locks.in_use and not runtime.workers.busy, "all work to end"
        )
        with self.site.db.read() as conn:
            task = conn.execute(
                sa.select(NODES.c.uuid).where(NODES.c.reservation.is_not(None)),
            ).all()
        return not task
