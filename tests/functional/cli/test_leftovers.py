"""Machines that a failed replacement leaves over are named by all that is said of their stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.functional.cli.conftest import Run, write
from tests.functional.orchestration.test_machines import IMAGE, ironic, why_of
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

PLACES = ("plan", "down", "show", "why", "graph")


def rack(count: int) -> dict[str, Any]:
    nodes = {
        f"n{number}": {
            "type": "OS::Ironic::Node",
            "properties": {
                "name": f"left-{number}", "driver": "fake-hardware", "resource_class": "bm.left",
                "ports": [{"address": f"52:54:00:00:09:{number:02x}"}],
            },
        }
        for number in range(count)
    }  # fmt: skip
    return template(nodes)


def webs(image: str) -> dict[str, Any]:
    """Four machines, whose image changes by replacement, and a resource that requires them all.

    It keeps the old machines until all new ones are there, however long each of them takes.
    """
    properties = {
        "selector": {"resource_class": "bm.left"}, "image_update_policy": "replace",
        "image": {**IMAGE, "source": f"http://images/{image}.img"},
    }  # fmt: skip
    web = {"type": "OS::Ironic::Instance", "properties": properties}
    names = [f"web{number}" for number in range(4)]
    value = {"type": "OS::Heat::Value", "depends_on": names, "properties": {"value": image}}
    return template(dict.fromkeys(names, web) | {"all": value})


def used(site: Orchestration) -> dict[str, dict[str, Any]]:
    """Return the machines that are in use, by name of the node."""
    _, document = ironic(site, "GET", "/v1/nodes/detail?resource_class=bm.left")
    return {node["name"]: node for node in document["nodes"] if node["instance_uuid"]}


def images(site: Orchestration) -> list[str]:
    return sorted(each["instance_info"]["image_source"][-5] for each in used(site).values())


def planned(site: Orchestration, path: str, document: dict[str, Any]) -> set[str]:
    """Return the nodes that lose data by a plan."""
    status, preview = site.ask("PUT", f"{path}/preview", {"template": document})
    assert status == 200, preview
    return {step["node"] for step in preview["plan"]["steps"] if step["loses_data"]}


@pytest.fixture(scope="module")
def webs_path(site: Orchestration) -> str:
    """The path of a stack of four machines, whose update has failed after two of them."""
    site.wait_for(site.create("racks", rack(10)), "CREATE_COMPLETE")
    path = site.create("webs", webs("a"))
    site.wait_for(path, "CREATE_COMPLETE")
    fail(site, path)
    return path


def update(site: Orchestration, path: str, document: dict[str, Any], state: str) -> None:
    assert site.ask("PUT", path, {"template": document})[0] == 202
    site.wait_for(path, state)
    wait_for(lambda: not why_of(site, path)["waiting"], "actions that go on")


def fail(site: Orchestration, path: str) -> None:
    """Let an update of four machines fail where two are free."""
    _, document = ironic(site, "GET", "/v1/nodes?resource_class=bm.left&associated=false")
    withheld = [node["uuid"] for node in document["nodes"]][2:]
    for method, state in (("PUT", "UPDATE_FAILED"), ("DELETE", "")):
        for uuid in withheld:
            assert ironic(site, method, f"/v1/nodes/{uuid}/maintenance", {})[0] == 202
        if state:
            update(site, path, webs("b"), state)
    assert images(site) == list("aaaabb")


@pytest.mark.parametrize("place", PLACES)
def test_each_place_names_each_machine_that_is_left_over(
    site: Orchestration, run: Run, tmp_path: Path, webs_path: str, place: str
) -> None:
    file = write(tmp_path, "webs.yaml", webs("b"))
    commands = {"plan": f"stack plan {file} webs", "down": "stack down webs"}
    if place == "graph":
        lines = [json.dumps(each) for each in why_of(site, webs_path, "graph")["nodes"]]
    else:
        lines = run(commands.get(place, f"stack {place} webs"), input="n\n").output.splitlines()
    for name, node in used(site).items():
        if place in ("plan", "why") and node["instance_info"]["image_source"].endswith("b.img"):
            continue  # it is current, and stays
        (line,) = [each for each in lines if f"node {name}" in each or node["uuid"] in each]
        is_leftover = node["instance_info"]["image_source"].endswith("a.img")
        assert ("left" in line.replace("left-", "") and '"leftover": false' not in line) or (
            place == "plan" or not is_leftover
        ), line


@pytest.mark.parametrize(
    ("document", "kept"),
    [(webs("a"), "aaaa"), (webs("b"), "bb"), (webs("c"), ""), (template({}), "")],
    ids=["the old template", "the same again", "a third one", "deletion"],
)
def test_the_next_update_takes_away_what_its_plan_names(
    site: Orchestration, webs_path: str, document: dict[str, Any], kept: str
) -> None:
    if not why_of(site, webs_path)["leftover"]:
        update(site, webs_path, webs("a"), "UPDATE_COMPLETE")
        fail(site, webs_path)
    before = used(site)
    lost = planned(site, webs_path, document)
    update(site, webs_path, document, "UPDATE_COMPLETE")
    after = used(site)
    stay = {name for name, node in before.items()
            if name in after and after[name]["instance_uuid"] == node["instance_uuid"]}  # fmt: skip
    assert set(before) - stay == lost
    assert [before[name]["instance_info"]["image_source"][-5] for name in stay] == list(kept)
    assert why_of(site, webs_path)["leftover"] == []
