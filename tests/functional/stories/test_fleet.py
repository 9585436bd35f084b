"""The fleet at a glance: how many nodes are where, and who serves them."""

from __future__ import annotations

import pytest

from bloomery.db import conductors
from bloomery.db.engine import Meter
from bloomery.operations import fleet_counts
from bloomery.operations.fleet_counts import FleetCounts


def fleet(stage):
    stage.site.number_events()
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


def test_counts_follow_whatever_changes(stage):
    """A process that counted before says what a process says that counts anew."""
    node, other = stage.enrol(), stage.enrol()
    for change in (
        lambda: None,
        lambda: (stage.ask(node, "manage"), stage.wait_for(node, "manageable")),
        lambda: stage.patch(node, resource_class="large"),
        lambda: stage.api.put(f"/v1/nodes/{node}/maintenance", {"reason": "a fan"}),
        lambda: stage.power(other, "power on"),
        lambda: stage.patch(other, owner="p1", lessee="p2"),
        lambda: stage.api.delete(f"/v1/nodes/{node}/maintenance"),
        lambda: stage.api.delete(f"/v1/nodes/{other}"),
        stage.enrol,
    ):
        change()
        assert groups(stage, stage.services.fleet) == groups(stage, FleetCounts())
    assert fleet(stage)["nodes"] == 2


def test_all_nodes_are_read_again_after_half_an_hour_and_when_conductors_change(stage):
    """Events may be gone by then; nodes move between conductors without any."""
    clock = [0.0]
    counts = FleetCounts(lambda: clock[0])
    node = stage.enrol()
    groups(stage, counts)
    stage.site.set(node, power_state="power on")  # without an event
    assert [each.condition.power_state for each in groups(stage, counts)] == [None]
    clock[0] = fleet_counts.RELOAD_S
    assert [each.condition.power_state for each in groups(stage, counts)] == ["power on"]
    with stage.site.db.read() as conn:
        own = conductors.get(conn, stage.site.runtime.host)
    stage.site.db.transact(lambda conn: conductors.sign_off(conn, own.hostname, own.incarnation))
    stage.services.rpc.ring.refresh()
    assert [each.condition.host for each in groups(stage, counts)] == [None]


def test_a_look_that_fails_is_made_up_for_by_the_next(stage, monkeypatch):
    node = stage.enrol()
    groups(stage, stage.services.fleet)
    stage.patch(node, resource_class="large")
    with monkeypatch.context() as broken:
        broken.setattr(stage.services.rpc.ring, "find_host", None)
        with pytest.raises(TypeError):
            groups(stage, stage.services.fleet)
    assert groups(stage, stage.services.fleet) == groups(stage, FleetCounts())


def groups(stage, counts):
    stage.site.number_events()
    return sorted(counts.look(stage.site.db, stage.services.rpc.ring)[1], key=repr)


def test_a_look_reads_the_nodes_that_have_changed_and_no_other(stage):
    nodes = [stage.enrol() for _ in range(9)]
    fleet(stage)
    meter = Meter(stage.site.db)
    fleet(stage)
    assert [text for text in meter.statements if "nodes.driver" in text] == []
    meter.reset()
    stage.patch(nodes[3], resource_class="large")
    meter.reset()
    fleet(stage)
    (read,) = [text for text in meter.statements if "nodes.driver" in text]
    assert "WHERE nodes.uuid IN (" in read
