"""The fleet at a glance: how many nodes are where, and who serves them."""

from __future__ import annotations

from bloomery.db import conductors
from bloomery.db.engine import Meter


def fleet(stage):
    answer = stage.api.get("/ext/v1/fleet")
    assert answer.status == 200, answer.body
    return answer.json


def test_nothing_is_counted_too(stage):
    told = fleet(stage)
    assert (told["nodes"], told["provision_states"], told["resource_classes"]) == (0, {}, [])
    [conductor] = told["conductors"]
    assert conductor == {"hostname": "host-a", "conductor_group": "", "alive": True, "nodes": 0}


def test_nodes_are_counted_by_state_class_and_conductor(stage):
    row = {"hostname": "host-b", "group": "east", "drivers": ["fake-hardware"], "interfaces": []}
    stage.site.db.transact(lambda conn: conductors.register(conn, **row))
    stage.services.rpc.ring.refresh()
    large = [stage.enrol(resource_class="large") for _ in range(3)]
    stage.enrol()
    stage.site.set(large[0], provision_state="active", power_state="power on")
    stage.site.set(large[1], conductor_group="east", maintenance=True, fault="power failure")
    stage.site.set(large[2], driver="no-such")
    told = fleet(stage)
    assert told["nodes"] == 4
    assert told["provision_states"] == {"enroll": 3, "active": 1}
    assert told["power_states"] == {"unknown": 3, "power on": 1}
    assert (told["maintenance"], told["faults"]) == (1, {"power failure": 1})
    assert told["resource_classes"] == [
        {"resource_class": None, "nodes": 1, "provision_states": {"enroll": 1}},
        {"resource_class": "large", "nodes": 3, "provision_states": {"active": 1, "enroll": 2}},
    ]
    served = {each["hostname"]: each["nodes"] for each in told["conductors"]}
    assert served == {"host-a": 2, "host-b": 1}
    assert told["without_conductor"] == 1


def test_statements_do_not_grow_with_nodes(stage):
    stage.enrol()
    fleet(stage)
    meter = Meter(stage.site.db)
    fleet(stage)
    first = len(meter.statements)
    for _ in range(9):
        stage.enrol()
    meter = Meter(stage.site.db)
    fleet(stage)
    assert len(meter.statements) == first
