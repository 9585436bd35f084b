"""What a preview says of machines over REST, and that it is what an update then does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db.tables import NODES
from tests.functional.orchestration.test_machines import IMAGE, WEB, enrol, ironic, node_of, why_of
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

RUN = {
    "type": "OS::Ironic::RunbookExecution",
    "properties": {
        "instance": {"get_resource": "web"}, "triggers": {"n": 1},
        "steps": [{"interface": "bios", "step": "factory_reset"}],
    },
}  # fmt: skip
SLOT = {"type": "OS::Ironic::Allocation", "properties": {"resource_class": "bm.test"}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    with Orchestration(tmp_path_factory.mktemp("site") / "state") as running:
        yield running


@pytest.fixture(scope="module")
def web(site: Orchestration) -> str:
    """The path of a stack with a machine that was deployed."""
    enrol(site)
    path = site.create("web", stack())
    site.wait_for(path, "CREATE_COMPLETE")
    return path


def stack(run: dict[str, Any] = RUN, **properties: Any) -> dict[str, Any]:
    return template(
        {"slot": SLOT, "web": {**WEB, "properties": WEB["properties"] | properties}, "run": run}
    )


def planned(site: Orchestration, path: str, document: dict[str, Any]) -> dict[str, Any]:
    status, preview = site.ask("PUT", f"{path}/preview", {"template": document})
    assert status == 200, preview
    assert set(preview) == {"resource_changes", "plan"}
    plan: dict[str, Any] = preview["plan"]
    return plan


def words(plan: dict[str, Any]) -> dict[str, str]:
    return {step["resource"]: step["action"] for step in plan["steps"]}


def test_a_creation_without_experience_says_so(site: Orchestration) -> None:
    status, preview = site.ask("POST", "/stacks/preview", {"stack_name": "x", "template": stack()})
    assert status == 200
    plan = preview["plan"]
    assert [step["stage"] for step in plan["steps"]] == [1, 2, 3]
    assert (plan["takes"], plan["machines_at_once"]) == (None, 1)
    assert plan["summary"] == {"create": 2, "refuse": 1}
    assert plan["steps"][0]["reason"] == "no free node of class bm.test"


@pytest.mark.parametrize(
    ("properties", "word", "verbs", "loses_data"),
    [
        ({"name": "other"}, "patch", [], False),
        ({"power": "off"}, "service", ["power off"], False),
        ({"image": {**IMAGE, "source": "http://images/b.img"}}, "rebuild", ["rebuild"], True),
        ({"image": {"boot_iso": "http://images/live.iso"}}, "rebuild", ["rebuild"], False),
        ({"root_gb": 9, "power": "off"}, "rebuild", ["rebuild", "power off"], True),
    ],
)
def test_an_update_of_a_machine_says_what_it_comes_to(
    site: Orchestration, web: str, properties: Any, word: str, verbs: list[str], loses_data: bool
) -> None:
    plan = planned(site, web, stack(**properties))
    step = next(each for each in plan["steps"] if each["resource"] == "web")
    assert (step["action"], step["verbs"], step["loses_data"]) == (word, verbs, loses_data)
    assert step["certain"]
    assert step["machine"] == node_of(site)["uuid"]
    assert plan["loses_data"] == (["web"] if loses_data else [])


def test_steps_that_run_anew_are_a_service_of_the_machine(site: Orchestration, web: str) -> None:
    again = {**RUN, "properties": RUN["properties"] | {"triggers": {"n": 2}}}
    plan = planned(site, web, stack(again))
    assert words(plan) == {"run": "service"}
    assert plan["steps"][0]["takes"]["runs"] == 1  # as long as when it was made
    assert plan["takes"]["median_s"] == plan["steps"][0]["takes"]["median_s"] > 0


def test_another_place_is_another_machine(site: Orchestration, web: str) -> None:
    image = {**IMAGE, "source": "http://images/b.img"}
    plan = planned(site, web, stack(image=image, image_update_policy="replace"))
    new, old = (step for step in plan["steps"] if step["resource"] == "web")
    assert (new["action"], new["machine"], new["verbs"]) == ("replace", None, ["active"])
    assert (old["action"], old["verbs"], old["loses_data"]) == ("delete", ["deleted"], True)
    assert old["stage"] > new["stage"]


def test_a_preview_asks_machines_for_nothing(
    site: Orchestration, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_words: Any, **_more: Any) -> None:
        raise AssertionError("a preview ordered something")

    for name in (
        "create_node", "update_node", "delete_node", "set_traits", "set_maintenance",
        "set_provision_state", "set_power_state", "attach_vif", "detach_vif", "create", "update",
        "delete",
    ):  # fmt: skip
        where = f"bloomery.orchestration.orders.machines.ServiceMachines.{name}"
        monkeypatch.setattr(where, refuse)
    before = node_of(site)
    image = {**IMAGE, "source": "http://images/c.img"}
    assert words(planned(site, web, stack(image=image))) == {"web": "rebuild"}
    assert words(planned(site, web, template({}))) == dict.fromkeys(
        ("slot", "web", "run"), "delete"
    )
    assert site.ask("POST", "/stacks/preview", {"stack_name": "x", "template": stack()})[0] == 200
    assert node_of(site) == before


def test_a_plan_reads_a_machine_that_a_conductor_works_at(
    site: Orchestration, web: str, reserved: None
) -> None:
    plan = planned(site, web, template({"slot": SLOT}))
    assert words(plan) == {"web": "delete", "run": "delete"}
    assert plan["basis"]["nodes"] == {
        node_of(site)["uuid"]: f"node {node_of(site)['name']}: active",
    }


@pytest.fixture
def reserved(site: Orchestration, web: str) -> Iterator[None]:
    def reserve(host: str | None) -> None:
        change = sa.update(NODES).values(reservation=host)
        site.service.db.transact(lambda conn: conn.execute(change))

    reserve("other")
    yield
    reserve(None)


def test_the_update_does_what_was_said(site: Orchestration, web: str) -> None:
    image = {**IMAGE, "source": "http://images/b.img"}
    assert words(planned(site, web, stack(image=image))) == {"web": "rebuild"}
    uuid = node_of(site)["uuid"]
    assert site.ask("PUT", web, {"template": stack(image=image)})[0] == 202
    site.wait_for(web, "UPDATE_COMPLETE")
    assert node_of(site)["instance_info"]["image_source"] == image["source"]
    assert node_of(site)["uuid"] == uuid
    assert planned(site, web, stack(image=image))["steps"] == []


def group(count: int, image: str, resource_class: str = "bm.group") -> dict[str, Any]:
    rolling = {"batch_size": 1, "max_unavailable": 1, "health_gate": {"settle_seconds": 0}}
    member = {
        "name": "m-%index%", "selector": {"resource_class": resource_class},
        "image": {**IMAGE, "source": image},
    }  # fmt: skip
    workers = {
        "type": "OS::Ironic::InstanceGroup", "properties": {"count": count, "member": member},
        "update_policy": {"rolling_update": rolling},
    }  # fmt: skip
    return template({"workers": workers})


def test_a_group_is_planned_member_by_member_and_what_failed_is_said_to_have(
    site: Orchestration,
) -> None:
    address = "52:54:00:00:01:0{}"
    enrol(site, "g0", resource_class="bm.group", ports=[{"address": address.format(0)}])
    path = site.create("group", group(2, "http://images/a.img"))
    site.wait_for(path, "CREATE_FAILED")
    plan = planned(site, path, group(2, "http://a"))
    steps = {step["resource"]: step for step in plan["steps"] if step["action"] != "delete"}
    made = next(each for each in ("workers/0", "workers/1") if steps[each]["machine"])
    failed = ({"workers/0", "workers/1"} - {made}).pop()
    assert (steps[made]["action"], steps[made]["certain"]) == ("rebuild", True)
    assert steps[failed]["action"] == "refuse"
    reason = "CREATE FAILED: nothing was made; no free node of class bm.group"
    assert steps[failed]["reason"] == reason
    assert plan["loses_data"] == [made]

    enrol(site, "g1", resource_class="bm.group", ports=[{"address": address.format(1)}])
    assert site.ask("PUT", path, {"template": group(2, "http://images/a.img")})[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")
    plan = planned(site, path, group(2, "http://images/b.img"))
    order = [(step["resource"], step["action"], step["stage"]) for step in plan["steps"]]
    assert order == [
        ("workers/1", "rebuild", 1), ("workers", "wait", 2), ("workers/0", "rebuild", 3),
        ("workers", "patch", 4),
    ]  # fmt: skip
    assert (plan["machines_at_once"], plan["loses_data"]) == (1, ["workers/1", "workers/0"])
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")


def maintain(site: Orchestration, name: str, *, on: bool = True) -> None:
    status, _ = ironic(
        site, "PUT" if on else "DELETE", f"/v1/nodes/{name}/maintenance", {"reason": "smoke"}
    )
    assert status == 202


def test_a_rebuild_that_maintenance_would_refuse_is_not_certain(
    site: Orchestration, web: str
) -> None:
    image = {**IMAGE, "source": "http://images/z.img"}
    maintain(site, "n1")
    [step] = planned(site, web, stack(image=image))["steps"]
    assert (step["action"], step["certain"], step["loses_data"]) == ("rebuild", False, True)
    assert step["reason"].endswith(
        "node n1 is in maintenance (smoke): rebuild is refused until that ends "
        "(baremetal node maintenance unset n1)"
    )
    same = {**IMAGE, "source": node_of(site)["instance_info"]["image_source"]}
    [step] = planned(site, web, stack(image=same, name="other"))["steps"]
    assert (step["action"], step["certain"]) == ("patch", True)
    maintain(site, "n1", on=False)
    [step] = planned(site, web, stack(image=image))["steps"]
    assert step["certain"]


def test_steps_that_maintenance_would_refuse_are_not_certain(site: Orchestration, web: str) -> None:
    again = {**RUN, "properties": {**RUN["properties"], "triggers": {"n": 9}}}

    def run() -> dict[str, Any]:
        steps = planned(site, web, stack(again))["steps"]
        return next(step for step in steps if step["resource"] == "run")

    maintain(site, "n1")
    step = run()
    assert (step["verbs"], step["certain"]) == (["service"], False)
    assert "n1 is in maintenance (smoke): service is refused until that ends" in step["reason"]
    maintain(site, "n1", on=False)
    assert run()["certain"]


def test_an_instance_whose_node_was_never_prepared_is_planned_as_it_is_then_done(
    site: Orchestration,
) -> None:
    enrol(site, "s0", resource_class="bm.slot", ports=[{"address": "52:54:00:00:02:00"}])
    slot = {"type": SLOT["type"], "properties": {"resource_class": "bm.slot"}}
    alone = template({"slot": slot})
    path = site.create("slot", alone)
    site.wait_for(path, "CREATE_COMPLETE")
    maintain(site, "s0")
    both = template({"slot": slot, "web": WEB})
    assert site.ask("PUT", path, {"template": both})[0] == 202
    site.wait_for(path, "UPDATE_FAILED")
    new, old = (step for step in planned(site, path, both)["steps"] if step["resource"] == "web")
    assert (new["action"], old["action"]) == ("replace", "delete")
    assert new["reason"].startswith("node s0 was never prepared for it")

    maintain(site, "s0", on=False)
    assert site.ask("PUT", path, {"template": both})[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")
    reasons = [each["resource_status_reason"] for each in events_of(site, path)]
    assert any("requires replacement" in reason for reason in reasons)
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")


def events_of(site: Orchestration, path: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = site.ask("GET", f"{path}/events")[1]["events"]
    return events


@pytest.mark.parametrize(
    ("resource", "state", "key"),
    [
        ({"type": "OS::Ironic::Allocation",
          "properties": {"resource_class": "nope", "wait_for_capacity": True}},
         "CREATE_IN_PROGRESS", "waiting"),
        ({"type": "OS::Ironic::Allocation", "properties": {"resource_class": "nope"}},
         "CREATE_FAILED", "failed"),
        (group(1, "http://images/a.img", "nope")["resources"]["workers"],
         "CREATE_FAILED", "failed"),
    ],
    ids=["waits", "failed", "a group"],
)  # fmt: skip
def test_why_names_the_ways_out_of_a_lack_of_nodes(
    site: Orchestration, web: str, resource: dict[str, Any], state: str, key: str
) -> None:
    path = site.create("short", template({"slot": resource}))
    site.wait_for(path, state)
    shortage = "no available nodes match the resource class nope"
    advice = "enrol a node (bloomery enrol), free one, or use another "

    def advised() -> dict[str, Any] | None:
        why = why_of(site, path)
        return why if why["next_action"].startswith(advice) and shortage in str(why) else None

    why = wait_for(advised, advice)
    assert "the classes that exist: bm." in why["next_action"]
    if key == "waiting":
        assert why["waiting"][0]["for"] == f"a node: {shortage}"
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")


def test_the_retry_of_a_group_that_was_never_there_is_one_batch(site: Orchestration) -> None:
    path = site.create("none-free", group(2, "http://images/a.img", "bm.none"))
    site.wait_for(path, "CREATE_FAILED")
    plan = planned(site, path, group(2, "http://images/a.img", "bm.none"))
    assert [(step["resource"], step["action"], step["stage"]) for step in plan["steps"]] == [
        ("workers/0", "refuse", 1), ("workers/1", "refuse", 1), ("workers", "patch", 2),
    ]  # fmt: skip
    assert (plan["machines_at_once"], plan["summary"]["refuse"]) == (2, 2)
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")


def preview_of_new(site: Orchestration, resources: dict[str, Any]) -> dict[str, Any]:
    body = {"stack_name": "new", "template": template(resources)}
    status, preview = site.ask("POST", "/stacks/preview", body)
    assert status == 200, preview
    plan: dict[str, Any] = preview["plan"]
    return plan


def hardware_on(node: Any) -> dict[str, Any]:
    properties = {"node": node, "bios": {"settings": {"Turbo": "on"}}}
    return {"type": "OS::Ironic::HardwareConfiguration", "properties": properties}


REFUSED = (
    "its node is available, and clean needs it manageable; let its OS::Ironic::Node have "
    "target_state: manageable, or this as its hardware_configuration"
)


def test_hardware_of_a_node_that_is_to_be_available_is_planned_to_fail(site: Orchestration) -> None:
    node = {"name": "hw-0", "driver": "fake-hardware"}
    resources = {
        "node": {"type": "OS::Ironic::Node", "properties": node},
        "hardware": hardware_on({"get_resource": "node"}),
    }
    plan = preview_of_new(site, resources)
    step = next(each for each in plan["steps"] if each["resource"] == "hardware")
    assert (step["action"], step["certain"], step["reason"]) == ("refuse", True, REFUSED)
    assert plan["summary"] == {"create": 1, "refuse": 1}

    resources["node"]["properties"] = {**node, "target_state": "manageable"}
    assert preview_of_new(site, resources)["summary"] == {"create": 2}


def test_hardware_of_a_node_that_is_available_now_may_fail(site: Orchestration) -> None:
    enrol(site, "hw-1", resource_class="bm.hw", ports=[])
    [step] = preview_of_new(site, {"hardware": hardware_on("hw-1")})["steps"]
    assert (step["action"], step["certain"], step["reason"]) == ("refuse", False, REFUSED)
    [step] = preview_of_new(site, {"hardware": hardware_on("nobody-knows-it")})["steps"]
    assert step["action"] == "create"


def test_a_reset_that_the_node_would_refuse_is_planned_to_fail(site: Orchestration) -> None:
    node = {"name": "hw-6", "driver": "fake-hardware", "inspect": "none"}
    down = {"type": "OS::Ironic::Node", "properties": {**node, "target_state": "manageable"}}
    hardware = hardware_on({"get_resource": "node"})
    hardware["properties"]["on_delete"] = "reset"
    path = site.create("resets", template({"node": down, "hardware": hardware}))
    site.wait_for(path, "CREATE_COMPLETE")
    assert words(planned(site, path, template({"node": down}))) == {"hardware": "delete"}
    provide = {"target": "provide"}
    assert ironic(site, "PUT", "/v1/nodes/hw-6/states/provision", provide)[0] == 202
    wait_for(lambda: node_of(site, "hw-6")["provision_state"] == "available", "the node")
    [step] = planned(site, path, template({"node": down}))["steps"]
    assert (step["action"], step["certain"]) == ("refuse", False)
    assert REFUSED in step["reason"]


def test_another_resource_of_the_same_node_is_planned_to_fail(site: Orchestration) -> None:
    path = enrol(site, "hw-2", resource_class="bm.hw", ports=[])
    node = {"name": "hw-2", "driver": "fake-hardware", "resource_class": "bm.hw"}
    renamed = {"other": {"type": "OS::Ironic::Node", "properties": node}}
    step = next(
        each for each in planned(site, path, template(renamed))["steps"]
        if each["resource"] == "other"
    )  # fmt: skip
    assert step["action"] == "refuse"
    assert step["reason"].startswith("cannot enrol node hw-2: one of that name is there (")
    assert "made by resource node); give another name, or keep the name" in step["reason"]
    renamed["other"]["properties"] = {**node, "name": "hw-3"}
    assert words(planned(site, path, template(renamed)))["other"] == "create"


@pytest.fixture(scope="module")
def used(site: Orchestration) -> str:
    """The path of a stack whose node another stack has deployed."""
    path = enrol(site, "hw-7", resource_class="bm.used", ports=[])
    slot = {"type": WEB["type"], "properties": {"image": IMAGE, "node": "hw-7"}}
    site.wait_for(site.create("user-of-hw-7", template({"web": slot})), "CREATE_COMPLETE")
    return path


def used_node(**properties: Any) -> dict[str, Any]:
    node = {"name": "hw-7", "driver": "fake-hardware", "resource_class": "bm.used", "ports": []}
    return template({"node": {"type": "OS::Ironic::Node", "properties": {**node, **properties}}})


BIOS = {"hardware_configuration": {"bios": {"settings": {"Turbo": "on"}}}}


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        (BIOS, "cannot configure node hw-7: it is active, and in use"),
        ({"boot_mode": "uefi"}, "cannot set boot_mode of node hw-7: it is in use"),
    ],
)
def test_a_node_that_is_in_use_is_planned_to_refuse_what_it_then_refuses(
    site: Orchestration, used: str, properties: Any, reason: str
) -> None:
    [step] = planned(site, used, used_node(**properties))["steps"]
    assert (step["action"], step["certain"], step["reason"]) == ("refuse", True, reason)
    assert (step["verbs"], step["takes"]) == ([], None)
    assert site.ask("PUT", used, {"template": used_node(**properties)})[0] == 202
    site.wait_for(used, "UPDATE_FAILED")
    assert reason in site.ask("GET", used)[1]["stack"]["stack_status_reason"]
    assert site.ask("PUT", used, {"template": used_node()})[0] == 202
    site.wait_for(used, "UPDATE_COMPLETE")


def test_the_deletion_of_a_node_that_is_in_use_may_fail(site: Orchestration, used: str) -> None:
    [step] = planned(site, used, template({}))["steps"]
    assert (step["action"], step["certain"], step["verbs"]) == ("refuse", False, [])
    assert "cannot delete node hw-7: instance " in step["reason"]
    assert site.ask("PUT", used, {"template": template({})})[0] == 202
    site.wait_for(used, "UPDATE_FAILED")
    assert site.ask("PUT", used, {"template": used_node(on_delete="retire")})[0] == 202
    site.wait_for(used, "UPDATE_COMPLETE")
    [step] = planned(site, used, template({}))["steps"]
    assert (step["action"], step["certain"], step["verbs"]) == ("delete", True, [])
    assert step["reason"].endswith("; node hw-7 is active: it stays, and is retired")


@pytest.mark.parametrize("kind", ["OS::Ironic::Instance", "OS::Ironic::Allocation"])
def test_the_deletion_of_a_node_and_its_user_is_certain(site: Orchestration, kind: str) -> None:
    name = f"both-{kind[-8:].lower()}"
    node = {"name": name, "driver": "fake-hardware", "resource_class": f"bm.{name}"}
    resources = {
        "node": {"type": "OS::Ironic::Node", "properties": node},
        "user": {"type": kind, "properties": {"node": {"get_resource": "node"}}},
    }
    if kind == "OS::Ironic::Instance":
        resources["user"]["properties"]["image"] = IMAGE
    path = site.create(name, template(resources))
    site.wait_for(path, "CREATE_COMPLETE")
    steps = {step["resource"]: step for step in planned(site, path, template({}))["steps"]}
    assert (steps["node"]["action"], steps["node"]["certain"]) == ("delete", True)
    assert steps["node"]["verbs"] == ["manage"]
    assert site.ask("PUT", path, {"template": template({})})[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")


def test_hardware_of_a_node_that_is_in_use_may_fail(site: Orchestration, used: str) -> None:
    [step] = preview_of_new(site, {"hardware": hardware_on("hw-7")})["steps"]
    assert (step["action"], step["certain"]) == ("refuse", False)
    assert step["reason"] == "its node is active, and clean needs it manageable"


def test_a_node_that_is_free_loses_what_is_on_its_disks_to_raid(site: Orchestration) -> None:
    path = enrol(site, "hw-8", resource_class="bm.raid", ports=[])
    raid = {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]}

    def step(**more: Any) -> dict[str, Any]:
        node = {"name": "hw-8", "driver": "fake-hardware", "resource_class": "bm.raid"}
        node["hardware_configuration"] = {"raid": raid, **more}
        resources = {"node": {"type": "OS::Ironic::Node", "properties": {**node, "ports": []}}}
        plan = planned(site, path, template(resources))
        assert plan["loses_data"] == (["node"] if more else [])
        [only] = plan["steps"]
        return only

    refused = step()
    assert (refused["action"], refused["certain"]) == ("refuse", True)
    assert refused["reason"].startswith("cannot change RAID of node")
    allowed = step(allow_destructive=True)
    assert (allowed["action"], allowed["certain"]) == ("service", True)
    assert allowed["verbs"] == ["manage", "clean", "provide"]
    assert allowed["reason"].endswith("; what is on its disks is lost")


def test_a_plan_warns_of_a_machine_that_goes_before_its_successor_is_up(
    site: Orchestration,
) -> None:
    """Blue and green in one update: they go on at once, and a rollback has no data of blue."""
    for number in (0, 1):
        enrol(site, f"bg-{number}", resource_class="bm.bg", ports=[])
    place = {"selector": {"resource_class": "bm.bg"}, "image": IMAGE}
    blue = green = red = {"type": WEB["type"], "properties": place}
    path = site.create("colours", template({"blue": blue, "red": red}))
    site.wait_for(path, "CREATE_COMPLETE")
    plan = planned(site, path, template({"green": green, "red": red}))
    assert {step["resource"]: step["stage"] for step in plan["steps"]} == {"green": 1, "blue": 1}
    *_, warning = plan["warnings"]
    assert warning == (
        "blue would be given back before green is up, and no rollback brings back what was on its "
        "disks: remove it in an update of its own, after this one"
    )
    *_, warning = planned(site, path, template({"green": green}))["warnings"]
    assert warning == (
        "blue, red would be given back before green is up, and no rollback brings back what was on "
        "their disks: remove them in an update of their own, after this one"
    )
    blue_and_green = template({"blue": blue, "green": green, "red": red})
    warnings = planned(site, path, blue_and_green)["warnings"]
    assert not any("given back before green" in each for each in warnings)
    assert planned(site, path, template({}))["warnings"] == []
    image = {**place, "image": {**IMAGE, "source": "http://images/b.img"}}
    replaced = {"type": WEB["type"], "properties": {**image, "image_update_policy": "replace"}}
    [warning] = planned(site, path, template({"blue": replaced, "red": red}))["warnings"]
    assert warning.startswith("1 node of class bm.bg needed (blue), and 0 free")


def test_one_node_under_several_names_is_one_machine(site: Orchestration) -> None:
    enrol(site, "hw-4", resource_class="bm.hw", ports=[])
    run = {"mode": "service", "steps": RUN["properties"]["steps"]}
    resources = {
        "web": {"type": WEB["type"], "properties": {"image": IMAGE, "node": "hw-4"}},
        "run": {"type": RUN["type"], "properties": {**run, "node": "hw-4"}},
        "again": {
            "type": RUN["type"], "properties": {**run, "node": node_of(site, "hw-4")["uuid"]},
        },
    }  # fmt: skip
    plan = preview_of_new(site, resources)
    assert (plan["machines"], len(plan["steps"])) == (1, 3)
    resources["run"]["properties"]["node"] = "n1"
    assert preview_of_new(site, resources)["machines"] == 2


def test_another_name_of_the_same_node_changes_nothing(site: Orchestration) -> None:
    enrol(site, "hw-5", resource_class="bm.hw", ports=[])
    uuid = node_of(site, "hw-5")["uuid"]

    def both(ident: str) -> dict[str, Any]:
        run = {**RUN["properties"], "node": ident}
        del run["instance"]
        web = {"type": WEB["type"], "properties": {"image": IMAGE, "node": ident}}
        run = {"type": RUN["type"], "depends_on": "web", "properties": run}
        return template({"web": web, "run": run})

    path = site.create("names", both(uuid))
    site.wait_for(path, "CREATE_COMPLETE")
    moved_at = node_of(site, "hw-5")["provision_updated_at"]
    for ident in ("hw-5", uuid):
        assert planned(site, path, both(ident))["steps"] == []
        assert site.ask("PUT", path, {"template": both(ident)})[0] == 202
        site.wait_for(path, "UPDATE_COMPLETE")
        assert node_of(site, "hw-5")["provision_updated_at"] == moved_at


# ------------------------------------------------------------------- unhealthy by hand, by a check


def by_hand(site: Orchestration, path: str) -> None:
    body = {"mark_unhealthy": True, "resource_status_reason": "smoke"}
    assert site.ask("PATCH", f"{path}/resources/web", body)[0] == 200


def by_check(site: Orchestration, path: str) -> None:
    """Let a check find that the machine was powered off."""
    status, _ = ironic(site, "PUT", "/v1/nodes/u0/states/power", {"target": "power off"})
    assert status == 202
    wait_for(lambda: node_of(site, "u0")["power_state"] == "power off", "the power")
    assert site.ask("POST", f"{path}/actions", {"check": None})[0] == 200
    site.wait_for(path, "CHECK_FAILED", "CHECK_COMPLETE")


def by_check_in_vain(site: Orchestration, path: str) -> None:
    """Let somebody correct what a check has found."""
    by_check(site, path)
    ironic(site, "PUT", "/v1/nodes/u0/states/power", {"target": "power on"})
    wait_for(lambda: node_of(site, "u0")["power_state"] == "power on", "the power")


@pytest.fixture(scope="module")
def marked(site: Orchestration) -> str:
    enrol(site, "u0", resource_class="bm.marked", ports=[{"address": "52:54:00:00:03:00"}])
    path = site.create("marked", of_marked())
    site.wait_for(path, "CREATE_COMPLETE")
    return path


def of_marked() -> dict[str, Any]:
    selector = {"resource_class": "bm.marked"}
    properties = {"selector": selector, "image": IMAGE, "replace_order": "delete_first"}
    return template({"web": {**WEB, "properties": properties}})


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        (by_hand, [("delete", "replaced"), ("replace", "marked unhealthy: smoke")]),
        (by_check, [("service", "node u0 is power off: the machine is switched")]),
        (by_check_in_vain, [("patch", "node u0 is active: nothing on it is written")]),
    ],
    ids=["by hand", "by a check", "by a check, and corrected"],
)  # fmt: skip
def test_an_unhealthy_machine_is_replaced_or_repaired_as_its_plan_says(
    site: Orchestration, marked: str, mark: Any, said: list[tuple[str, str]]
) -> None:
    mark(site, marked)
    plan = planned(site, marked, of_marked())
    steps = sorted(plan["steps"], key=lambda step: str(step["action"]))
    assert [(step["action"], step["certain"]) for step in steps] == [
        (word, True) for word, _ in said
    ]
    assert all(reason in step["reason"] for step, (_, reason) in zip(steps, said, strict=True))
    is_replaced = mark is by_hand
    assert plan["loses_data"] == (["web"] if is_replaced else [])
    before = node_of(site, "u0")
    assert site.ask("PUT", marked, {"template": of_marked()})[0] == 202
    site.wait_for(marked, "UPDATE_COMPLETE")
    after = node_of(site, "u0")
    assert (after["power_state"], after["provision_state"]) == ("power on", "active")
    for key in ("instance_uuid", "provision_updated_at"):
        assert (after[key] != before[key]) == is_replaced
    assert planned(site, marked, of_marked())["steps"] == []
