"""What the properties of an Instance beside image and place do to its machine."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import Power, State
from bloomery.db import tables
from bloomery.model.stacks import Order, OrderKind, StoredResource
from bloomery.orchestration.resources import base, first_boot, instance_network
from bloomery.orchestration.resources.machines import PORT, RUNBOOK
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import Site, make_site, template
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.row_engines import Engine


class Noting(MemoryMachines):
    """Notes the arguments of verbs, and what was asked of the power."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.arguments: dict[str, dict[str, Any]] = {}
        self.powers: list[str] = []

    def set_provision_state(
        self, uuid: str, verb: str, *, order_id: str | None = None, **arguments: Any
    ) -> None:
        super().set_provision_state(uuid, verb, order_id=order_id, **arguments)
        self.arguments[verb] = arguments

    def set_power_state(self, uuid: str, target: str) -> None:
        super().set_power_state(uuid, target)
        self.powers.append(target)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(trees.database(tmp_path), Noting, pool=1)


def web(image: str = "a", **more: Any) -> dict[str, Any]:
    properties = {"node": "p1", "image": {"source": f"http://{image}"}}
    return {"type": "OS::Ironic::Instance", "properties": properties | more}


def noted(site: Site) -> Noting:
    assert isinstance(site.machines, Noting)
    return site.machines


def run(site: Site) -> str:
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.tree().stacks[0]
    return f"{stack.action}_{stack.status}"


def reason(site: Site, name: str = "web") -> str:
    return next(row.reason for row in site.tree().resources if row.name == name)


def create(site: Site, **more: Any) -> str:
    site.create(template({"web": web(**more)}, "first"))
    return run(site)


def update(site: Site, **more: Any) -> str:
    site.update(template({"web": web(**more)}, str(more)))
    return run(site)


def node(site: Site) -> dict[str, Any]:
    return site.machines.get_node("p1")


def verbs(site: Site) -> list[str]:
    return [verb for _, verb in site.machines.orders]


# ---------------------------------------------------------------------------------- the network


def test_network_data_are_made_of_the_ports_of_the_node(site: Site) -> None:
    port = {
        "uuid": trees.ident("port"),
        "node_uuid": node(site)["uuid"],
        "address": "52:54:0:0:0:1",
    }
    site.machines.create(PORT, port)
    networks = [{"vif": "v1", "fixed_ip": "10.0.0.5/24"}]
    assert create(site, network_data="auto", networks=networks) == "CREATE_COMPLETE"
    made = noted(site).arguments["active"]["configdrive"]["network_data"]
    assert made["links"] == [
        {"id": port["uuid"], "type": "phy", "ethernet_mac_address": port["address"]}
    ]
    (network,) = made["networks"]
    assert (network["link"], network["ip_address"]) == (port["uuid"], "10.0.0.5")
    assert network["netmask"] == "255.255.255.0"


def test_ports_of_a_group_are_a_bond_and_others_have_dhcp() -> None:
    ports = [
        {"uuid": "a", "address": "a:1", "portgroup_uuid": "g"},
        {"uuid": "b", "address": "b:1", "portgroup_uuid": "g"},
        {"uuid": "c", "address": "c:1", "portgroup_uuid": None},
    ]
    made = instance_network.network_data(ports, [{"uuid": "g", "mode": "802.3ad"}], [])
    bond = made["links"][-1]
    assert (bond["type"], bond["bond_mode"], bond["bond_links"]) == ("bond", "802.3ad", ["a", "b"])
    assert [(each["link"], each["type"]) for each in made["networks"]] == [
        ("g", "ipv4_dhcp"), ("c", "ipv4_dhcp")
    ]  # fmt: skip


def test_a_network_is_on_the_link_of_its_port() -> None:
    ports = [{"uuid": name, "address": f"{name}:1"} for name in ("a", "b")]
    networks = [{"vif": "v1", "port": "b"}, {"vif": "v2", "fixed_ip": "fd00::1/64"}]
    made = instance_network.network_data(ports, [], networks)
    assert [(each["link"], each["type"]) for each in made["networks"]] == [
        ("b", "ipv4_dhcp"), ("a", "ipv6")
    ]  # fmt: skip


