"""Timeline: what happened to a node, how long that takes as a rule, and when it will end."""

from __future__ import annotations

import json
import uuid as uuids
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from bloomery.db import rows, steps
from bloomery.db.engine import Meter
from bloomery.db.tables import NODE_HISTORY, STEP_RUNS
from bloomery.model.step import Run, Step, StepRun

PASSWORD = "hunter2-timeline"


def timeline(stage, node, query=""):
    answer = stage.api.get(f"/ext/v1/nodes/{node}/timeline{query}")
    assert answer.status == 200, answer.body
    assert PASSWORD not in json.dumps(answer.json)
    return answer.json


def ran(stage, node, step, *seconds, phase="deploy", state=Run.DONE, ago=timedelta(days=1)):
    """Let a step have run on the node before, so long each time."""
    began = rows.now() - ago
    for took in seconds:
        run = StepRun(
            flow=str(uuids.uuid4()), node_uuid=node, phase=phase, position=0, state=state,
            step=Step(interface="deploy", step=step), started_at=began,
            finished_at=began + timedelta(seconds=took),
        )  # fmt: skip
        insert_finished(stage, run)


def insert_finished(stage, run):
    """Write a step that has ended, as it is written: its beginning, then its end."""

    def work(conn):
        steps.insert(conn, steps.encode([run]))
        steps.change(conn, run.flow, run.position, {"finished_at": run.finished_at})

    stage.site.db.transact(work)


def begin_earlier(stage, node, seconds):
    """Let the step that goes on have begun so many seconds ago."""
    here = STEP_RUNS.c.node_uuid == node, STEP_RUNS.c.state == Run.WAITING
    change = sa.update(STEP_RUNS).where(*here)
    at = rows.now() - timedelta(seconds=seconds)
    stage.site.db.transact(lambda conn: conn.execute(change.values(started_at=at)))
    return at


def waiting(stage, **values):
    """Return a node whose deployment waits for the agent's call."""
    node = stage.bring_to("available", {"wait": {"deploy.deploy": -1}}, **values)
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    return node


def test_deployment_is_told_newest_first(stage):
    node = stage.bring_to("active")
    told = timeline(stage, node)
    times = [entry["at"] for entry in told["timeline"]]
    assert times == sorted(times, reverse=True)
    assert told["running"] is None
    [step] = [each for each in told["timeline"] if each.get("name") == "deploy.deploy"]
    assert (step["flow"], step["state"], step["internal"]) == ("deploy", "done", False)
    assert step["at"] <= step["ended_at"]
    assert step["duration_s"] >= 0
    assert step["conductor"] == stage.site.runtime.host
    moves = [each for each in told["timeline"] if each["kind"] == "event"]
    assert all("duration_s" not in move and move["since_previous_s"] >= 0 for move in moves)
    events = [move["event"] for move in moves]
    assert "deploying -> active on done" in events
    steps_told = {each["name"] for each in told["timeline"] if each["kind"] == "step"}
    journal = {f"{row['interface']}.{row['step']}" for row in stage.site.runs(node)}
    assert steps_told == journal


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_tell_everything_once(stage, limit):
    node = stage.bring_to("active")
    whole = timeline(stage, node)["timeline"]
    pages, path = [], f"/ext/v1/nodes/{node}/timeline?limit={limit}"
    while path:
        document = stage.api.get(path).json
        assert len(document["timeline"]) <= limit
        pages += document["timeline"]
        path = document.get("next", "").removeprefix("http://localhost")
    assert [each["marker"] for each in pages] == [each["marker"] for each in whole]


def test_pages_do_not_lose_what_happened_at_one_time(stage):
    node = stage.bring_to("available")
    at = rows.now()
    stage.site.db.transact(lambda conn: [
        conn.execute(sa.update(NODE_HISTORY).values(created_at=at)),
        conn.execute(sa.update(STEP_RUNS).where(STEP_RUNS.c.started_at.is_not(None))
                     .values(started_at=at)),
    ])  # fmt: skip
    whole, markers, query = timeline(stage, node)["timeline"], [], "?limit=1"
    while page := timeline(stage, node, query)["timeline"]:
        markers += [each["marker"] for each in page]
        query = f"?limit=1&marker={markers[-1]}"
    assert markers == [each["marker"] for each in whole]
    assert len(set(markers)) == len(markers)


