"""What checks of machines find: each prepared difference, and no other; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bloomery import errors, plugins, secrets
from bloomery.model.stacks import StoredResource
from bloomery.orchestration.resources import base, drift
from bloomery.orchestration.resources.allocation import Allocation
from bloomery.orchestration.resources.instance import Instance
from bloomery.orchestration.resources.machines import ALLOCATION, PORT, RUNBOOK, VOLUME_TARGET
from bloomery.orchestration.resources.node import Node
from bloomery.orchestration.resources.port import Port, PortGroup
from bloomery.orchestration.resources.runbook import DeployTemplate, Runbook
from bloomery.orchestration.resources.step_run import HardwareConfiguration, RunbookExecution
from bloomery.orchestration.resources.stepwise import Stepwise
from bloomery.orchestration.resources.volume import VolumeConnector, VolumeTarget
from bloomery.outcome import DONE
from tests.kit.stacks.kinds import made
from tests.kit.stacks.memory_machines import MemoryMachines

MAC = "52:54:00:00:00:0A"
NODE = "11111111-2222-4333-8444-555555555555"
STEP = {"interface": "vendor", "step": "log_passthrough"}
IMAGE = {"source": "http://images/a.img", "os_hash_algo": "sha256", "os_hash_value": "0" * 64}
RUNS = {"steps": [STEP]}
GIVEN: dict[type[base.Resource], dict[str, Any]] = {
    Node: {
        "name": "n1", "driver": "redfish", "resource_class": "large", "traits": ["B", "A"],
        "driver_info": {"redfish_address": "https://bmc", "redfish_password": "s3cret"},
        "owner": "p1", "lessee": "p2", "properties": {"cpu_arch": "x86_64"}, "inspect": "none",
        "conductor_group": "Rack-1", "interfaces": {"deploy": "direct"}, "extra": {"rack": 7},
        "ports": [{"address": MAC, "pxe_enabled": True}],
    },
    Port: {"node": NODE, "address": MAC, "pxe_enabled": False, "extra": {"a": 1}},
    PortGroup: {"node": NODE, "name": "bond0", "mode": "802.3ad"},
    VolumeConnector: {"node": NODE, "type": "iqn", "connector_id": "iqn.x"},
    VolumeTarget: {"node": NODE, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0,
                   "properties": {"target_portal": "10.0.0.9"}},
    DeployTemplate: {"name": "CUSTOM_A", "steps": [{**STEP, "priority": 10}]},
    Runbook: {"name": "CUSTOM_B", "steps": [{**STEP, "order": 1}], "owner": "p1",
              "traits": ["B", "A"]},
    Allocation: {"name": "web", "resource_class": "large"},
    Instance: {"node": NODE, "image": IMAGE, "name": "web", "capabilities": {"boot_mode": "uefi"},
               "protected": True},
    HardwareConfiguration: {
        "node": NODE, "allow_destructive": True, "bios": {"settings": {"Turbo": "Enabled"}},
        "raid": {"logical_disks": [{"size_gb": "MAX", "raid_level": "1"}]},
    },
    RunbookExecution: {"node": NODE, **RUNS},
}  # fmt: skip


class ReadOnly:
    """Machines of which only questions may be asked."""

    def __init__(self, machines: MemoryMachines) -> None:
        self._machines = machines

    def __getattr__(self, name: str) -> Any:
        assert name.startswith(("get_", "find", "list_", "is_")), f"{name} changes a machine"
        return getattr(self._machines, name)


def complete(check: Callable[[Any], Any]) -> None:
    for _ in range(20):
        if check(None) == DONE:
            return
    raise AssertionError("it does not end")


class Rack:
    """One resource of a kind that has been made, and machines to be changed behind its back."""

    def __init__(self, kind: type[base.Resource]) -> None:
        self.machines = MemoryMachines()
        self.machines.add_node(
            uuid=NODE, name="bare", resource_class="large", power_state="power on"
        )
        if kind in (HardwareConfiguration, RunbookExecution):
            state = "manageable" if kind is HardwareConfiguration else "active"
            self.machines.nodes[NODE]["provision_state"] = state
        self.resource = made(kind, GIVEN[kind], machines=self.machines)
        self.resource.handle_create()
        complete(self.resource.check_create_complete)
        self.resource.context = made(kind, machines=ReadOnly(self.machines)).context

    @property
    def node(self) -> dict[str, Any]:
        ident = self.resource.record.physical_id
        return self.machines.nodes[ident if ident in self.machines.nodes else NODE]

    def record(self, noun: str) -> dict[str, Any]:
        (record,) = self.machines.records[noun].values()
        return record

    def fields(self) -> list[str]:
        return [each.field for each in self.resource.differences(self.resource.real())]


def own(noun: str) -> Callable[[Rack], dict[str, Any]]:
    return lambda rack: rack.record(noun)


def node(rack: Rack) -> dict[str, Any]:
    return rack.node


def bios(rack: Rack) -> dict[str, Any]:
    return rack.machines.bios[NODE]


DRIFTS: list[tuple[type[base.Resource], Callable[[Rack], dict[str, Any]], str, Any, str]] = [
    (Node, node, "resource_class", "small", "resource_class"),
    (Node, node, "traits", ["A"], "traits"),
    (Node, node, "owner", "p3", "owner"),
    (Node, node, "lessee", None, "lessee"),
    (Node, node, "maintenance", True, "maintenance"),
    (Node, node, "fault", "power failure", "fault"),
    (Node, node, "provision_state", "manageable", "provision_state"),
    (Node, node, "driver", "ipmi", "driver"),
    (Node, node, "deploy_interface", "ansible", "deploy_interface"),
    (Node, node, "properties", {"cpu_arch": "aarch64", "memory_mb": 1}, "properties/cpu_arch"),
    (Node, node, "extra", {"rack": 7}, "extra/stack"),
    (Node, node, "driver_info", {"redfish_address": "https://x", "redfish_password": "******"},
     "driver_info/redfish_address"),
    (Node, own(PORT), "address", "52:54:00:00:00:0b", "ports/52:54:00:00:00:0a/address"),
    (Port, own(PORT), "address", "52:54:00:00:00:0b", "address"),
    (Port, own(PORT), "pxe_enabled", True, "pxe_enabled"),
    (PortGroup, own("portgroup"), "mode", "active-backup", "mode"),
    (VolumeConnector, own("volumeconnector"), "connector_id", "iqn.y", "connector_id"),
    (VolumeTarget, own(VOLUME_TARGET), "properties", {"target_portal": "10.0.0.8"},
     "properties/target_portal"),
    (DeployTemplate, own("deploytemplate"), "steps", [], "steps"),
    (Runbook, own(RUNBOOK), "owner", "p2", "owner"),
    (Runbook, own(RUNBOOK), "traits", ["A"], "traits"),
    (Allocation, own(ALLOCATION), "state", "error", "state"),
    (Allocation, node, "instance_uuid", None, "instance_uuid"),
    (Instance, node, "power_state", "power off", "power_state"),
    (Instance, node, "maintenance", True, "maintenance"),
    (Instance, node, "fault", "clean failure", "fault"),
    (Instance, node, "provision_state", "rescue", "provision_state"),
    (Instance, node, "instance_name", "db", "instance_name"),
    (Instance, node, "protected", False, "protected"),
    (Instance, node, "health", "CRITICAL", "health"),
    (Instance, node, "instance_info", {}, "instance_uuid"),
    (HardwareConfiguration, bios, "Turbo", "Disabled", "bios/Turbo"),
    (HardwareConfiguration, node, "raid_config", {}, "raid_config/logical_disks/0"),
]  # fmt: skip


@pytest.mark.parametrize("kind", GIVEN)
def test_what_was_made_just_now_has_not_drifted(kind: type[base.Resource]) -> None:
    rack = Rack(kind)
    assert rack.fields() == []
    rack.resource.handle_check()


@pytest.mark.parametrize(("kind", "thing", "name", "value", "field"), DRIFTS)
def test_each_difference_is_found_and_no_other(
    kind: type[base.Resource],
    thing: Callable[[Rack], dict[str, Any]],
    name: str,
    value: Any,
    field: str,
) -> None:
    rack = Rack(kind)
    thing(rack)[name] = value
    assert rack.fields() == [field]
    with pytest.raises(drift.Drifted):
        rack.resource.handle_check()


def test_several_differences_are_told_in_one_reason() -> None:
    rack = Rack(Instance)
    rack.node["instance_info"]["image_source"] = "http://images/b.img"
    rack.node["power_state"] = "power off"
    with pytest.raises(drift.Drifted) as told:
        rack.resource.handle_check()
    assert str(told.value) == (
        "power_state is 'power off' and is to be 'power on'; "
        "instance_info/image_source is 'http://images/b.img' and is to be 'http://images/a.img'"
    )


def test_what_was_switched_off_by_a_suspend_is_to_be_off() -> None:
    rack = Rack(Instance)
    rack.resource.record.data["target"] = "soft power off"
    assert rack.fields() == ["power_state"]
    rack.node["power_state"] = "power off"
    assert rack.fields() == []


def test_another_instance_is_not_described() -> None:
    rack = Rack(Instance)
    rack.node["instance_info"] = {"image_source": "http://theirs", "stack": {"id": "x"}}
    rack.node["instance_uuid"] = "9"
    (difference,) = rack.resource.differences(rack.node)
    assert difference.sentence == "another instance is on the node"


def test_values_of_secret_properties_are_not_told() -> None:
    rack = Rack(Node)
    rack.node["driver_info"] = {"redfish_address": "https://10.9.9.9", "redfish_password": "x"}
    (address, password) = rack.resource.differences(rack.node)
    assert address.sentence == "driver_info/redfish_address is not what it is to be"
    assert password.field == "driver_info/redfish_password"


@pytest.mark.parametrize(
    ("version", "flashed", "current", "differs"),
    [
        (None, "2", "2", False), (None, "2", "1", True), (None, None, "1", False),
        ("2", "2", "2", False), ("2", "1", "2", False), ("2", "1", "1", True),
        ("2", None, "1", True),
    ],
)  # fmt: skip
def test_a_firmware_that_was_flashed_over_is_told(version, flashed, current, differs) -> None:
    rack = Rack(HardwareConfiguration)
    entry = {"component": "bmc", "url": "http://f", "version": version}
    rack.resource.record.data["applied"] = {"firmware": [entry]}
    rack.machines.firmware[NODE] = [
        {"component": "bmc", "last_version_flashed": flashed, "current_version": current}
    ]
    assert rack.fields() == (["firmware/bmc/current_version"] if differs else [])


def test_true_and_false_are_what_templates_write_for_them() -> None:
    rack = Rack(HardwareConfiguration)
    written = {"QuietBoot": "false", "Sriov": True, "Cores": "4"}
    rack.resource.record.data["applied"] = {"bios": {"settings": written}}
    rack.machines.bios[NODE] = {"QuietBoot": "False", "Sriov": "True", "Cores": "4"}
    assert rack.fields() == []
    rack.machines.bios[NODE]["QuietBoot"] = "True"
    assert rack.fields() == ["bios/QuietBoot"]


def test_a_run_that_failed_is_told() -> None:
    rack = Rack(RunbookExecution)
    rack.resource.record.data["result"] = "no answer"
    (difference,) = rack.resource.differences(rack.node)
    assert difference.sentence == "the last run of the steps failed: no answer"


@pytest.mark.parametrize("kind", GIVEN)
def test_what_is_gone_is_not_found(kind: type[base.Resource]) -> None:
    rack = Rack(kind)
    rack.machines.nodes.clear()
    rack.machines.records.clear()
    with pytest.raises(errors.NotFound):
        rack.resource.handle_check()


@pytest.mark.parametrize("kind", GIVEN)
def test_what_is_named_by_an_external_id_is_to_be_there(kind: type[base.Resource]) -> None:
    rack = Rack(kind)
    record, context = rack.resource.record, rack.resource.context
    external = kind(StoredResource(name="a", type=record.type, uuid=NODE), {}, context)
    external.resource_id_set(record.physical_id)
    external.handle_check()  # type: ignore[attr-defined]


def test_what_the_api_has_masked_is_taken_to_be_as_it_was() -> None:
    expected = {"a": {"password": "x"}, "b": [{"token": "y"}], "c": "http://u:p@h"}
    actual = {"a": {"password": "******"}, "b": [{"token": "******"}], "c": "http://******@h"}
    assert list(drift.compare(expected, actual)) == []


MASKED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"image_source": "https://a/x?sig=1"}, {"image_source": "https://b/x?******"}, "image_source"),
    ({"image_source": "https://u:p@a/x"}, {"image_source": "https://******@a/y"}, "image_source"),
    ({"image_source": "https://a/x"}, {"image_source": "https://******@a/x"}, "image_source"),
    ({"redfish_address": "root:p@a"}, {"redfish_address": "******@b"}, "redfish_address"),
    ({"urls": ["https://u:p@a"]}, {"urls": ["https://******@b"]}, "urls"),
    ({"steps": [{"url": "https://u:p@a"}]}, {"steps": [{"url": "https://******@b"}]}, "steps"),
]


@pytest.mark.parametrize(("expected", "actual", "field"), MASKED)
def test_what_stands_beside_a_mask_is_compared(
    expected: dict[str, Any], actual: dict[str, Any], field: str
) -> None:
    assert [each.field for each in drift.compare(expected, actual)] == [field]
    assert list(drift.compare(expected, secrets.mask(expected))) == []


def test_a_secret_that_is_missing_is_told_without_its_value() -> None:
    (difference,) = drift.compare({"args": [{"password": "s3cret"}]}, {"args": []})
    assert "s3cret" not in difference.sentence


@pytest.mark.parametrize("name", sorted(plugins.loaders("bloomery.resources")))
def test_each_installed_kind_of_machines_compares_or_says_that_it_does_not(name: str) -> None:
    kind = plugins.loaders("bloomery.resources")[name]()
    if issubclass(kind, Stepwise):
        has_both = kind.differences is not Stepwise.differences and kind.real is not Stepwise.real
        assert kind.compares == has_both
    else:
        assert not hasattr(kind, "differences")
