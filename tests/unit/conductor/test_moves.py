"""Every edge of the table, walked by a task: what it writes, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from bloomery import errors
from bloomery.conductor import states
from bloomery.model.node import Node
from tests.kit.probes import state_tables
from tests.kit.servers.site import HOST, Site

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
EDGES = [pytest.param(*edge, id=f"{edge[0]}-{edge[1]}") for edge in state_tables.TRANSITIONS]
UNSTABLE = {state for state, word, _ in state_tables.CLASSES if "unstable" in word}
STABLE = {state for state, word, _ in state_tables.CLASSES if word == "stable"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("moves") / "site.sqlite")
    yield made
    made.close()


def stand(site: Site, state: str, **more: Any) -> str:
    target = states.TARGETS.get(state)
    node = site.enrol(provision_state=state, target_provision_state=target)
    said = {"provision_updated_at": LONG_AGO, "last_error": "of before"} | more
    site.set(node, **said)
    return node


def walk(site: Site, node: str, event: str, **more: Any) -> Node:
    with site.acquire(node) as task:
        task.process_event(event, **more)
    return site.node(node)


def aim_of(text: str) -> str | None:
    return None if text == "none" else text


def done(*_args: Any, **_more: Any) -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


@pytest.mark.sampled
@pytest.mark.parametrize(("source", "event", "target", "aim"), EDGES)
def test_a_move_writes_state_target_and_time(
    site: Site, source: str, event: str, target: str, aim: str
):
    node = stand(site, source)
    moved = walk(site, node, event)
    assert (moved.provision_state, moved.target_provision_state) == (target, aim_of(aim))
    assert moved.provision_updated_at is not None
    assert datetime.now(UTC) - moved.provision_updated_at < timedelta(minutes=1)
    assert moved.last_error == "of before"
    assert moved.reservation is None


@pytest.mark.sampled
@pytest.mark.parametrize(("source", "event", "target", "aim"), EDGES)
def test_a_move_with_a_worker_clears_the_error_and_keeps_its_aim(
    site: Site, source: str, event: str, target: str, aim: str
):
    moved = walk(site, stand(site, source), event, callback=done)
    assert moved.provision_state == target
    assert moved.last_error is None
    machine = states.at(source, states.TARGETS.get(source))
    machine.process_event(event)
    assert moved.target_provision_state == machine.target_state


@pytest.mark.sampled
@pytest.mark.parametrize(("source", "event", "target", "aim"), EDGES)
def test_a_move_leaves_one_history_row_and_one_event_row(
    site: Site, source: str, event: str, target: str, aim: str
):
    node = stand(site, source)
    with site.acquire(node) as task:
        task.process_event(event)
        asked = task.context.request.request_id
    [entry] = site.history(node)
    assert (entry["state"], entry["target_provision_state"]) == (target, aim_of(aim))
    assert (entry["request_id"], entry["conductor"]) == (asked, HOST)
    assert entry["duration_seconds"] > 0
    row = site.events(node)[-1]
    status, level = told_of(source, event, target)
    assert (row["object"], row["action"]) == ("node", "provision_set")
    assert (row["status"], row["level"]) == (status, level)
    assert row["request_id"] == asked
    facts = orjson.loads(row["facts"])
    assert facts["event"] == event
    assert facts["previous_provision_state"] == source
    assert facts["previous_target_provision_state"] == states.TARGETS.get(source)


def told_of(source: str, event: str, target: str) -> tuple[str, str]:
    """Status and level of the notification: the first rule that fits (spec: level and status)."""
    if event in ("fail", "error"):
        return "error", "error"
    if source not in UNSTABLE and target in UNSTABLE:
        return "start", "info"
    if source in UNSTABLE and target not in UNSTABLE:
        return "end", "info"
    return "success", "info"


@pytest.mark.sampled
@pytest.mark.parametrize(("source", "event", "target", "aim"), EDGES)
def test_a_move_stamps_the_times_of_inspection(
    site: Site, source: str, event: str, target: str, aim: str
):
    node = stand(site, source, inspection_started_at=LONG_AGO, inspection_finished_at=LONG_AGO)
    moved = walk(site, node, event)
    began, ended = moved.inspection_started_at, moved.inspection_finished_at
    inspecting = source in ("inspecting", "inspect wait")
    if target == "inspecting":
        assert began == moved.provision_updated_at
        assert ended is None
    elif inspecting and target == "manageable":
        assert began is None
        assert ended == moved.provision_updated_at
    elif inspecting and target == "inspect failed":
        assert (began, ended) == (None, LONG_AGO)
    else:
        assert (began, ended) == (LONG_AGO, LONG_AGO)


def test_an_error_that_is_given_is_written_and_remembered(site: Site):
    node = stand(site, "deploying")
    moved = walk(site, node, "fail", last_error="the disk is on fire")
    assert moved.last_error == "the disk is on fire"
    [entry] = site.history(node)
    assert (entry["event"], entry["severity"]) == ("the disk is on fire", "ERROR")


def test_an_error_is_cut_to_its_column_and_shows_no_secret(site: Site):
    moved = walk(site, stand(site, "deploying"), "fail", last_error="x" * 9999)
    assert moved.last_error is not None
    assert len(moved.last_error) == site.runtime.conf.default.log_in_db_max_size


def test_a_target_that_is_given_wins(site: Site):
    moved = walk(site, stand(site, "manageable"), "clean", target_state="manageable", callback=done)
    assert moved.target_provision_state == "manageable"


def test_a_move_that_is_not_drawn_touches_nothing_and_names_what_is(site: Site):
    node = stand(site, "available")
    before = site.node(node)
    with (
        site.acquire(node) as task,
        pytest.raises(errors.InvalidState, match="deploy, manage") as told,
    ):
        task.process_event("provide")
    assert told.value.status == 409
    after = site.node(node)
    after.lock_generation = before.lock_generation
    assert after == before
    assert site.history(node) == []


def test_a_shared_task_moves_nothing(site: Site):
    node = stand(site, "available")
    with site.acquire(node, shared=True) as task, pytest.raises(errors.ExclusiveLockRequired):
        task.process_event("deploy")
    assert site.node(node).provision_state == "available"


def test_the_previous_states_and_the_event_are_kept_under_their_names(site: Site):
    node = stand(site, "cleaning")
    with site.acquire(node) as task:
        task.process_event("wait")
        assert task._prev_provision_state == "cleaning"
        assert task._prev_target_provision_state == "available"
        assert task._event == "wait"


def test_each_move_of_one_task_starts_where_the_last_one_ended(site: Site):
    node = stand(site, "available")
    with site.acquire(node) as task:
        for event in ("deploy", "wait", "resume", "done"):
            task.process_event(event)
        assert task.fsm.current_state == "active"
    said = [orjson.loads(row["facts"])["event"] for row in site.events(node)[2:]]
    assert said == ["deploy", "wait", "resume", "done"]
    assert [entry["state"] for entry in site.history(node)] == [
        "deploying", "wait call-back", "deploying", "active",
    ]  # fmt: skip


def test_history_can_be_switched_off(tmp_path: Path, make_site):
    site = make_site(node_history=False)
    node = stand(site, "available")
    walk(site, node, "deploy")
    assert site.history(node) == []
    assert site.node(node).provision_state == "deploying"
