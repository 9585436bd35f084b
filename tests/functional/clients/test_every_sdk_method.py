"""Every method of openstacksdk's proxy for bare metal, called against a running service.

``called`` notes which methods a story has called; what no story calls fails the last test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import openstack
import pytest
from openstack.baremetal.v1 import _proxy

from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.state_dir import StateDir
from tests.kit.servers import databases
from tests.kit.waiting import wait_for

pytestmark = [
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK50Warning"),
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK60Warning"),
]
METHODS = {name for name, value in vars(_proxy.Proxy).items() if name[0] != "_" and callable(value)}
ADD_EXTRA = [{"op": "add", "path": "/extra/rack", "value": "4"}]
STEP = {"interface": "power", "step": "reboot", "args": {}}


class Noted:
    """The proxy; the names of methods that were called and came back are in ``called``."""

    def __init__(self, proxy: Any) -> None:
        self._proxy = proxy
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._proxy, name)

        def call(*args: Any, **more: Any) -> Any:
            result = method(*args, **more)
            result = list(result) if isinstance(result, Iterator) else result
            self.called.add(name)
            return result

        return call


@pytest.fixture(scope="module")
def baremetal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noted]:
    folder = tmp_path_factory.mktemp("site")
    conf = Conf(
        api=Api(port=0),
        conductor=Conductor(workers_pool_size=20, graceful_shutdown_timeout=5, preflight_timeout=0),
        database=databases.settings(folder),
    )
    with StateDir(folder) as home, Service(conf, home) as service:
        connection = openstack.connect(auth_type="none", endpoint=service.url)
        yield Noted(connection.baremetal)
        connection.close()


@pytest.fixture
def node(baremetal: Noted) -> Iterator[Any]:
    node = baremetal.create_node(driver="fake-hardware", name="n1", resource_class="large")
    yield node
    baremetal.delete_node(node)


def records(baremetal: Noted, noun: str, plural: str, **values: Any) -> None:
    """Create, read, find, list, change and delete one of a kind."""
    record = getattr(baremetal, f"create_{noun}")(**values)
    assert getattr(baremetal, f"get_{noun}")(record.id).id == record.id
    if f"find_{noun}" in METHODS:
        assert getattr(baremetal, f"find_{noun}")(record.id).id == record.id
    assert record.id in [row.id for row in getattr(baremetal, plural)()]
    if noun != "inspection_rule":  # which has no extra
        changed = getattr(baremetal, f"patch_{noun}")(record, ADD_EXTRA)
        assert changed.extra == {"rack": "4"}
        changed = getattr(baremetal, f"update_{noun}")(record, extra={"rack": "5"})
        assert changed.extra == {"rack": "5"}
    getattr(baremetal, f"delete_{noun}")(record)
    assert record.id not in [row.id for row in getattr(baremetal, plural)()]


def test_records(baremetal: Noted, node: Any) -> None:
    baremetal.set_node_power_state(node, "power off", wait=True)  # volumes ask for it
    assert baremetal.get_node(node.id).power_state == "power off"
    of_node = {"node_id": node.id}
    records(baremetal, "chassis", "chassis", description="row B")
    records(baremetal, "port", "ports", address="52:54:00:00:00:01", **of_node)
    records(baremetal, "port_group", "port_groups", name="bond0", **of_node)
    records(baremetal, "volume_connector", "volume_connectors", type="iqn", connector_id="iqn.a",
            **of_node)  # fmt: skip
    records(baremetal, "volume_target", "volume_targets", volume_type="iscsi", volume_id="v",
            boot_index=0, **of_node)  # fmt: skip
    records(baremetal, "deploy_template", "deploy_templates", name="CUSTOM_A",
            steps=[STEP | {"priority": 1}])  # fmt: skip
    records(baremetal, "runbook", "runbooks", name="tidy", steps=[STEP | {"order": 1}])
    records(baremetal, "node", "nodes", driver="fake-hardware")


def test_inspection_rules(baremetal: Noted) -> None:
    action = {"op": "set-attribute", "args": {"path": "extra.seen", "value": "yes"}}
    records(baremetal, "inspection_rule", "inspection_rules", actions=[action], conditions=[])
    rule = baremetal.create_inspection_rule(actions=[action], conditions=[])
    patch = [{"op": "replace", "path": "/priority", "value": 7}]
    assert baremetal.patch_inspection_rule(rule, patch).priority == 7
    assert baremetal.update_inspection_rule(rule, description="marks").description == "marks"
    baremetal.delete_inspection_rule(rule)


def test_runbook_traits(baremetal: Noted) -> None:
    runbook = baremetal.create_runbook(name="tidy", steps=[STEP | {"order": 1}])
    baremetal.set_runbook_traits(runbook, ["CUSTOM_A"])
    baremetal.add_runbook_trait(runbook, "CUSTOM_B")
    baremetal.remove_runbook_trait(runbook, "CUSTOM_A")
    assert baremetal.get_runbook(runbook.id).traits == ["CUSTOM_B"]
    baremetal.delete_runbook(runbook)


def test_drivers_and_conductors(baremetal: Noted) -> None:
    [conductor] = baremetal.conductors()
    assert "fake-hardware" in baremetal.get_conductor(conductor.hostname).drivers
    assert "fake-hardware" in [driver.name for driver in baremetal.drivers()]
    assert baremetal.get_driver("fake-hardware").hosts == [conductor.hostname]
    assert baremetal.list_driver_vendor_passthru("fake-hardware") == {}
    with pytest.raises(
        openstack.exceptions.BadRequestException, match="No handler for method nothing"
    ):
        baremetal.call_driver_vendor_passthru("fake-hardware", "POST", "nothing")
    baremetal.called.add("call_driver_vendor_passthru")  # there is none that fake hardware has


def test_what_is_asked_of_a_machine(baremetal: Noted, node: Any) -> None:
    with pytest.raises(openstack.exceptions.BadRequestException, match="manage"):
        baremetal.set_node_provision_state(node, "active")
    managed = baremetal.set_node_provision_state(node, "manage", wait=True)
    assert managed.provision_state == "manageable"
    checked = baremetal.validate_node(node, required=None)
    assert (checked["power"].result, checked["deploy"].result) == (True, True)
    baremetal.set_node_boot_device(node, "pxe")
    assert baremetal.get_node_boot_device(node)["boot_device"] == "pxe"
    assert baremetal.get_node_supported_boot_devices(node)["supported_boot_devices"] == ["pxe"]
    baremetal.set_node_boot_mode(node, "uefi")
    baremetal.wait_for_node_reservation(node)
    baremetal.set_node_secure_boot(node, True)
    baremetal.wait_for_node_reservation(node)
    wait_for(lambda: boot_of(baremetal, node) == ("uefi", True), "boot mode and secure boot")
    with pytest.raises(openstack.exceptions.BadRequestException, match="not support inject_nmi"):
        baremetal.inject_nmi_to_node(node)
    baremetal.called.add("inject_nmi_to_node")  # fake hardware has none, as with Ironic
    baremetal.enable_node_console(node)
    baremetal.wait_for_node_reservation(node)
    wait_for(lambda: baremetal.get_node_console(node)["console_enabled"], "the console")
    baremetal.disable_node_console(node)
    wait_for(lambda: not baremetal.get_node_console(node)["console_enabled"], "no console")
    baremetal.set_node_power_state(node, "power on")
    assert baremetal.wait_for_node_power_state(node, "power on").power_state == "power on"
    baremetal.set_node_maintenance(node, reason="DIMM 3")
    assert baremetal.get_node(node.id).maintenance_reason == "DIMM 3"
    baremetal.unset_node_maintenance(node)
    assert baremetal.get_node(node.id).is_maintenance is False
    assert baremetal.list_node_firmware(node) == {"firmware": []}
    assert "second_method" in baremetal.list_node_vendor_passthru(node)
    answer = baremetal.call_node_vendor_passthru(
        node, "POST", "third_method_sync", body={"bar": "meow"}
    )
    assert answer.json() is True
    answer = baremetal.call_node_vendor_passthru(node, "POST", "second_method", {"bar": "x"})
    assert (answer.status_code, answer.content) == (202, b"")
    baremetal.wait_for_node_reservation(node)
    baremetal.attach_vmedia_to_node(node, "cdrom", "http://images.example/agent.iso")
    wait_for(lambda: media_of(baremetal, node) == ["cdrom"], "a disc in the drive")
    baremetal.detach_vmedia_from_node(node)
    wait_for(lambda: not media_of(baremetal, node), "an empty drive")
    inspected = baremetal.set_node_provision_state(node, "inspect", wait=True)
    assert (inspected.provision_state, inspected.last_error) == ("manageable", None)
    with pytest.raises(openstack.exceptions.NotFoundException, match="inventory"):
        baremetal.get_node_inventory(node)  # fake hardware shows none, as with Ironic
    baremetal.called.add("get_node_inventory")


def boot_of(baremetal: Noted, node: Any) -> tuple[Any, Any]:
    shown = baremetal.get_node(node.id)
    return shown.boot_mode, shown.is_secure_boot


def media_of(baremetal: Noted, node: Any) -> list[str]:
    """Which devices hold something; the proxy has no method that asks."""
    devices = baremetal.get(f"/nodes/{node.id}/vmedia", microversion="1.93").json()
    return [kind for device in devices if device["inserted"] for kind in device["media_types"]]


def test_traits_and_virtual_interfaces(baremetal: Noted, node: Any) -> None:
    baremetal.set_node_traits(node, ["CUSTOM_A"])
    baremetal.add_node_trait(node, "CUSTOM_B")
    baremetal.remove_node_trait(node, "CUSTOM_A")
    assert baremetal.get_node(node.id).traits == ["CUSTOM_B"]
    baremetal.attach_vif_to_node(node, "vif-1")
    assert baremetal.list_node_vifs(node) == []  # noop networks keep none
    baremetal.detach_vif_from_node(node, "vif-1")


def test_an_allocation(baremetal: Noted, node: Any) -> None:
    baremetal.set_node_provision_state(node, "manage", wait=True)
    baremetal.set_node_power_state(node, "power off", wait=True)
    baremetal.set_node_provision_state(node, "provide", wait=True)
    allocation = baremetal.create_allocation(resource_class="large", name="a1")
    assert baremetal.wait_for_allocation(allocation).node_id == node.id
    failing = baremetal.create_allocation(resource_class="small")
    with pytest.raises(openstack.exceptions.ResourceFailure, match="the resource class small"):
        baremetal.wait_for_allocation(failing)
    baremetal.delete_allocation(failing)
    assert [row.id for row in baremetal.allocations()] == [allocation.id]
    assert baremetal.get_allocation("a1").id == allocation.id
    assert baremetal.patch_allocation(allocation, ADD_EXTRA).extra == {"rack": "4"}
    assert baremetal.update_allocation(allocation, extra={"rack": "5"}).extra == {"rack": "5"}
    baremetal.delete_allocation(allocation)
    assert list(baremetal.allocations()) == []
    baremetal.wait_for_nodes_provision_state([node], "available")
    baremetal.wait_for_status(baremetal.get_node(node.id), "available", [], 1, 60,
                              attribute="provision_state")  # fmt: skip


def test_a_deletion_is_waited_for(baremetal: Noted) -> None:
    node = baremetal.create_node(driver="fake-hardware")
    baremetal.delete_node(node)
    baremetal.wait_for_delete(node, interval=1, wait=60)
    with pytest.raises(openstack.exceptions.NotFoundException):
        baremetal.get_node(node.id)


def test_every_method_was_called(baremetal: Noted) -> None:
    assert METHODS - baremetal.called == set()
