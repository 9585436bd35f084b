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


def test_an_allocation_gets_a_node_and_gives_it_back(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware", name="web-5", resource_class="large")
    for verb in ("manage", "provide"):
        baremetal.set_node_provision_state(node, verb, wait=True, timeout=60)
    baremetal.set_node_power_state(node, "power off", wait=True, timeout=60)
    asked = baremetal.create_allocation(resource_class="large", name="web")
    assert asked.state == "allocating"
    allocation = baremetal.wait_for_allocation(asked, timeout=30)
    assert (allocation.state, allocation.node_id) == ("active", node.id)
    assert baremetal.get_node(node).allocation_id == allocation.id
    assert [each.id for each in baremetal.allocations(node=node.id)] == [allocation.id]
    patch = [{"op": "add", "path": "/extra/rack", "value": "4"}]
    assert baremetal.patch_allocation("web", patch).extra == {"rack": "4"}
    failing = baremetal.create_allocation(resource_class="small")
    with pytest.raises(exceptions.ResourceFailure, match="match the resource class small"):
        baremetal.wait_for_allocation(failing, timeout=30)
    baremetal.delete_allocation(allocation)
    assert baremetal.get_node(node).instance_id is None


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


def test_media_are_inserted_and_ejected(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware")
    baremetal.attach_vmedia_to_node(node, "cdrom", "http://images.test/a.iso")
    baremetal.wait_for_node_reservation(baremetal.get_node(node), timeout=10)
    baremetal.attach_vmedia_to_node(node, "disk", "http://images.test/a.img", "http")
    baremetal.wait_for_node_reservation(baremetal.get_node(node), timeout=10)
    baremetal.detach_vmedia_from_node(node, ["disk"])
    node = baremetal.wait_for_node_reservation(baremetal.get_node(node), timeout=10)
    assert node.driver_internal_info["fake_virtual_media"] == {"cdrom": "http://images.test/a.iso"}
    assert node.last_error is None


def test_vendor_methods_are_listed_and_called(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware")
    methods = baremetal.list_node_vendor_passthru(node)
    assert methods["third_method_sync"]["async"] is False
    for bar, told in (("meow", True), ("woof", False)):
        answer = baremetal.call_node_vendor_passthru(
            node, "POST", "third_method_sync", {"bar": bar}
        )
        assert (answer.status_code, answer.json()) == (200, told)
    answer = baremetal.call_node_vendor_passthru(node, "POST", "second_method", {"bar": "x"})
    assert (answer.status_code, answer.content) == (202, b"")
    with pytest.raises(exceptions.BadRequestException, match="No handler for method unknown"):
        baremetal.call_node_vendor_passthru(node, "GET", "unknown")
    driver = baremetal.get_driver("fake-hardware")
    assert baremetal.list_driver_vendor_passthru(driver) == {}
    with pytest.raises(exceptions.BadRequestException, match="No handler for method unknown"):
        baremetal.call_driver_vendor_passthru(driver, "GET", "unknown")


def test_what_fake_hardware_does_not_do_is_told(baremetal: Any) -> None:
    node = baremetal.create_node(driver="fake-hardware")
    with pytest.raises(exceptions.BadRequestException, match="does not support inject_nmi"):
        baremetal.inject_nmi_to_node(node)
