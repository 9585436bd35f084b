"""An action of a machine's resource begins its own steps, wherever an earlier one stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db.tables import RESOURCE_DATA, RESOURCES
from bloomery.model.stacks import OrderKind
from bloomery.orchestration.resources.stepwise import STEP, Stepwise
from bloomery.orchestration.template import kinds
from tests.kit.stacks import machine_sites, trees
from tests.kit.stacks.machine_sites import Site, copied, make_site
from tests.kit.stacks.row_engines import Engine

IMAGE = {"source": "http://images/a.img"}
RUN = [{"interface": "bios", "step": "factory_reset"}]
DISKS = {"logical_disks": [{"size_gb": "MAX", "raid_level": "1"}]}
PROPERTIES: dict[str, dict[str, Any]] = {
    "Node": {"name": "n1", "driver": "redfish"},
    "Port": {"node": "p1", "address": "52:54:00:00:00:01"},
    "PortGroup": {"node": "p1", "name": "bond0"},
    "VolumeConnector": {"node": "p1", "type": "iqn", "connector_id": "iqn.x"},
    "VolumeTarget": {"node": "p1", "volume_type": "iscsi", "volume_id": "v", "boot_index": 0},
    "DeployTemplate": {"name": "CUSTOM_A", "steps": [{**RUN[0], "priority": 10}]},
    "Runbook": {"name": "CUSTOM_B", "steps": [{**RUN[0], "order": 1}]},
    "Allocation": {"resource_class": "pool"},
    "Instance": {"node": "p1", "image": IMAGE, "suspend_mode": "none"},
    "HardwareConfiguration": {"node": "p1", "allow_destructive": True, "raid": DISKS},
    "RunbookExecution": {"node": "p1", "steps": RUN, "mode": "clean"},
}  # fmt: skip
CLEANED = ("HardwareConfiguration", "RunbookExecution")  # of a node that is manageable
KINDS = kinds.installed()


def kind(name: str) -> type[Stepwise]:
    found = KINDS.find(f"OS::Ironic::{name}")
    assert found is not None
    assert issubclass(found, Stepwise)
    return found


def made(name: str, folder: Path) -> Site:
    """A stack of one resource, complete."""
    site = make_site(trees.database(folder))
    if name in CLEANED:
        for node in site.machines.nodes.values():
            node["provision_state"] = "manageable"
    body = {"type": f"OS::Ironic::{name}", "properties": PROPERTIES[name]}
    site.create(machine_sites.template({"it": body}))
    Engine(site.db, site.runtime()).run(site.root)
    assert site.stack().status == "COMPLETE", site.stack().reason
    return site


def end(site: Site, order: OrderKind, step: str | None) -> dict[str, Any]:
    """Let an action come after a creation that stopped in a step; return what there is then."""

    def stop(conn: sa.Connection) -> None:
        conn.execute(sa.update(RESOURCES).values(action="CREATE", status="FAILED"))
        of_step = {"resource_uuid": row.uuid, "key": STEP, "value": json.dumps(step)}
        if step is not None:
            conn.execute(sa.insert(RESOURCE_DATA).values(of_step | {"redacted": False}))

    (row,) = site.tree().resources
    site.db.transact(stop)
    site.perform(order)
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.stack()
    return {
        "stack": (stack.action, stack.status, stack.reason),
        "orders": site.machines.orders, "records": site.machines.records,
        "nodes": sorted(
            (each["name"], each["provision_state"], each["power_state"])
            for each in site.machines.nodes.values()
        ),
    }  # fmt: skip


def test_the_table_has_every_kind_of_a_machine() -> None:
    ours = [each for each in KINDS if each.startswith("OS::Ironic::")]
    classes = {each.rpartition(":")[2]: KINDS.find(each) or object for each in ours}
    stepwise = {name for name, each in classes.items() if issubclass(each, Stepwise)}
    assert stepwise - {"InstanceGroup"} == PROPERTIES.keys()


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "order"), [
    *((name, OrderKind.DELETE) for name in PROPERTIES),
    *((name, OrderKind.SUSPEND) for name in PROPERTIES if hasattr(kind(name), "handle_suspend")),
])  # fmt: skip
def test_an_action_orders_its_own_wherever_a_creation_has_failed(
    name: str, order: OrderKind, tmp_path: Path
) -> None:
    start = made(name, tmp_path)
    calm = end(copied(start, tmp_path / "calm.sqlite"), order, None)
    for step in kind(name).steps:
        assert end(copied(start, tmp_path / f"{step}.sqlite"), order, step) == calm, step
    start.db.close()
