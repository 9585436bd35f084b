"""What of an inspection is written where others have been quicker."""

from __future__ import annotations

import pytest

from bloomery.conductor import inspection, steps
from bloomery.conductor.inspection import InspectionResult
from bloomery.db import records
from bloomery.model.nouns import PORT
from bloomery.model.port import Port
from tests.kit.servers import stories

OURS, NEW, THEIRS = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(1, 4))


def test_a_name_that_another_port_has_got_meanwhile_stays_there(make_site):
    site = make_site()
    (node, other), entries = (site.enrol(), site.enrol()), []
    ports = [
        Port(uuid=OURS, address="52:54:00:00:00:01", node_uuid=node),
        Port(uuid=THEIRS, address="52:54:00:00:00:03", node_uuid=other, name="nic-a"),
    ]
    new = Port(uuid=NEW, address="52:54:00:00:00:02", node_uuid=node, name="nic-a")
    stored = InspectionResult(
        new_ports=[new], changed_ports={OURS: {"name": "nic-a", "extra": {"seen": 1}}},
        removed_ports=[], traits=None, data=None, node=site.node(node),
        entry=lambda text: lambda conn: entries.append(text),
    )  # fmt: skip

    def work(conn):
        for port in ports:
            records.insert(conn, PORT, port)
        inspection.store(conn, node, stored)
        return {port.uuid: port for port in records.list_where(conn, PORT)}

    after = site.db.transact(work)
    assert {uuid: port.name for uuid, port in after.items()} == {
        OURS: None, NEW: None, THEIRS: "nic-a",
    }  # fmt: skip
    assert after[OURS].extra == {"seen": 1}
    [entry] = entries
    assert "the name nic-a, which a port of another node has" in entry


MAC = "52:54:00:00:00:01"
INVENTORY = {
    "cpu": {"architecture": "x86_64", "count": 4}, "memory": {"physical_mb": 4096}, "disks": [],
    "interfaces": [{"name": "eth0", "mac_address": MAC, "has_carrier": True}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("owner", "other"), [("ours", "node web-2"), ("theirs", "another node")], ids=["same", "other"]
)
def test_an_address_of_another_node_goes_to_history_log_and_why(make_site, caplog, owner, other):
    site = make_site()
    node = site.enrol(owner="ours", provision_state="manageable")
    second = site.enrol(owner=owner, name="web-2")
    port = Port(uuid=THEIRS, address=MAC, node_uuid=second)
    site.db.transact(lambda conn: records.insert(conn, PORT, port))

    def inspect():
        with site.acquire(node, purpose="inspect") as task:
            outcome = inspection.process(task, INVENTORY, {})
            task.save(*steps.store_result(task, outcome.result))
        return stories.Stage(site).why(node)

    explained, sentence = inspect(), f"the port {MAC}, which {other} has"
    assert f"left out {sentence}" in explained["cause"]
    assert "enrolled twice" in explained["next_action"]
    [entry] = [row for row in site.history(node) if row["event_type"] == "inspection"]
    assert (entry["severity"], sentence in entry["event"]) == ("WARNING", True)
    assert sentence in caplog.text

    site.db.transact(lambda conn: records.delete(conn, PORT, THEIRS))
    assert "left out" not in inspect()["cause"]
    with site.db.read() as conn:
        assert [p.node_uuid for p in records.list_where(conn, PORT)] == [node]
