"""Allocations: a node of some kind is asked for, taken, and given back."""

from __future__ import annotations

import json
import uuid as uuids

import pytest
import sqlalchemy as sa

from bloomery.db.tables import ALLOCATIONS, EVENTS, NODES
from tests.kit.waiting import wait_for

A = "/v1/allocations"


@pytest.fixture
def stage(make_stage):
    return make_stage(node_locked_retry_attempts=2, node_locked_retry_interval=1)


def free_node(stage, **values):
    """Return a node that an allocation may take; values go past every rule."""
    node = stage.site.enrol()
    standing = {"provision_state": "available", "power_state": "power off"}
    stage.site.set(node, **standing | {"resource_class": "large"} | values)
    return node


def ask(stage, **body):
    answer = stage.api.post(A, {"resource_class": "large"} | body)
    assert answer.status == 201, answer.body
    return answer.json["uuid"]


def show(stage, uuid):
    return stage.api.get(f"{A}/{uuid}").json


def settled(stage, uuid):
    wait_for(lambda: show(stage, uuid)["state"] != "allocating", f"{uuid} to be settled")
    return show(stage, uuid)


def allocated(stage, **body):
    allocation = settled(stage, ask(stage, **body))
    assert allocation["state"] == "active", allocation
    return allocation


def failure(stage, **body):
    allocation = settled(stage, ask(stage, **body))
    assert allocation["state"] == "error", allocation
    start = f"Failed to process allocation {allocation['uuid']}: "
    assert allocation["last_error"].startswith(start)
    return allocation["last_error"].removeprefix(start)


def events_of(stage, uuid):
    return [f"{row['action']}.{row['status']}" for row in stage.site.rows(EVENTS, object_uuid=uuid)]


def rows_of(stage, uuid):
    return stage.site.rows(ALLOCATIONS, uuid=uuid)