def test_a_network_goes_to_a_free_port_of_its_physical_network(site: Site) -> None:
    for number, physical in enumerate(("front", "back", "back")):
        site.machines.create(PORT, {
            "uuid": trees.ident(f"port{number}"), "node_uuid": node(site)["uuid"],
            "address": f"52:54:0:0:0:{number}", "physical_network": physical,
        })  # fmt: skip
    networks = [{"vif": name, "physical_network": "back"} for name in ("v1", "v2")]
    assert create(site, networks=[*networks, {**networks[0], "vif": "v3"}]) == "CREATE_FAILED"
    assert "no port is left in physical network back" in reason(site)
    assert node(site)["instance_info"] == {}
    assert update(site, networks=networks, network_data="auto") == "UPDATE_COMPLETE"
    drive = noted(site).arguments["active"]["configdrive"]["network_data"]
    assert [each["link"] for each in drive["networks"]] == [
        trees.ident("port1"), trees.ident("port2")
    ]  # fmt: skip


def test_network_data_of_no_form_are_refused(site: Site) -> None:
    assert create(site, network_data="automatic") == "CREATE_FAILED"
    assert "or auto" in reason(site)


# ------------------------------------------------------------------------------------ protection


def test_a_protected_instance_is_neither_rebuilt_nor_deleted_until_it_is_released(
    site: Site,
) -> None:
    assert create(site, protected=True) == "CREATE_COMPLETE"
    assert node(site)["protected"] is True
    assert update(site, protected=True, image={"source": "http://b"}) == "UPDATE_FAILED"
    name = node(site)["name"]
    assert f"cannot rebuild node {name}: it is protected; set protected to false" in reason(site)
    site.delete()
    assert run(site) == "DELETE_FAILED"
    assert f"cannot undeploy node {name}: it is protected" in reason(site)
    assert verbs(site) == ["active"]
    assert update(site, protected=False, image={"source": "http://b"}) == "UPDATE_COMPLETE"
    assert node(site)["protected"] is False
    assert verbs(site) == ["active", "rebuild"]


# ---------------------------------------------------------------------------------- around deploys


def add_runbook(site: Site, name: str = "CUSTOM_BURN_IN") -> str:
    site.machines.create(RUNBOOK, {"uuid": trees.ident(name), "name": name})
    return name


def test_a_runbook_that_is_not_there_is_told_before_a_node_is_taken(site: Site) -> None:
    assert create(site, runbook_before="CUSTOM_GONE") == "CREATE_FAILED"
    assert "cannot use runbook_before CUSTOM_GONE: there is none" in reason(site)
    assert node(site)["instance_uuid"] is None


def test_a_runbook_runs_before_the_first_deployment_alone(site: Site) -> None:
    runbook = add_runbook(site)
    assert create(site, runbook_before=runbook) == "CREATE_COMPLETE"
    assert verbs(site) == ["manage", "clean", "provide", "active"]
    assert noted(site).arguments["clean"] == {"runbook": runbook}
    again = {"source": "http://b"}
    assert update(site, runbook_before=runbook, image=again) == "UPDATE_COMPLETE"
    assert verbs(site)[4:] == ["rebuild"]


def test_a_runbook_that_failed_before_runs_again_with_the_next_update(site: Site) -> None:
    runbook = add_runbook(site)
    site.machines.fail_next("clean", "a disk is worn")
    assert create(site, runbook_before=runbook) == "CREATE_FAILED"
    assert reason(site).endswith("a disk is worn")
    assert update(site, runbook_before=runbook) == "UPDATE_COMPLETE"
    assert verbs(site)[2:] == ["manage", "clean", "provide", "active"]


def test_a_node_that_was_only_prepared_is_available_again(site: Site) -> None:
    runbook = add_runbook(site)
    site.machines.fail_next("clean", "a disk is worn")
    assert create(site, runbook_before=runbook) == "CREATE_FAILED"
    site.delete()
    assert run(site) == "DELETE_COMPLETE"
    assert verbs(site)[2:] == ["manage", "provide"]
    assert (node(site)["provision_state"], node(site)["instance_info"]) == ("available", {})


def test_a_runbook_runs_after_each_deployment(site: Site) -> None:
    add_runbook(site)
    assert create(site, runbook_after="CUSTOM_BURN_IN") == "CREATE_COMPLETE"
    assert noted(site).arguments["service"] == {"runbook": "CUSTOM_BURN_IN"}
    again = {"source": "http://b"}
    assert update(site, runbook_after="CUSTOM_BURN_IN", image=again) == "UPDATE_COMPLETE"
    assert verbs(site) == ["active", "service", "rebuild", "service"]


def test_a_runbook_that_fails_fails_its_instance(site: Site) -> None:
    add_runbook(site)
    site.machines.fail_next("service", "too hot")
    assert create(site, runbook_after="CUSTOM_BURN_IN") == "CREATE_FAILED"
    assert reason(site).endswith("too hot")


