"""One machine of a stack is replaced, or written again, and the others stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.orchestration.test_machines import IMAGE, SLOT, WEB, enrol, node_of, why_of
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

REASON = "its fans fail"
WORKERS = {
    "type": "OS::Ironic::InstanceGroup",
    "properties": {
        "count": 2,
        "member": {
            "name": "worker-%index%", "selector": {"resource_class": "bm.test"}, "image": IMAGE,
        },
    },
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        for name in ("n1", "n2", "n3"):
            enrol(running, name, ports=[])
        yield running


def instance(name: str, **more: Any) -> dict[str, Any]:
    properties = {"name": name, "selector": {"resource_class": "bm.test"}, "image": IMAGE}
    return {"type": "OS::Ironic::Instance", "properties": properties | more}


def make(site: Orchestration, **resources: Any) -> str:
    path = site.create("web", template(resources))
    site.wait_for(path, "CREATE_COMPLETE")
    return path


def machine(site: Orchestration, path: str, name: str) -> dict[str, Any]:
    return node_of(site, site.resources(path)[name]["physical_resource_id"])


def members(site: Orchestration, path: str) -> dict[str, str]:
    _, document = site.ask("GET", f"{path}/resources?nested_depth=2")
    return {
        each["resource_name"]: each["physical_resource_id"]
        for each in document["resources"]
        if each["resource_type"] == "OS::Ironic::Instance"
    }


def is_retired(site: Orchestration, uuid: str) -> None:
    """Wait until the node has left the pool, for the reason that was given."""
    wait_for(lambda: node_of(site, uuid)["provision_state"] == "manageable", "retired")
    node = node_of(site, uuid)
    assert (node["retired"], node["instance_uuid"]) == (True, None)
    assert REASON in node["retired_reason"]


@pytest.mark.parametrize("replace_order", ["create_first", "delete_first"])
def test_one_machine_is_replaced_and_the_old_one_leaves_the_pool(
    site: Orchestration, replace_order: str
) -> None:
    path = make(site, web=instance("web", replace_order=replace_order), db=instance("db"))
    old, other = machine(site, path, "web"), machine(site, path, "db")
    done = run(site, "stack", "replace", "web", "web", "--reason", REASON, "--yes")
    assert done.exit_code == 0, done.output
    assert f"(node {old['name']})" in done.output
    new = machine(site, path, "web")
    assert new["uuid"] not in (old["uuid"], other["uuid"])
    assert (new["provision_state"], new["retired"]) == ("active", False)
    assert machine(site, path, "db")["provision_updated_at"] == other["provision_updated_at"]
    is_retired(site, old["uuid"])
    newest = why_of(site, path, "revisions")["revisions"][0]
    assert (newest["state"], newest["counts"]["data_lost"]) == ("UPDATE_COMPLETE", 1)


def test_a_member_of_a_group_is_replaced(site: Orchestration) -> None:
    path = make(site, workers=WORKERS)
    before = members(site, path)
    name = min(before)
    done = run(site, "stack", "replace", "web", f"workers/{name}", "--reason", REASON, "--yes")
    assert done.exit_code == 0, done.output
    after = members(site, path)
    assert {each for each in before if before[each] != after[each]} == {name}
    is_retired(site, before[name])


@pytest.mark.parametrize("replace_order", ["create_first", "delete_first"])
def test_a_machine_that_is_kept_in_the_pool_becomes_available(
    site: Orchestration, replace_order: str
) -> None:
    path = make(site, web=instance("web", replace_order=replace_order))
    old = machine(site, path, "web")
    done = run(site, "stack", "replace", "web", "web", "--keep-in-pool", "--yes")
    assert done.exit_code == 0, done.output
    assert machine(site, path, "web")["uuid"] != old["uuid"]
    wait_for(lambda: node_of(site, old["uuid"])["provision_state"] == "available", "available")
    assert not node_of(site, old["uuid"])["retired"]


def test_one_machine_is_written_again(site: Orchestration) -> None:
    path = make(site, web=instance("web"), db=instance("db"))
    old, other = machine(site, path, "web"), machine(site, path, "db")
    done = run(site, "stack", "rebuild", "web", "web", "--yes")
    assert done.exit_code == 0, done.output
    assert "1 to rebuild (data lost)" in done.output
    new = machine(site, path, "web")
    assert (new["uuid"], new["provision_state"]) == (old["uuid"], "active")
    assert new["provision_updated_at"] > old["provision_updated_at"]
    assert machine(site, path, "db")["provision_updated_at"] == other["provision_updated_at"]
    newest = why_of(site, path, "revisions")["revisions"][0]["counts"]
    assert (newest["rebuilt"], newest["updated"], newest["data_lost"]) == (1, 0, 1)
    again = run(site, "stack", "plan", "web", "--revision", "1")
    assert "Nothing changes." in again.output  # the order was carried out once


def test_an_order_outlives_the_engine_that_took_it(site: Orchestration) -> None:
    path = make(site, web=instance("web"))
    old = machine(site, path, "web")
    order = {"resource_orders": {"web": {"action": "replace", "reason": REASON}}}
    assert site.ask("PATCH", path, order)[0] == 202
    site.restart()
    site.wait_for(path, "UPDATE_COMPLETE")
    assert machine(site, path, "web")["uuid"] != old["uuid"]
    is_retired(site, old["uuid"])


def test_an_order_without_another_machine_is_refused_in_its_plan(site: Orchestration) -> None:
    """The machine that is given back first is no use to its successor."""
    first = {f"m{n}": instance(f"m{n}", replace_order="delete_first") for n in range(3)}
    path = make(site, **first)
    body = {"resource_orders": {"m0": {"action": "replace"}}}
    status, preview = site.ask("PATCH", f"{path}/preview", body)
    assert status == 200, preview
    steps = {step["action"]: step["reason"] for step in preview["plan"]["steps"]}
    assert "no free node of class bm.test" in steps["refuse"]


def test_what_cannot_be_ordered_is_refused_by_name(site: Orchestration) -> None:
    path = make(site, slot=SLOT, web=WEB, note={"type": "OS::Heat::None"})
    before = site.stack(path)
    for words, sentence in (
        (("replace", "web", "web"), "whose template names its allocation"),
        (("replace", "web", "note"), "replace of note, a OS::Heat::None without a machine"),
        (("rebuild", "web", "slot"), "rebuild of slot, a OS::Ironic::Allocation without a"),
        (("rebuild", "web", "workers/0"), "workers/0"),
        (("rebuild", "other", "web"), "cannot find a stack called other"),
    ):
        refused = run(site, "stack", *words, "--yes")
        assert refused.exit_code == 1, refused.output
        assert sentence in refused.output, refused.output
    for order in ({"web": {"action": "sell"}}, {"web": "replace"}, ["web"]):
        status, answer = site.ask("PATCH", path, {"resource_orders": order})
        assert (status, "resource_orders" in answer["error"]["message"]) == (400, True), answer
    assert site.stack(path) == before