@pytest.mark.parametrize("marker", ["s999999", "x1", "s", "s-1", "s٣", "e" + "9" * 40, "%00"])
def test_marker_that_is_not_there_is_refused(stage, marker):
    node = stage.enrol()
    answer = stage.api.get(f"/ext/v1/nodes/{node}/timeline?marker={marker}")
    assert answer.status == 400


def test_marker_of_another_node_is_refused(stage):
    first, second = stage.enrol(), stage.enrol()
    [entry, *_] = timeline(stage, stage.bring_to("manageable"))["timeline"]
    for node in (first, second):
        path = f"/ext/v1/nodes/{node}/timeline?marker={entry['marker']}"
        assert stage.api.get(path).status == 400


@pytest.mark.parametrize("query", ["?limit=0", "?limit=-1", "?limit=x", "?sort_key=at"])
def test_bad_arguments_are_refused(stage, query):
    node = stage.enrol()
    assert stage.api.get(f"/ext/v1/nodes/{node}/timeline{query}").status == 400


def test_node_that_nobody_knows(stage):
    assert stage.api.get("/ext/v1/nodes/nobody/timeline").status == 404


def test_secrets_are_masked(stage):
    info = {"redfish_password": PASSWORD, "redfish_address": "https://bmc.test"}
    node = stage.bring_to("available", {"fail": ["deploy.deploy"]}, driver_info=info)
    stage.ask(node, "active")
    stage.wait_for(node, "deploy failed")
    stage.site.db.transact(lambda conn: conn.execute(
        sa.update(STEP_RUNS).where(STEP_RUNS.c.state == Run.FAILED)
        .values(error=f"password={PASSWORD}")
    ))  # fmt: skip
    stage.site.db.transact(lambda conn: conn.execute(
        sa.update(NODE_HISTORY).values(event=f"password={PASSWORD}")
    ))  # fmt: skip
    failed = [each for each in timeline(stage, node)["timeline"] if each.get("state") == "failed"]
    assert [each["name"] for each in failed] == ["deploy.deploy"]


# ---------------------------------------------------------------------------- how long it takes


def test_step_is_compared_with_runs_on_nodes_of_its_kind(stage):
    node = waiting(stage, resource_class="large")
    like = stage.enrol(resource_class="large")
    ran(stage, like, "deploy", *range(1, 101))
    ran(stage, like, "deploy", 5000, state=Run.FAILED)
    ran(stage, like, "deploy", 5000, phase="clean")
    ran(stage, stage.enrol(resource_class="small"), "deploy", 5000)
    ran(stage, stage.enrol(), "deploy", 5000)
    told = timeline(stage, node)
    assert told["compared_with"] == {"driver": "fake-hardware", "resource_class": "large"}
    usual = {"runs": 100, "median_s": 50.5, "p95_s": 96.0}
    assert told["running"]["usual"] == usual
    [step] = [each for each in told["timeline"] if each.get("name") == "deploy.deploy"]
    assert step["usual"] == usual


def test_nodes_without_a_class_are_a_kind_of_their_own(stage):
    node = waiting(stage)
    ran(stage, stage.enrol(), "deploy", 10)
    ran(stage, stage.enrol(resource_class="large"), "deploy", 5000)
    assert timeline(stage, node)["running"]["usual"]["median_s"] == 10


def test_statistics_read_so_many_rows_at_most(stage, monkeypatch):
    from bloomery.operations import timeline as module

    node = waiting(stage)
    monkeypatch.setattr(module, "_RUNS_COMPARED", 20)
    ran(stage, stage.enrol(), "deploy", *[5000] * 30)
    ran(stage, stage.enrol(), "deploy", *[10] * 20)
    assert timeline(stage, node)["running"]["usual"] == {
        "runs": 20, "median_s": 10, "p95_s": 10,
    }  # fmt: skip


