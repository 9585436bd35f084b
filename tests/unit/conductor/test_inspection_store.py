"""What of an inspection is written where others have been quicker."""

from __future__ import annotations

from bloomery.conductor import inspection
from bloomery.conductor.inspection import InspectionResult
from bloomery.db import records
from bloomery.model.nouns import PORT
from bloomery.model.port import Port

OURS, NEW, THEIRS = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(1, 4))


def test_a_name_that_another_port_has_got_meanwhile_stays_there(make_site):
    site = make_site()
    node, other = site.enrol(), site.enrol()
    ports = [
        Port(uuid=OURS, address="52:54:00:00:00:01", node_uuid=node),
        Port(uuid=THEIRS, address="52:54:00:00:00:03", node_uuid=other, name="nic-a"),
    ]
    new = Port(uuid=NEW, address="52:54:00:00:00:02", node_uuid=node, name="nic-a")
    stored = InspectionResult(
        new_ports=[new], changed_ports={OURS: {"name": "nic-a", "extra": {"seen": 1}}},
        removed_ports=[], traits=None, data=None,
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
