"""What is done to a cluster: users, agents, an operator who kills; and in the end, rest.

story = Story("seed 17", folder)
story.run()
story.cluster.audit.faults       # what went wrong
"""

from __future__ import annotations

import contextlib
import uuid as uuids
from pathlib import Path
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.model.request import Request
from tests.cluster.audit import NodeRow
from tests.cluster.cluster import CHECK_S, HOSTS, PERIOD_S, TIMEOUT_S, Cluster, Fate
from tests.cluster.virtual import Process, Scheduler

NODE_COUNT: Final = 4
LASTS_S: Final = 90.0
AGENT_CALLS_S: Final = 4.0
# What the last flow may take after the last fault: a peer is buried, another takes its flow over,
# the agent is silent, and the flow times out.
RESTS_WITHIN_S: Final = TIMEOUT_S + 3 * PERIOD_S + 2 * (90 + 2 * CHECK_S) + 60

_VERBS: Final = {
    "enroll": ("manage",), "manageable": ("provide", "inspect"), "available": ("active", "manage"),
    "active": ("rebuild", "deleted"), "deploy failed": ("active", "deleted"),
    "clean failed": ("manage",), "inspect failed": ("manage", "inspect"), "error": ("deleted",),
}  # fmt: skip
WAITS: Final = ("wait call-back", "clean wait")


class Story:
    """One run of a cluster."""

    def __init__(self, seed: str, folder: Path, **fate: Any) -> None:
        self.scheduler = Scheduler(seed)
        self.cluster = Cluster(self.scheduler, folder)
        self.fate = Fate(self.cluster, **fate)
        self.ends_at = 0.0

    def run(self) -> None:
        self.scheduler.run(Process("director"), self._direct)

    def _direct(self) -> None:
        scheduler, cluster = self.scheduler, self.cluster
        self.ends_at = scheduler.now + LASTS_S
        for host in HOSTS:
            cluster.start(host)
        scheduler.wait(1.0, "first start")
        scheduler.on_switch = self.fate.at_switch
        for number in range(NODE_COUNT):
            scheduler.spawn(Process(f"user-{number}"), self._use, "user")
        scheduler.spawn(Process("agents"), Agents(cluster).run, "agents")
        scheduler.wait(LASTS_S, "the story")
        self._heal()
        self._rest()

    def _heal(self) -> None:
        """From now on nothing fails; who is dead stays dead, as long as somebody lives."""
        cluster = self.cluster
        self.fate.is_over, cluster.network.is_faulty = True, False
        cluster.bmcs.refuses = False
        for life in cluster.alive():
            life.process.is_paused = False
        if not cluster.alive():
            cluster.start(HOSTS[0])

    def _rest(self) -> None:
        scheduler, audit = self.scheduler, self.cluster.audit
        give_up_at = scheduler.now + RESTS_WITHIN_S
        while scheduler.now < give_up_at and (audit.unrest() or audit.untold()):
            scheduler.wait(5.0, "rest")
        audit.check_end()

    # -------------------------------------------------------------------------------- users

    def _use(self) -> None:
        """Enrol a node, and ask for one thing after the other."""
        scheduler, client = self.scheduler, self.cluster.client("user")
        uuid = str(uuids.uuid4())
        while not self._enrol(client, uuid):
            scheduler.wait(5.0, "enrol again")
        while scheduler.now < self.ends_at:
            scheduler.wait(scheduler.lots.uniform(0.5, 6), "user thinks")
            row = self._row(uuid)
            verbs = _VERBS.get(row.provision_state)
            if verbs and row.reservation is None:
                self._ask(client, row, scheduler.lots.choice(verbs))

    def _enrol(self, client: Any, uuid: str) -> bool:
        values = {"uuid": uuid, "driver": "fake-hardware", "provision_state": "enroll"}
        try:
            client.any_conductor().create_node(Request.new(), values)
        except errors.NodeAlreadyExists:
            return True
        except errors.Failure:
            return False
        return True

    def _row(self, uuid: str) -> NodeRow:
        return next(row for row in self.cluster.audit.nodes() if row.uuid == uuid)

    def _ask(self, client: Any, row: NodeRow, verb: str) -> None:
        request = Request.new()
        try:
            conductor = client.conductor_for_node(driver="fake-hardware", group="", uuid=row.uuid)
            conductor.do_provisioning_action(request, row.uuid, verb, {})
        except errors.Failure as exc:
            self.scheduler.note(f"refused {verb}: {type(exc).__name__}")
            return
        what = f"{verb} of {row.uuid} ({request.request_id})"
        self.cluster.audit.acknowledged[request.request_id] = what
        self.scheduler.note(f"acknowledged {what}")


class Agents:
    """The agents of all nodes: whoever is waited for calls, as long as it has a token."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = cluster.client("agents")
        self._tokens: dict[str, str] = {}
        self.is_locked_out = False  # a reply with a token was lost: nobody gets it twice

    def run(self) -> None:
        while True:
            self._cluster.scheduler.wait(AGENT_CALLS_S, "agents sleep")
            for row in self._cluster.audit.nodes():
                if row.provision_state not in WAITS:
                    self._tokens.pop(row.uuid, None)
                elif row.reservation is None:
                    with contextlib.suppress(errors.Failure):
                        self._call(row.uuid)

    def _call(self, uuid: str) -> None:
        conductor = self._client.conductor_for_node(driver="fake-hardware", group="", uuid=uuid)
        if uuid not in self._tokens:
            shown = conductor.get_node_with_token(Request.new(), uuid)
            self._tokens[uuid] = shown["agent_token"]
            self.is_locked_out |= shown["agent_token"] == secrets.MASK
        conductor.heartbeat(
            Request.new(), uuid, f"https://{uuid}", "1.0", self._tokens[uuid], None, None, None
        )
