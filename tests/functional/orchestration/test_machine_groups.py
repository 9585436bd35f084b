"""A group of machines on a whole service with fake hardware: made, rolled out upon, told of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.orchestration.test_machines import CLASS, IMAGE, enrol, ironic, why_of
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def group_of(image: str, canary: dict[str, Any] | None = None, count: int = 2) -> dict[str, Any]:
    """A template of workers."""
    workers = {
        "type": "OS::Ironic::InstanceGroup",
        "properties": {
            "count": count,
            "member": {
                "name": "worker-%index%", "image": {**IMAGE, "source": image},
                "selector": {"resource_class": CLASS},
            },
        },
        "update_policy": {
            "rolling_update": {"health_gate": {"settle_seconds": 0}}, "canary": canary or {},
        },
    }  # fmt: skip
    names = ("ready_count", "updated_count", "degraded", "rollout", "nodes")
    outputs = {name: {"value": {"get_attr": ["workers", name]}} for name in names}
    return template({"workers": workers}, outputs=outputs)


def outputs_of(stack: dict[str, Any]) -> dict[str, Any]:
    return {each["output_key"]: each["output_value"] for each in stack["outputs"]}


def images(site: Orchestration) -> list[str]:
    nodes = ironic(site, "GET", "/v1/nodes/detail")[1]["nodes"]
    return sorted(node["instance_info"]["image_source"] for node in nodes)


def told(site: Orchestration, path: str) -> list[tuple[str, str]]:
    """The events of the group, the oldest first."""
    events = site.ask("GET", f"{path}/resources/workers/events?sort_dir=asc")[1]["events"]
    return [(each["resource_status"], each["resource_status_reason"]) for each in events]


def test_a_new_image_goes_to_a_canary_and_after_a_signal_to_all(site: Orchestration) -> None:
    for number in (1, 2):
        enrol(site, f"n{number}", ports=[{"address": f"52:54:00:00:01:0{number}"}])
    path = site.create("workers", group_of("http://images/a.img"))
    shown = outputs_of(site.wait_for(path, "CREATE_COMPLETE"))
    assert (shown["ready_count"], shown["updated_count"], shown["degraded"]) == (2, 2, [])
    assert len(shown["nodes"]) == 2

    new = group_of("http://images/b.img", {"size": 1, "require_signal": True})
    assert site.ask("PUT", path, {"template": new})[0] == 202
    wait_for(
        lambda: "paused" in site.resources(path)["workers"]["resource_status_reason"],
        "the roll-out to pause", timeout_s=60,
    )  # fmt: skip
    reason = site.resources(path)["workers"]["resource_status_reason"]
    assert reason == (
        "roll-out paused after batch 1 of 2, signal one of continue, abort, rollback: "
        "the canary is up"
    )
    assert images(site) == ["http://images/a.img", "http://images/b.img"]
    assert told(site, path)[-1] == ("UPDATE_IN_PROGRESS", reason)
    advice = why_of(site, path)["next_action"]
    assert advice.startswith(
        """openstack stack resource signal workers workers --data '{"rollout": "continue"}'; """
    )
    refused = site.ask("POST", f"{path}/resources/workers/signal", {"rollout": "kontinue"})
    assert refused[0] == 400

    signal = {"rollout": "continue"}
    assert site.ask("POST", f"{path}/resources/workers/signal", signal)[0] == 200
    shown = outputs_of(site.wait_for(path, "UPDATE_COMPLETE"))
    assert shown["rollout"]["state"] == "complete"
    assert images(site) == ["http://images/b.img"] * 2
    assert ("SIGNAL_COMPLETE", "Signal: roll-out: continue") in told(site, path)
    assert [each for _state, each in told(site, path)].count(reason) == 1
    assert site.ask("POST", f"{path}/resources/workers/signal", signal)[0] == 400

    fewer = group_of("http://images/c.img", {"size": 1, "require_signal": True}, count=1)
    assert site.ask("PUT", path, {"template": fewer})[0] == 202
    wait_for(lambda: "paused" in site.resources(path)["workers"]["resource_status_reason"],
             "the second pause", timeout_s=60)  # fmt: skip
    [leaving] = why_of(site, path)["leaving"]
    assert (leaving["path"], leaving["resource"]) == ("workers/1", "1")
    assert site.ask("POST", f"{path}/resources/workers/signal", signal)[0] == 200
    site.wait_for(path, "UPDATE_COMPLETE")
    assert why_of(site, path)["leaving"] == []