def test_notes_go_with_the_instance_and_change_without_a_rebuild(site: Site) -> None:
    assert create(site, tags=["blue"], extra={"owner": "ops"}) == "CREATE_COMPLETE"
    assert node(site)["instance_info"]["extra"] == {"owner": "ops"}
    assert update(site, tags=["green"]) == "UPDATE_COMPLETE"
    info = node(site)["instance_info"]
    assert (info["tags"], "extra" in info) == (["green"], False)
    assert verbs(site) == ["active"]


def test_who_waits_for_nothing_is_complete_when_the_deployment_has_begun(site: Site) -> None:
    assert create(site, wait_for="none") == "CREATE_COMPLETE"
    assert node(site)["provision_state"] == State.DEPLOYING


@pytest.mark.parametrize(("how", "powers"), [("soft", [Power.SOFT_OFF]), ("hard", [])])
def test_a_system_is_shut_down_before_it_is_taken_away(
    how: str, powers: list[str], site: Site
) -> None:
    create(site, teardown={"secure_power_off": how})
    site.delete()
    assert run(site) == "DELETE_COMPLETE"
    assert noted(site).powers == powers
    assert verbs(site) == ["active", "deleted"]


# ------------------------------------------------------------------------------------- first boot


def with_first_boot(image: str = "a", **more: Any) -> dict[str, Any]:
    user_data = {"get_attr": ["ready", "curl_cli"]}
    booting = {"first_boot": {"get_resource": "ready"}, "user_data": user_data} | more
    return {"ready": {"type": "OS::Ironic::FirstBoot"}, "web": web(image, **booting)}


def signal(site: Site) -> None:
    """Let the system say that it has come up, as soon as its instance waits for that."""
    done: list[bool] = []

    def look(_commits: int) -> None:
        rows = {row.name: row for row in site.tree().resources}
        if not done and rows["web"].data.get("step") == "come_up":
            done.append(True)
            payload = {"resource": rows["ready"].uuid, "details": {"status": "SUCCESS"}}
            trees.accept(site.db, Order(root_uuid=site.root, stack_uuid=site.root,
                                        kind=OrderKind.SIGNAL, payload=payload))  # fmt: skip

    Engine(site.db, site.runtime(), on_commit=look).run(site.root)


@pytest.mark.parametrize("policy", ["rebuild", "replace"])
def test_a_system_that_is_written_anew_is_waited_for_anew(policy: str, site: Site) -> None:
    """What the one before it has said is of no use."""
    site.create(template(with_first_boot(image_update_policy=policy), "first"))
    signal(site)
    assert site.tree().stacks[0].status == "COMPLETE"
    more = {"image_update_policy": policy, "timeouts": {"first_boot": 60}}
    site.update(template(with_first_boot("b", **more), "second"))
    assert run(site) == "UPDATE_FAILED"
    assert reason(site).endswith("cannot wait longer than 60 s for the system to come up")


def test_who_waits_for_active_alone_does_not_wait_for_the_first_boot(site: Site) -> None:
    site.create(template(with_first_boot(wait_for="active"), "first"))
    assert run(site) == "CREATE_COMPLETE"


def test_a_first_boot_that_nobody_tells_of_cannot_be_waited_for(site: Site) -> None:
    assert create(site, wait_for="first_boot") == "CREATE_FAILED"
    assert "give first_boot" in reason(site)


def handle() -> first_boot.FirstBoot:
    """A handle whose tokens differ from each other."""
    numbers = itertools.count(1)
    context = base.ResourceContext(
        stack_name="s", stack_id="1", utc=lambda: 0.0, random=lambda: next(numbers) / 7 % 1
    )
    record = StoredResource(name="ready", type="OS::Ironic::FirstBoot", uuid=trees.ident("handle"))
    return first_boot.FirstBoot(record, {"count": 1, "accept_failure": False}, context)


def test_each_system_has_a_token_of_its_own() -> None:
    """Attributes show the first, so that they do not change; the drive of a later one has its."""
    ready = handle()
    ready.handle_create()
    first = ready.token()
    ready.arm("web/1", new_token=True)
    assert ready.record.data["token"] == first
    ready.handle_signal({"status": "SUCCESS"})
    ready.arm("web/2", new_token=True)
    second = ready.record.data["token"]
    assert second != first
    assert ready.token() == first
    assert ready.with_token({"user_data": f"curl {first}", "n": [1]}) == {
        "user_data": f"curl {second}", "n": [1]
    }  # fmt: skip
    assert not ready.has_come_up()
    assert {"token", "shown_token"} <= ready.record.redacted


