"""Stacks of a whole service in one process, over HTTP: made, left behind, and gone on with."""

from __future__ import annotations

import email.utils
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def test_a_service_without_stacks_has_an_engine_and_an_empty_list(site: Orchestration) -> None:
    assert site.ask("GET", "/stacks") == (200, {"stacks": []})
    status, document = site.ask("GET", "/services")
    assert status == 200
    [engine] = document["services"]
    assert (engine["status"], engine["topic"]) == ("up", "engine")


def test_checks_of_templates_wait_for_their_turn(site: Orchestration) -> None:
    """As many as half of the threads: a client that is sent away asks no second time."""
    jobs = site.service.services.heavy_jobs
    jobs._waits_s = (0, jobs._waits_s[1])  # who is not patient is sent away at once
    count = site.service.conf.orchestration.threads // 2
    with ThreadPoolExecutor(count) as clients:
        with jobs.enter():
            asked = [
                clients.submit(site.ask, "POST", "/validate", {"template": template({})})
                for _ in range(count)
            ]
            wait_for(lambda: jobs._turn.waiting == count, "all of them to wait")
            status, document = site.ask("POST", "/validate", {"template": template({})})
            assert (status, document["error"]["type"]) == (503, "HeavyJobsBusy")
            assert below_the_other_api(site, "validate", template({})) == (503, "5")
            assert site.ask("GET", "/stacks")[0] == 200
        assert [each.result()[0] for each in asked] == [200] * count


def below_the_other_api(site: Orchestration, path: str, body: Any) -> tuple[int, str | None]:
    """Return the status and Retry-After; each answer has the date of the service."""
    request = urllib.request.Request(
        f"{site.service.url}/ext/v1/orchestration/v1/admin/{path}",
        json.dumps({"template": body}).encode(), {"Content-Type": "application/json"},
    )  # fmt: skip
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request)
    refusal.value.close()
    date = email.utils.parsedate_to_datetime(refusal.value.headers["Date"])
    assert abs(datetime.now(UTC) - date) < timedelta(minutes=1)
    return refusal.value.code, refusal.value.headers["Retry-After"]


def test_clouds_name_both_apis(site: Orchestration) -> None:
    cloud = yaml.safe_load(site._home.clouds.read_text())["clouds"]["bloomery"]
    assert cloud["auth"] == {"endpoint": site.url}
    assert cloud["orchestration_endpoint_override"] == site.url
    assert cloud["baremetal_endpoint_override"] == site.service.url


def test_stacks_and_workers_are_metrics(site: Orchestration) -> None:
    with urllib.request.urlopen(f"{site.service.url}/metrics") as answer:
        text = answer.read().decode()
    assert "bloomery_stack_trees 0.0" in text
    assert "bloomery_stack_workers_busy" in text


VALUES = template(
    {
        "a": {"type": "OS::Heat::Value", "properties": {"value": "x"}},
        "b": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["a", "value"]}}},
    },
    outputs={"out": {"value": {"get_attr": ["b", "value"]}}},
)


def test_a_stack_runs_to_its_end(site: Orchestration) -> None:
    stack = site.create("web", VALUES)
    shown = site.wait_for(stack, "CREATE_COMPLETE")
    assert [output["output_value"] for output in shown["outputs"]] == ["x"]
    assert {each["resource_status"] for each in site.resources(stack).values()} == {
        "CREATE_COMPLETE"
    }
    status, _ = site.ask("DELETE", stack)
    assert status == 204
    site.wait_for(stack, "DELETE_COMPLETE")
    assert site.ask("GET", "/stacks") == (200, {"stacks": []})
