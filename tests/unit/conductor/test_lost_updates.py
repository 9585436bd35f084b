"""Short operations on one row: every change that was acknowledged is there."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from bloomery import errors
from tests.kit.probes import probes
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for


def test_32_clients_patching_one_node_lose_nothing(make_site):
    site = make_site(patience_s=20)
    node = site.enrol(provision_state="available")
    assert probes.no_acknowledged_patch_is_lost(site, node, clients=32, rounds=9) == 0


def test_patches_lose_nothing_while_a_task_saves_too(make_site):
    site = make_site(patience_s=20)
    node = site.enrol(provision_state="available")

    def count() -> None:
        for _ in range(20):
            with site.acquire(node) as task:
                properties = task.node.properties
                properties["count"] = properties.get("count", 0) + 1
                task.save()

    counters = [threading.Thread(target=count) for _ in range(4)]
    for counter in counters:
        counter.start()
    assert probes.no_acknowledged_patch_is_lost(site, node, clients=8, rounds=5) == 0
    for counter in counters:
        counter.join()
    assert site.node(node).properties["count"] == 80


def test_those_who_may_not_wait_are_told_at_once(site: Site, monkeypatch):
    node = site.enrol(provision_state="available")
    site.patience_s = 20
    monkeypatch.setattr(site.runtime.node_locks, "_per_node", 2)
    refusals, run = [], partial(probes.no_acknowledged_patch_is_lost, site, node, 16, 3)
    clients = threading.Thread(target=lambda: refusals.append(run(manager=Counted(site))))
    with site.acquire(node, purpose="deploy"):
        clients.start()
        wait_for(lambda: Counted.refused >= 14, "all but two to be refused")
    clients.join()
    assert refusals[0] >= 14


class Counted:
    """The manager of a site; counts what it refuses."""

    refused = 0

    def __init__(self, site: Site) -> None:
        self._manager = site.service.manager

    def update_node(self, *args: Any) -> Any:
        try:
            return self._manager.update_node(*args)
        except errors.NodeLocked:
            Counted.refused += 1
            raise


ON_A_HELD_NODE = [
    ("update_node", [{"op": "add", "path": "/extra/a", "value": 1}], False),
    ("destroy_node",),
    ("set_maintenance", True, "why"),
    ("add_node_traits", ["CUSTOM_A"], False),
    ("remove_node_traits", None),
]


@pytest.mark.parametrize("call", ON_A_HELD_NODE, ids=lambda call: call[0])
def test_a_held_node_is_not_changed(site: Site, call: tuple[Any, ...]):
    node = site.enrol(provision_state="available")
    site.patience_s = 0.02
    with site.acquire(node, purpose="deploy"):
        before = site.everything()
        with pytest.raises(errors.NodeLocked, match=r"\(deploy\)"):
            site.order(call[0], node, *call[1:])
        assert site.everything() == before
    site.order(call[0], node, *call[1:])
    assert site.runtime.node_locks.in_use == 0


@pytest.mark.parametrize("call", ON_A_HELD_NODE, ids=lambda call: call[0])
def test_a_node_that_another_process_holds_is_not_changed(site: Site, call: tuple[Any, ...]):
    node = site.enrol(provision_state="available")
    site.patience_s = 0.02
    other = probes.task_manager.acquire(probes.context_of(site.another_host("host-b"), site), node)
    before = site.everything()
    with pytest.raises(errors.NodeLocked, match="host-b"):
        site.order(call[0], node, *call[1:])
    assert site.everything() == before
    other.release_resources()
    site.order(call[0], node, *call[1:])


def test_what_is_refused_inside_leaves_the_gate_open(site: Site):
    node = site.enrol(provision_state="available", protected=True)
    with pytest.raises(errors.NodeProtected):
        site.order("destroy_node", node)
    assert site.runtime.node_locks.in_use == 0
    with site.acquire(node, retry=False):
        pass
