"""What an operation costs: commits and statements, exactly.

A count that goes down is welcome: change it here.  One that goes up wants a reason.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bloomery.conductor import allocator
from bloomery.conductor.allocation_queue import Entry
from bloomery.db import nodes as db_nodes
from bloomery.db import rows
from bloomery.db.engine import Meter
from tests.kit.servers.site import Site

QUIET = {
    "heartbeat_interval": 3600, "check_provision_state_interval": 0,
    "sync_power_state_interval": 0, "power_failure_recovery_interval": 0,
}  # fmt: skip


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    """A conductor without periodics: what is counted is what was ordered."""
    made = make_site(**QUIET)
    made.service.periodics.stop()
    return made


@pytest.fixture
def meter(site: Site) -> Meter:
    return Meter(site.db)


def kinds(meter: Meter) -> dict[str, int]:
    found: dict[str, int] = {}
    for statement in meter.statements:
        found[statement.split()[0]] = found.get(statement.split()[0], 0) + 1
    return found


def ended(site: Site, node: str, state: str, meter: Meter) -> None:
    """Wait for the end of a flow, and forget what the looking cost."""
    before = meter.commits
    site.wait_for_state(node, state)
    assert meter.commits >= before


CYCLE: list[tuple[str, str, int]] = [
    ("manage", "manageable", 2),
    ("provide", "available", 4),
    ("active", "active", 3),
    ("deleted", "available", 5),
]


@pytest.mark.parametrize(("verb", "state", "commits"), CYCLE, ids=str)
def test_a_verb_takes_its_commits(site: Site, meter: Meter, verb: str, state: str, commits: int):
    before = {"manage": "enroll", "provide": "manageable", "active": "available"}
    node = site.enrol(provision_state=before.get(verb, "active"))
    meter.reset()
    site.provision(node, verb)
    ended(site, node, state, meter)
    assert meter.commits == commits


def test_a_transition_is_four_statements_and_one_commit(site: Site, meter: Meter):
    """The guarded update of the node, its history, its event."""
    node = site.enrol(provision_state="available")
    with site.acquire(node) as task:
        meter.reset()
        task.process_event("deploy")
        assert meter.commits == 1
        assert kinds(meter) == {"UPDATE": 1, "INSERT": 2}


def test_taking_and_giving_back_a_node_are_two_commits(site: Site, meter: Meter):
    node = site.enrol()
    meter.reset()
    with site.acquire(node, load_driver=False):
        assert meter.commits == 1
        assert kinds(meter) == {"UPDATE": 1, "SELECT": 1}
    assert meter.commits == 2
    assert kinds(meter) == {"UPDATE": 2, "SELECT": 1}


def test_a_shared_task_is_one_statement(site: Site, meter: Meter):
    node = site.enrol()
    meter.reset()
    with site.acquire(node, shared=True):
        pass
    assert (meter.commits, kinds(meter)) == (0, {"SELECT": 1})


def test_a_heartbeat_without_news_is_a_read_and_a_write_in_a_sixth_of_the_time_out(
    site: Site, meter: Meter
):
    """The node with whether its flow waits; the write is one commit for all nodes that are due."""
    token = site.runtime.sealer.seal_under(db_nodes.AGENT_TOKEN, "t" * 64)
    at = rows.now() - timedelta(seconds=site.runtime.conf.conductor.deploy_callback_timeout / 6 + 9)
    info = {"agent_secret_token": token, "agent_url": "https://a", "agent_version": "9"}
    nodes = [site.enrol() for _ in range(2)]
    for due in (False, True):
        heard_at = at if due else rows.now()
        stored = rows.dump(info | {"agent_last_heartbeat": heard_at.isoformat()})
        for node in nodes:
            site.set(node, provision_state="wait call-back", driver_internal_info=stored)
        meter.reset()
        for node in nodes:
            site.order("heartbeat", node, "https://a", "9", "t" * 64, None, None, None)
        assert (meter.commits, kinds(meter)) == (0, {"SELECT": 2})
        site.runtime.heartbeats.flush(only_due=True)
        assert (meter.commits, kinds(meter).get("UPDATE", 0)) == (int(due), int(due))


SHORT: list[tuple[str, tuple[Any, ...], dict[str, int]]] = [
    ("update_node", ([{"op": "add", "path": "/extra/a", "value": 1}], False),
     {"SELECT": 1, "UPDATE": 1, "INSERT": 1}),
    ("set_maintenance", (True, "why"), {"SELECT": 1, "UPDATE": 1, "INSERT": 1}),
    ("add_node_traits", (["CUSTOM_A"], False), {"SELECT": 2, "INSERT": 2}),
    ("remove_node_traits", (None,), {"SELECT": 1, "DELETE": 1, "INSERT": 1}),
    # the children of the node lose their parent, and its ports their portgroup
    ("destroy_node", (), {"SELECT": 1, "UPDATE": 2, "DELETE": 1, "INSERT": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "args", "statements"), SHORT, ids=lambda v: str(v)[:20])
def test_a_short_operation_is_one_commit(
    site: Site, meter: Meter, method: str, args: tuple[Any, ...], statements: dict[str, int]
):
    node = site.enrol()
    meter.reset()
    site.order(method, node, *args)
    assert meter.commits == 1
    assert kinds(meter) == statements


def test_deleting_a_node_with_a_console_takes_a_lock(site: Site, meter: Meter):
    """A look that finds the console, the lock, and the end of node and lock in one."""
    node = site.enrol(console_enabled=True)
    meter.reset()
    site.order("destroy_node", node)
    assert meter.commits == 3
    assert kinds(meter) == {"SELECT": 2, "UPDATE": 4, "DELETE": 1, "INSERT": 4}


def test_creating_a_node_is_one_commit(site: Site, meter: Meter):
    meter.reset()
    site.enrol()
    assert (meter.commits, kinds(meter)) == (1, {"INSERT": 2})


def test_a_port_is_one_commit(site: Site, meter: Meter):
    node = site.enrol()
    meter.reset()
    port = {"uuid": "port-1", "node_uuid": node, "address": "52:54:00:00:00:01"}
    site.order("create_record", "port", port)
    assert meter.commits == 1


def test_a_refused_order_writes_nothing(site: Site, meter: Meter):
    node = site.enrol()
    meter.reset()
    with pytest.raises(Exception, match="can not be performed"):
        site.deploy(node)
    assert (meter.commits, kinds(meter)) == (0, {"SELECT": 1})


def test_a_verb_without_a_flow_is_one_commit(site: Site, meter: Meter):
    """The look at the node; the look in the transaction, the node, its history and event."""
    node = site.enrol(provision_state="available")
    meter.reset()
    site.provision(node, "manage")
    assert (meter.commits, kinds(meter)) == (1, {"SELECT": 2, "UPDATE": 1, "INSERT": 2})


def test_taking_a_node_for_an_allocation_is_five_statements_and_one_commit(
    site: Site, meter: Meter
):
    node = site.enrol(provision_state="available", resource_class="large")
    site.set(node, power_state="power off")
    allocation = str(uuid.uuid4())
    site.runtime.allocations.close()
    site.order("create_allocation", {"uuid": allocation, "resource_class": "large"}, None)
    meter.reset()
    assert allocator.allocate(site.runtime, Entry(uuid=allocation, request=site.request()))
    assert site.node(node).allocation_uuid == allocation
    assert meter.commits == 1
    meter.statements.pop()  # the look at the node
    halves = sum("nodes.uuid >= ?" in each or "nodes.uuid < ?" in each for each in meter.statements)
    assert kinds(meter) == {"SELECT": 1 + halves, "UPDATE": 2, "INSERT": 1}
    assert halves in {1, 2}, "the first half of the nodes may hold none that is free"
