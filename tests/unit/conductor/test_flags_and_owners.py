"""Maintenance, fault and last_error: each pair of writers in both orders, then a recovery."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import bloomery
from bloomery.conductor.periodics.power_recovery import PowerRecovery
from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.model.rules import nodes as rules
from tests.kit.machines.bmc import UNREACHABLE, FakeBmc
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

OPERATOR, CLEAN, ABORT = "technician at the rack", "clean failure", "rescue abort failure"


@pytest.fixture(scope="module")
def bmc():
    return FakeBmc()


@pytest.fixture(scope="module")
def site(tmp_path_factory, bmc):
    path = tmp_path_factory.mktemp("flags") / "site.sqlite"
    site = Site(path, registry=bmc.registry(), power_state_sync_max_retries=0)
    yield site
    site.close()


def put(site, bmc, node):
    site.order("set_maintenance", node, True, OPERATOR)


def put_bare(site, bmc, node):
    site.order("set_maintenance", node, True, None)


def patch(site, bmc, node):
    operation = {"op": "replace", "path": "/maintenance", "value": True}
    site.order("update_node", node, [operation], False)


def end(site, bmc, node):
    site.order("set_maintenance", node, False, None)


def power_sync(site, bmc, node):
    bmc.reads = UNREACHABLE
    sync = PowerSync(site.runtime)
    sync.run()
    wait_for(lambda: sync.is_idle, "the pass to end")


def recovery(site, bmc, node):
    bmc.reads = "power on"
    polls = PowerRecovery(site.runtime)
    polls.run()
    wait_for(lambda: polls._lane.is_idle, "the polls to end")


def fault(name):
    def begin(site, bmc, node):
        with site.acquire(node, purpose="test") as task:
            rules.begin_fault(task.node, name, f"it was a {name}")
            task.save()

    begin.__name__ = name.replace(" ", "_")
    return begin


clean, abort = fault(CLEAN), fault(ABORT)

PAIRS = [  # who writes, then whether it is in maintenance afterwards, the fault, the reason
    ((power_sync, put), (True, None, OPERATOR)),
    ((put, power_sync), (True, None, OPERATOR)),
    ((power_sync, put_bare), (True, None, None)),
    ((put_bare, power_sync), (True, None, None)),
    ((power_sync, patch), (True, None, None)),
    ((patch, power_sync), (True, None, None)),
    ((power_sync, end), (False, None, None)),
    ((end, power_sync), (False, None, None)),
    ((power_sync, clean), (True, CLEAN, f"it was a {CLEAN}")),
    ((clean, power_sync), (True, CLEAN, f"it was a {CLEAN}")),
    ((power_sync, abort), (True, ABORT, f"it was a {ABORT}")),
    ((abort, power_sync), (True, ABORT, f"it was a {ABORT}")),
    ((clean, put), (True, None, OPERATOR)),
    ((put, clean), (True, CLEAN, OPERATOR)),
    ((put_bare, clean), (True, CLEAN, f"it was a {CLEAN}")),
    ((abort, put), (True, None, OPERATOR)),
    ((put, abort), (True, ABORT, OPERATOR)),
    ((put, end), (False, None, None)),
    ((power_sync,), (False, None, None)),
]


@pytest.mark.parametrize(
    ("writers", "after"), PAIRS, ids=[" then ".join(w.__name__ for w in p[0]) for p in PAIRS]
)
def test_a_recovery_ends_only_the_maintenance_of_power_sync(site, bmc, writers, after):
    node = site.enrol()
    site.set(node, provision_state="manageable", power_state="power on")
    for write in (*writers, recovery):
        write(site, bmc, node)
    row = site.node(node)
    assert (row.maintenance, row.fault, row.maintenance_reason) == after


@pytest.mark.parametrize(
    ("state", "error", "meanwhile", "after"),
    [
        ("manageable", "an older one", None, None),  # power sync's own goes with the fault
        ("manageable", None, "cannot attach an image", "cannot attach an image"),
        ("deploy failed", "no such image", None, "no such image"),
        ("clean failed", "the disk is broken", None, "the disk is broken"),
        ("error", "cannot tear down", None, "cannot tear down"),
    ],
)
def test_a_recovery_ends_only_the_error_of_power_sync(site, bmc, state, error, meanwhile, after):
    node = site.enrol()
    site.set(node, provision_state=state, power_state="power on", last_error=error)
    power_sync(site, bmc, node)
    assert site.node(node).fault == "power failure"
    if meanwhile:
        site.set(node, last_error=meanwhile)
    recovery(site, bmc, node)
    assert site.node(node).last_error == after


OWNED = {"maintenance", "maintenance_reason", "fault"}


def test_one_place_writes_maintenance_and_fault():
    folder = Path(bloomery.__file__).parent
    writers = {
        path.relative_to(folder).as_posix()
        for room in ("conductor", "model", "drivers", "inspection")
        for path in (folder / room).rglob("*.py")
        if re.search(rf"\.({'|'.join(OWNED)})\b", path.read_text())
        for statement in ast.walk(ast.parse(path.read_text()))
        if isinstance(statement, ast.Assign | ast.AugAssign)
        for target in ast.walk(statement)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and target.attr in OWNED
    }
    assert writers == {"model/rules/nodes.py"}