def test_free_node_is_taken(stage):
    node = free_node(stage)
    stage.api.put(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_A", "CUSTOM_B"]})
    allocation = allocated(stage, name="web", traits=["CUSTOM_A"])
    shown = stage.show(node)
    assert (allocation["node_uuid"], allocation["last_error"]) == (node, None)
    assert shown["allocation_uuid"] == shown["instance_uuid"] == allocation["uuid"]
    assert shown["instance_info"] == {"traits": ["CUSTOM_A"]}
    assert stage.api.get(f"/v1/nodes/{node}/allocation").json == allocation
    assert events_of(stage, allocation["uuid"]) == ["create.start", "create.end", "allocate.end"]
    [listed] = stage.api.get(f"{A}?node={node}").json["allocations"]
    assert listed == allocation


@pytest.mark.parametrize(
    ("unfit", "told"),
    [
        ({"maintenance": True}, " (1 in maintenance)"),
        (
            {"power_state": None},
            " (1 whose power state is not known: baremetal node power on/off tells it)",
        ),
        ({"provision_state": "active"}, " (1 in a provision state other than available)"),
        ({"resource_class": "small"}, ""),
        ({"instance_uuid": "5c0fdd3a-7e3a-4d0e-9e63-2a8d2f4e6c11"}, " (1 with an instance)"),
    ],
    ids=str,
)
def test_unfit_node_is_not_taken_and_told_of(stage, unfit, told):
    node = free_node(stage, **unfit)
    assert failure(stage) == f"no available nodes match the resource class large{told}."
    assert stage.site.node(node).allocation_uuid is None


def test_traits_must_all_be_there(stage):
    node = free_node(stage)
    stage.api.put(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_A"]})
    why = failure(stage, traits=["CUSTOM_A", "CUSTOM_B"])
    assert why == "no suitable nodes have the requested traits CUSTOM_A, CUSTOM_B."


def test_candidates_limit_the_choice(stage):
    others, node = [free_node(stage) for _ in range(3)], free_node(stage)
    small = free_node(stage, resource_class="small")
    assert allocated(stage, candidate_nodes=[small, node])["node_uuid"] == node
    assert failure(stage, candidate_nodes=[small, node]) == (
        "none of the requested nodes are available and match the resource class large"
        " (1 with an instance)."
    )
    assert all(stage.site.node(other).allocation_uuid is None for other in others)


def test_owner_gets_own_and_lent_nodes_only(stage):
    free_node(stage)
    nodes = {free_node(stage, owner="p"), free_node(stage, owner="q", lessee="p")}
    assert {allocated(stage, owner="p")["node_uuid"] for _ in range(2)} == nodes
    free_node(stage, maintenance=True)  # of nobody: not told
    assert failure(stage, owner="p") == (
        "no available nodes match the resource class large (2 with an instance)."
    )


def test_node_of_the_same_name_goes_first(stage):
    for _ in range(5):
        free_node(stage)
    node = free_node(stage, name="web-7")
    assert allocated(stage, name="web-7")["node_uuid"] == node


def test_nodes_that_are_busy_are_waited_for(stage):
    node = free_node(stage, reservation="another")
    uuid = ask(stage)
    wait_for(lambda: show(stage, uuid)["last_error"], "it to say what it waits for")
    waiting = show(stage, uuid)
    assert (waiting["state"], waiting["node_uuid"]) == ("allocating", None)
    assert "other work holds all 1 suitable nodes" in waiting["last_error"]
    stage.site.set(node, reservation=None)
    allocation = settled(stage, uuid)
    assert (allocation["node_uuid"], allocation["last_error"]) == (node, None)


def test_nodes_that_stay_busy_are_given_up(stage):
    node = free_node(stage, reservation="another")
    why = failure(stage)
    assert why == "other work holds all 1 suitable nodes."
    stage.site.set(node, reservation=None)


def test_many_at_once_get_a_node_each(stage):
    nodes = {free_node(stage) for _ in range(40)}
    uuids_ = [ask(stage) for _ in range(45)]
    all_ = [settled(stage, uuid) for uuid in uuids_]
    taken = [one["node_uuid"] for one in all_ if one["state"] == "active"]
    assert len(taken) == 40
    assert set(taken) == nodes
    for row in stage.site.rows(NODES):
        assert rows_of(stage, row["allocation_uuid"])[0]["node_uuid"] == row["uuid"]


def test_uuid_that_is_an_instance_already_fails(stage):
    instance = str(uuids.uuid4())
    free_node(stage, instance_uuid=instance)
    free_node(stage)
    assert "already associated" in failure(stage, uuid=instance)


# --------------------------------------------------------------------------------- giving back


def test_deleting_an_allocation_frees_its_node(stage):
    node = free_node(stage)
    uuid = allocated(stage)["uuid"]
    assert stage.api.delete(f"/v1/nodes/{node}/allocation").status == 204
    shown = stage.show(node)
    assert (shown["allocation_uuid"], shown["instance_uuid"]) == (None, None)
    assert shown["instance_info"] == {"traits": []}
    assert stage.api.get(f"{A}/{uuid}").status == 404
    assert events_of(stage, uuid)[-2:] == ["delete.start", "delete.end"]


def test_allocation_of_a_node_in_use_stays(stage):
    node = free_node(stage)
    uuid = allocated(stage)["uuid"]
    for standing in (
        {"provision_state": "active"},
        {"provision_state": "deploying", "target_provision_state": "active"},
    ):
        stage.site.set(node, **standing)
        assert stage.api.delete(f"{A}/{uuid}").status == 409
    stage.site.set(node, maintenance=True)
    assert stage.api.delete(f"{A}/{uuid}").status == 204


def test_allocation_of_a_locked_node_stays(make_stage):
    stage = make_stage(node_locked_retry_attempts=0)
    node = free_node(stage)
    uuid = allocated(stage)["uuid"]
    stage.site.set(node, reservation="another")
    assert stage.api.delete(f"{A}/{uuid}").status == 409
    stage.site.set(node, reservation=None)


def test_instance_that_is_removed_takes_its_allocation_along(stage):
    node = free_node(stage)
    uuid = allocated(stage)["uuid"]
    remove = [{"op": "remove", "path": "/instance_uuid"}]
    stage.site.set(node, provision_state="active")
    assert stage.api.patch(f"/v1/nodes/{node}", remove).status == 409
    stage.site.set(node, provision_state="available")
    shown = stage.api.patch(f"/v1/nodes/{node}", remove).json
    assert (shown["allocation_uuid"], shown["instance_uuid"]) == (None, None)
    assert rows_of(stage, uuid) == []
    assert events_of(stage, uuid)[-2:] == ["delete.start", "delete.end"]


def test_owner_of_an_allocation_with_an_owner_keeps_the_node(stage):
    node = free_node(stage, owner="p")
    allocated(stage, owner="p")
    give = [{"op": "replace", "path": "/owner", "value": "q"}]
    assert stage.api.patch(f"/v1/nodes/{node}", give).status == 409


def test_undeploy_takes_the_allocation_along(stage):
    node = stage.bring_to("available", resource_class="large")
    stage.site.set(node, power_state="power off")
    uuid = allocated(stage)["uuid"]
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    assert stage.show(node)["allocation_uuid"] == uuid
    stage.ask(node, "deleted")
    shown = stage.wait_for(node, "available")
    assert (shown["allocation_uuid"], shown["instance_uuid"]) == (None, None)
    assert rows_of(stage, uuid) == []
    assert events_of(stage, uuid)[-2:] == ["delete.start", "delete.end"]


def test_deleting_a_node_takes_its_allocation_along(stage):
    node = free_node(stage)
    uuid = allocated(stage)["uuid"]
    assert stage.api.delete(f"/v1/nodes/{node}").status == 409
    stage.site.set(node, maintenance=True)
    assert stage.api.delete(f"/v1/nodes/{node}").status == 204
    assert rows_of(stage, uuid) == []


# ------------------------------------------------------------------------------------ backfill


def test_active_node_gets_its_allocation_at_once(stage):
    instance = str(uuids.uuid4())
    node = free_node(stage, provision_state="active", instance_uuid=instance)
    answer = stage.api.post(A, {"node": node, "name": "web"})
    assert (answer.status, answer.json["state"]) == (201, "active")
    assert answer.json["uuid"] == instance
    assert answer.json["node_uuid"] == node
    assert answer.json["resource_class"] == "large"
    assert stage.show(node)["allocation_uuid"] == instance


def test_active_node_without_instance_gets_the_allocation_for_one(stage):
    node = free_node(stage, provision_state="active")
    uuid = stage.api.post(A, {"node": node}).json["uuid"]
    assert stage.show(node)["instance_uuid"] == uuid


def test_node_with_another_instance_gets_no_allocation(stage):
    node = free_node(stage, provision_state="active", instance_uuid=str(uuids.uuid4()))
    answer = stage.api.post(A, {"node": node, "uuid": str(uuids.uuid4())})
    assert answer.status == 409
    assert stage.api.get(A).json == {"allocations": []}


@pytest.mark.parametrize(
    ("values", "body", "word"),
    [
        ({"provision_state": "available"}, {}, "available"),
        ({}, {"resource_class": "small"}, "small"),
        ({}, {"traits": ["CUSTOM_A"]}, "CUSTOM_A"),
        ({}, {"candidate_nodes": ["other"]}, "candidate"),
    ],
    ids=str,
)
def test_node_that_is_otherwise_leaves_an_allocation_in_error(stage, values, body, word):
    free_node(stage, name="other")
    node = free_node(stage, **{"provision_state": "active"} | values)
    answer = stage.api.post(A, {"node": node, "name": "web"} | body)
    assert answer.status == 400
    assert word in json.loads(answer.json["error_message"])["faultstring"]
    left = show(stage, "web")
    assert (left["state"], left["node_uuid"]) == ("error", None)
    assert word in left["last_error"]
    assert stage.site.node(node).allocation_uuid is None


# ------------------------------------------------------------------------------ after a crash


def test_allocation_of_a_conductor_that_died_is_looked_after(stage):
    stage.site.runtime.allocations.close()  # it stops between the commit and the search
    uuid = ask(stage)
    node = free_node(stage)
    assert show(stage, uuid)["state"] == "allocating"
    site = stage.site.restarted()
    wait_for(lambda: site.node(node).allocation_uuid == uuid, "the next life to find a node")
    site.close()


# --------------------------------------------------------------------------------------- why


def why(stage, uuid):
    answer = stage.api.get(f"/ext/v1/allocations/{uuid}/why")
    assert answer.status == 200, answer.body
    return answer.json


def test_why_tells_what_an_allocation_waits_for(make_stage):
    stage = make_stage(node_locked_retry_attempts=10_000, node_locked_retry_interval=1)
    node = free_node(stage)
    with stage.site.acquire(node, purpose="a test"):
        uuid = ask(stage)
        wait_for(lambda: show(stage, uuid)["last_error"], "what it waits for")
        told = why(stage, uuid)
        assert told["cause"] == "waits for a node: other work holds all 1 suitable nodes"
        assert told["next_action"].startswith("wait: it is tried again")
        assert (told["conductor"]["hostname"], told["conductor"]["alive"]) == ("host-a", True)
        assert told["since"] is not None
    settled(stage, uuid)
    assert why(stage, uuid)["cause"] == f"it has node {node}"


def test_why_tells_what_an_allocation_failed_of(stage):
    uuid = ask(stage)
    settled(stage, uuid)
    told = why(stage, uuid)
    assert told["cause"].startswith("it got no node: ")
    assert "no available nodes match the resource class" in told["cause"]
    assert "delete the allocation" in told["next_action"]


def test_why_tells_of_the_turn_and_of_a_conductor_that_is_gone(stage):
    uuid = ask(stage)
    settled(stage, uuid)
    set_row(stage, uuid, state="allocating", last_error=None)
    assert why(stage, uuid)["cause"].startswith("it waits for its turn: conductor host-a serves")
    set_row(stage, uuid, conductor_affinity="host-z")
    told = why(stage, uuid)
    assert "conductor host-z, which looked for its node, is not there" in told["cause"]
    assert (told["conductor"], "within 60 s" in told["next_action"]) == (None, True)
    set_row(stage, uuid, state="error")


def set_row(stage, uuid, **values):
    change = sa.update(ALLOCATIONS).where(ALLOCATIONS.c.uuid == uuid).values(values)
    stage.site.db.transact(lambda conn: conn.execute(change))


def test_why_of_an_unknown_allocation_is_not_found(stage):
    assert stage.api.get("/ext/v1/allocations/nobody/why").status == 404
    assert stage.api.get("/ext/v1/allocations").status == 404
