"""One flow, and the death of its conductor at each point of it; a peer brings it to its end.

A conductor may also go mute at a point: it works on, and its signs of life do not get through.
BMCs then take all the time that they have, so that orders are under way when a peer takes over.

Points are those at which the scheduler may switch: before and after each transaction, read, call,
reply and order to a BMC.  Run without a death, a flow shows how many there are.

    deaths.points(order, folder)                      # how many
    deaths.Death(order, 17, folder).run()             # what went wrong
    deaths.Death(order, 17, folder, mute=True).run()
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.model.request import Request
from tests.cluster.cluster import HOSTS, TIMEOUT_S, Cluster
from tests.cluster.story import RESTS_WITHIN_S, WAITS, Agents
from tests.cluster.virtual import Process, Scheduler, Strand

_MUTE_S: Final = 1.5 * TIMEOUT_S
NODE: Final = "00000000-0000-4000-8000-000000000001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order, where it begins and where it ends.

    ``arguments``: those of ``method`` behind the node; a verb alone: that of a provision verb.
    ``after``: what brings the node to where this one begins.  Agents are silent where it waits.
    """

    verb: str
    begins_in: str
    ends_in: str
    arguments: tuple[Any, ...] = ({},)
    method: str = "do_provisioning_action"
    after: Order | None = None

    @property
    def call(self) -> tuple[Any, ...]:
        is_verb = self.method == "do_provisioning_action"
        return (self.verb, *self.arguments) if is_verb else self.arguments


def _of_active(name: str, method: str, *arguments: Any) -> Order:
    """Something that is done to a node in passing."""
    return Order(
        verb=name, begins_in="active", ends_in="active", method=method, arguments=arguments
    )


_UPDATE: Final = {"steps": [{"interface": "deploy", "step": "update"}]}
_ERASE: Final = {"steps": [{"interface": "deploy", "step": "erase"}]}
_HOLD: Final = {"steps": [{"interface": "deploy", "step": "hold"}, *_ERASE["steps"]]}
_RESCUE: Final = {"rescue_password": "secret"}
_DEPLOY: Final = Order(verb="active", begins_in="available", ends_in="active")
_CLEAN_HELD: Final = Order(
    verb="clean", begins_in="manageable", ends_in="clean hold", arguments=(_HOLD,)
)
_IMAGE: Final = ("cdrom", "http://images/tools.iso", None)
ORDERS: Final = (
    Order(verb="manage", begins_in="enroll", ends_in="manageable"),
    Order(verb="inspect", begins_in="manageable", ends_in="manageable"),
    Order(verb="clean", begins_in="manageable", ends_in="manageable", arguments=(_ERASE,)),
    Order(verb="provide", begins_in="manageable", ends_in="available"),
    Order(verb="adopt", begins_in="manageable", ends_in="active"),
    _DEPLOY,
    Order(verb="rebuild", begins_in="active", ends_in="active"),
    Order(verb="service", begins_in="active", ends_in="active", arguments=(_UPDATE,)),
    Order(verb="rescue", begins_in="active", ends_in="rescue", arguments=(_RESCUE,)),
    Order(verb="unrescue", begins_in="rescue", ends_in="active"),
    Order(verb="deleted", begins_in="active", ends_in="available"),
    Order(verb="abort", begins_in="wait call-back", ends_in="deploy failed", after=_DEPLOY),
    Order(verb="unhold", begins_in="clean hold", ends_in="manageable", after=_CLEAN_HELD),
    _of_active("reboot", "change_node_power_state", "rebooting", None),
    _of_active("power off", "change_node_power_state", "power off", None),
    _of_active("boot mode", "change_node_boot_mode", "uefi"),
    _of_active("secure boot", "change_node_secure_boot", True),
    _of_active("virtual media", "attach_virtual_media", *_IMAGE),
)


_TRACE: Final = (
    "SELECT request_id FROM step_runs WHERE request_id = ?"
    " UNION SELECT request_id FROM node_history WHERE request_id = ?"
)


class Death:
    """``at``: the point of the conductor that has the node; None: nobody dies."""

    def __init__(self, order: Order, at: int | None, folder: Path, *, mute: bool = False) -> None:
        self.order, self.at, self.mute = order, at, mute
        self.scheduler = Scheduler(f"{order.verb} from {order.begins_in}")
        self.cluster = Cluster(self.scheduler, folder)
        self.cluster.network.is_faulty = self.cluster.bmcs.refuses = False
        self.cluster.bmcs.takes_its_time = mute
        self.points = 0
        self.host = ""
        self.agents: Agents

    def run(self) -> list[str]:
        self.scheduler.run(Process("director"), self._direct)
        return self.cluster.audit.faults

    def _direct(self) -> None:
        scheduler, cluster = self.scheduler, self.cluster
        for host in HOSTS[:2]:
            cluster.start(host)
        scheduler.wait(1.0, "start")
        client = cluster.client("user")
        first = self.order.after or self.order
        values = {"uuid": NODE, "driver": "fake-hardware", "provision_state": first.begins_in}
        client.any_conductor().create_node(Request.new(), values)
        self.agents = Agents(cluster)
        if self.order.begins_in not in WAITS:
            scheduler.spawn(Process("agents"), self.agents.run, "agents")
        if self.order.after is not None:
            self._bring_to_begin(client, self.order.after)
        self.host = client.ring.host_of_node(driver="fake-hardware", group="", uuid=NODE)
        scheduler.on_switch = self._count
        while not self._ask(client, self.order):
            scheduler.wait(5.0, "ask again")
        give_up_at = scheduler.now + RESTS_WITHIN_S
        while scheduler.now < give_up_at and self._goes_on():
            scheduler.wait(5.0, "rest")
        self._check()

    def _count(self, strand: Strand) -> None:
        if strand.process.name == self.host and strand.process.is_alive:
            self.points += 1
            if self.points == self.at and self.mute:
                self.cluster.mute(self.host, _MUTE_S)
            elif self.points == self.at:
                self.cluster.kill(self.host)

    def _bring_to_begin(self, client: Any, first: Order) -> None:
        assert self._ask(client, first)
        while True:
            (node,) = self.cluster.audit.nodes()
            if node.provision_state == self.order.begins_in and node.reservation is None:
                return
            self.scheduler.wait(1.0, "begin")

    def _ask(self, client: Any, order: Order) -> bool:
        """Give the order, unless it came through before; True when it did."""
        request, audit = Request.new(), self.cluster.audit
        try:
            conductor = client.conductor_for_node(driver="fake-hardware", group="", uuid=NODE)
            getattr(conductor, order.method)(request, NODE, *order.call)
        except errors.Failure:
            return bool(audit.rows(_TRACE, request.request_id, request.request_id))
        audit.acknowledged[request.request_id] = order.verb
        return True

    def _goes_on(self) -> bool:
        audit = self.cluster.audit
        return bool(audit.unrest() or audit.untold())

    def _check(self) -> None:
        audit = self.cluster.audit
        audit.check_end()
        (node,) = audit.nodes()
        sentence = node.last_error or ""
        if "it may not be run twice" in sentence:
            return
        if self.agents.is_locked_out and "no call came within" in sentence:
            return
        if node.provision_state != self.order.ends_in or node.target_power_state is not None:
            audit.fault(f"it ended as {node}")


def points(order: Order, folder: Path, *, mute: bool = False) -> int:
    """Return at how many points the conductor of this flow may die, or go mute."""
    death = Death(order, None, folder, mute=mute)
    faults = death.run()
    assert not faults, faults
    return death.points
