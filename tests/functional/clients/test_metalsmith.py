"""metalsmith reserves a node by its class and deploys it, as its README has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import metalsmith
import openstack
import pytest
from metalsmith import instance_config, sources

pytestmark = [
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK50Warning"),
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK60Warning"),
]
IMAGE = sources.HttpWholeDiskImage("http://images.example/disk.raw", checksum="0" * 32)


def available(baremetal: Any, name: str) -> Any:
    node = baremetal.create_node(
        driver="fake-hardware", name=name, resource_class="large",
        properties={"local_gb": 100, "capabilities": "boot_mode:uefi"},
    )  # fmt: skip
    baremetal.set_node_power_state(node, "power off", wait=True, timeout=60)
    for verb in ("manage", "provide"):
        node = baremetal.set_node_provision_state(node, verb, wait=True, timeout=60)
    return node


def test_a_node_is_reserved_deployed_and_given_back(clouds: Path) -> None:
    cloud = openstack.connect(cloud="bloomery")
    smith = metalsmith.Provisioner(cloud_region=cloud.config)
    node = available(cloud.baremetal, "web-1")
    reserved = smith.reserve_node("large", hostname="db-1", capabilities={"boot_mode": "uefi"})
    config = instance_config.GenericConfig(ssh_keys=["ssh-ed25519 AAAA ann"])
    instance = smith.provision_node(reserved, IMAGE, config=config, wait=60)
    assert (instance.state.value, instance.hostname) == ("active", "db-1")
    assert [each.uuid for each in smith.list_instances()] == [node.id]
    smith.unprovision_node(instance.uuid, wait=60)
    assert list(cloud.baremetal.allocations()) == []
    assert cloud.baremetal.get_node(node.id).provision_state == "available"
    cloud.close()
