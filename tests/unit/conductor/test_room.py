"""Limits on how many nodes deploy or clean at a time are exact, whoever comes together."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import states, verbs
from bloomery.conductor.manager import ConductorManager
from bloomery.db.engine import Meter

CALLERS = 4
# Whoever got in stays until everybody has asked.
NEVER = json.dumps({"fake": {
    "wait": {"deploy": -1, "deploy.deploy": -1, "vendor.log_passthrough": -1},
    "delay": {"deploy.tear_down": 600},
}})  # fmt: skip


def all_at_once(site: Any, order: Callable[[Any], None], nodes: list[str]) -> list[Any]:
    """Let everybody ask together; return what each was told."""

    def ask(node: str) -> Any:
        try:
            order(node)
        except errors.Failure as no:
            return no
        return None

    with ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(ask, nodes))


def meeting(monkeypatch: Any, event: str) -> None:
    """Let callers go on together from a place that each passes before its move."""
    barrier, row = threading.Barrier(CALLERS), verbs.TABLE[event]

    def wait(*args: Any, **more: Any) -> Any:
        barrier.wait(20)
        return row.steps(*args, **more)

    monkeypatch.setitem(verbs.TABLE, event, dataclasses.replace(row, steps=wait))


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize(
    ("verb", "state"),
    [
        ("provide", "manageable"),
        ("clean", "manageable"),
        ("deleted", "active"),
        ("active", "available"),
    ],
)
def test_as_many_as_allowed_get_in_and_the_others_are_as_they_were(
    make_site, monkeypatch, hosts, verb, state
) -> None:
    limits = {"max_concurrent_clean": 1, "max_concurrent_deploy": 1}
    site = make_site(**limits)
    nodes = [site.enrol() for _ in range(CALLERS)]
    for node in nodes:
        site.set(node, provision_state=state, driver_info=NEVER)
    houses = [site.runtime, site.another_host("host-b", **limits)][:hosts]
    managers = [ConductorManager(houses[n % hosts]) for n in range(CALLERS)]
    before = {node: (site.node(node), site.history(node), site.events(node)) for node in nodes}
    meeting(monkeypatch, states.VERBS[verb])

    def order(node: str) -> None:
        manager = managers[nodes.index(node)]
        steps = [{"interface": "vendor", "step": "log_passthrough"}] if verb == "clean" else []
        manager.do_provisioning_action(site.request(), node, verb, {"steps": steps})

    told = all_at_once(site, order, nodes)
    refused = [node for node, no in zip(nodes, told, strict=True) if no is not None]
    assert len(refused) == CALLERS - 1, told
    assert all(isinstance(no, errors.ConcurrentActionLimit) for no in told if no is not None)
    for node in refused:
        now = site.node(node)
        assert now.reservation is None
        assert now.provision_state == state
        assert (now.last_error, now.deploy_step) == (None, before[node][0].deploy_step)
        assert (site.history(node), site.events(node)) == before[node][1:]
        assert site.runs(node) == []


def test_nodes_wait_for_each_other_no_longer_than_it_takes_to_count(make_site):
    """On a server a row is locked from the count to the commit: all else was written before."""
    site = make_site()
    node = site.enrol(provision_state="available")
    meter = Meter(site.db)
    site.deploy(node)
    site.wait_for_state(node, "active")
    counted = next(n for n, said in enumerate(meter.statements) if "count(*)" in said)
    written = [said.split("(")[0].strip() for said in meter.statements[:counted]]
    assert "INSERT INTO step_runs" in written
