"""Activity: what happened on the site, what failed, and which steps are slow."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from bloomery.conductor import writes
from bloomery.db import timelines
from bloomery.model.node_facts import ALARM, POWER_CORRECTION
from bloomery.model.step import Run
from tests.functional.stories.test_timeline import ran, waiting


def activity(stage, query="", code=200):
    answer = stage.api.get(f"/ext/v1/activity{query}")
    assert answer.status == code, answer.body
    return answer.json


def lanes(document):
    """Return what ended and what failed, by lane."""
    return {lane["name"]: (sum(lane["done"]), sum(lane["failed"])) for lane in document["lanes"]}


def test_nothing_happened_too(stage):
    document = activity(stage)
    assert (document["lanes"], document["failures"], document["steps"]) == ([], [], [])
    assert document["read_since"] == document["since"]
    since, until = map(datetime.fromisoformat, (document["since"], document["until"]))
    assert until - since == timedelta(hours=24)


def test_deployments_are_counted_by_their_end(stage):
    stage.bring_to("active", driver="fake-hardware")
    broken = stage.bring_to("available", {"fail": ["deploy.deploy"]})
    stage.ask(broken, "active")
    stage.wait_for(broken, "deploy failed")
    waiting(stage)  # a flow that goes on is in no lane
    document = activity(stage)
    assert lanes(document)["deploy"] == (1, 1)
    [failure] = document["failures"]
    assert (failure["phase"], failure["step"], failure["count"]) == ("deploy", "deploy", 1)
    assert "deploy.deploy" in failure["error"]
    assert [node["uuid"] for node in failure["nodes"]] == [broken]


def test_steps_are_those_that_took_most_time_first(stage):
    node = stage.enrol(resource_class="gpu")
    ran(stage, node, "write_image", 300, 200, 400, ago=timedelta(hours=2))
    ran(stage, node, "boot", 20, ago=timedelta(hours=2))
    ran(stage, node, "boot", 9, state=Run.FAILED, ago=timedelta(hours=2))
    ran(stage, node, "old", 9999, ago=timedelta(hours=30))
    write, boot = activity(stage)["steps"]
    assert (write["step"], write["runs"], write["median_s"], write["p95_s"]) == (
        "write_image", 3, 300, 400,
    )  # fmt: skip
    assert (write["driver"], write["resource_class"]) == ("fake-hardware", "gpu")
    assert (boot["step"], boot["runs"], boot["failed"], boot["total_s"]) == ("boot", 1, 1, 20)
    assert activity(stage, "?hours=48")["steps"][0]["step"] == "old"


def test_a_flow_stands_in_the_span_of_its_end(stage):
    node = stage.enrol()
    ran(stage, node, "deploy", 60, ago=timedelta(hours=5))
    [lane] = activity(stage, "?hours=10")["lanes"]
    assert [number for number, count in enumerate(lane["done"]) if count] == [30]


@pytest.mark.parametrize(
    ("event_type", "more", "lane"),
    [
        (POWER_CORRECTION, {"warns": True}, {"power corrections": (0, 1)}),
        (ALARM, {"failed": True}, {"alarms": (0, 1)}),
        (ALARM, {}, {}),  # good news
        ("bmc", {"warns": True}, {}),
    ],
)
def test_corrections_and_alarms_have_lanes(stage, event_type, more, lane):
    node = stage.enrol()
    with stage.site.acquire(node, purpose="test") as task:
        entry = writes.history_entry(task.context, task.node, "x", event_type=event_type, **more)
        task.save(entry)
    assert lanes(activity(stage)) == lane


def test_what_was_not_read_is_said(stage, monkeypatch):
    node = stage.enrol()
    ran(stage, node, "boot", 1, 2, 3, ago=timedelta(hours=1))
    monkeypatch.setattr(timelines, "_ROWS_EXAMINED", 2)
    document = activity(stage)
    assert document["steps"][0]["runs"] == 2
    assert document["since"] < document["read_since"] <= document["until"]


@pytest.mark.parametrize("hours", [0, -1, 8785, "x"])
def test_hours_are_of_a_year(stage, hours):
    assert b"hours" in stage.api.get(f"/ext/v1/activity?hours={hours}").body
    assert activity(stage, f"?hours={hours}", 400)
