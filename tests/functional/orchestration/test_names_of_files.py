"""One nested template under the names that two clients give it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kit.servers.orchestration import Orchestration, template

SLOT = """
heat_template_version: 2021-04-16
parameters:
  fail: {type: boolean}
resources:
  sound: {type: OS::Heat::RandomString}
  it: {type: OS::Heat::TestResource, properties: {fail: {get_param: fail}}}
"""
OURS, THEIRS = "slot.yaml", "file:///home/slot.yaml"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def body(name: str, *, fail: bool) -> dict[str, Any]:
    """A group of nested stacks, and one beside it, as a client sends them."""
    slot = {"type": name, "properties": {"fail": fail}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": slot}}
    return {"template": template({"group": group, "alone": slot}), "files": {name: SLOT}}


def update(site: Orchestration, path: str, name: str, end: str, *, fail: bool) -> None:
    status, answer = site.ask("PUT", path, body(name, fail=fail))
    assert status == 202, answer
    site.wait_for(path, end)


def parts(site: Orchestration, path: str) -> Mapping[tuple[str, str], str]:
    """Return the ids of the healthy resources below, by their places."""
    listed = site.ask("GET", f"{path}/resources?nested_depth=3")[1]["resources"]
    return {
        (each.get("parent_resource", ""), each["links"][1]["href"]): each["physical_resource_id"]
        for each in listed
        if each["resource_name"] == "sound"
    }


def test_another_name_of_a_template_makes_nothing_anew(site: Orchestration) -> None:
    sent = body(OURS, fail=False)
    path = site.create("web", sent["template"], files=sent["files"])
    site.wait_for(path, "CREATE_COMPLETE")
    before = parts(site, path)
    assert len(before) == 3
    for name in (THEIRS, THEIRS, OURS, OURS):
        update(site, path, name, "UPDATE_FAILED", fail=True)
        assert parts(site, path) == before, name
        for other in (THEIRS, OURS):
            status, answer = site.ask("PUT", f"{path}/preview", body(other, fail=True))
            assert status == 200, answer
            assert answer["resource_changes"]["replaced"] == [], (name, other)
            replaced = {each["resource"] for each in answer["plan"]["steps"]
                        if "made anew" in each["reason"]}  # fmt: skip
            assert replaced == {"alone/it", "group/0/it", "group/1/it"}, (name, other)
    update(site, path, THEIRS, "UPDATE_COMPLETE", fail=False)
    assert parts(site, path) == before


def test_what_is_left_of_another_template_can_be_planned_with(site: Orchestration) -> None:
    bad = {"type": "OS::Heat::TestResource", "properties": {"fail": False}}
    sent = body(OURS, fail=False)
    sent["template"]["resources"]["bad"] = {**bad, "depends_on": ["group", "alone"]}
    path = site.create("web", sent["template"], files=sent["files"])
    site.wait_for(path, "CREATE_COMPLETE")
    fails = template({"bad": {**bad, "properties": {"fail": True}}})
    status, answer = site.ask("PUT", path, {"template": fails})
    assert status == 202, answer
    site.wait_for(path, "UPDATE_FAILED")
    assert {"group", "alone", "bad"} == set(site.resources(path))
    status, answer = site.ask("PUT", f"{path}/preview", body(THEIRS, fail=False))
    assert status == 200, answer
    assert answer["resource_changes"]["replaced"] == []
    update(site, path, THEIRS, "UPDATE_COMPLETE", fail=False)
