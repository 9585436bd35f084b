"""A machine's life through openstacksdk, from the clouds.yaml that the service wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest
from openstack import exceptions

# The client's own: it warns about parts of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK50Warning"),
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK60Warning"),
]


@pytest.fixture
def baremetal(clouds: Path) -> Iterator[Any]:
    connection = openstack.connect(cloud="bloomery")
    yield connection.baremetal
    connection.close()


def test_a_node_lives_its_life(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware", name="web-1", properties={"cpus": 4})
    assert node.provision_state == "enroll"
    assert all(found.result for found in baremetal.validate_node(node, required=None).values())
    for verb, state in (("manage", "manageable"), ("provide", "available"), ("active", "active")):
        node = baremetal.set_node_provision_state(node, verb, wait=True, timeout=60)
        assert node.provision_state == state
    node = baremetal.patch_node(node, [{"op": "add", "path": "/extra/rack", "value": "4"}])
    assert node.extra == {"rack": "4"}
    baremetal.set_node_power_state(node, "power on", wait=True, timeout=60)
    assert baremetal.get_node(node).power_state == "power on"
    node = baremetal.set_node_provision_state(node, "deleted", wait=True, timeout=60)
    assert (node.provision_state, node.last_error) == ("available", None)
    baremetal.delete_node(node)
    with pytest.raises(exceptions.NotFoundException):
        baremetal.get_node(node.id)


def test_a_reservation_is_waited_for_and_ports_are_found(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware", name="web-2")
    port = baremetal.create_port(node_id=node.id, address="52:54:00:12:34:56")
    assert [found.id for found in baremetal.ports(node=node.id)] == [port.id]
    baremetal.set_node_maintenance(node, reason="DIMM 3")
    assert baremetal.get_node(node).is_maintenance
    baremetal.unset_node_maintenance(node)
    assert baremetal.wait_for_node_reservation(baremetal.get_node(node), timeout=10) is not None


def test_port_groups_are_made_changed_and_deleted(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware", name="web-4")
    group = baremetal.create_port_group(node_id=node.id, name="bond0", mode="802.3ad")
    baremetal.create_port(node_id=node.id, address="52:54:00:12:34:57", port_group_id=group.id)
    assert [found.id for found in baremetal.port_groups(node=node.id)] == [group.id]
    patch = [{"op": "add", "path": "/extra/rack", "value": "4"}]
    assert baremetal.patch_port_group("bond0", patch).extra == {"rack": "4"}
    with pytest.raises(exceptions.BadRequestException, match="contains ports"):
        baremetal.delete_port_group(group)


def test_a_chassis_is_made_changed_and_deleted(baremetal: Any) -> None:
    chassis = baremetal.create_chassis(description="row B")
    node = baremetal.create_node(driver="fake-hardware", chassis_id=chassis.id)
    patch = [{"op": "add", "path": "/extra/rack", "value": "4"}]
    assert baremetal.patch_chassis(chassis, patch).extra == {"rack": "4"}
    with pytest.raises(exceptions.BadRequestException, match="contains nodes"):
        baremetal.delete_chassis(chassis)
    baremetal.delete_node(node)
    baremetal.delete_chassis(chassis)
    assert list(baremetal.chassis()) == []


def test_a_deploy_template_is_made_changed_and_deleted(baremetal: Any) -> None:
    step = {"interface": "power", "step": "reboot", "args": {}, "priority": 1}
    template = baremetal.create_deploy_template(name="CUSTOM_A", steps=[step])
    assert baremetal.get_deploy_template("CUSTOM_A").id == template.id
    patch = [{"op": "replace", "path": "/steps/0/priority", "value": 7}]
    assert baremetal.patch_deploy_template(template, patch).steps[0]["priority"] == 7
    baremetal.delete_deploy_template(template)
    assert list(baremetal.deploy_templates()) == []


def test_volumes_are_made_changed_and_deleted(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware")
    connector = baremetal.create_volume_connector(node_id=node.id, type="iqn", connector_id="iqn.a")
    disk = {"volume_type": "iscsi", "volume_id": "v", "boot_index": 0}
    target = baremetal.create_volume_target(node_id=node.id, **disk)
    assert baremetal.get_volume_target(target.id).boot_index == 0
    [row] = baremetal.volume_connectors(details=True, node=node.id)
    assert row.connector_id == "iqn.a"
    baremetal.delete_volume_connector(connector)
    baremetal.delete_volume_target(target)
    assert list(baremetal.volume_targets()) == []
    baremetal.delete_node(node)


def test_what_is_refused_says_what_would_be_allowed(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware", name="web-3")
    with pytest.raises(exceptions.BadRequestException, match="manage"):
        baremetal.set_node_provision_state(node, "active")
