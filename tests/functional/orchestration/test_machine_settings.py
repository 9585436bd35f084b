"""What kinds ask of a machine beside its states, on a whole service with fake hardware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.orchestration.test_machines import ironic, node_of
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

NIC = {"name": "eth0", "mac_address": "52:54:00:00:0b:01"}
INVENTORY = {"memory": {"physical_mb": 4096}, "interfaces": [NIC]}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    with Orchestration(tmp_path_factory.mktemp("settings") / "state") as running:
        yield running


def node(name: str, **more: Any) -> dict[str, Any]:
    properties = {"name": name, "driver": "fake-hardware", "resource_class": name, **more}
    return {"type": "OS::Ironic::Node", "properties": properties}


def created(site: Orchestration, name: str, resources: Any, outputs: Any = None) -> str:
    path = site.create(name, template(resources, outputs=outputs or {}))
    site.wait_for(path, "CREATE_COMPLETE")
    return path


def updated(site: Orchestration, path: str, resources: Any, outputs: Any = None) -> None:
    new = template(resources, outputs=outputs or {})
    assert site.ask("PUT", path, {"template": new})[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")


def outputs_of(site: Orchestration, path: str) -> dict[str, Any]:
    stack = site.ask("GET", path)[1]["stack"]
    return {each["output_key"]: each["output_value"] for each in stack["outputs"]}


def drift_of(site: Orchestration, path: str) -> dict[str, str]:
    """Compare a stack; return what each of its resources says that differs."""
    site.ask("POST", f"{path}/actions", {"check": None})
    shown = wait_for(lambda: _checked(site, path), "the check")
    assert shown["stack_status"] in ("CHECK_COMPLETE", "CHECK_FAILED")
    return {
        name: row["resource_status_reason"] for name, row in site.resources(path).items()
        if row["resource_status"] == "CHECK_FAILED"
    }  # fmt: skip


def _checked(site: Orchestration, path: str) -> Any:
    stack = site.ask("GET", path)[1]["stack"]
    return stack if stack["stack_status"] in ("CHECK_COMPLETE", "CHECK_FAILED") else None


def test_a_node_has_an_owner_a_boot_mode_and_an_inventory(site: Orchestration) -> None:
    properties = {
        "owner": "p1", "boot_mode": "uefi", "secure_boot": True,
        "driver_info": {"fake_inventory": INVENTORY},
    }  # fmt: skip
    outputs = {
        "memory": {"value": {"get_attr": ["node", "inventory", "inventory", "memory"]}},
        "console": {"value": {"get_attr": ["node", "console_url"]}},
    }
    path = created(site, "boots", {"node": node("b1", **properties)}, outputs)
    real = node_of(site, "b1")
    assert (real["owner"], real["boot_mode"], real["secure_boot"]) == ("p1", "uefi", True)
    assert outputs_of(site, path) == {"memory": INVENTORY["memory"], "console": None}

    status, _ = ironic(site, "PUT", "/v1/nodes/b1/states/boot_mode", {"target": "bios"})
    assert status == 202
    wait_for(lambda: node_of(site, "b1")["boot_mode"] == "bios", "the boot mode")
    assert "boot_mode is 'bios' and is to be 'uefi'" in drift_of(site, path)["node"]
    updated(site, path, {"node": node("b1", **properties, description="again")})
    assert node_of(site, "b1")["boot_mode"] == "uefi"


def test_a_node_is_retired_where_the_service_allows_it(site: Orchestration) -> None:
    path = created(site, "retires", {"node": node("r1")})
    updated(site, path, {"node": node("r1", retired=True, retired_reason="old")})
    real = node_of(site, "r1")
    assert (real["provision_state"], real["retired"]) == ("manageable", True)
    updated(site, path, {"node": node("r1", on_delete="retire")})
    assert node_of(site, "r1")["provision_state"] == "available"
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")
    real = node_of(site, "r1")
    assert (real["provision_state"], real["retired"], real["extra"]) == ("manageable", True, {})


def test_a_system_is_protected_by_the_operator_of_its_node(site: Orchestration) -> None:
    rack = created(site, "protects", {"node": node("p1")})
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {"node": "p1", "image": {"boot_iso": "http://images/a.iso"}},
    }
    tenant = created(site, "tenant", {"web": web})
    updated(site, rack, {"node": node("p1", protected=True, protected_reason="audit")})
    assert node_of(site, "p1")["protected_reason"] == "audit"
    assert site.ask("DELETE", tenant)[0] == 204
    site.wait_for(tenant, "DELETE_FAILED")
    updated(site, rack, {"node": node("p1", protected=False)})
    assert site.ask("DELETE", tenant)[0] == 204
    site.wait_for(tenant, "DELETE_COMPLETE")


STEP = {"interface": "bios", "step": "factory_reset", "args": {}}


def test_a_runbook_runs_before_the_deployment_on_a_node_that_is_claimed(
    site: Orchestration,
) -> None:
    created(site, "burnt", {"node": node("w1", traits=["CUSTOM_BURN"])})
    books = {
        "book": {
            "type": "OS::Ironic::Runbook",
            "properties": {
                "name": "CUSTOM_BURN",
                "traits": ["CUSTOM_BURN"],
                "steps": [{**STEP, "order": 1}],
            },
        }
    }
    created(site, "books", books)
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {
            "selector": {"resource_class": "w1"}, "runbook_before": "CUSTOM_BURN",
            "image": {"boot_iso": "http://images/a.iso"},
            "deploy_steps": [{**STEP, "priority": 90}],
        },
    }  # fmt: skip
    outputs = {"steps": {"value": {"get_attr": ["web", "steps"]}}}
    path = created(site, "burns", {"web": web}, outputs)
    real = node_of(site, "w1")
    assert (real["provision_state"], real["instance_info"]["stack"]["resource"]) == (
        "active", "web"
    )  # fmt: skip
    history = ironic(site, "GET", f"/v1/nodes/{real['uuid']}/history")[1]["history"]
    events = [each["event"] for each in history]
    assert any("clean" in each.lower() for each in events)
    steps = outputs_of(site, path)["steps"]
    assert "bios.factory_reset" in [each["step"] for each in steps]
    assert all(each["duration"] >= 0 for each in steps)
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")
    assert ironic(site, "GET", "/v1/allocations")[1]["allocations"] == []


def test_hardware_is_configured_as_a_system_is_written_and_reset_at_the_end(
    site: Orchestration,
) -> None:
    hardware = {
        "type": "OS::Ironic::HardwareConfiguration",
        "properties": {
            "node": {"get_resource": "node"}, "bios": {"settings": {"Turbo": "Enabled"}},
            "apply_when": "deploy",
        },
    }  # fmt: skip
    web = {
        "type": "OS::Ironic::Instance",
        "properties": {
            "node": {"get_resource": "hardware"}, "image": {"boot_iso": "http://images/a.iso"},
        },
    }  # fmt: skip
    resources = {"node": node("h1", inspect="none"), "hardware": hardware}
    outputs = {name: {"value": {"get_attr": ["hardware", name]}} for name in ("pending", "drift")}
    path = created(site, "configures", resources, outputs)
    assert outputs_of(site, path) == {"pending": ["bios"], "drift": []}
    updated(site, path, resources | {"web": web}, outputs=outputs)
    assert outputs_of(site, path) == {"pending": [], "drift": []}
    assert settings_of(site, "h1") == {"Turbo": "Enabled"}
    updated(site, path, resources)
    down = {"node": node("h1", inspect="none", target_state="manageable")}
    last = {**hardware["properties"], "apply_when": "manageable", "on_delete": "reset"}
    wait_for(lambda: node_of(site, "h1")["provision_state"] == "available", "the cleaning")
    updated(site, path, down | {"hardware": {**hardware, "properties": last}})
    updated(site, path, down)
    assert settings_of(site, "h1") == {}


def settings_of(site: Orchestration, name: str) -> dict[str, str]:
    settings = ironic(site, "GET", f"/v1/nodes/{name}/bios")[1]["bios"]
    return {each["name"]: each["value"] for each in settings}


def test_a_machine_is_switched_off_for_its_volume_and_on_again(site: Orchestration) -> None:
    def resources(volume: str, **more: Any) -> dict[str, Any]:
        target = {
            "node": {"get_resource": "node"}, "volume_type": "iscsi", "volume_id": volume,
            "boot_index": 0,
        }  # fmt: skip
        disk = {"type": "OS::Ironic::VolumeTarget", "properties": target | more}
        return {"node": node("v1", inspect="none"), "disk": disk}

    path = created(site, "volumes", resources("a", allow_power_off=True))
    ironic(site, "PUT", "/v1/nodes/v1/states/power", {"target": "power on"})
    wait_for(lambda: node_of(site, "v1")["power_state"] == "power on", "the power")
    updated(site, path, resources("b", allow_power_off=True))
    assert node_of(site, "v1")["power_state"] == "power on"
    (target,) = ironic(site, "GET", "/v1/volume/targets?detail=true&node=v1")[1]["targets"]
    assert target["volume_id"] == "b"


def test_nodes_are_chosen_by_where_they_are_and_left_as_they_were(site: Orchestration) -> None:
    places = {"s1": "a", "s2": "a", "s3": "b", "s4": "c"}
    for name, shard in places.items():
        created(site, f"rack-{name}", {
            name: node(name, shard=shard, resource_class="spread", inspect="none")})  # fmt: skip
    selector = {"resource_class": "spread", "exclude_nodes": ["s4"]}
    group = {
        "type": "OS::Ironic::InstanceGroup",
        "properties": {
            "count": 2, "spread_by": "shard",
            "member": {"selector": selector, "image": {"boot_iso": "http://images/a.iso"}},
        },
    }  # fmt: skip
    workers = created(site, "spread", {"group": group})
    used = {name for name in places if node_of(site, name)["instance_uuid"]}
    assert sorted(places[name] for name in used) == ["a", "b"]
    slot = {"type": "OS::Ironic::Allocation", "properties": selector}
    path = created(site, "slot", {"slot": slot})
    [taken] = [name for name in places if name not in used and node_of(site, name)["instance_uuid"]]
    assert taken != "s4"
    for each in (path, workers):
        assert site.ask("DELETE", each)[0] == 204
        site.wait_for(each, "DELETE_COMPLETE")
    assert node_of(site, taken)["instance_info"] == {}


def test_a_port_group_tells_its_ports(site: Orchestration) -> None:
    port = {"node": {"get_resource": "node"}, "address": "52:54:00:00:0e:01"}
    resources = {
        "node": node("g1", target_state="manageable", ports=[{"address": "52:54:00:00:0e:02"}]),
        "group": {
            "type": "OS::Ironic::PortGroup", "properties": {"node": {"get_resource": "node"}},
        },
        "port": {
            "type": "OS::Ironic::Port",
            "properties": port | {"portgroup": {"get_resource": "group"}},
        },
    }  # fmt: skip
    outputs = {"ports": {"value": {"get_attr": ["group", "ports"]}}}
    path = created(site, "groups", resources, outputs)
    assert outputs_of(site, path) == {"ports": [port["address"]]}


def cleaning(node_name: str, *user_steps: dict[str, Any]) -> dict[str, Any]:
    properties = {"node": node_name, "mode": "clean", "steps": list(user_steps)}
    return {"run": {"type": "OS::Ironic::RunbookExecution", "properties": properties}}


def manageable(site: Orchestration, name: str, **more: Any) -> None:
    fields = {"name": name, "driver": "fake-hardware", **more}
    assert ironic(site, "POST", "/v1/nodes", fields)[0] == 201
    ironic(site, "PUT", f"/v1/nodes/{name}/states/provision", {"target": "manage"})
    wait_for(lambda: node_of(site, name)["provision_state"] == "manageable", "manage")


def test_steps_that_a_later_order_stops_leave_room_for_its_own(site: Orchestration) -> None:
    manageable(site, "stopped-1")
    path = site.create(
        "stopped", template(cleaning("stopped-1", {"interface": "power", "step": "wait"}))
    )
    wait_for(
        lambda: node_of(site, "stopped-1")["provision_state"] == "clean wait", "the steps to wait"
    )
    updated(site, path, cleaning("stopped-1", STEP))
    assert node_of(site, "stopped-1")["provision_state"] == "manageable"


def test_steps_that_failed_are_left_to_the_operator(site: Orchestration) -> None:
    manageable(site, "failed-1", driver_info={"fake": {"fail": ["bios.factory_reset"]}})
    path = site.create("failed", template(cleaning("failed-1", STEP)))
    site.wait_for(path, "CREATE_FAILED")
    assert ironic(site, "DELETE", "/v1/nodes/failed-1/maintenance")[0] == 202  # by hand
    assert site.ask("PUT", path, {"template": template(cleaning("failed-1", STEP, STEP))})[0] == 202
    failed = site.wait_for(path, "UPDATE_FAILED")
    assert "it is clean failed, and clean needs it manageable" in failed["stack_status_reason"]


def test_a_service_that_somebody_aborts_is_no_success(site: Orchestration) -> None:
    """The node is active again after it, as after steps that have ended well."""
    no_agent = {"fake": {"wait": {"bios.factory_reset": -1}}}  # whose call would end the step
    created(site, "aborts", {"node": node("aborted-1", inspect="none", driver_info=no_agent)})
    image = {"boot_iso": "http://images/a.iso"}
    web = {"type": "OS::Ironic::Instance", "properties": {"node": "aborted-1", "image": image}}
    run = {
        "type": "OS::Ironic::RunbookExecution",
        "properties": {
            "instance": {"get_resource": "web"}, "steps": [{"interface": "power", "step": "wait"}],
        },
    }  # fmt: skip
    path = site.create("aborted", template({"web": web, "run": run}))
    wait_for(lambda: node_of(site, "aborted-1")["provision_state"] == "service wait", "the steps")
    abort = {"target": "abort"}
    assert ironic(site, "PUT", "/v1/nodes/aborted-1/states/provision", abort)[0] == 202
    failed = site.wait_for(path, "CREATE_FAILED")
    assert "aborted on request in service wait at step power.wait" in failed["stack_status_reason"]
    assert node_of(site, "aborted-1")["provision_state"] == "active"


def test_show_gives_a_node_as_the_api_does(site: Orchestration) -> None:
    """Secrets are stars in it; what has no real thing of its own shows nothing."""
    resources = {
        "node": node("seen", inspect="none", driver_info={"a": "b", "fake_password": "s3cret"}),
        "word": {"type": "OS::Heat::RandomString"},
    }
    outputs = {
        "whole": {"value": {"get_attr": ["node", "show"]}},
        "name": {"value": {"get_attr": ["node", "show", "name"]}},
        "word": {"value": {"get_attr": ["word", "show"]}},
    }
    seen = outputs_of(site, created(site, "shows", resources, outputs))
    assert (seen["name"], seen["word"]) == ("seen", None)
    assert seen["whole"]["uuid"] == node_of(site, "seen")["uuid"]
    assert seen["whole"]["driver_info"] == {"a": "b", "fake_password": "******"}


def test_configuring_an_available_node_names_the_ways_out(site: Orchestration) -> None:
    hardware = {
        "type": "OS::Ironic::HardwareConfiguration",
        "properties": {"node": {"get_resource": "node"}, "bios": {"settings": {"a": "b"}}},
    }
    resources = {"node": node("up-1", inspect="none"), "hardware": hardware}
    path = site.create("up", template(resources))
    reason = site.wait_for(path, "CREATE_FAILED")["stack_status_reason"]
    assert "it is available, and clean needs it manageable; let its OS::Ironic::Node" in reason
    assert reason.endswith("target_state: manageable, or this as its hardware_configuration")
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")