def test_a_system_whose_drive_is_a_whole_keeps_the_token_that_is_in_it() -> None:
    ready = handle()
    ready.handle_create()
    ready.arm("web/1", new_token=False)
    ready.handle_signal({"status": "SUCCESS"})
    ready.arm("web/2", new_token=False)
    assert ready.record.data["token"] == ready.token()
    assert not ready.has_come_up()


def test_what_a_system_is_given_for_its_first_boot_is_sealed(site: Site) -> None:
    create(site, user_data="password=s3cret")
    rows = trees.rows_of(site.db, tables.PROPERTIES_DATA)
    assert rows
    assert not [row for row in rows if "s3cret" in str(row)]


# --------------------------------------------------------------------- hardware with a deployment


def hardware(turbo: str = "on", **more: Any) -> dict[str, Any]:
    properties = {"node": "p1", "bios": {"settings": {"Turbo": turbo}}, "apply_when": "deploy"}
    return {"type": "OS::Ironic::HardwareConfiguration", "properties": properties | more}


def together(site: Site, turbo: str, image: str, order: str = "update", **more: Any) -> str:
    """Make, or change, an instance and what its node waits to be configured to."""
    system = web(image) | {"depends_on": "hardware"}
    resources = {"hardware": hardware(turbo, **more), "web": system}
    getattr(site, order)(template(resources, f"{turbo} {image} {more}"))
    return run(site)


def record(site: Site, name: str) -> dict[str, Any]:
    return next(row.data for row in site.tree().resources if row.name == name)


def test_hardware_is_configured_by_the_deployment_that_follows(site: Site) -> None:
    firmware = [{"component": "bmc", "url": "http://f"}]
    assert together(site, "on", "a", "create", firmware=firmware) == "CREATE_COMPLETE"
    assert verbs(site) == ["active"]
    steps = noted(site).arguments["active"]["deploy_steps"]
    assert [(each["interface"], each["priority"]) for each in steps] == [
        ("firmware", 190), ("bios", 189)
    ]  # fmt: skip
    assert record(site, "hardware")["applied"].keys() == {"firmware", "bios"}
    assert together(site, "off", "a", firmware=firmware) == "UPDATE_COMPLETE"
    assert verbs(site) == ["active"]  # it waits
    assert together(site, "off", "b", firmware=firmware) == "UPDATE_COMPLETE"
    (step,) = noted(site).arguments["rebuild"]["deploy_steps"]
    assert step["args"] == {"settings": [{"name": "Turbo", "value": "off"}]}
    assert site.machines.list_bios_settings(node(site)["uuid"]) == {"Turbo": "off"}


def test_hardware_waits_on_where_a_deployment_failed(site: Site) -> None:
    for _ in range(2):
        site.machines.fail_next("active", "no disk")
    assert together(site, "on", "a", "create") == "CREATE_FAILED"
    assert "applied" not in record(site, "hardware")
    assert together(site, "on", "b") == "UPDATE_COMPLETE"
    assert len(noted(site).arguments["rebuild"]["deploy_steps"]) == 1
    assert record(site, "hardware")["applied"].keys() == {"bios"}


def test_a_deployment_runs_no_step_twice(site: Site) -> None:
    step = {"interface": "bios", "step": "apply_configuration", "args": {}}
    assert together(site, "on", "a", "create", extra_steps=[step]) == "CREATE_FAILED"
    assert "cannot run bios.apply_configuration twice" in reason(site, "hardware")
    assert verbs(site) == []


def test_hardware_is_reset_at_its_end_where_that_is_wanted(site: Site) -> None:
    site.machines.nodes[node(site)["uuid"]]["provision_state"] = State.MANAGEABLE
    raid = {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]}
    resource = hardware(
        apply_when="manageable", raid=raid, allow_destructive=True, on_delete="reset"
    )
    site.create(template({"hardware": resource}, "first"))
    assert run(site) == "CREATE_COMPLETE"
    site.delete()
    assert run(site) == "DELETE_COMPLETE"
    steps = noted(site).arguments["clean"]["clean_steps"]
    assert [f"{each['interface']}.{each['step']}" for each in steps] == [
        "bios.factory_reset", "raid.delete_configuration"
    ]  # fmt: skip
    assert site.machines.list_bios_settings(node(site)["uuid"]) == {}


# ------------------------------------------------------------------------------------- volumes


def with_volume(site: Site, order: str, volume: str | None, **more: Any) -> str:
    """Make, or change, a stack of a volume on a node that is there; None: without the volume."""
    properties = {"node": "p1", "volume_type": "iscsi", "volume_id": volume, "boot_index": 0}
    target = {"type": "OS::Ironic::VolumeTarget", "properties": properties | more}
    resources = {"other": {"type": "OS::Heat::None"}} | ({"disk": target} if volume else {})
    getattr(site, order)(template(resources, f"{volume} {more}"))
    return run(site)


