"""The fleet at a glance: how many nodes are where, and who serves them."""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa

from bloomery.db import conductors, node_counts, rows
from bloomery.db.engine import Meter
from bloomery.db.tables import NODES


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


def test_counts_follow_whatever_changes(stage):
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
        with stage.site.db.snapshot() as conn:
            assert node_counts.compare(conn) == {}
    assert fleet(stage)["nodes"] == 2


def test_a_look_reads_no_node(stage):
    """Neither the first look nor a later one, where one host serves each driver and group."""
    for _ in range(9):
        stage.enrol()
    meter = Meter(stage.site.db)
    fleet(stage)
    reads = [text for text in meter.statements if "FROM nodes" in text]
    assert [text for text in reads if "nodes.reservation IS NOT NULL" not in text] == []


def test_two_hosts_share_nodes_that_are_hashed_once(stage):
    """Nodes are listed again after one came or went, and not after other changes."""
    nodes = [stage.enrol() for _ in range(30)]
    row = {"hostname": "host-b", "group": "", "drivers": ["fake-hardware"], "interfaces": []}
    stage.site.db.transact(lambda conn: conductors.register(conn, **row))
    stage.services.rpc.ring.refresh()
    meter = Meter(stage.site.db)

    def look():
        meter.reset()
        answer = fleet(stage)
        by_host = {each["hostname"]: each["nodes"] for each in answer["conductors"]}
        assert sum(by_host.values()) + answer["without_conductor"] == answer["nodes"]
        return by_host, sum(text.startswith("SELECT nodes.uuid") for text in meter.statements)

    counts, lists = look()
    assert lists == 1
    assert all(counts.values())
    stage.site.set(nodes[0], provision_state="active", owner="p1")
    assert look() == (counts, 0)
    delete = sa.delete(NODES).where(NODES.c.uuid == nodes[1])
    with stage.site.db.read() as conn:
        row = conn.execute(sa.select(NODES).where(NODES.c.uuid == nodes[1])).mappings().one()
    stage.site.db.transact(lambda conn: (conn.execute(delete), conn.execute(sa.insert(NODES), row)))
    assert look() == (counts, 1)
    stage.site.set(nodes[2], driver="no-such")
    stage.site.set(nodes[3], conductor_group="east")
    assert look()[1] == 1


def test_since_is_the_first_move_of_those_that_the_caller_may_list(stage):
    now = rows.now()
    nodes = [stage.enrol() for _ in range(4)]
    for age_h, node in enumerate(nodes):
        moved = {"provision_updated_at": now - timedelta(hours=age_h)}
        stage.site.set(node, provision_state="deploy failed", **moved)
    stage.site.set(nodes[3], maintenance=True, fault="power failure")  # is another problem
    problems = {each["code"]: each for each in fleet(stage)["problems"]}
    [code] = problems.keys() - {"power_failure"}
    assert problems[code]["count"] == 3
    assert datetime.fromisoformat(problems[code]["since"]) == now - timedelta(hours=2)
    assert problems["power_failure"]["since"] is None
