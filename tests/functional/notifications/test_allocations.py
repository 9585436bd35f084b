"""What a consumer of notifications hears of allocations: what clients ask for, and no more."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from bloomery import errors
from bloomery.db.tables import ALLOCATIONS
from tests.kit.waiting import wait_for


def ask(site: Any, node: str | None = None, **values: Any) -> str:
    values = {"uuid": str(uuid.uuid4()), "resource_class": "large"} | values
    site.order("create_allocation", values, node)
    return str(values["uuid"])


def settle(site: Any) -> None:
    wait_for(lambda: not site.rows(ALLOCATIONS, state="allocating"), "all to be settled")


def free_node(site: Any, **values: Any) -> str:
    node = str(site.enrol(resource_class="large"))
    site.set(node, **{"provision_state": "available", "power_state": "power off"} | values)
    return node


def test_a_life_is_told_as_clients_asked_for_it(listener: Any) -> None:
    site = listener.site
    node = free_node(site)
    allocation = ask(site, name="web", extra={"a": 1})
    settle(site)
    patch = [{"op": "add", "path": "/extra/b", "value": 2}]
    site.order("update_record", "allocation", allocation, patch)
    site.order("destroy_allocation", allocation)
    assert listener.types("allocation") == [
        "allocation.create.start", "allocation.create.end", "allocation.update.start",
        "allocation.update.end", "allocation.delete.start", "allocation.delete.end",
    ]  # fmt: skip
    [start] = listener.data("allocation.create.start")
    [end] = listener.data("allocation.create.end")
    assert (start["created_at"], start["state"], start["node_uuid"]) == (None, None, None)
    assert (end["state"], end["node_uuid"]) == ("allocating", None)
    assert (end["extra"], end["name"]) == ({"a": 1}, "web")
    for created in (start, end):
        assert (created["candidate_nodes"], created["traits"]) == (None, None)
    [updated] = listener.data("allocation.update.end")
    assert (updated["node_uuid"], updated["extra"]) == (node, {"a": 1, "b": 2})
    assert (updated["candidate_nodes"], updated["traits"]) == ([], [])
    [deleted] = listener.data("allocation.delete.end")
    assert (deleted["node_uuid"], deleted["state"]) == (node, "active")


def test_refusals_are_told_as_errors(listener: Any) -> None:
    site = listener.site
    active = free_node(site, provision_state="active")
    allocation = ask(site, active)
    with pytest.raises(errors.AllocationAlreadyExists):
        ask(site, uuid=allocation)
    with pytest.raises(errors.InvalidState):
        site.order("destroy_allocation", allocation)
    with pytest.raises(errors.AllocationFailed):
        ask(site, free_node(site))
    assert listener.types("allocation") == [
        "allocation.create.start", "allocation.create.end",
        "allocation.create.start", "allocation.create.error",
        "allocation.delete.start", "allocation.delete.error",
        "allocation.create.start", "allocation.create.error",
    ]  # fmt: skip


def test_what_goes_with_its_instance_is_not_told(listener: Any) -> None:
    site = listener.site
    node = free_node(site)
    allocation = ask(site)
    settle(site)
    remove = [{"op": "remove", "path": "/instance_uuid"}]
    site.order("update_node", node, remove, False)
    assert listener.types("allocation.delete") == []
    rows = [row["action"] for row in site.events(allocation)]
    assert rows.count("delete") == 2, "the log tells it"