@pytest.mark.parametrize("last", ["b", None])
def test_a_machine_that_is_on_is_switched_off_for_its_volumes_where_it_may(
    site: Site, last: str | None
) -> None:
    assert with_volume(site, "create", "a") == "CREATE_COMPLETE"
    real = site.machines.nodes[node(site)["uuid"]]
    real |= {"provision_state": State.ACTIVE, "power_state": Power.ON}
    assert with_volume(site, "update", last).endswith("FAILED")
    assert with_volume(site, "update", "a", allow_power_off=True) == "UPDATE_COMPLETE"
    assert noted(site).powers == []
    assert with_volume(site, "update", last, allow_power_off=True) == "UPDATE_COMPLETE"
    assert noted(site).powers == [Power.OFF, Power.ON]
    kept = site.machines.records["volumetarget"].values()
    assert [each["volume_id"] for each in kept] == ([last] if last else [])


def test_a_machine_that_may_not_be_switched_off_keeps_its_volume(site: Site) -> None:
    assert with_volume(site, "create", "a") == "CREATE_COMPLETE"
    site.machines.nodes[node(site)["uuid"]]["power_state"] = Power.ON
    assert with_volume(site, "update", "b") == "UPDATE_FAILED"
    assert "Power it off first. Or set allow_power_off" in reason(site, "disk")


# -------------------------------------------------------------------------------- which node it is


def group_spread(count: int, **more: Any) -> dict[str, Any]:
    member = {"selector": {"resource_class": "pool"}, "image": {"source": "http://a"}} | more
    properties = {"count": count, "member": member, "spread_by": "shard"}
    return {"group": {"type": "OS::Ironic::InstanceGroup", "properties": properties}}


def shards_in_use(site: Site) -> list[str]:
    nodes = site.machines.nodes.values()
    return sorted(node["shard"] for node in nodes if node["instance_uuid"])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_members_of_a_group_are_spread_as_far_as_nodes_are_free(tmp_path: Path, count: int) -> None:
    site = make_site(trees.database(tmp_path), pool=5)
    for real, shard in zip(site.machines.nodes.values(), "aaabc", strict=True):
        real["shard"] = shard
    site.create(template(group_spread(count), "spread"))
    assert run(site) == "CREATE_COMPLETE"
    assert shards_in_use(site) == sorted({2: "ab", 3: "abc", 5: "aaabc"}[count])
    assert len(site.machines.records["allocation"]) == count


def test_a_group_that_is_spread_later_keeps_its_machines(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=2)
    resources = group_spread(2)
    alike = {**resources["group"]["properties"], "spread_by": "none"}
    site.create(template({"group": {**resources["group"], "properties": alike}}, "alike"))
    assert run(site) == "CREATE_COMPLETE"
    site.update(template(resources, "spread"))
    assert run(site) == "UPDATE_COMPLETE"
    assert verbs(site) == ["active", "active"]


def test_an_excluded_node_is_not_taken(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=2)
    selector = {"resource_class": "pool", "exclude_nodes": ["p1"]}
    system = {"selector": selector, "image": {"source": "http://a"}}
    site.create(template({"web": {"type": "OS::Ironic::Instance", "properties": system}}, "x"))
    assert run(site) == "CREATE_COMPLETE"
    assert site.machines.get_node("p1")["instance_uuid"] is None
    slot = {"type": "OS::Ironic::Allocation", "properties": selector}
    site.create(template({"slot": slot}, "slot"))
    assert run(site) == "CREATE_FAILED"
    assert "no node is available but for those of exclude_nodes" in reason(site, "slot")


def test_an_allocation_waits_for_a_node_that_is_not_excluded(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=1)
    properties = {"resource_class": "pool", "exclude_nodes": ["p1"], "wait_for_capacity": True}
    slot = {"type": "OS::Ironic::Allocation", "properties": properties | {"timeout": 60}}
    site.create(template({"slot": slot}, "slot"))
    started = site.now_s
    assert run(site) == "CREATE_FAILED"
    assert site.now_s - started >= 60


def test_an_allocation_that_goes_leaves_no_traits_behind(site: Site) -> None:
    properties = {"resource_class": "pool"}
    slot = {"type": "OS::Ironic::Allocation", "properties": properties}
    site.create(template({"slot": slot}, "slot"))
    assert run(site) == "CREATE_COMPLETE"
    assert node(site)["instance_info"] == {"traits": []}
    site.delete()
    assert run(site) == "DELETE_COMPLETE"
    assert node(site)["instance_info"] == {}
