"""The hardware of running machines: firmware, BIOS and steps, alone and over a group in batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import State
from bloomery.model.stacks import OrderKind
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.resources.instance import Instance
from bloomery.orchestration.resources.step_run import HardwareConfiguration
from tests.functional.orchestration.test_machine_properties import (
    Noting,
    add_runbook,
    create,
    node,
    noted,
    reason,
    record,
    run,
    update,
    verbs,
)
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import TAKES_S, Site, make_site, template
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.tree_world import World

TURBO = {"bios": {"settings": {"Turbo": "on"}}}
SLOW = {"bios": {"settings": {"Turbo": "off"}}}
FLASH = {"firmware": [{"component": "bmc", "url": "http://f/2", "version": "2"}]}
STEP = {"extra_steps": [{"interface": "deploy", "step": "burn", "args": {"minutes": 5}}]}
SERVICED = ["active", "service"]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(trees.database(tmp_path), Noting, pool=1)


def ordered(site: Site) -> list[tuple[str, str]]:
    """Return interface and step of the last service."""
    return [(s["interface"], s["step"]) for s in noted(site).arguments["service"]["service_steps"]]


def has_firmware(site: Site, version: str, name: str = "p1") -> str:
    uuid = str(site.machines.get_node(name)["uuid"])
    site.machines.firmware[uuid] = [
        {"component": "bios", "current_version": version, "last_version_flashed": None}
    ]
    return uuid


# -------------------------------------------------------------------------------- one machine


def test_extra_steps_run_in_the_order_that_they_state(site: Site) -> None:
    orders = {"third": 3, "first": 1, "second": 2}
    steps = [{"interface": "deploy", "step": name, "order": n} for name, n in orders.items()]
    assert create(site, hardware={"extra_steps": steps}) == "CREATE_COMPLETE"
    assert [name for _, name in ordered(site)] == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("before", "after", "steps"),
    [
        (None, TURBO, [("bios", "apply_configuration")]),
        (TURBO, SLOW, [("bios", "apply_configuration")]),
        (TURBO, TURBO | FLASH, [("firmware", "update")]),
        (TURBO, TURBO | FLASH | STEP, [("firmware", "update"), ("deploy", "burn")]),
        (TURBO | FLASH, TURBO | FLASH | {"triggers": {"n": 1}},
         [("firmware", "update"), ("bios", "apply_configuration")]),
        (TURBO, TURBO, None),
        (TURBO | FLASH, TURBO, None),
        (TURBO, None, None),
        (TURBO, TURBO | {"disable_ramdisk": True}, None),
    ],
)  # fmt: skip
def test_an_update_services_the_machine_with_what_has_changed(
    site: Site, before: Any, after: Any, steps: Any
) -> None:
    assert create(site, **({"hardware": before} if before else {})) == "CREATE_COMPLETE"
    first = verbs(site)
    assert first == (SERVICED if before else ["active"])
    more = {"hardware": after} if after else {}
    assert update(site, **more, tags=["changed"]) == "UPDATE_COMPLETE"
    assert verbs(site)[len(first) :] == (["service"] if steps else [])
    if steps:
        assert ordered(site) == steps
    assert "hardware_due" not in record(site, "web") or not record(site, "web")["hardware_due"]


@pytest.mark.parametrize(
    ("between", "fails", "is_serviced"),
    [(None, False, False), (SLOW, False, True), (SLOW, True, True), (FLASH, True, True)],
)
def test_hardware_that_comes_back_runs_unless_it_is_applied(
    site: Site, between: Any, fails: bool, is_serviced: bool
) -> None:
    assert create(site, hardware=TURBO) == "CREATE_COMPLETE"
    site.machines.orders.clear()
    if fails:
        site.machines.fail_next("service", "the BMC is mute")
    more = {"hardware": between} if between else {}
    assert update(site, tags=["between"], **more) == f"UPDATE_{'FAILED' if fails else 'COMPLETE'}"
    assert update(site, hardware=TURBO) == "UPDATE_COMPLETE"
    ends = ["abort"] if between is FLASH else ["service"]  # the BIOS has kept its settings
    assert verbs(site) == (["service", *ends] if is_serviced else [])
    assert node(site)["provision_state"] == "active"
    assert site.machines.list_bios_settings(node(site)["uuid"]) == {"Turbo": "on"}


def test_a_rebuild_and_new_hardware_come_in_one_update(site: Site) -> None:
    add_runbook(site)
    assert create(site, runbook_after="CUSTOM_BURN_IN") == "CREATE_COMPLETE"
    changes = {"image": {"source": "http://b"}, "hardware": TURBO}
    assert update(site, runbook_after="CUSTOM_BURN_IN", **changes) == "UPDATE_COMPLETE"
    assert verbs(site) == ["active", "service", "rebuild", "service", "service"]
    assert noted(site).arguments["service"] == {"runbook": "CUSTOM_BURN_IN"}


def test_a_runbook_runs_on_the_running_machine_and_not_beside_sections(site: Site) -> None:
    add_runbook(site)
    assert create(site) == "CREATE_COMPLETE"
    assert update(site, hardware={"runbook": "CUSTOM_BURN_IN"}) == "UPDATE_COMPLETE"
    assert noted(site).arguments["service"] == {"runbook": "CUSTOM_BURN_IN"}
    assert update(site, hardware={"runbook": "CUSTOM_BURN_IN"} | TURBO) == "UPDATE_FAILED"
    assert "cannot have a runbook beside sections" in reason(site)
    assert verbs(site) == SERVICED


def test_a_runbook_that_is_missing_is_refused_before_the_deployment(site: Site) -> None:
    assert create(site, hardware={"runbook": "missing"}) == "CREATE_FAILED"
    assert reason(site).endswith("cannot use hardware.runbook missing: there is none")
    assert verbs(site) == []


def test_a_service_that_failed_is_repeated_by_the_next_update(site: Site) -> None:
    assert create(site) == "CREATE_COMPLETE"
    site.machines.fail_next("service", "the BMC is mute")
    assert update(site, hardware=TURBO) == "UPDATE_FAILED"
    assert reason(site).endswith("the BMC is mute")
    assert update(site, hardware=TURBO) == "UPDATE_COMPLETE"
    assert verbs(site) == ["active", "service", "service"]


def test_a_failed_service_is_ended_before_a_rebuild(site: Site) -> None:
    assert create(site) == "CREATE_COMPLETE"
    site.machines.fail_next("service", "the BMC is mute")
    assert update(site, hardware=TURBO) == "UPDATE_FAILED"
    changes = {"image": {"source": "http://b"}, "hardware": SLOW}
    assert update(site, **changes) == "UPDATE_COMPLETE"
    assert verbs(site) == ["active", "service", "abort", "rebuild", "service"]
    assert node(site)["provision_state"] == "active"


@pytest.mark.parametrize(
    ("after", "maintenance", "verbs_after"),
    [(TURBO, False, ("service",)), (SLOW, False, ("service",)), (None, False, ("abort",)),
     (TURBO, True, ("service",)), (None, True, ("abort",))],
)  # fmt: skip
def test_a_plan_after_a_service_that_failed_names_no_rebuild(
    site: Site, after: Any, maintenance: bool, verbs_after: tuple[str, ...]
) -> None:
    assert create(site) == "CREATE_COMPLETE"
    site.machines.fail_next("service", "the BMC is mute")
    assert update(site, hardware=TURBO) == "UPDATE_FAILED"
    site.machines.set_maintenance(node(site)["uuid"], maintenance)
    resource = instance_of(site)
    names = set() if after is TURBO else {"hardware"}
    properties = dict(resource.properties) | {"hardware": after}
    effect = resource.current_effect(Instance.effect_of_repair(properties), properties, names)
    assert (effect.verbs, effect.loses_data) == (verbs_after, False)
    assert (effect.certain, "in maintenance" in effect.reason) == (not maintenance, maintenance)


def test_a_machine_that_is_to_be_off_is_switched_off_after_the_service(site: Site) -> None:
    assert create(site, power="off") == "CREATE_COMPLETE"
    assert update(site, power="off", hardware=TURBO) == "UPDATE_COMPLETE"
    assert (node(site)["power_state"], verbs(site)) == ("power off", SERVICED)


def test_hardware_is_refused_where_nobody_waits_for_the_deployment(site: Site) -> None:
    assert create(site, wait_for="none", hardware=TURBO) == "CREATE_FAILED"
    assert "leave hardware out, or give another wait_for" in reason(site)
    assert verbs(site) == []


# ---------------------------------------------------------------------------------- catalogue


@pytest.mark.parametrize(
    ("version", "digest", "ordered_verbs", "drifted"),
    [
        ("1", "d1", ["service"], []),
        ("2", "d1", [], []),
        ("1", "d0", [], ["firmware/bios/current_version"]),
        ("2", "d0", [], []),
    ],
)
def test_the_catalogue_of_the_digest_is_applied_and_watched(
    site: Site, version: str, digest: str, ordered_verbs: list[str], drifted: list[str]
) -> None:
    assert create(site) == "CREATE_COMPLETE"
    has_firmware(site, version)
    site.machines.catalogue = "d1", {"bios": "2"}
    assert update(site, hardware={"catalogue": digest}) == "UPDATE_COMPLETE"
    assert verbs(site)[1:] == ordered_verbs
    assert [each.field for each in differences(site)] == drifted
    site.machines.catalogue = "d2", {"bios": "3"}
    (difference,) = differences(site)
    assert difference.sentence.endswith(
        "is to be '3' by the catalogue of firmware; "
        f"the template names catalogue {digest!r}, and the service has d2"
    )


@pytest.mark.parametrize(
    ("hardware", "versions", "verbs_after", "reason_after"),
    [
        ({"catalogue": "d1"}, {"bios": "1"}, ("service",),
         "service for hardware (catalogue): the machine may restart; bios 1 -> 2"),
        ({"catalogue": "d1"}, {"bmc": "1"}, ("service",),
         "service for hardware (catalogue): its BMC restarts; bmc 1 -> 2"),
        ({"catalogue": "d1"}, {"bios": "2"}, (), "its firmware is as in the catalogue"),
        ({"catalogue": "d1"}, {"nic:1": "1"}, (),
         "the catalogue has none of its firmware, as far as that was read"),
        ({"catalogue": "d1"}, {}, (),
         "the catalogue has none of its firmware, as far as that was read"),
        ({"catalogue": "d0"}, {"bios": "1"}, (),
         "the template names catalogue 'd0', and the service has d1: no firmware by it"),
        ({"catalogue": "d1"} | TURBO, {"bios": "2"}, ("service",),
         ("service for hardware (bios): the machine may restart; "
          "its firmware is as in the catalogue")),
        (FLASH, {}, ("service",), "service for hardware (firmware): its BMC restarts"),
        (FLASH | STEP, {}, ("service",),
         "service for hardware (firmware, extra_steps): the machine may restart"),
    ],
)  # fmt: skip
def test_a_plan_says_of_each_machine_what_a_service_would_do(
    site: Site, hardware: Any, versions: Any, verbs_after: Any, reason_after: str
) -> None:
    assert create(site) == "CREATE_COMPLETE"
    site.machines.catalogue = "d1", {"bios": "2", "bmc": "2"}
    site.machines.firmware[node(site)["uuid"]] = [
        {"component": name, "current_version": each} for name, each in versions.items()
    ]
    resource = instance_of(site)
    properties = dict(resource.properties) | {"hardware": hardware}
    effect = Instance.effect_of_update(resource.properties, properties, {"hardware"})
    effect = resource.current_effect(effect, properties, {"hardware"})
    assert (effect.verbs, effect.reason, effect.certain) == (verbs_after, reason_after, True)


def test_a_bmc_that_keeps_its_version_has_failed(site: Site) -> None:
    assert create(site) == "CREATE_COMPLETE"
    has_firmware(site, "1")
    site.machines.catalogue, site.machines.ignores_firmware = ("d1", {"bios": "2"}), True
    assert update(site, hardware={"catalogue": "d1"}) == "UPDATE_FAILED"
    assert "bios is 1, not 2" in reason(site)
    site.machines.ignores_firmware = False
    assert update(site, hardware={"catalogue": "d1"}) == "UPDATE_COMPLETE"


def differences(site: Site) -> list[Any]:
    return instance_of(site).find_differences()


def instance_of(site: Site) -> Instance:
    tree = StackTree.load(site.tree(), site.runtime())
    resource = tree.stacks[site.root].rows["web"].resource()
    assert isinstance(resource, Instance)
    return resource


def test_a_setting_that_somebody_changed_is_drift(site: Site) -> None:
    assert create(site, hardware=TURBO) == "CREATE_COMPLETE"
    assert differences(site) == []
    site.machines.bios[node(site)["uuid"]]["Turbo"] = "off"
    assert [each.field for each in differences(site)] == ["bios/Turbo"]


# ------------------------------------------------------------------ a machine without a system


def configure(site: Site, verb: str = "create", **more: Any) -> str:
    properties = {"node": "m1"} | more
    resource = {"type": "OS::Ironic::HardwareConfiguration", "properties": properties}
    getattr(site, verb)(template({"bios": resource}, str(more)))
    return run(site)


@pytest.fixture
def ready(site: Site) -> str:
    """A manageable node with BIOS 1, and a catalogue with BIOS 2."""
    uuid = site.machines.add_node(State.MANAGEABLE, name="m1")
    has_firmware(site, "1", "m1")
    site.machines.catalogue = "d1", {"bios": "2"}
    return uuid


def test_a_configuration_brings_a_machine_to_the_catalogue_and_watches_it(
    site: Site, ready: str
) -> None:
    assert configure(site, catalogue="d1") == "CREATE_COMPLETE"
    assert (verbs(site), site.machines.list_firmware(ready)[0]["current_version"]) == (
        ["clean"], "2",
    )  # fmt: skip
    assert drift_of(site) == []
    site.machines.catalogue = "d2", {"bios": "2"}
    assert configure(site, "update", catalogue="d2") == "UPDATE_COMPLETE"
    assert verbs(site) == ["clean"]  # it had the version
    site.machines.catalogue = "d3", {"bios": "3"}
    assert configure(site, "update", catalogue="d1") == "UPDATE_COMPLETE"
    assert (verbs(site), drift_of(site)) == (["clean"], ["firmware/bios/current_version"])
    assert configure(site, "update", catalogue="d3", **TURBO) == "UPDATE_COMPLETE"
    assert (verbs(site), drift_of(site)) == (["clean", "clean"], [])
    steps = noted(site).arguments["clean"]["clean_steps"]
    assert [each["interface"] for each in steps] == ["firmware", "bios"]


def test_a_configuration_of_a_machine_with_its_versions_orders_nothing(
    site: Site, ready: str
) -> None:
    has_firmware(site, "2", "m1")
    assert configure(site, catalogue="d1") == "CREATE_COMPLETE"
    assert (verbs(site), drift_of(site)) == ([], [])
    has_firmware(site, "1", "m1")
    assert drift_of(site) == ["firmware/bios/current_version"]


def test_a_configuration_fails_where_the_bmc_keeps_its_version(site: Site, ready: str) -> None:
    site.machines.ignores_firmware = True
    assert configure(site, catalogue="d1") == "CREATE_FAILED"
    assert "bios is 1, not 2" in reason(site, "bios")


def test_a_catalogue_is_not_left_to_a_deployment(site: Site, ready: str) -> None:
    assert configure(site, catalogue="d1", apply_when="deploy") == "CREATE_FAILED"
    assert "cannot leave the catalogue of firmware to a deployment" in reason(site, "bios")


def drift_of(site: Site) -> list[str]:
    tree = StackTree.load(site.tree(), site.runtime())
    resource = tree.stacks[site.root].rows["bios"].resource()
    assert isinstance(resource, HardwareConfiguration)
    return [each.field for each in resource.find_differences()]


# -------------------------------------------------------------------------------------- groups


class Watched(MemoryMachines):
    """Notes how many machines were active at the least when a service began."""

    least = 10**6

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        super().set_provision_state(uuid, verb, **arguments)
        if verb == "service":
            states = [self.get_node(each)["provision_state"] for each in list(self.nodes)]
            self.least = min(self.least, states.count("active"))

    def serviced(self) -> list[str]:
        return [str(self.nodes[uuid]["name"]) for uuid, verb in self.orders if verb == "service"]


class Group:
    """A group of four machines, in memory: ``p0`` to ``p3`` have member 0 to 3."""

    def __init__(self) -> None:
        self.world = World(machines=lambda _stack: self.machines)
        self.machines: Watched = Watched(
            utc=self.world.clock.now, takes_s=TAKES_S | {"service": 30}
        )
        for number in range(4):
            self.machines.add_node(name=f"p{number}", resource_class="pool")
        self.world.deadline_s = 1e7

    def template(self, hardware: Any = None, overrides: Any = None, **rolling: Any) -> str:
        member = {"name": "m%index%", "selector": {"resource_class": "pool"}}
        member |= {"image": {"source": "http://a"}} | ({"hardware": hardware} if hardware else {})
        group = {
            "type": "OS::Ironic::InstanceGroup",
            "properties": {"count": 4, "member": member, "member_overrides": overrides or {}},
            "update_policy": {
                "batch_create": {"max_batch_size": 1}, "canary": {"size": 1},
                "rolling_update": {"health_gate": {"settle_seconds": 0}, "batch_size": 2,
                                   "max_unavailable": 2} | rolling,
            },
        }  # fmt: skip
        return f"resources: {json.dumps({'workers': group})}"

    def create(self, hardware: Any = None) -> None:
        self.world.create(self.template(hardware))
        self.world.run()
        assert self.world.state == "CREATE_COMPLETE", self.world.root.reason

    def update(self, *signals: str, **more: Any) -> dict[str, Any]:
        """Update the group, and send a signal at each pause; return its roll-out."""
        words = list(signals)

        def answer() -> bool:
            if words and self.rollout.get("state") == "paused":
                word = words.pop(0)
                self.world.ask(OrderKind.SIGNAL, "workers", details={"rollout": word})
            return False

        self.world.update(self.template(**more))
        self.world.run(until=answer)
        return self.rollout

    @property
    def rollout(self) -> dict[str, Any]:
        rollout: dict[str, Any] = self.world.row("workers").data.get("rollout") or {}
        return rollout


@pytest.fixture
def group() -> Group:
    return Group()


def test_a_group_is_serviced_in_the_batches_of_its_images(group: Group) -> None:
    group.create()
    rollout = group.update(hardware=TURBO)
    assert (rollout["state"], group.world.state) == ("complete", "UPDATE_COMPLETE")
    first, *two, last = group.machines.serviced()
    assert (first, {*two}, last) == ("p3", {"p1", "p2"}, "p0")
    assert rollout["batch"] == 3  # the canary, two, and one
    assert group.machines.least == 2


def test_only_members_whose_hardware_changes_are_serviced(group: Group) -> None:
    group.create(TURBO)
    group.machines.orders.clear()
    group.update(hardware=TURBO, overrides={"1": {"hardware": SLOW}})
    assert group.machines.serviced() == ["p1"]


@pytest.mark.parametrize(
    ("policy", "signals", "serviced", "state"),
    [
        ({}, ("continue",), ["p3", "p3", "p2", "p1", "p0"], "complete"),
        ({}, ("abort",), ["p3"], "failed"),
        ({"failure_policy": "stop"}, (), ["p3"], "failed"),
        ({"max_failures": 1}, (), ["p3", "p2", "p1", "p0"], "failed"),  # by min_ready
        ({"failure_policy": "rollback_batch"}, (), ["p3"], "failed"),
    ],
)
def test_a_canary_whose_service_fails_stops_the_roll_out(
    group: Group, policy: Any, signals: Any, serviced: list[str], state: str
) -> None:
    group.create()
    group.machines.fail_next("service", "the BMC is mute")
    rollout = group.update(*signals, hardware=TURBO, **policy)
    assert (rollout["state"], sorted(group.machines.serviced())) == (state, sorted(serviced))
    states = {str(n["name"]): n["provision_state"] for n in group.machines.nodes.values()}
    if policy.get("failure_policy") == "rollback_batch":
        assert states["p3"] == "active"  # its failed service was ended


def test_members_that_have_the_versions_of_the_catalogue_run_on(group: Group) -> None:
    group.create()
    for name, version in {"p0": "1", "p1": "2", "p2": "1", "p3": "2"}.items():
        uuid = group.machines.get_node(name)["uuid"]
        group.machines.firmware[uuid] = [
            {"component": "bios", "current_version": version, "last_version_flashed": None}
        ]
    group.machines.catalogue = "d1", {"bios": "2"}
    group.update(hardware={"catalogue": "d1"})
    assert group.machines.serviced() == ["p2", "p0"]
    group.machines.orders.clear()
    group.update(hardware={"catalogue": "d1"} | STEP)
    assert sorted(group.machines.serviced()) == ["p0", "p1", "p2", "p3"]