def test_statements_do_not_grow_with_the_page(stage):
    node = stage.bring_to("active")
    meter = Meter(stage.site.db)
    timeline(stage, node, "?limit=10")
    first = len(meter.statements)
    for _ in range(3):
        stage.ask(node, "rebuild")
        stage.wait_for(node, "active")
    meter = Meter(stage.site.db)
    timeline(stage, node, "?limit=1000")
    steps_known = len({(row["phase"], row["step"]) for row in stage.site.runs(node)})
    assert len(meter.statements) <= first + steps_known


# -------------------------------------------------------------------------------- when it ends


def test_end_of_a_step_is_what_it_took_elsewhere(stage):
    node = waiting(stage)
    ran(stage, stage.enrol(), "deploy", 100, 200, 300)
    began = begin_earlier(stage, node, 10)
    running = timeline(stage, node)["running"]
    assert (running["flow"], running["step"]) == ("deploy", "deploy.deploy")
    assert 10 <= running["step_elapsed_s"] < 60
    assert datetime.fromisoformat(running["step_ends_at"]) == began + timedelta(seconds=200)
    assert running["is_late"] is False


def test_end_of_a_slow_step_is_that_of_those_that_were_as_slow(stage):
    node = waiting(stage)
    ran(stage, stage.enrol(), "deploy", *[100] * 40, 400, 600, 800)
    began = begin_earlier(stage, node, 150)
    running = timeline(stage, node)["running"]
    assert datetime.fromisoformat(running["step_ends_at"]) == began + timedelta(seconds=600)


def test_step_that_is_slower_than_ever_is_late_and_has_no_end(stage):
    node = waiting(stage)
    ran(stage, stage.enrol(), "deploy", 100, 200)
    begin_earlier(stage, node, 900)
    running = timeline(stage, node)["running"]
    assert (running["is_late"], running["step_ends_at"], running["flow_ends_at"]) == (
        True, None, None,
    )  # fmt: skip


def test_step_that_nobody_ever_ran_has_no_end(stage):
    node = waiting(stage)
    running = timeline(stage, node)["running"]
    assert (running["usual"], running["is_late"], running["step_ends_at"]) == (None, None, None)


def test_end_of_the_flow_adds_the_steps_that_are_planned(stage):
    node = waiting(stage)
    like = stage.enrol()
    ran(stage, like, "deploy", 100)
    began = begin_earlier(stage, node, 10)
    running = timeline(stage, node)["running"]
    ahead = [each["name"] for each in running["ahead"]]
    planned = [row for row in stage.site.runs(node) if row["state"] == "planned"]
    assert ahead == [f"{row['interface']}.{row['step']}" for row in planned]
    if ahead:
        assert running["flow_ends_at"] is None, "nobody knows how long the others take"
    for row in planned:
        run = {"phase": row["phase"], "interface": row["interface"]}
        finished = StepRun(
            flow=str(uuids.uuid4()), node_uuid=like, position=0, state=Run.DONE,
            phase=run["phase"], step=Step(interface=run["interface"], step=row["step"]),
            started_at=rows.now() - timedelta(seconds=30), finished_at=rows.now(),
        )  # fmt: skip
        insert_finished(stage, finished)
    running = timeline(stage, node)["running"]
    ends = datetime.fromisoformat(running["flow_ends_at"])
    expected = began + timedelta(seconds=100 + 30 * len(planned))
    assert abs(ends - expected) < timedelta(seconds=1 + len(planned))


def test_step_that_is_held_ends_when_its_operator_says(stage):
    node = stage.bring_to("manageable")
    hold = {"interface": "deploy", "step": "hold", "args": {}}
    stage.ask(node, "clean", clean_steps=[hold])
    stage.wait_for(node, "clean hold")
    ran(stage, stage.enrol(), "hold", 100, phase="clean")
    running = timeline(stage, node)["running"]
    assert (running["state"], running["step_ends_at"]) == ("held", None)
    stage.ask(node, "unhold")
    stage.let_agents_call(node, "manageable")
